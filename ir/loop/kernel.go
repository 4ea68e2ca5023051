package loop

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Kernel is one dispatch in the loop IR: what every thread of every workgroup
// does, in typed scalar expressions, loops, workgroup memory and barriers. It
// is written once and printed as WGSL, CUDA C++ or MSL.
//
// Expressions are scalar expressions whose leaves are constants, named
// variables (those of the kernel's statements, and the built-in ones that
// [LocalID], [GroupID], [RunScalar] and [Counter] return) and loads, whose slot
// is the place of an array in Arrays. Sizes are literals. Indices are I32, or I64 in
// kernels for targets with [Caps].Long, which those of longer arrays than [MaxElements]
// have to be; they count elements of the array's dtype, or vectors where its Width is
// not 1.
//
// A kernel with [scalar.Check] in an expression has the status words as its
// last storage array: four of U32, with Access Atomic.
//
// What holds for every kernel that is run or printed is what [Check] demands.
type Kernel struct {
	// Name is made of lower-case letters, digits and underscores.
	Name   string
	Arrays []Array
	// Scalars are the types of the first members of the entry's uniform block,
	// as many as the kernel needs, Invalid (and 4 bytes wide) for those that it
	// does not read. Each is aligned to its size; a Bool is a 32-bit word.
	Scalars []dtype.DType
	// Counters is how many enclosing repeats the kernel reads the count of.
	Counters  int
	Workgroup [3]int
	Groups    [3]int
	// Subgroup is the range of subgroup sizes, powers of two, that a kernel
	// with subgroup statements is right for; zero for kernels that have none.
	// The number of threads is a multiple of the largest.
	Subgroup [2]int
	// Resident is how many workgroups a multiprocessor is to hold at once, which
	// bounds the registers of a thread; 0 leaves it to the printer.
	Resident int
	// Boxes are what [CopyBox] copies of, Mbarriers what [Arrive] and [Await] name.
	Boxes     []Box
	Mbarriers []Mbarrier
	Body      []Stmt
}

// Space is where an array lives.
type Space uint8

// The spaces.
const (
	// Storage is device memory, bound to the kernel.
	Storage Space = iota
	// Shared is workgroup memory, not initialised.
	Shared
	// Private is memory of one thread, not initialised.
	Private
)

// Access is what a kernel does to a storage array. It is part of the kernel's
// key: WebGPU wants it in the layout.
type Access uint8

// The kinds of access.
const (
	Read Access = iota
	ReadWrite
	// Atomic is storage of 32-bit integers, or of F32 that is only added to, which
	// is changed by [AtomicOp] alone. A load from it sees what some thread left there.
	Atomic
)

// Array is memory that a kernel reads or writes.
type Array struct {
	Name  string
	DType dtype.DType
	// Width is how many elements one index holds: 1, 2 or 4. Arrays with a
	// width above 1 are touched by [LoadVec] and [StoreVec] alone.
	Width int
	// Len counts indices, not elements. It is 0 for a storage array that is as long
	// as what is bound to it.
	Len    int
	Space  Space
	Access Access
}

// Stmt is a statement of the loop IR.
type Stmt interface{ stmt() }

// Let names the value of an expression.
type Let struct {
	Name  string
	Value scalar.Expr
}

// Var declares a variable that [Assign] changes.
type Var struct {
	Name string
	Init scalar.Expr
}

// Assign changes a variable.
type Assign struct {
	Name  string
	Value scalar.Expr
}

// Store writes an element of an array of width 1.
type Store struct {
	Array int
	At    scalar.Expr
	Value scalar.Expr
}

// LoadVec names the elements of one vector of an array: Names has as many
// entries as the array's Width.
type LoadVec struct {
	Names []string
	Array int
	At    scalar.Expr
}

// StoreVec writes one vector of an array.
type StoreVec struct {
	Array  int
	At     scalar.Expr
	Values []scalar.Expr
}

// For runs Body for Var = Start, Start+Step, … while it is below End. The
// bounds are evaluated once; Step is a positive constant. Unroll asks the
// printer to write the copies out; all bounds are then constants. Lanes says that
// no turn needs what another one did, nor what one of the same place in a
// private array left: a printer may run several at once, statement by statement.
// Rolled says that to write the turns out would take a driver longer than it could save.
type For struct {
	Var              string
	Start, End, Step scalar.Expr
	Unroll           bool
	Lanes            bool
	Rolled           bool
	Body             []Stmt
}

// Type is the type of the variable: I64 where a bound is, else I32.
func (s *For) Type() dtype.DType {
	if s.Start.Type == dtype.I64 || s.End.Type == dtype.I64 {
		return dtype.I64
	}
	return dtype.I32
}

// with returns the loop with other bounds and another body.
func (s *For) with(start, end, step scalar.Expr, body []Stmt) *For {
	f := *s
	f.Start, f.End, f.Step, f.Body = start, end, step, body
	return &f
}

// If runs one of two branches.
type If struct {
	Cond       scalar.Expr
	Then, Else []Stmt
}

// Barrier makes all threads of a workgroup meet, and what they wrote to shared
// and storage arrays visible to each other. All of them must come to it.
type Barrier struct{}

// AtomicOp combines a value into an element of an array with Access Atomic.
// Old, where not "", names the value from before. Threads come in any order, by
// which a sum of F32 is rounded one way or another: see [Caps.AtomicFloats].
type AtomicOp struct {
	Op    scalar.Op // Add, and on integers Max, Min, Or
	Array int
	At    scalar.Expr
	Value scalar.Expr
	Old   string
}

// Subgroup combines a value over the subgroup and names the result, the same
// in all its threads. All threads of the workgroup must come to it.
type Subgroup struct {
	Op    scalar.Op // Add, Max, Min
	Name  string
	Value scalar.Expr
}

func (*Let) stmt()      {}
func (*Var) stmt()      {}
func (*Assign) stmt()   {}
func (*Store) stmt()    {}
func (*LoadVec) stmt()  {}
func (*StoreVec) stmt() {}
func (*For) stmt()      {}
func (*If) stmt()       {}
func (*Barrier) stmt()  {}
func (*AtomicOp) stmt() {}
func (*Subgroup) stmt() {}

// MaxElements bounds what is stored and what is gone through where positions are
// counted in i32, a little beyond the last one where a grid is rounded up. A
// value that is computed where it is used may have more elements.
const MaxElements = 1<<31 - 1<<20

// LongElements is from how many elements on an array is long: see [Caps].
const LongElements = MaxElements + 1

// MaxIndex is the largest index of type I32.
const MaxIndex = 1<<31 - 1

// Subgroups returns the number of subgroups in a workgroup, 0 where the kernel does not
// have one size of them.
func (k *Kernel) Subgroups() int {
	if k.Subgroup[0] == 0 || k.Subgroup[0] != k.Subgroup[1] {
		return 0
	}
	return k.Threads() / k.Subgroup[0]
}

// Threads returns the number of threads in a workgroup.
func (k *Kernel) Threads() int { return k.Workgroup[0] * k.Workgroup[1] * k.Workgroup[2] }

// isConstant reports whether nobody writes the array while the kernel runs.
func (a Array) isConstant() bool { return a.Space == Storage && a.Access == Read }
