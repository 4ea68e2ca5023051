package native

import (
	"context"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
)

// Backend is a kind of device. Its methods may be called from several
// goroutines.
type Backend interface {
	// Name returns the name for [Lookup], lower case without spaces: "cpu", "webgpu".
	Name() string
	// Probe asks the driver whether the device is usable now. The error is of kind [ErrUnavailable]
	// and names what is missing.
	Probe() error
	// Info describes the device. It is the zero Info if Probe fails.
	Info() Info
	// Support returns how the backend computes a node.
	Support(n *ir.Node) Support
	// Compile compiles a module and allocates its memory, zeroed. All dimensions
	// must be constant ([ir.Graph.Bind]). Errors are [*Error]s; one wraps a
	// [*MemoryError] if the module needs more memory than [Options] allow.
	Compile(ctx context.Context, m *ir.Module, o Options) (Program, error)
}

// Sharer is a [Backend] whose programs can share parameters and states.
type Sharer interface {
	Backend
	// CompileShared is Compile for a module that shares parameters and states of the same names,
	// and their memory, with another program of the backend. Runs of both programs are ordered as
	// those of one program are. The memory lives until both are closed. The error is of kind
	// [ir.ErrShape] or [ir.ErrDType] for types that differ.
	CompileShared(ctx context.Context, m *ir.Module, o Options, with Program) (Program, error)
}

// PlanOpener is a [Backend] that runs plan files.
type PlanOpener interface {
	Backend
	// OpenPlan loads a plan file: the first of its plans that the device can run. Of the options only
	// Memory counts. Errors are [*Error]s, of kind [ErrMemory] also where the device lacks what each of
	// the plans requires.
	OpenPlan(ctx context.Context, file []byte, o Options) (Program, error)
	// OpenPlanShared is OpenPlan for a plan that shares parameters and states, and their memory, with
	// another program of a plan file. The error is of kind [ir.ErrShape] unless both plans have the same
	// ones at the same places.
	OpenPlanShared(ctx context.Context, file []byte, o Options, with Program) (Program, error)
}

// Info describes a device.
type Info struct {
	// Description is the name that the driver or the processor reports.
	Description string
	// Software is set for a device that is emulated or a CPU.
	Software bool
	// Memory is the memory of the device in bytes, 0 if unknown.
	Memory int64
	// Speed is a rough estimate of GFLOP/s, only for ranking devices.
	Speed float64
}

// Level describes how a node is computed on a device.
type Level uint8

// The levels, best first.
const (
	// Native is an op with native code.
	Native Level = iota
	// Claimed is a composite with one kernel for the whole.
	Claimed
	// Decomposed is a composite computed by its body.
	Decomposed
	// Unsupported is an op that the device cannot compute.
	Unsupported
)

// String returns the level in lower case.
func (l Level) String() string {
	if l > Unsupported {
		return "invalid"
	}
	return [...]string{"native", "claimed", "decomposed", "unsupported"}[l]
}

// Support is a level, with a reason if it is [Unsupported].
type Support struct {
	Level  Level
	Reason string
}

// Options steer the compilation of a module.
type Options struct {
	// TF32 lets matrix products of f32 round their factors to 10 bits of mantissa,
	// with f32 accumulation, where that is faster.
	TF32 bool
	// Tune measures candidate schedules on the device and keeps the best on disk.
	// The first compilation takes seconds longer. Only CUDA uses it.
	Tune bool
	// Memory bounds the bytes that the program holds on the device, including
	// inputs, outputs and intermediate values. 0 means [MemoryVariable] if set,
	// else the memory of the device. If the module needs more, Compile returns a
	// [*MemoryError] and allocates nothing.
	Memory int64
	// Mesh arranges the ranks that run the module together, for a module with collectives of
	// several devices; nil means one device. Compile is then a collective itself: all ranks call it
	// with the same module, and the error is of kind [collective.ErrMismatch] on all ranks if one
	// differs. The backends with collectives are [Collectives].
	Mesh *collective.Mesh
}

// Role is the role of a slot for the caller.
type Role uint8

// The roles of slots.
const (
	// Input is given with every run, or kept from the last time it was given.
	Input Role = iota
	// Param is a persistent parameter, which the caller sets.
	Param
	// State is persistent, zero at first, and changed by every entry that holds it.
	State
	// Output is a result of a run.
	Output
)

