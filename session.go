package rlx

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
)

// Inputs holds the input tensors of an entry by name.
type Inputs = map[string]native.Tensor

// Outputs holds the output tensors of an entry by name.
type Outputs = map[string]native.Tensor

// Session is an open device. Its methods may be called from several goroutines.
type Session struct {
	backend  native.Backend
	info     native.Info
	programs programs
}

// Open returns a session on the named device: "cpu", "cuda:1", "webgpu:vulkan". A list, such as
// "cuda,webgpu,cpu", is its first usable device. "" is the list in the environment variable
// RLX_DEVICE or, if that is unset, the fastest usable device ([Fastest]). See [ParsePolicy] for the
// form of lists. The errors are those of [Available], joined for a list without a usable device. In
// a process that a launcher has started, "cuda" is the GPU with the number of the process on its
// machine: see package native/collective/launch.
func Open(device string) (*Session, error) {
	policy, err := policyOf(device)
	if err != nil {
		return nil, err
	}
	return policy.open(nil)
}

// Device describes the session's device.
func (s *Session) Device() Device { return Device{Name: s.backend.Name(), Info: s.info} }

// Compile compiles the entries of a module and allocates the memory of the program. States start as
// zeros. Parameters start without a value, and an entry that reads one is refused until it has one:
// see [Program.Run].
//
// Symbolic sizes stay open: each call binds them by the shapes of its inputs, and the first call of
// a bucket of sizes compiles it ([CompileOptions.Sizes]). The error is of kind [ir.ErrUnsupported]
// for an op that cannot be padded, and of kind [ir.ErrSymbol] for a symbol that is not by itself
// the size of an input's axis.
func (s *Session) Compile(ctx context.Context, m *ir.Module) (*Program, error) {
	return s.CompileWith(ctx, m, CompileOptions{})
}

// CompileOptions are the options of [Session.CompileWith]. The zero value is that of
// [Session.Compile].
type CompileOptions struct {
	// Precision is the precision of matrix products, convolutions and attention; the default is
	// [AsWritten].
	Precision Precision
	// Tune measures candidate schedules of the kernels on the device and takes the fastest. It has
	// an effect on CUDA GPUs only. Results are cached in the user's cache folder, so only the first
	// compilation takes longer, by seconds.
	Tune bool
	// Memory limits the device memory of the program, in bytes. 0 means the environment variable
	// RLX_MEMORY ("8GiB") or, if that is unset, the memory of the device: see [native.Options]. If
	// the module needs more, the error is a [*native.MemoryError] and nothing is allocated.
	Memory int64
	// Mesh arranges the ranks that run the module together, for a module with collectives of several
	// devices; nil means one device. All ranks compile the same module at the same time: see
	// [native.Options].
	Mesh *collective.Mesh
	// Share is an open program of the session. The new program shares parameters and states of
	// equal names with it: they stay in the memory of Share and keep their values. Runs of both
	// programs are ordered as those of one program are. Use it to add an entry to a model in use,
	// for example one that generates text to one that trains. The error is of kind [ir.ErrShape]
	// for types that differ, and of kind [ir.ErrUnsupported] on Metal and Core ML. nil shares
	// nothing.
	Share *Program
	// Sizes sets the sizes to compile for, by symbol. A missing symbol has the zero [Size]: powers
	// of two.
	Sizes map[string]Size
	// Buckets bounds the number of cached programs for open sizes; the least recently used is
	// evicted first. 0 means 16. Memory bounds each of them.
	Buckets int
}

// CompileWith is [Session.Compile] with options. The error is of kind [ir.ErrAttr] for an option
// outside its domain.
func (s *Session) CompileWith(ctx context.Context, m *ir.Module, o CompileOptions) (*Program, error) {
	if err := s.given(ctx, "compile"); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, ir.Errorf(ir.ErrGraph, "no module given")
	}
	m, err := ir.NewModule(m.Name, m.Entries...) // checks a module that was built as a literal
	if err != nil {
		return nil, err
	}
	if err := optim.Check(m); err != nil {
		return nil, err
	}
	if err := checkSizes(m, o); err != nil {
		return nil, err
	}
	with, err := s.shared(o.Share)
	if err != nil {
		return nil, err
	}
	var p native.Program
	if isOpen(m) {
		p, err = s.open(ctx, m, o, with)
	} else {
		p, err = s.compile(ctx, m, o, with)
	}
	if err != nil {
		return nil, err
	}
	return s.own(ctx, p, unsetParams(m, o.Share))
}

// own returns a program of the session, or closes it if the session is closed.
func (s *Session) own(ctx context.Context, p native.Program, u *unset) (*Program, error) {
	out := &Program{Program: p, unset: u, owner: &s.programs}
	if err := s.programs.add(out); err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return out, nil
}

// shared returns the program of the device that shares its memory, nil for none.
func (s *Session) shared(p *Program) (native.Program, error) {
	if p == nil {
		return nil, nil
	}
	if _, ok := s.backend.(native.Sharer); !ok || p.owner != &s.programs {
		return nil, ir.Errorf(ir.ErrUnsupported, "Share is a program of another session, or device %q does not share memory between programs", s.backend.Name())
	}
	if open, ok := p.Program.(*openProgram); ok {
		return open.base, nil
	}
	return p.Program, nil
}

// compile compiles a module of constant sizes. It shares the parameters and states of with, a program
// of a [native.Sharer], unless with is nil.
func (s *Session) compile(ctx context.Context, m *ir.Module, o CompileOptions, with native.Program) (native.Program, error) {
	m, err := o.Precision.apply(m)
	if err != nil {
		return nil, err
	}
	options := native.Options{TF32: o.Precision == TF32, Tune: o.Tune, Memory: o.Memory, Mesh: o.Mesh}
	if with == nil {
		return s.backend.Compile(ctx, m, options)
	}
	return s.backend.(native.Sharer).CompileShared(ctx, m, options, with)
}

// Program is a compiled module and its memory on the device.
type Program struct {
	native.Program
	owner   *programs // the session, which closes it; nil without one
	unset   *unset
	trainer atomic.Pointer[Trainer] // the current trainer, which counts the steps
}

// Get returns the value of one parameter or state: see [native.Program.Get].
func (p *Program) Get(ctx context.Context, name string) (Tensor, error) {
	if err := p.given(ctx, "get"); err != nil {
		return Tensor{}, err
	}
	return p.Program.Get(ctx, name)
}

// GetAll returns the values of all parameters and states: see [native.Program.GetAll].
func (p *Program) GetAll(ctx context.Context) (map[string]Tensor, error) {
	if err := p.given(ctx, "get"); err != nil {
		return nil, err
	}
	return p.Program.GetAll(ctx)
}

// Call runs an entry, waits for it and returns its outputs.
func (p *Program) Call(ctx context.Context, entry string, in Inputs) (Outputs, error) {
	r, err := p.Run(ctx, entry, in)
	if err != nil {
		return nil, err
	}
	return r.Wait(ctx)
}

// Save returns the values of all parameters and states, as one consistent snapshot between two
// runs.
func (p *Program) Save(ctx context.Context) (map[string]Tensor, error) {
	if err := p.given(ctx, "save"); err != nil {
		return nil, err
	}
	return p.GetAll(ctx)
}
