package wasmsimd

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// In vectors a bool is a mask: all bits of the lane are set, or none.

// vectorWriter writes the expressions of a vectorised loop, for four iterations at once.
type vectorWriter struct{ *writer }

// vector pushes the values of e in four lanes.
func (w vectorWriter) vector(e scalar.Expr) {
	if !w.varies(e) {
		w.splat(e)
		return
	}
	if step, ok := w.affine(e); ok {
		w.expr(e)
		w.f.op(opI32x4Splat)
		s := uint32(step)
		w.f.constLanes([4]uint32{0, s, 2 * s, 3 * s})
		w.f.op(opI32x4Add)
		return
	}
	switch e.Op {
	case scalar.OpVar:
		w.f.get(w.env[e.Name].local)
	case scalar.OpLoad:
		w.vectorLoad(e)
	case scalar.OpConvert:
		w.vectorConvert(e)
	case scalar.OpBitcast:
		w.vector(e.Args[0])
		w.wrapLanes(e.Type)
	default:
		w.vectorOperation(e)
	}
}

// splat pushes a vector of a uniform value.
func (w vectorWriter) splat(e scalar.Expr) {
	if v, ok := e.Value(); ok {
		word := uint32(v.I)
		switch {
		case e.Type.IsBool():
			word = -word
		case isNarrow(e.Type) && e.Type.IsFloat():
			word = uint32(e.Type.FloatBits(v.F))
		case e.Type.IsFloat():
			word = math.Float32bits(float32(v.F))
		}
		w.f.constLanes([4]uint32{word, word, word, word})
		return
	}
	if e.Op == scalar.OpLoad && e.Type.Size() == wordBytes && w.locations[e.Ref].registers == nil {
		offset := w.address(e.Ref, e.Args[0])
		w.f.memory(opV128LoadSplat, 2, offset)
		return
	}
	if e.Type.IsBool() {
		w.f.constI32(0)
		w.expr(e)
		w.f.op(opI32Sub)
	} else {
		w.expr(e)
	}
	w.splatTop(e.Type)
}

// splatTop replaces the scalar on the stack by a vector of it.
func (w vectorWriter) splatTop(t dtype.DType) {
	if classOf(t) == classF32 {
		w.f.op(opF32x4Splat)
		return
	}
	w.f.op(opI32x4Splat)
}

// vectorConvert converts four lanes.
func (w vectorWriter) vectorConvert(e scalar.Expr) {
	from, to := e.Args[0].Type, e.Type
	w.vector(e.Args[0])
	switch {
	case from == to:
	case to.IsBool():
		w.f.constLanes([4]uint32{})
		if from.IsFloat() {
			w.f.op(opF32x4Ne)
		} else {
			w.f.op(opI32x4Ne)
		}
	case from.IsBool():
		one := uint32(1)
		if to.IsFloat() {
			one = math.Float32bits(1)
		}
		w.f.constLanes([4]uint32{one, one, one, one})
		w.f.op(opV128And)
	default:
		if c := vectorConversions[classOf(from)][classOf(to)]; c != 0 {
			w.f.op(c)
		}
		w.wrapLanes(to)
	}
}

// vectorOperation writes an operation on four lanes.
func (w vectorWriter) vectorOperation(e scalar.Expr) {
	last := e.Args[len(e.Args)-1]
	if w.rejectsNarrow(e.Op, last.Type) {
		return
	}
	switch e.Op {
	case scalar.OpSelect:
		if !w.guarded(e) {
			w.vectors(e.Args[1], e.Args[2], e.Args[0])
			w.f.op(opV128Bitselect)
		}
		return
	case scalar.OpRsqrt:
		w.vector(scalar.Div(scalar.ConstF(e.Type, 1), scalar.Sqrt(last)))
		return
	case scalar.OpIsNaN:
		w.vectors(last, last)
		w.f.op(opF32x4Ne)
		return
	case scalar.OpIsFinite:
		w.vector(scalar.Lt(scalar.Abs(last), scalar.Extreme(last.Type, 1)))
		return
	case scalar.OpShl, scalar.OpShr:
		if w.varies(last) {
			w.laneByLane(e)
			return
		}
		w.vector(e.Args[0])
		w.expr(last)
		w.f.op(vectorForms[e.Op][classOf(last.Type)])
		return
	case scalar.OpFma, scalar.OpAdd, scalar.OpSub:
		if w.multiplyAdd(e) {
			return
		}
	}
	form := vectorForms[e.Op][classOf(last.Type)]
	if form == 0 {
		w.laneByLane(e)
		return
	}
	w.vectors(e.Args...)
	w.f.op(form)
}

