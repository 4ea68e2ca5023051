// Package jit is the CPU backend's machine-code generator: it compiles a loop over lanes, the
// work on each element of a tensor, while the program runs, so that intermediate values stay
// in vector registers.
//
// The input is a [Kernel], straight-line code that the backend builds step by step with
// [Kernel.Load], [Kernel.Apply] and [Kernel.Store]; [Rows] puts kernels in an outer loop. The
// output is a [Code], which a [Call] runs. Operations expand to steps by templates
// (operations.go, functions.go). A generator (generate.go) has a part for each kind of work:
// control (loop.go) for loops, registers (registers.go) for their allocation, lanes (select.go)
// for steps between registers, memory (memory.go) for loads and stores, and rareSteps (rare.go),
// which skips steps that few lanes need. The encoders and instruction selection are for x86-64 with
// AVX-512 or with AVX2 and FMA, and for arm64 with NEON. The package needs no compiler or
// library, only memory that may be executed. Read this file first.
package jit

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Value names the result of a step: for each lane a number, of 32 bits or in a long kernel of
// 64, or a boolean.
type Value int32

// Kernel is the body of a vectorised loop, built step by step.
type Kernel struct {
	// Long means that numbers have 64 bits (f64, i64 and u64), so that a vector has half
	// the lanes.
	Long bool
	// Full means that a call has whole vectors of lanes, also in rows: accumulators then need no mask.
	Full         bool
	arrays       int
	steps        []step           // of the loop
	after        []step           // executed once after the loop
	ended        bool             // steps are added to after
	offset       int              // index of the vector that later loads and stores access
	shift        int              // of later loads and stores
	stride       int              // vectors per iteration (the unroll factor); 0 is 1
	types        []dtype.DType    // by value
	consts       map[Value]uint64 // values that are constants
	accumulators []accumulator
}

// accumulator is a value carried through the loop; each lane starts with initial.
type accumulator struct {
	value, next Value
	initial     uint64
}

// step is one operation of a kernel.
type step struct {
	kind  stepKind
	op    scalar.Op   // of apply
	typ   dtype.DType // of the result; in memory for load, splat and store
	from  dtype.DType // of the last operand
	args  []argument
	dst   Value // noValue for store
	array int
	skip  int  // of load and store: index of the vector in the iteration
	shift int  // of load and store: elements by which those accessed are after the array's
	lanes int  // lanes of rotate, bits of rotateBits, the part of loadPart, the bytes from place to place of gather
	runs  Runs // of loadRuns and storeRuns
}

type stepKind uint8

const (
	apply stepKind = iota
	load
	splat
	store
	storeFirst // lane 0 only
	rotate
	minimum    // x < y ? x : y
	maximum    // x > y ? x : y
	scale      // x·2^y for an integer y, rounded once where the processor does
	roundHalf  // to f16
	rotateBits // x rotated left by lanes bits
	loadRuns
	storeRuns
	loadPart
	storePairs
	gather  // loads elements at the places of its operand
	whenAny // begins steps that are skipped where its operand, a boolean, is false in all lanes
	carry   // ends them; its operand is their result, arbitrary where they are skipped
)

const noValue Value = -1

// argument is an operand of a step: a value, or the bits of a constant.
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

// After ends the loop. Later steps are executed once, on the first lanes of arrays and on the
// final accumulators.
func (k *Kernel) After() { k.ended, k.offset, k.shift = true, 0, 0 }

// Array adds an array argument and returns its number.
func (k *Kernel) Array() int {
	k.arrays++
	return k.arrays - 1
}

// inLanes returns the type in which lanes hold elements of type t.
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

// At makes later loads and stores access the given vector of an iteration, which spans all
// vectors up to the highest one given: an unrolled loop.
func (k *Kernel) At(register int) {
	k.offset = register
	k.stride = max(k.stride, register+1)
}

// Shift makes later calls of [Kernel.Load] and [Kernel.Store] access elements the given number after those of
// their arrays: one array then serves for several places. [HasShifts] must be true.
func (k *Kernel) Shift(elements int) { k.shift = elements }

