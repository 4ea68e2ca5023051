// Package jit compiles straight-line code over lanes, what the CPU backend does
// for each element of a tensor, to loops in machine code while the program runs:
// all that lies between what is read and what is written stays in registers.
// There are encoders for x86-64 with AVX-512 or with AVX2 and FMA, and for arm64 with
// NEON; what gives registers out and puts loops together is the same for all. It
// needs neither a compiler nor a library, only memory that may be executed.
package jit

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Value names what one step of a kernel gives: a number of 32 bits, in a long kernel one
// of 64, or a truth, for each lane.
type Value int32

// Kernel is the code for one lane of a loop over many, built step by step.
type Kernel struct {
	// Long says that all numbers have 64 bits, f64, i64 and u64: a register then has
	// half as many lanes.
	Long         bool
	arrays       int
	steps        []step           // of the loop
	after        []step           // done once after it
	ended        bool             // whether steps are added to after
	offset       int              // the register of lanes that loads and stores to come are of
	stride       int              // how many registers of lanes a turn of the loop takes; 0 is 1
	types        []dtype.DType    // of values
	consts       map[Value]uint64 // values that are constant numbers
	accumulators []accumulator
}

// accumulator is a value that goes through the loop: each lane begins with initial.
type accumulator struct {
	value, next Value
	initial     uint64
}

// step is one step of a kernel.
type step struct {
	kind  stepKind
	op    scalar.Op   // of apply
	typ   dtype.DType // of the result; of the elements in memory for load, spread and store
	from  dtype.DType // of the last operand
	args  []argument
	dst   Value // noValue for store
	array int
	skip  int // of load and store: the registers between them and the index
	lanes int // of rotate and turn
}

type stepKind uint8

const (
	apply stepKind = iota
	load
	splat
	store
	storeFirst // of the first lane alone
	rotate
	minimum    // x < y ? x : y
	maximum    // x > y ? x : y
	scale      // x·2^y for a whole number y, rounded once where the processor does
	roundHalf  // to f16
	rotateBits // the bits of x to the left, by as many as lanes says
)

const noValue Value = -1

// argument is an operand of a step: a value, or a constant by its bits.
type argument struct {
	value    Value
	bits     uint64
	constant bool
}

func (k *Kernel) value(t dtype.DType) Value {
	k.types = append(k.types, t)
	return Value(len(k.types) - 1)
}

func (k *Kernel) step(s step) Value {
	if k.ended {
		k.after = append(k.after, s)
	} else {
		k.steps = append(k.steps, s)
	}
	return s.dst
}

// After ends the loop: what follows is done once, on the first lanes of arrays
// and on the running values as the loop left them.
func (k *Kernel) After() { k.ended, k.offset = true, 0 }

// Array returns the number of a new array that the kernel reads or writes.
func (k *Kernel) Array() int {
	k.arrays++
	return k.arrays - 1
}

// inLanes returns the type that elements of type t have in lanes.
func inLanes(t dtype.DType) dtype.DType {
	switch {
	case t == dtype.F64, t == dtype.I64, t == dtype.U64:
		return t
	case t.IsFloat():
		return dtype.F32
	case t.IsSigned():
		return dtype.I32
	case t.IsUnsigned():
		return dtype.U32
	}
	return t
}

// At makes the loads and stores to come those of the lanes of a later register:
// each turn of the loop takes as many as the last one says.
func (k *Kernel) At(register int) {
	k.offset = register
	k.stride = max(k.stride, register+1)
}

// Stored reports whether kernels load and store elements of type t.
func Stored(t dtype.DType) bool {
	return t.IsInteger() || t.IsFloat() && !t.IsFloat8()
}

// BoolWords is the type of arrays that have truths as words, 0 or 1, as those between kernels
// do.
const BoolWords = dtype.Bool

// Load reads elements of type t that lie side by side in an array.
func (k *Kernel) Load(array int, t dtype.DType) Value {
	return k.step(step{kind: load, typ: t, array: array, skip: k.offset, dst: k.value(inLanes(t))})
}

// Splat reads the first element of an array, as wide as lanes are or a truth, for
// all lanes.
func (k *Kernel) Splat(array int, t dtype.DType) Value {
	return k.step(step{kind: splat, typ: t, array: array, dst: k.value(inLanes(t))})
}

// LoadBools reads truths that lie side by side in an array of bytes, 0 or 1, in kernels
// that are not long; StoreBools writes them.
func (k *Kernel) LoadBools(array int) Value {
	bytes := k.Load(array, dtype.U8)
	return k.step(step{op: scalar.OpNe, typ: dtype.Bool, from: dtype.I32, args: []argument{{value: bytes}, {constant: true}}, dst: k.value(dtype.Bool)})
}

// StoreBools writes truths side by side to an array of bytes.
func (k *Kernel) StoreBools(array int, v Value) {
	k.Store(array, dtype.U8, k.step(step{op: scalar.OpConvert, typ: dtype.I32, from: dtype.Bool, args: []argument{{value: v}}, dst: k.value(dtype.I32)}))
}

// Store writes a value side by side to an array of elements of type t.
func (k *Kernel) Store(array int, t dtype.DType, v Value) {
	k.step(step{kind: store, typ: t, array: array, skip: k.offset, args: []argument{{value: v}}, dst: noValue})
}

// StoreFirst writes the first lane of a number to the first element of an array.
func (k *Kernel) StoreFirst(array int, v Value) {
	k.step(step{kind: storeFirst, typ: k.types[v], array: array, args: []argument{{value: v}}, dst: noValue})
}

// Const returns a constant number or truth, c.
func (k *Kernel) Const(c scalar.Expr) Value {
	word := argument{bits: wordOf(c), constant: true}
	if c.Type.IsBool() {
		return k.step(step{op: scalar.OpNe, typ: c.Type, from: dtype.I32, args: []argument{word, {constant: true}}, dst: k.value(c.Type)})
	}
	v := k.value(inLanes(c.Type))
	k.setConst(v, word.bits)
	return k.step(step{op: scalar.OpBitcast, typ: c.Type, from: c.Type, args: []argument{word}, dst: v})
}

// IsBool reports whether a value is a truth, not a number.
func (k *Kernel) IsBool(v Value) bool { return k.types[v].IsBool() }

// Accumulator returns a number that goes through the loop and has the given bits in
// each lane before it. A kernel has [MaxAccumulators] of them at most.
func (k *Kernel) Accumulator(t dtype.DType, initial uint64) Value {
	v := k.value(t)
	k.accumulators = append(k.accumulators, accumulator{value: v, next: noValue, initial: initial})
	return v
}

// Next says what a running value becomes.
func (k *Kernel) Next(v, next Value) {
	t := k.types[next] // a value of its own, as next may be another running one
	next = k.step(step{op: scalar.OpBitcast, typ: t, from: t, args: []argument{{value: next}}, dst: k.value(t)})
	for i := range k.accumulators {
		if k.accumulators[i].value == v {
			k.accumulators[i].next = next
		}
	}
}

// Rotate moves values by so many lanes, a power of two below [Width]: what it
// moves past the end comes back at the other one.
func (k *Kernel) Rotate(v Value, lanes int) Value {
	t := k.types[v]
	return k.step(step{kind: rotate, typ: t, from: t, args: []argument{{value: v}}, lanes: lanes, dst: k.value(t)})
}