// guarded writes a selection whose first value loads contiguous elements where its condition
// holds in all lanes, as inside the padding of a convolution: then it is loaded by one
// instruction, and not at all where the condition holds in no lane. It reports whether it has
// written e.
func (w vectorWriter) guarded(e scalar.Expr) bool {
	cond, value, other := e.Args[0], e.Args[1], e.Args[2]
	if !w.varies(cond) || !w.gathers(value) {
		return false
	}
	inside := scalar.Assume(value, cond)
	if w.gathers(inside) {
		return false
	}
	mask, out := w.f.local(typeV128), w.f.local(typeV128)
	write := func(e scalar.Expr) {
		w.vector(e)
		w.f.set(out)
	}
	w.vector(cond)
	w.f.tee(mask)
	w.f.op(opI32x4AllTrue)
	w.f.begin(opIf)
	write(inside)
	w.f.op(opElse)
	w.f.get(mask)
	w.f.op(opV128AnyTrue)
	w.f.begin(opIf)
	w.vectors(value, other)
	w.f.get(mask)
	w.f.op(opV128Bitselect)
	w.f.set(out)
	w.f.op(opElse)
	write(other)
	w.f.end()
	w.f.end()
	w.f.get(out)
	return true
}

// gathers reports whether e loads elements one by one.
func (w vectorWriter) gathers(e scalar.Expr) bool {
	found := false
	scalar.Walk(e, func(n scalar.Expr) {
		if n.Op == scalar.OpLoad {
			step, ok := w.affine(n.Args[0])
			found = found || !ok || step > 1
		}
	})
	return found
}

func (w vectorWriter) vectors(list ...scalar.Expr) {
	for _, e := range list {
		w.vector(e)
	}
}

// multiplyAdd writes a sum of floats with a product as one relaxed instruction
// if there are such, and an FMA as a product and a sum if not. It reports whether it has
// written e.
func (w vectorWriter) multiplyAdd(e scalar.Expr) bool {
	product := func(x scalar.Expr) bool { return x.Op == scalar.OpMul }
	var a, b, c scalar.Expr
	code := opF32x4RelaxMadd
	switch {
	case e.Op == scalar.OpFma:
		a, b, c = e.Args[0], e.Args[1], e.Args[2]
	case !e.Type.IsFloat():
		return false
	case e.Op == scalar.OpAdd && product(e.Args[1]):
		a, b, c = e.Args[1].Args[0], e.Args[1].Args[1], e.Args[0]
	case e.Op == scalar.OpAdd && product(e.Args[0]):
		a, b, c = e.Args[0].Args[0], e.Args[0].Args[1], e.Args[1]
	case e.Op == scalar.OpSub && product(e.Args[1]):
		a, b, c = e.Args[1].Args[0], e.Args[1].Args[1], e.Args[0]
		code = opF32x4RelaxNmad
	default:
		return false
	}
	if w.relaxed {
		w.vectors(a, b, c)
		w.f.op(code)
		return true
	}
	if e.Op != scalar.OpFma {
		return false
	}
	w.vectors(a, b)
	w.f.op(opF32x4Mul)
	w.vector(c)
	w.f.op(opF32x4Add)
	return true
}

// laneByLane writes an operation without a vector form for each lane separately.
func (w vectorWriter) laneByLane(e scalar.Expr) {
	args := make([]uint32, len(e.Args))
	for i, a := range e.Args {
		args[i] = w.f.local(typeV128)
		w.vector(a)
		w.f.set(args[i])
	}
	out := w.f.local(typeV128)
	for lane := range lanes {
		w.f.get(out)
		parts := make([]scalar.Expr, len(args))
		for i, local := range args {
			w.f.get(local)
			w.extract(e.Args[i].Type, lane)
			parts[i] = w.popLocal(e.Args[i].Type)
		}
		w.expr(&scalar.Node{Op: e.Op, Type: e.Type, Args: parts, Ref: e.Ref})
		w.replace(e.Type, lane)
		w.f.set(out)
	}
	w.f.get(out)
}

// popLocal pops the value on the stack into a local.
func (w vectorWriter) popLocal(t dtype.DType) scalar.Expr {
	v := w.f.local(valueTypes[classOf(t)])
	w.f.set(v)
	return w.localVar(v, t)
}