// String returns the role in lower case.
func (r Role) String() string {
	if r > Output {
		return "invalid"
	}
	return [...]string{"input", "param", "state", "output"}[r]
}

// Slot is a named tensor that the host writes or reads.
type Slot struct {
	Name  string
	Role  Role
	DType ir.DType
	// Dims are the sizes; [OpenSize] is one that each call chooses.
	Dims []int
	// If Checked is set, elements of an input outside [Lo, Hi) are refused before
	// the run.
	Lo, Hi  int
	Checked bool
}

// OpenSize in the Dims of a [Slot] is a size that each call chooses.
const OpenSize = -1

// SlotOf returns the slot of a value of a graph whose sizes are constant.
func SlotOf(name string, role Role, v ir.Value) Slot {
	dims, _ := v.Shape().Ints()
	return Slot{Name: name, Role: role, DType: v.DType(), Dims: dims}
}

// Program is a compiled module with its memory. Its methods may be called from
// several goroutines and are served first come, first served. A call whose ctx is
// done before it is served fails with the error of ctx. Calls that change no parameter
// and no state run concurrently where the device can. Errors are [*Error]s: of the
// kinds [ir.ErrName], [ir.ErrDType] and [ir.ErrShape] for names and tensors that do
// not fit, and [ir.ErrIndex] for an index out of range, found by the host or by the
// device. A failed run leaves parameters and states unchanged.
type Program interface {
	// Entries returns the names of the entries, in the order of the module.
	Entries() []string
	// Slots returns the inputs and outputs of an entry, nil if there is no such entry.
	Slots(entry string) []Slot
	// Persistent returns the parameters and states of all entries.
	Persistent() []Slot
	// Set writes a parameter or a state, after all runs started before.
	Set(ctx context.Context, name string, t Tensor) error
	// Get returns a parameter or a state, after all runs started before.
	Get(ctx context.Context, name string) (Tensor, error)
	// Memory returns the bytes that the program holds on the device.
	Memory() int64
	// GetAll returns a consistent snapshot of all parameters and states.
	GetAll(ctx context.Context) (map[string]Tensor, error)
	// SetAll writes several parameters and states, or none if one is unknown or
	// does not fit.
	SetAll(ctx context.Context, values map[string]Tensor) error
	// Run starts an entry with its inputs and returns at once. The memory of the
	// inputs must not change until the run is done. The run fails if ctx is done
	// before it begins.
	Run(ctx context.Context, entry string, in map[string]Tensor) (Run, error)
	// Bind fixes the memory of an entry's inputs and outputs. Outputs that are not
	// named are not fetched. Outputs must not overlap other tensors (the error is an
	// [*OverlapError]), except that an output may lie in exactly the memory of an
	// input: the run reads the input before it writes the output.
	Bind(ctx context.Context, entry string, in, out map[string]Tensor) (Bound, error)
	// Close frees the program's memory after the last run. Entries, Slots and
	// Persistent still work; all other calls fail with [ErrClosed]. If ctx is done
	// before the runs in flight are, the program stays open. An idle program is
	// closed even if ctx is done.
	Close(ctx context.Context) error
}

// Syncer is a [Program] that can wait for its runs. All backends of this module have it.
type Syncer interface {
	// Sync waits until the runs started before are done. Their errors are reported by
	// the calls that started or wait for them. It fails with [ErrClosed] after Close,
	// and with the error of ctx if that is done first.
	Sync(ctx context.Context) error
}

// Checker is a [Backend] that can say without compiling for the device whether it can
// compute a module.
type Checker interface {
	// Check returns the error of kind [ir.ErrUnsupported] that Compile would return for a module
	// with constant sizes, for an op, an element type or a limit of the device; nil if there is
	// none. It allocates no memory on the device.
	Check(m *ir.Module) error
}

// Run is one run of an entry.
type Run interface {
	// Wait waits for the run and returns its outputs or its error. It may be called
	// again.
	Wait(ctx context.Context) (map[string]Tensor, error)
}

// Bound is an entry with fixed memory, for use by one goroutine.
type Bound interface {
	// Start begins a run with the current contents of the bound inputs. Inputs and
	// outputs must not be touched until Wait returns.
	Start(ctx context.Context) error
	// Wait waits until the bound outputs hold the results of the last Start. It
	// returns the first error since the last Wait, nil before any Start.
	Wait(ctx context.Context) error
}
