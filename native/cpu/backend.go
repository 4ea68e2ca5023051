// Package cpu is the backend "cpu", which compiles modules for the processor of the host and
// is always available. Importing the package registers it.
//
// It takes an [ir.Module] and returns a [native.Program]. Each entry is partitioned by package
// fusion; every group of the partition becomes a list of steps, which a run executes one after
// the other on all cores:
//
//   - maps, reductions and scans become a [nest]: code over lanes, in blocks, parts of
//     which package jit compiles to kernels (builder.go, nest.go, fuse.go, machine.go), and
//     reductions of few results over many points several of them (divided.go);
//   - complex numbers become arrays of their parts (complex.go), and whole arrays of bytes words
//     of four (bytes.go), before code over them is made;
//   - contractions become matrix products of package simd, whose factors are read in place
//     where they are strided matrices (contract.go, gemm.go);
//   - depthwise convolutions become stencils with lanes along the channels (stencil.go);
//   - sorts, scatters, factorisations and ops without a body have steps of their own.
//
// All memory is allocated when a module is compiled (memory.go); a bound run allocates
// nothing. Read compiler.go first.
package cpu

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/executor/ranks"
	"github.com/rlx-go/rlx/internal/executor/synchronous"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
)

// Name is the name of the backend.
const Name = "cpu"

// Backend returns the backend.
func Backend() native.Backend { return backend{loop.LongElements} }

func init() {
	// The name can only be taken by another package that calls itself cpu,
	// which then serves in its place.
	_ = native.Register(Backend())
}

// backend is the processor.
type backend struct {
	long int // smallest element count whose positions are 64-bit integers, see [loop.Caps]
}

func (backend) Name() string { return Name }
func (backend) Probe() error { return nil }

func (backend) Info() native.Info {
	cores := runtime.GOMAXPROCS(0)
	return native.Info{
		Description: titleOf(simd.Processor(), cores),
		Software:    true, Memory: native.HostMemory().Bytes, Speed: 16 * float64(cores),
	}
}

// titleOf returns "AMD EPYC, AVX-512, 2 cores", or "linux/arm64, NEON, 1 core" for a processor
// without a name.
func titleOf(processor string, cores int) string {
	unit := "cores"
	if cores == 1 {
		unit = "core"
	}
	return fmt.Sprintf("%s, %s, %d %s", cmp.Or(processor, runtime.GOOS+"/"+runtime.GOARCH), simd.Has.Title(), cores, unit)
}

func (backend) Support(n *ir.Node) native.Support {
	for _, t := range n.Types() {
		if t.DType.On(dtype.CPU) == dtype.Unsupported || t.DType.IsPacked() {
			return native.Support{Level: native.Unsupported, Reason: fmt.Sprintf("the CPU does not compute with %s", t.DType)}
		}
	}
	switch {
	case claims(n):
		return native.Support{Level: native.Claimed}
	case n.Def().IsComposite():
		return native.Support{Level: native.Decomposed}
	}
	return native.Support{Level: native.Native}
}

func (b backend) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	p, err := b.compile(ctx, m, o, nil)
	if err != nil {
		return nil, err
	}
	return &profiler{synchronous.NewProgram(p.signature(), p), p}, nil
}

// CompileShared implements [native.Sharer].
func (b backend) CompileShared(ctx context.Context, m *ir.Module, o native.Options, with native.Program) (native.Program, error) {
	other, ok := with.(*profiler)
	if !ok {
		return nil, &native.Error{Backend: Name, Call: "compile", Kind: ir.ErrUnsupported, Err: ir.Errorf(ir.ErrUnsupported, "the other program is not one of the CPU")}
	}
	p, err := b.compile(ctx, m, o, other.p.persistent)
	if err != nil {
		return nil, err
	}
	return &profiler{other.Sharing(p.signature(), p), p}, nil
}

func (b backend) compile(ctx context.Context, m *ir.Module, o native.Options, shared map[string]*stored) (*program, error) {
	budget, err := o.Budget(native.HostMemory())
	var p *program
	if err == nil {
		p, err = compile(ctx, b, m, budget, shared, o.Mesh)
	}
	if different := ranks.Agree(ctx, Name, m, o.Mesh, nil, err); err == nil {
		err = different
	}
	if err != nil {
		return nil, &native.Error{Backend: Name, Call: "compile", Kind: native.KindOf(err), Err: err}
	}
	return p, nil
}

// Check implements [native.Checker].
func (b backend) Check(m *ir.Module) error {
	if err := b.check(m); err != nil {
		return &native.Error{Backend: Name, Call: "check", Kind: native.KindOf(err), Err: err}
	}
	return nil
}

// check partitions the entries of a module, and compares their memory with that of the machine.
func (b backend) check(m *ir.Module) error {
	sources := make([]source, len(m.Entries))
	for i, e := range m.Entries {
		made, err := buildPartition(b, e, nil)
		if err != nil {
			return err
		}
		sources[i] = source{e, made}
	}
	budget, err := native.Options{}.Budget(native.HostMemory())
	if err != nil {
		return err
	}
	return checkBudget(sources, budget)
}

// supported returns an error for the first node of a graph or its subgraphs that the backend
// cannot run.
func (b backend) supported(g *ir.Graph) error {
	for _, n := range g.Nodes() {
		if s := b.Support(n); s.Level == native.Unsupported {
			return n.Fail(ir.Errorf(ir.ErrUnsupported, "%s", s.Reason))
		}
		for _, sub := range n.Subgraphs() {
			if err := b.supported(sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstCode is the status code of a program's first check.
const firstCode = 1

// options returns the fusion options of the CPU: a group may touch any number of tensors, as
// there are no bindings, and both sides of a choice of up to 256 elements are computed, so
// that the choice fuses with its neighbours.
func (b backend) options() fusion.Options {
	return fusion.Options{Tensors: 1 << 20, CollectivesFail: true, FirstCode: firstCode, Branch: 256, Long: b.long, Policy: hardware.Serial{Profile: hardware.Named("cpu")}}
}
