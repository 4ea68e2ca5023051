package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// Alignments and sizes that hold on every WebGPU device with default limits.
const (
	// RowBytes is the alignment of uniform row strides, of storage binding offsets
	// and of buffer sizes.
	RowBytes = 256
	// WordBytes is the alignment of offsets and sizes of slots, copies, constants
	// and bindings.
	WordBytes = 4
	// StatusBytes is the size of the status word with its details.
	StatusBytes = 16
	// gridBytes is the size of a grid in memory: three u32.
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
	Compiler string // name and version of the compiler
	Target   string // "webgpu", "cuda", "wasm"
	Requires Requires
	// Symbols are the values of symbolic dimensions that the plan is
	// specialised to.
	Symbols   []Symbol
	Buffers   []Buffer
	Slots     []Slot
	Constants []Constant
	Kernels   []Kernel
	// Code is the module whose functions are the kernels, for binary dialects;
	// nil where each kernel has a source of its own.
	Code []byte
	// Routines are the library routines that the plan calls.
	Routines []routine.Routine
	Entries  []Entry
	// Status is where kernels report failed checks; nil where no check can fail.
	Status *Status
	// Variants are plans for the same module with other requirements, none of
	// them with variants of its own. A runtime takes the first of this plan
	// and its variants, in this order, whose requirements the device meets.
	Variants []*Plan
}

// Symbol is a symbolic dimension and its size.
type Symbol struct {
	Name  string
	Value int
}

// BufferKind is the use of a buffer.
type BufferKind uint8

// The kinds of buffer.
const (
	// ConstantBuffer: written once, when the program is opened.
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

// Role is the use of a slot by the host.
type Role uint8

// The roles of slots.
const (
	// Input: given with every run, or kept from the last time it was given.
	Input Role = iota
	// Scalar: given with every run, in the entry's row of scalars.
	Scalar
	// Param: persistent; saved in the model's file.
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
	// Buffer is an index into Plan.Buffers; 0 and unused for a scalar.
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

// Constant is the initial contents of a part of a buffer.
type Constant struct {
	Buffer int
	Offset int
	Data   []byte
}

// Kernel is a compute pipeline to build.
type Kernel struct {
	// Name is [a-z0-9_]+. It appears in labels and error messages.
	Name string
	// Source is the kernel's text, or its export name in Plan.Code.
	Source string
	// Workgroup is the size of a workgroup, as Source states it.
	Workgroup [3]int
	// SharedBytes is the workgroup memory that Source declares.
	SharedBytes int
	// Storage is the access of each storage array; see the package comment for
	// how they are bound.
	Storage []loop.Access
	// ScalarBytes is the size of the uniform block, a prefix of the entry's row
	// of scalars; 0 for a kernel that reads none.
	ScalarBytes int
	// Counters is the number of enclosing repeats, from the outermost, whose
	// counter the kernel reads.
	Counters int
	// Draft, where it is set, is the source of a kernel with the same bindings and
	// results that compiles faster and runs slower. It needs no more threads and
	// workgroup memory than every device has ([loop.DefaultLimits]). An executor may run
	// it until the kernel is compiled, or never.
	Draft string
	// TensorMaps are the tensor maps of the kernel: on CUDA one parameter for each, after
	// the other parameters.
	TensorMaps []TensorMap
}

// TensorMap is a [loop.TensorMap] of a kernel with its element type. Array is an index into the
// storage arrays of the kernel.
type TensorMap struct {
	loop.TensorMap
	DType dtype.DType
}

// Entry is one way to run the plan.
type Entry struct {
	Name string
	// Inputs, Scalars and Outputs are indices into Plan.Slots. An output may
	// also be a persistent slot.
	Inputs, Scalars, Outputs []int
	// Reads are the parameters that a run reads, which must have been set before;
	// Sets are those that a run sets. They are indices into Plan.Slots.
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
	// Grid, where it is set, makes the dispatch indirect: an earlier step has written
	// Groups there, or zeros, and then the kernel does not run. In a plan for a target
	// with Branches all dispatches under one condition share a grid.
	Grid *GridAddress
}

// Call runs a routine of a library.
type Call struct {
	Routine int
	// Bindings are the windows of the routine's arrays, in order. One that is
	// written overlaps no other.
	Bindings []Binding
}

// GridAddress is the location of a grid, three u32, in a buffer.
type GridAddress struct {
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
// of the dispatches before it, so a kernel is faster in entries that are run often.
type Copy struct {
	Src, SrcOffset int
	Dst, DstOffset int
	Bytes          int
}

// Repeat runs Count iterations of Steps; where Odd is not empty, iterations 1, 3, …
// run Odd. Kernels in it can read the counter of each enclosing repeat.
type Repeat struct {
	Count int
	Steps []Step
	Odd   []Step
}

// Iteration returns the steps of iteration i, counted from 0.
func (r *Repeat) Iteration(i int) []Step {
	if i%2 == 1 && len(r.Odd) > 0 {
		return r.Odd
	}
	return r.Steps
}

// While repeats Steps until the word at Going is 0 after an iteration. Further
// iterations change nothing, so an executor may read the word less often. Kernels do
// not read the iteration count.
type While struct {
	Condition GridAddress
	Steps     []Step
}

func (*Dispatch) step() {}
func (*Call) step()     {}
func (*Copy) step()     {}
func (*Repeat) step()   {}
func (*While) step()    {}

// Status is the location of the status word and the meaning of its codes.
type Status struct {
	Buffer int
	Offset int
	Codes  []StatusCode
}

// StatusCode is the meaning of a code in the status word.
type StatusCode struct {
	Code    uint32 // not 0
	Node    string // the node of the graph, as its error messages name it
	Message string
}

// SlotBytes returns the size of a slot of this type on the device: that of
// its elements, where a bool is a u32, rounded up to [WordBytes]. It fails for
// negative or overflowing dimensions and incomplete quantised blocks.
func SlotBytes(dt dtype.DType, dims []int) (int, error) {
	if dt == dtype.Bool {
		dt = dtype.U32
	}
	n, empty := 1, false
	for _, d := range dims {
		switch {
		case d < 0:
			return 0, format.Errorf("a dimension is %d; it must be 0 or greater", d)
		case d == 0:
			empty = true // the other dimensions are still checked, in any order
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

// Dispatches returns the number of dispatches and calls of one run of the entry,
// with repeats unrolled; the body of a [While] counts once.
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

// Entry returns the entry of that name, or nil.
func (p *Plan) Entry(name string) *Entry {
	for i := range p.Entries {
		if p.Entries[i].Name == name {
			return &p.Entries[i]
		}
	}
	return nil
}

// SlotsOf returns the inputs of an entry, its scalars after the others, and its outputs.
func (p *Plan) SlotsOf(e *Entry) (inputs, outputs []*Slot) {
	for _, i := range slices.Concat(e.Inputs, e.Scalars) {
		inputs = append(inputs, &p.Slots[i])
	}
	for _, i := range e.Outputs {
		outputs = append(outputs, &p.Slots[i])
	}
	return inputs, outputs
}

// Lookup returns the persistent slot of that name, or nil.
func (p *Plan) Lookup(name string) *Slot {
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Role.Persistent() && s.Name == name {
			return s
		}
	}
	return nil
}