// Stored reports whether kernels load and store elements of type t.
func Stored(t dtype.DType) bool {
	return t.IsInteger() || t.IsFloat() && !t.IsFloat8()
}

// BoolWords is the type of arrays that hold booleans as words 0 or 1, as those between kernels
// do.
const BoolWords = dtype.Bool

// Load loads contiguous elements of type t from an array.
func (k *Kernel) Load(array int, t dtype.DType) Value {
	return k.step(step{kind: load, typ: t, array: array, skip: k.offset, shift: k.shift, dst: k.value(inLanes(t))})
}

// Splat loads the first element of an array to all lanes. The element has the width of a lane,
// or is a boolean.
func (k *Kernel) Splat(array int, t dtype.DType) Value {
	return k.step(step{kind: splat, typ: t, array: array, dst: k.value(inLanes(t))})
}

// LoadBools loads contiguous booleans, bytes of 0 or 1, in kernels that are not long.
func (k *Kernel) LoadBools(array int) Value {
	bytes := k.Load(array, dtype.U8)
	return k.step(step{op: scalar.OpNe, typ: dtype.Bool, from: dtype.I32, args: []argument{{value: bytes}, {constant: true}}, dst: k.value(dtype.Bool)})
}

// StoreBools stores booleans as contiguous bytes of 0 or 1, in kernels that are not long.
func (k *Kernel) StoreBools(array int, v Value) {
	k.Store(array, dtype.U8, k.step(step{op: scalar.OpConvert, typ: dtype.I32, from: dtype.Bool, args: []argument{{value: v}}, dst: k.value(dtype.I32)}))
}

// Store stores a value as contiguous elements of type t to an array.
func (k *Kernel) Store(array int, t dtype.DType, v Value) {
	k.step(step{kind: store, typ: t, array: array, skip: k.offset, shift: k.shift, args: []argument{{value: v}}, dst: noValue})
}

// StoresOnce reports whether the stores of a kernel can be of some lanes only: they are of words as wide as the lanes.
func (k *Kernel) StoresOnce() bool {
	width := 4
	if k.Long {
		width = 8
	}
	return !slices.ContainsFunc(k.steps, func(s step) bool {
		return s.kind == storeRuns || s.kind == storePairs || s.kind == store && (s.typ == BoolWords || s.typ.Size() != width)
	})
}

// StoreFirst stores lane 0 of a number to the first element of an array.
func (k *Kernel) StoreFirst(array int, v Value) {
	k.step(step{kind: storeFirst, typ: k.types[v], array: array, args: []argument{{value: v}}, dst: noValue})
}

// Const returns a constant number or boolean.
func (k *Kernel) Const(c scalar.Expr) Value {
	word := argument{bits: wordOf(c), constant: true}
	if c.Type.IsBool() {
		return k.step(step{op: scalar.OpNe, typ: c.Type, from: dtype.I32, args: []argument{word, {constant: true}}, dst: k.value(c.Type)})
	}
	v := k.value(inLanes(c.Type))
	k.setConst(v, word.bits)
	return k.step(step{op: scalar.OpBitcast, typ: c.Type, from: c.Type, args: []argument{word}, dst: v})
}

// IsBool reports whether a value is a boolean, not a number.
func (k *Kernel) IsBool(v Value) bool { return k.types[v].IsBool() }

// Accumulator returns a number that is carried through the loop and starts with the given bits
// in each lane. A kernel has at most [MaxAccumulators].
func (k *Kernel) Accumulator(t dtype.DType, initial uint64) Value {
	v := k.value(t)
	k.accumulators = append(k.accumulators, accumulator{value: v, next: noValue, initial: initial})
	return v
}

// Next sets the value of an accumulator for the next iteration.
func (k *Kernel) Next(v, next Value) {
	t := k.types[next] // a copy, as next may be another accumulator
	next = k.step(step{op: scalar.OpBitcast, typ: t, from: t, args: []argument{{value: next}}, dst: k.value(t)})
	for i := range k.accumulators {
		if k.accumulators[i].value == v {
			k.accumulators[i].next = next
		}
	}
}

