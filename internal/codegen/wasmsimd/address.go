package wasmsimd

import (
	"math/bits"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// load leaves an element on the stack.
func (w *writer) load(e scalar.Expr) {
	if regs := w.locations[e.Ref].registers; regs != nil {
		at := w.registerIndex(e.Args[0])
		w.f.get(regs[at/lanes])
		w.extract(e.Type, int(at%lanes))
		return
	}
	offset := w.address(e.Ref, e.Args[0])
	w.f.memory(loadOf(e.Type), alignLog(e.Type), offset)
	if e.Type.IsBool() {
		w.nonZero(dtype.U32)
	}
}

// store writes an element; value leaves it on the stack.
func (w *writer) store(array int, at scalar.Expr, value func()) {
	t := w.k.Arrays[array].DType
	if regs := w.locations[array].registers; regs != nil {
		index := w.registerIndex(at)
		w.f.get(regs[index/lanes])
		value()
		w.replace(t, int(index%lanes))
		w.f.set(regs[index/lanes])
		return
	}
	offset := w.address(array, at)
	value()
	w.f.memory(storeOf(t), alignLog(t), offset)
}

// address leaves on the stack what, together with the offset that it returns, is
// the address of an element.
func (w *writer) address(array int, at scalar.Expr) (offset uint64) {
	p, size := w.locations[array], w.elementBytes(array)
	at, c := w.splitKnown(at)
	if lo, _, ok := scalar.Range(at); c < 0 || !ok || lo < 0 {
		// An offset is added to an address that has not wrapped.
		at, c = scalar.Add(at, scalar.ConstI(at.Type, c)), 0
	}
	offset = p.offset + uint64(c)*uint64(size)
	x, known := at.IntConst()
	switch first := known && x == 0; {
	case first && p.hasBase:
		w.f.get(p.param)
	case first:
		w.f.constI32(0)
	default:
		w.scaled(at, int64(size))
		w.addBase(p)
	}
	return offset
}

// addBase adds the address that a place lies behind to the one on the stack.
func (w *writer) addBase(p location) {
	if p.hasBase {
		w.f.get(p.param)
		w.f.op(opI32Add)
	}
}

// elementBytes is the size of an element of an array.
func (w *writer) elementBytes(array int) int {
	a := w.k.Arrays[array]
	return a.Bytes() / a.Len / a.Width
}

// alignLog is the logarithm, to base 2, of the bytes that an element takes.
func alignLog(t dtype.DType) uint32 { return uint32(bits.TrailingZeros(uint(loop.DeviceSize(t)))) }

// splitConstant returns e as a sum with a constant.
func splitConstant(e scalar.Expr) (rest scalar.Expr, c int64) {
	if x, ok := e.IntConst(); ok {
		return scalar.ConstI(e.Type, 0), x
	}
	if e.Op == scalar.OpAdd {
		if x, ok := e.Args[1].IntConst(); ok {
			return e.Args[0], x
		}
	}
	return e, 0
}

// splitKnown returns e as a sum with what is known of it, in lane 0.
func (w *writer) splitKnown(e scalar.Expr) (rest scalar.Expr, c int64) {
	rest, c = splitConstant(e)
	if rest.Op == scalar.OpAdd {
		if x, ok := w.known(rest.Args[1]); ok {
			return rest.Args[0], c + x
		}
	}
	return rest, c
}

// scaled leaves e times size on the stack. What is multiplied by a constant
// anyway is multiplied once.
func (w *writer) scaled(e scalar.Expr, size int64) {
	switch e.Op {
	case scalar.OpConst:
		x, _ := e.IntConst()
		w.f.constI32(int32(x * size))
		return
	case scalar.OpAdd, scalar.OpSub:
		w.scaled(e.Args[0], size)
		w.scaled(e.Args[1], size)
		w.f.op(scalarForms[e.Op][classS32])
		return
	case scalar.OpMul:
		if x, ok := e.Args[1].IntConst(); ok {
			w.scaled(e.Args[0], x*size)
			return
		}
	}
	w.expr(e)
	w.mulConst(size)
}

// mulConst multiplies the i32 on the stack.
func (w *writer) mulConst(size int64) {
	switch {
	case size == 1:
	case size > 0 && size&(size-1) == 0:
		w.f.constI32(int32(bits.TrailingZeros64(uint64(size))))
		w.f.op(opI32Shl)
	default:
		w.f.constI32(int32(size))
		w.f.op(opI32Mul)
	}
}
