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

// Has reports whether kernels can be made of an operation.
func Has(o Operation) bool { return templateOf(o) != nil }

// Apply adds an operation; false where kernels cannot be made of it.
func (k *Kernel) Apply(o Operation, args ...Value) (Value, bool) {
	t := templateOf(o)
	if t == nil {
		return noValue, false
	}
	values := make([]Value, len(t.steps))
	for i, s := range t.steps {
		made := s
		made.args = make([]argument, len(s.args))
		for j, a := range s.args {
			switch {
			case a.constant:
			case a.value < 0: // an operand
				a.value = args[-a.value-1]
			default:
				a.value = values[a.value]
			}
			if bits, ok := k.consts[a.value]; ok && !a.constant {
				a = argument{bits: bits, constant: true}
			}
			made.args[j] = a
		}
		made.dst = k.value(s.typ)
		values[i] = k.step(k.fold(made))
	}
	if t.root < 0 {
		return args[-t.root-1], true
	}
	return values[t.root], true
}

// fold puts a constant operand last, and computes the number of places that
// bits are moved by, which shifts reduce.
func (k *Kernel) fold(s step) step {
	if s.kind != apply || len(s.args) != 2 {
		return s
	}
	a, b := &s.args[0], &s.args[1]
	switch s.op {
	case scalar.OpAdd, scalar.OpMul, scalar.OpAnd, scalar.OpOr, scalar.OpXor:
		if a.constant && !b.constant {
			*a, *b = *b, *a
		}
	}
	if s.op == scalar.OpAnd && a.constant && b.constant && s.typ.IsInteger() {
		k.setConst(s.dst, a.bits&b.bits)
		return step{op: scalar.OpBitcast, typ: s.typ, from: s.typ, args: []argument{{bits: a.bits & b.bits, constant: true}}, dst: s.dst}
	}
	return s
}

// setConst notes that a value is a constant number.
func (k *Kernel) setConst(v Value, bits uint64) {
	if k.consts == nil {
		k.consts = map[Value]uint64{}
	}
	k.consts[v] = bits
}

// Strides returns how many steps an operation takes, 0 where [Has] is false.
func Steps(o Operation) int {
	if t := templateOf(o); t != nil {
		return len(t.steps)
	}
	return 0
}

// optimize returns the kernel without the steps that nothing needs, after it has made
// one step of two shifts that turn bits around.
func (k *Kernel) optimize() *Kernel {
	t := *k
	makers := map[Value]*step{}
	for _, list := range []*[]step{&t.steps, &t.after} {
		*list = append([]step(nil), *list...)
		for i := range *list {
			s := &(*list)[i]
			s.matchRotate(makers)
			if s.dst != noValue {
				makers[s.dst] = s
			}
		}
	}
	needed := map[Value]bool{}
	for _, r := range t.accumulators {
		needed[r.next] = true
	}
	t.after = eliminateDead(t.after, needed)
	t.steps = eliminateDead(t.steps, needed)
	return &t
}

// matchRotate makes x << n | x >> (32-n) one step, for unsigned x.
func (s *step) matchRotate(makers map[Value]*step) {
	if s.kind != apply || s.op != scalar.OpOr && s.op != scalar.OpAdd && s.op != scalar.OpXor || !s.typ.IsUnsigned() || s.args[0].constant || s.args[1].constant {
		return
	}
	a, b := makers[s.args[0].value], makers[s.args[1].value]
	if a == nil || b == nil {
		return
	}
	if a.op == scalar.OpShr {
		a, b = b, a
	}
	if a.kind != apply || b.kind != apply || a.op != scalar.OpShl || b.op != scalar.OpShr || a.args[0] != b.args[0] || a.args[0].constant {
		return
	}
	if up, down := a.args[1], b.args[1]; up.constant && down.constant && up.bits > 0 && up.bits+down.bits == 32 {
		*s = step{kind: rotateBits, typ: s.typ, from: s.from, args: a.args[:1], lanes: int(up.bits), dst: s.dst}
	}
}

// eliminateDead returns the steps whose results are needed, or that store, and notes what
// they need.
func eliminateDead(steps []step, needed map[Value]bool) []step {
	kept := make([]step, len(steps))
	at := len(kept)
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if s.kind != store && s.kind != storeFirst && !needed[s.dst] {
			continue
		}
		for _, a := range s.args {
			if !a.constant {
				needed[a.value] = true
			}
		}
		at--
		kept[at] = s
	}
	return kept[at:]
}

// Rows is what is done for each row of many: kernels one after the other, each
// over the same number of lanes, all of them long or none. Their arrays are numbered through, those of the
// first kernel first. A kernel whose steps are all after its loop has no loop.
type Rows struct {
	Kernels []*Kernel
	// Steps is by how many bytes the place of each array grows from one row to
	// the next, less than 2 GiB; nil where there is one row only.
	Strides []int
	// Counter is an array whose first element, of 32 bits, grows by 1 from one row
	// to the next; less than 0 for none.
	Counter int
}

// One returns a kernel as one row.
func One(k *Kernel) *Rows { return &Rows{Kernels: []*Kernel{k}, Counter: -1} }

// Width returns how many lanes are computed at once: a row has a multiple of it.
func (r *Rows) Width() int {
	width := 0
	for _, k := range r.Kernels {
		width = max(width, k.Width()*max(1, k.stride))
	}
	return width
}
