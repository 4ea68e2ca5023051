package native

import (
	"context"

	"github.com/rlx-go/rlx/ir"
)

// Backend is a kind of device. Its methods may be called from several
// goroutines.
type Backend interface {
	// Name is how users ask for it: "cpu", "webgpu". Lower case, no spaces.
	Name() string
	// Probe looks whether the device can be used now, by asking the driver. The
	// error is of kind [ErrUnavailable] and says what is missing.
	Probe() error
	// Info describes the device. It is the zero Info where Probe fails.
	Info() Info
	// Support tells how a node would be computed.
	Support(n *ir.Node) Support
	// Compile makes a module ready to run, in memory of its own, all zeros.
	// All dimensions must be constant ([ir.Graph.Bind]). Errors are [*Error]; a module
	// that needs more memory than [Options] allow is a [*MemoryError] inside.
	Compile(ctx context.Context, m *ir.Module, o Options) (Program, error)
}

// Info describes a device.
type Info struct {
	// Description is for people: the driver's or the processor's own words.
	Description string
	// Software is set for a device that is emulated or a CPU.
	Software bool
	// Memory is the memory of the device in bytes, 0 where it is not known.
	Memory int64
	// Speed orders devices: a rough figure of GFLOP/s, for choosing the
	// fastest, not for quoting.
	Speed float64
}

// Level says how a node is computed on a device.
type Level uint8

// The levels, best first.
const (
	// Native: by code for this op.
	Native Level = iota
	// Claimed: a composite, by a kernel that the backend has for the whole.
	Claimed
	// Decomposed: a composite, by way of its body.
	Decomposed
	// Unsupported: not at all.
	Unsupported
)

// String returns the level in lower case.
func (l Level) String() string {
	if l > Unsupported {
		return "invalid"
	}
	return [...]string{"native", "claimed", "decomposed", "unsupported"}[l]
}

// Support is a level, with the reason where it is [Unsupported].
type Support struct {
	Level  Level
	Reason string
}

// Options steer the compilation of a module.
type Options struct {
	// TF32 lets products of f32 be computed from 10 of the 23 bits of fraction of
	// their factors, with sums in f32, where a device is faster so.
	TF32 bool
	// Tune has the schedules of kernels measured on the device, the best of which are
	// kept on disk: see package tune. Compiling takes seconds more the first time. On
	// devices other than CUDA it changes nothing.
	Tune bool
	// Memory is how many bytes the program may hold on the device, inputs, outputs and
	// what is computed in between included; 0 stands for [MemoryVariable], or, without
	// it, what the device has. For a module that needs more, Compile returns a
	// [*MemoryError] before it allocates anything.
	Memory int64
}

// Role is what a slot is to its user.
type Role uint8

// The roles of slots.
const (
	// Input: given with every run, or kept from the last time it was given.
	Input Role = iota
	// Param: persistent; a parameter of some entry, which its user gives.
	Param
	// State: persistent; changed by every entry that holds it, and zeros at first.
	State
	// Output: the value of a run.
	Output
)

// String returns the role in lower case.
func (r Role) String() string {
	if r > Output {
		return "invalid"
	}
	return [...]string{"input", "param", "state", "output"}[r]
}

// Slot is a named tensor that the host gives or gets.
type Slot struct {
	Name  string
	Role  Role
	DType ir.DType
	Dims  []int
	// Lo and Hi bound the elements of an input where Checked is set: indices
	// outside [Lo, Hi) are refused before the run.
	Lo, Hi  int
	Checked bool
}

// SlotOf returns the slot of a value of a graph whose sizes are constant.
func SlotOf(name string, role Role, v ir.Value) Slot {
	dims, _ := v.Shape().Ints()
	return Slot{Name: name, Role: role, DType: v.DType(), Dims: dims}
}

// Program is a compiled module with its memory. Its methods may be called from
// several goroutines. They take turns in the order in which they were called: none is
// kept out by others that call without end. A call whose ctx is done before its turn is
// given up, with the error of ctx. Calls that change no parameter and no state run at
// the same time where the device can. Errors are [*Error]s of the kinds
// [ir.ErrName], [ir.ErrDType] and [ir.ErrShape] for names and tensors that do
// not fit, [ir.ErrIndex] for an index out of range, found by the host or by the
// device: parameters and states are then as they were before the run.
type Program interface {
	// Entries returns the names of the entries, in the order of the module.
	Entries() []string
	// Slots returns the inputs and outputs of an entry, nil where there is
	// none of that name.
	Slots(entry string) []Slot
	// Persistent returns the parameters and states of all entries.
	Persistent() []Slot
	// Set writes a parameter or a state, after all runs that were asked for.
	Set(ctx context.Context, name string, t Tensor) error
	// Get returns the value of a parameter or a state after all runs that were
	// asked for.
	Get(ctx context.Context, name string) (Tensor, error)
	// Memory returns how many bytes the program holds on the device.
	Memory() int64
	// GetAll returns the values of all parameters and states at one time, between two
	// runs.
	GetAll(ctx context.Context) (map[string]Tensor, error)
	// SetAll is Set for several parameters and states at one time. Where one is unknown
	// or does not fit, none is written.
	SetAll(ctx context.Context, values map[string]Tensor) error
	// Run starts an entry with its inputs and returns at once. The memory of
	// the inputs must be left alone until the run is over. The run is given up
	// where ctx is done before it begins.
	Run(ctx context.Context, entry string, in map[string]Tensor) (Run, error)
	// Bind fixes the memory from which an entry takes its inputs and into
	// which it puts outputs; of outputs, those not named are not fetched. A
	// scalar input may be bound like any other. Outputs have memory of their own:
	// what overlaps is an [*OverlapError], but for an output in exactly the memory of
	// an input, which the run reads before it writes it.
	Bind(ctx context.Context, entry string, in, out map[string]Tensor) (Bound, error)
	// Close gives back the program's memory after the last run. Entries, Slots
	// and Persistent are as before; all other calls are errors of kind
	// [ErrClosed]. Where ctx is done before the runs under way are over, the program
	// stays open. A program that nobody uses is closed whatever ctx says.
	Close(ctx context.Context) error
}

// Run is one run of an entry.
type Run interface {
	// Wait returns the outputs, once they are there, or what went wrong. It may
	// be called again.
	Wait(ctx context.Context) (map[string]Tensor, error)
}

// Bound is an entry with its memory fixed. It is for one goroutine.
type Bound interface {
	// Start begins a run with what the bound inputs hold now. Inputs and
	// outputs must be left alone until Wait has returned.
	Start(ctx context.Context) error
	// Wait waits until the bound outputs hold the results of the last Start. It
	// returns what went wrong since the last Wait, and nil before any Start.
	Wait(ctx context.Context) error
}
