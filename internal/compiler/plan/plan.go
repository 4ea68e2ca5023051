package plan

import (
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// Alignments and sizes that hold on every WebGPU device with default limits.
const (
	// RowBytes is what strides of uniform rows, offsets of storage bindings and
	// sizes of buffers are multiples of.
	RowBytes = 256
	// WordBytes is what offsets and sizes of slots, copies, constants and
	// bindings are multiples of.
	WordBytes = 4
	// StatusBytes is the size of the status word with its details.
	StatusBytes = 16
	// gridBytes is the size of a grid in memory.
	gridBytes = 12
	// MaxCounters is the greatest depth of repeats. A pipeline has at most 8
	// uniform bindings with dynamic offsets by default; one is for scalars.
	MaxCounters = 7
	// MaxRepeat is the greatest count of a repeat: the counter buffer has one
	// row for each.
	MaxRepeat = 1 << 16
	// MaxUniformBytes is the greatest size of an entry's row of scalars.
	MaxUniformBytes = 16 << 10
	// MaxRowsBytes is the greatest size of the rows of scalars of all entries,
	// each rounded up to [RowBytes].
	MaxRowsBytes = 1 << 20
	// MaxDispatches is the greatest number of dispatches of one run of an
	// entry, repeats written out.
	MaxDispatches = 1 << 20
)

// Plan is a compiled module for one target.
type Plan struct {
	Name     string // of the module
	Compiler string // name and version of what made the plan
	Target   string // "webgpu", "cuda", "wasm"
	Requires Requires
	// Symbols are the bindings of symbolic dimensions this plan was
	// specialised to.
	Symbols   []Symbol
	Buffers   []Buffer
	Slots     []Slot
	Constants []Constant
	Kernels   []Kernel
	// Code is the module that kernels are functions of, in dialects of binary
	// code; nil where each has a source of its own.
	Code []byte
	// Routines are what the plan leaves to libraries of the device.
	Routines []routine.Routine
	Entries  []Entry
	// Status says where kernels report failed checks; nil where none can fail.
	Status *Status
	// Variants are plans for the same module with other requirements, none of
	// them with variants of its own. A runtime takes the first of this plan
	// and its variants, in this order, whose requirements the device meets.
	Variants []*Plan
}

// Symbol is a symbolic dimension and the size it stands for.
type Symbol struct {
	Name  string
	Value int
}

// BufferKind says what a buffer is for.
type BufferKind uint8

// The kinds of buffer.
const (
	// ConstantBuffer: written once, when the session is made.
	ConstantBuffer BufferKind = iota
	// InputBuffer: written by the host before a run, never by a step.
	InputBuffer
	// StateBuffer: parameters and states.
	StateBuffer
	// TempBuffer: intermediate values and outputs; runs overwrite it.
	TempBuffer
	// StatusBuffer: the status word.
	StatusBuffer

	bufferKinds
)

var bufferKindNames = [bufferKinds]string{"constant", "input", "state", "temp", "status"}

// String returns the kind in lower case: "constant", "input", …
func (k BufferKind) String() string {
	if k >= bufferKinds {
		return "invalid"
	}
	return bufferKindNames[k]
}

// Buffer is one GPU buffer, an arena that many values share. Bytes is a
// multiple of [RowBytes].
type Buffer struct {
	Kind  BufferKind
	Bytes int
}

// Role is what a slot is to its user.
type Role uint8

// The roles of slots.
const (
	// Input: given with every run, or kept from the last time it was given.
	Input Role = iota
	// Scalar: given with every run, in the entry's row of scalars.
	Scalar
	// Param: persistent; what the model's file holds.
	Param
	// State: persistent; moments, counters, keys, running statistics.
	State
	// Output: the value of the last run.
	Output

	roles
)

var roleNames = [roles]string{"input", "scalar", "param", "state", "output"}

// String returns the role in lower case: "input", "scalar", …
func (r Role) String() string {
	if r >= roles {
		return "invalid"
	}
	return roleNames[r]
}

// Persistent reports whether a slot of this role keeps its value between runs
// and is shared by all entries.
func (r Role) Persistent() bool { return r == Param || r == State }

// Slot is a named tensor that the host reads or writes, row-major, with no
// gaps. Elements are laid out as in host memory, but a bool takes a u32.
//
// Names are unique among persistent slots; among the inputs and scalars of an
// entry; and among the outputs of an entry and the persistent slots. Inputs of
// two entries may have one name and different shapes: they are two slots.
type Slot struct {
	Name  string
	Role  Role
	DType dtype.DType
	Dims  []int
	// Buffer is an index into Plan.Buffers; 0 and not looked at for a scalar.
	Buffer int
	// Offset is in bytes, for a scalar in the entry's row of scalars.
	Offset int
	// Bytes is the size of the elements, rounded up to [WordBytes]. See
	// [SlotBytes].
	Bytes int
	// Lo and Hi bound the elements of an integer input where Checked is set:
	// the host refuses values outside [Lo, Hi).
	Lo, Hi  int
	Checked bool
}

// Constant is the first contents of a part of a buffer.
type Constant struct {
	Buffer int
	Offset int
	Data   []byte
}

// Kernel is a compute pipeline to build.
type Kernel struct {
	// Name is [a-z0-9_]+. It appears in labels and error messages.
	Name string
	// Source is the kernel's text, or where the plan has Code the name by which
	// that exports the kernel.
	Source string
	// Workgroup is the size of a workgroup, which Source states as well.
	Workgroup [3]int
	// SharedBytes is the workgroup memory Source declares.
	SharedBytes int
	// Storage says how the storage arrays are accessed; see the comment of the
	// package for how they are bound.
	Storage []loop.Access
	// ScalarBytes is how much of the entry's row of scalars the kernel's
	// uniform block covers, 0 for a kernel that reads none.
	ScalarBytes int
	// Counters is how many enclosing repeats the kernel reads the count of,
	// from the outermost.
	Counters int
	// Draft, where it is set, is the source of a kernel that may stand in for this one: it
	// is bound as this is and leaves the same, and a device compiles it in less time and
	// runs it slower. It asks for no more threads and workgroup memory than every device
	// has ([loop.DefaultLimits]). An executor may run it until the kernel is compiled, or
	// never.
	Draft string
	// Boxes are the parts of its storage arrays that the kernel copies by what describes
	// them on the device: on CUDA a tensor map for each, behind the other parameters.
	Boxes []Box
}

// Box is a [loop.Box] of a kernel whose Array is a number among the storage arrays, with
// the type of its elements.
type Box struct {
	loop.Box
	DType dtype.DType
}

// Entry is one way to run the plan.
type Entry struct {
	Name string
	// Inputs, Scalars and Outputs are indices into Plan.Slots. An output may
	// also be a persistent slot.
	Inputs, Scalars, Outputs []int
	// Reads are the parameters whose value a run takes, and which must have been given
	// one; Sets are those that have one after it. They are indices into Plan.Slots.
	Reads, Sets []int
	// UniformBytes is the size of the row of scalars.
	UniformBytes int
	Steps        []Step
}

// Step is [*Dispatch], [*Call], [*Copy], [*Repeat] or [*While].
type Step interface{ step() }

// Dispatch runs a kernel over a grid of workgroups.
type Dispatch struct {
	Kernel int
	Groups [3]int
	// DraftGroups is the grid of the kernel's draft, zeros where it has none.
	DraftGroups [3]int
	// Bindings are the windows of the kernel's storage arrays, in order.
	Bindings []Binding
	// Grid, where it is set, is where steps before have left Groups, three u32, or
	// zeros: the kernel then does not run. In a plan for a target that branches it is
	// the grid of any dispatch that stands under the same condition.
	Grid *Cell
}

// Call runs a routine of a library.
type Call struct {
	Routine int
	// Bindings are the windows of the routine's arrays, in order. One that is
	// written overlaps no other.
	Bindings []Binding
}

// Cell is a place of three u32 in a buffer.
type Cell struct {
	Buffer int
	Offset int // a multiple of WordBytes
}

// Binding is a window into a buffer.
type Binding struct {
	Buffer int
	Offset int // a multiple of RowBytes
	Bytes  int // a positive multiple of WordBytes
}

// Copy copies bytes between two different buffers. It ends the compute pass
// that the dispatches before it are in, so entries that are run often do
// better with a kernel.
type Copy struct {
	Src, SrcOffset int
	Dst, DstOffset int
	Bytes          int
}

// Repeat runs Steps Count times, or where Odd is not empty Odd in place of every
// second one: rounds 1, 3, …. Kernels in it can read the count of each repeat they
// are in.
type Repeat struct {
	Count int
	Steps []Step
	Odd   []Step
}

// Round returns the steps of a round, counted from 0.
func (r *Repeat) Round(i int) []Step {
	if i%2 == 1 && len(r.Odd) > 0 {
		return r.Odd
	}
	return r.Steps
}

// While runs Steps in rounds, until the word at Going is 0 after one. A round more
// than those changes nothing, so that an executor may look at the word later. The
// count of the rounds is not read.
type While struct {
	Going Cell
	Steps []Step
}

func (*Dispatch) step() {}
func (*Call) step()     {}
func (*Copy) step()     {}
func (*Repeat) step()   {}
func (*While) step()    {}

// Status is the place of the status word and the meaning of its codes.
type Status struct {
	Buffer int
	Offset int
	Codes  []StatusCode
}

// StatusCode says what a code in the status word means.
type StatusCode struct {
	Code    uint32 // not 0
	Node    string // the node of the graph, as its error messages name it
	Message string
}

// SlotBytes returns the bytes a slot of this type takes on the device: those of
// its elements, where a bool is a u32, rounded up to [WordBytes]. The error says
// why there is no such size.
func SlotBytes(dt dtype.DType, dims []int) (int, error) {
	if dt == dtype.Bool {
		dt = dtype.U32
	}
	n, empty := 1, false
	for _, d := range dims {
		switch {
		case d < 0:
			return 0, format.Errorf("a dimension is %d", d)
		case d == 0:
			empty = true // the others are bounded all the same, in whatever order
		case n > maxExact/d:
			return 0, format.Errorf("the number of elements overflows")
		default:
			n *= d
		}
	}
	if empty {
		n = 0
	}
	bytes, err := dt.Bytes(n)
	if err != nil {
		return 0, err
	}
	if bytes > maxExact {
		return 0, format.Errorf("%d bytes are too many", bytes)
	}
	return align(bytes, WordBytes), nil
}

// align rounds n up to a multiple of to, a power of two.
func align(n, to int) int { return (n + to - 1) &^ (to - 1) }

// UniformStride returns the distance between the rows of an entry's uniform
// buffer.
func (e *Entry) UniformStride() int { return align(e.UniformBytes, RowBytes) }

// Dispatches returns how many dispatches and calls one run of the entry makes,
// repeats written out, those of rounds of unknown number once.
func (e *Entry) Dispatches() int { return dispatches(e.Steps) }

func dispatches(steps []Step) int {
	n := 0
	for _, s := range steps {
		switch s := s.(type) {
		case *Dispatch, *Call:
			n++
		case *Repeat:
			even := dispatches(s.Steps)
			odd := even
			if len(s.Odd) > 0 {
				odd = dispatches(s.Odd)
			}
			n += (s.Count+1)/2*even + s.Count/2*odd
		case *While:
			n += dispatches(s.Steps)
		}
	}
	return n
}

// Entry returns the entry of that name, nil where there is none.
func (p *Plan) Entry(name string) *Entry {
	for i := range p.Entries {
		if p.Entries[i].Name == name {
			return &p.Entries[i]
		}
	}
	return nil
}

// Lookup returns the persistent slot of that name, nil where there is none.
func (p *Plan) Lookup(name string) *Slot {
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Role.Persistent() && s.Name == name {
			return s
		}
	}
	return nil
}