// extract replaces the vector on the stack by one of its lanes.
func (w vectorWriter) extract(t dtype.DType, lane int) {
	if classOf(t) == classF32 {
		w.f.lane(opF32x4Extract, lane)
		return
	}
	w.f.lane(opI32x4Extract, lane)
	if t.IsBool() {
		w.nonZero(t)
	}
}

// replace stores the value on the stack in a lane of the vector below it.
func (w vectorWriter) replace(t dtype.DType, lane int) {
	if classOf(t) == classF32 {
		w.f.lane(opF32x4Replace, lane)
		return
	}
	if t.IsBool() {
		w.f.constI32(-1)
		w.f.op(opI32Mul)
	}
	w.f.lane(opI32x4Replace, lane)
}

// wordBytes is the size of a lane.
const wordBytes = 4

// vectorLoad loads four elements, by one instruction if they are contiguous.
func (w vectorWriter) vectorLoad(e scalar.Expr) {
	at := e.Args[0]
	if regs := w.locations[e.Ref].registers; regs != nil {
		w.f.get(regs[w.registerIndex(at)/lanes])
		return
	}
	if step, ok := w.affine(at); ok && step == 1 {
		offset := w.address(e.Ref, at)
		w.loadRow(e.Type, offset)
	} else {
		w.gather(e)
	}
	if e.Type.IsBool() {
		w.f.constLanes([4]uint32{})
		w.f.op(opI32x4Ne)
	}
}

// storeLanes stores a value for each lane.
func (w vectorWriter) storeLanes(array int, at, value scalar.Expr) {
	if regs := w.locations[array].registers; regs != nil {
		w.vector(value)
		w.f.set(regs[w.registerIndex(at)/lanes])
		return
	}
	step, even := w.affine(at)
	if even && step == 1 {
		offset := w.address(array, at)
		w.vectorInMemory(value)
		w.storeRow(value.Type, offset)
		return
	}
	w.scatter(array, at, value)
}

// vectorInMemory pushes four lanes in their memory format.
func (w vectorWriter) vectorInMemory(value scalar.Expr) {
	w.vector(value)
	if value.Type.IsBool() {
		w.f.constLanes([4]uint32{1, 1, 1, 1})
		w.f.op(opV128And)
	}
}

// gather loads four elements one by one.
func (w vectorWriter) gather(e scalar.Expr) {
	loaded := w.f.local(typeV128)
	if isNarrow(e.Type) {
		w.f.constLanes([4]uint32{})
		w.f.set(loaded)
	}
	w.eachLane(e.Ref, e.Args[0], func(lane int, address func() uint64) {
		offset := address()
		if lane == 0 && !isNarrow(e.Type) {
			w.f.memory(opV128LoadZero, 2, offset)
		} else {
			w.f.get(loaded)
			w.oneLane(laneLoads, e.Type, lane, offset)
		}
		w.f.set(loaded)
	})
	w.f.get(loaded)
	if e.Type.IsSigned() {
		w.wrapLanes(e.Type)
	}
}

// scatter stores four elements one by one. If lanes store to one element, the last
// lane wins.
func (w vectorWriter) scatter(array int, at, value scalar.Expr) {
	values := w.f.local(typeV128)
	w.vectorInMemory(value)
	w.f.set(values)
	w.eachLane(array, at, func(lane int, address func() uint64) {
		offset := address()
		w.f.get(values)
		w.oneLane(laneStores, value.Type, lane, offset)
	})
}

// eachLane calls f for each lane with a function that pushes the address of the lane's
// element without the offset that it returns. Indices have a constant stride, or are
// extracted from a vector.
func (w vectorWriter) eachLane(array int, at scalar.Expr, f func(lane int, address func() uint64)) {
	size := int64(w.elementBytes(array))
	if step, even := w.affine(at); even {
		first := w.f.local(typeI32)
		offset := w.address(array, at)
		w.f.set(first)
		for lane := range lanes {
			f(lane, func() uint64 {
				w.f.get(first)
				if d := step * size * int64(lane); d != 0 {
					w.f.constI32(int32(d))
					w.f.op(opI32Add)
				}
				return offset
			})
		}
		return
	}
	p, index := w.locations[array], w.f.local(typeV128)
	w.vector(at)
	w.f.set(index)
	for lane := range lanes {
		f(lane, func() uint64 {
			w.f.get(index)
			w.f.lane(opI32x4Extract, lane)
			w.mulConst(size)
			w.addBase(p)
			return p.offset
		})
	}
}