// Rotate rotates the lanes of a value by a power of two below [Kernel.Width].
func (k *Kernel) Rotate(v Value, lanes int) Value {
	t := k.types[v]
	return k.step(step{kind: rotate, typ: t, from: t, args: []argument{{value: v}}, lanes: lanes, dst: k.value(t)})
}

// Has reports whether kernels support an operation.
func Has(o Operation) bool { return templateOf(o) != nil }

// Apply adds an operation; false where kernels do not support it.
func (k *Kernel) Apply(o Operation, args ...Value) (Value, bool) {
	t := templateOf(o)
	if t == nil {
		return noValue, false
	}
	if make := powersOfTwo[o.To]; o.Op == scalar.OpPow && make != nil && k.isConst(args[0], wordOf(scalar.ConstF(o.To, 2))) {
		t, args = make(), args[1:]
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

// fold moves a constant operand last, and folds the masks of shift counts.
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

// isConst reports whether a value is the constant with the given bits.
func (k *Kernel) isConst(v Value, bits uint64) bool {
	b, ok := k.consts[v]
	return ok && b == bits
}

// setConst records that a value is a constant.
func (k *Kernel) setConst(v Value, bits uint64) {
	if k.consts == nil {
		k.consts = map[Value]uint64{}
	}
	k.consts[v] = bits
}

// Steps returns the number of steps of an operation without those that few lanes need, 0 where [Has] is false.
func Steps(o Operation) int {
	t := templateOf(o)
	if t == nil {
		return 0
	}
	n, rare := 0, false
	for _, s := range t.steps {
		rare = rare && s.kind != carry || s.kind == whenAny
		if !rare {
			n++
		}
	}
	return n
}

// optimize returns the kernel with pairs of shifts replaced by rotations and without dead
// steps.
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

// matchRotate replaces x << n | x >> (32-n), for unsigned x, by a rotation.
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

// eliminateDead returns the stores and the steps whose results are needed, and adds their
// operands to needed.
func eliminateDead(steps []step, needed map[Value]bool) []step {
	kept := make([]step, len(steps))
	at := len(kept)
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if s.dst != noValue && !needed[s.dst] {
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

// Rows is an outer loop over rows. Each row runs the kernels in order over the same number of
// lanes; all are long or none is. The arrays of all kernels are numbered consecutively. A
// kernel whose steps are all after its loop has no loop.
type Rows struct {
	Kernels []*Kernel
	// Strides are the bytes from row to row of each array, less than 2 GiB; nil for a
	// single row.
	Strides []int
	// Counter is an array whose first element, of 32 bits, counts the rows; negative for
	// none.
	Counter int
	// Overlap means that rows may have any number of lanes from [Rows.Width] on: the last lanes are those of a
	// vector that overlaps the one before, whose lanes are computed twice, but change accumulators once.
	// [HasOverlap] must be true, and no kernel may be unrolled or read what it writes, unless InPlace is set.
	Overlap bool
	// InPlace means that kernels may write the elements that they read: the last vector stores only the lanes that the one
	// before does not have. For all kernels [Kernel.StoresOnce] must be true.
	InPlace bool
	// Indirect lists arrays whose addresses depend on values that kernels of the row compute.
	// [HasIndirect] must be true.
	Indirect []Indirect
}

// Indirect describes an array of a row at the address of the array Base plus Scale bytes times an
// index. Base is numbered after the arrays of the kernels. The index is the first element, of 32
// bits, of the array Index, which a kernel of the row stores; an index outside 0 to Most-1 counts
// as 0.
type Indirect struct {
	Array, Base, Index, Scale, Most int
	After                           int // the number of kernels that run before
}

// One returns a single row of a kernel.
func One(k *Kernel) *Rows { return &Rows{Kernels: []*Kernel{k}, Counter: -1} }

// Width returns the lanes of an iteration: the length of a row must be a multiple of it, unless rows overlap.
func (r *Rows) Width() int {
	width := 0
	for _, k := range r.Kernels {
		width = max(width, k.Width()*max(1, k.stride))
	}
	return width
}

// Accumulates reports whether a kernel of the row has accumulators.
func (r *Rows) Accumulates() bool {
	return slices.ContainsFunc(r.Kernels, func(k *Kernel) bool { return len(k.accumulators) > 0 })
}
