package loop

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Kernel is one dispatch in the loop IR: the program that every thread of every workgroup
// runs. It is written once and printed as WGSL, CUDA C++ or MSL.
//
// The leaves of expressions are constants, named variables (defined by statements, or the
// built-in ones that [LocalID], [GroupID], [RunScalar] and [Counter] return) and loads, whose
// slot is an index in Arrays. Sizes are literals. Indices are I32, or I64 on targets with
// [Caps].Long, where arrays longer than [MaxElements] need them; they count elements, or
// vectors if the array's Width is not 1.
//
// A kernel with [scalar.Check] in an expression has the status words as its last storage
// array: four of U32, with Access Atomic.
//
// [Check] lists the rules for kernels.
type Kernel struct {
	// Name is made of lower-case letters, digits and underscores.
	Name   string
	Arrays []Array
	// Scalars are the types of the first members of the entry's uniform block, up to the
	// last one that the kernel reads; Invalid (and 4 bytes wide) for those it does not.
	// Each is aligned to its size; a Bool is a 32-bit word.
	Scalars []dtype.DType
	// Counters is the number of enclosing repeats whose iteration the kernel can read.
	Counters  int
	Workgroup [3]int
	Groups    [3]int
	// Subgroup is the range of subgroup sizes, powers of two, that a kernel with subgroup
	// statements supports; zero for kernels without. The number of threads is a multiple
	// of the largest.
	Subgroup [2]int
	// Resident is the number of workgroups that a multiprocessor should hold at once, which
	// bounds the registers per thread; 0 leaves it to the printer.
	Resident int
	// Uncontracted rounds products of floats before they are added to, by a printer of a language that contracts a
	// product and a sum: kernels that compute a value to compare it for equality find the same bits.
	Uncontracted bool
	// TensorMaps are the tensor maps of [CopyTMA], Mbarriers the barriers of [Arrive] and [Await].
	TensorMaps []TensorMap
	Mbarriers  []Mbarrier
	Body       []Stmt
}

// Space is an address space.
type Space uint8

// The address spaces.
const (
	// Storage is device memory, bound to the kernel.
	Storage Space = iota
	// Shared is workgroup memory, uninitialised.
	Shared
	// Private is memory of one thread, uninitialised.
	Private
)

// Access is the access mode of a storage array. It is part of the kernel's key, because
// WebGPU's layouts contain it.
type Access uint8

// The access modes.
const (
	Read Access = iota
	ReadWrite
	// Atomic is storage of 32-bit integers, or of F32 that is only added to, which only
	// [AtomicOp] changes. A load sees the value of some thread.
	Atomic
)

// Array is a buffer that a kernel reads or writes.
type Array struct {
	Name  string
	DType dtype.DType
	// Width is the number of elements per index: 1, 2 or 4. Arrays with a width above 1
	// are accessed only by [LoadVec] and [StoreVec].
	Width int
	// Len counts indices, not elements. It is 0 for a storage array as long as its binding.
	Len    int
	Space  Space
	Access Access
	// Overlay lets a shared array have the memory of the others. Threads write it after a barrier that follows the last
	// access to those, and do not access them again.
	Overlay bool
}

// Stmt is a statement of the loop IR.
type Stmt interface{ clone() Stmt }

// Let defines a name for the value of an expression.
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

// LoadVec defines names for the elements of one vector of an array, as many as its Width.
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

// For runs Body for Var = Start, Start+Step, … below End. The bounds are evaluated once; Step
// is a positive constant. Unroll asks [Unroll] to unroll the loop; all bounds are then
// constants. Lanes says that iterations are independent, also in private arrays: a printer may
// vectorise the loop, statement by statement. NoUnroll says that unrolling would cost a driver
// more time than it saves.
type For struct {
	Var              string
	Start, End, Step scalar.Expr
	Unroll           bool
	Lanes            bool
	NoUnroll         bool
	Body             []Stmt
}

// Type returns the type of the variable: I64 if a bound is, else I32.
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

// Barrier synchronises all threads of a workgroup and makes their stores to shared and storage
// arrays visible to each other. Control flow must be uniform.
type Barrier struct {
	// Kernels has the threads wait for the kernels before this one instead: statements before it read only
	// what no kernel of a run writes. It stands outside of loops and conditions. A target whose kernels do
	// not start before those before them have ended ignores it.
	Kernels bool
}

// AtomicOp combines a value into an element of an array with Access Atomic. Old, if not "",
// names the previous value. The order of threads is not defined, so the rounding of an F32 sum
// is not either: see [Caps.AtomicFloats].
type AtomicOp struct {
	Op    scalar.Op // Add, and on integers Max, Min, Or
	Array int
	At    scalar.Expr
	Value scalar.Expr
	Old   string
}

// Subgroup reduces a value over the subgroup; all its threads get the result. Control flow
// must be uniform.
type Subgroup struct {
	Op    scalar.Op // Add, Max, Min
	Name  string
	Value scalar.Expr
}

// MaxElements bounds stored values and iteration spaces with I32 positions. It leaves room for
// grids that are rounded up. Values that are not stored may have more elements.
const MaxElements = 1<<31 - 1<<20

// LongElements is the number of elements from which an array is long: see [Caps].
const LongElements = MaxElements + 1

// MaxIndex is the largest index of type I32.
const MaxIndex = 1<<31 - 1

// Subgroups returns the number of subgroups in a workgroup, 0 if the kernel does not have a
// single subgroup size.
func (k *Kernel) Subgroups() int {
	if k.Subgroup[0] == 0 || k.Subgroup[0] != k.Subgroup[1] {
		return 0
	}
	return k.Threads() / k.Subgroup[0]
}

// Threads returns the number of threads in a workgroup.
func (k *Kernel) Threads() int { return k.Workgroup[0] * k.Workgroup[1] * k.Workgroup[2] }

// isConstant reports whether no thread writes the array while the kernel runs.
func (a Array) isConstant() bool { return a.Space == Storage && a.Access == Read }

// DeviceSize returns the size of an element in device memory, where booleans are 32-bit words.
func DeviceSize(d dtype.DType) int {
	if d == dtype.Bool {
		return 4
	}
	return d.Size()
}

// DeviceBytes converts elements of type d from host to device layout. It returns data itself
// if they are the same.
func DeviceBytes(d dtype.DType, data []byte) []byte {
	if d != dtype.Bool {
		return data
	}
	words := make([]byte, 4*len(data))
	WidenBools(words, data)
	return words
}

// HostBytes is the inverse of [DeviceBytes].
func HostBytes(d dtype.DType, data []byte) []byte {
	if d != dtype.Bool {
		return data
	}
	bools := make([]byte, len(data)/4)
	for i := range bools {
		bools[i] = data[4*i]
	}
	return bools
}

// WidenBools writes one-byte booleans as 32-bit words.
func WidenBools(words, bools []byte) {
	clear(words)
	for i, x := range bools {
		words[4*i] = x
	}
}

// Bytes returns the size of the array in device memory, 0 if it is as long as its binding.
func (a Array) Bytes() int { return DeviceSize(a.DType) * a.Width * a.Len }
