package wasmsimd

import (
	"math/bits"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// load pushes an element.
func (w *writer) load(e scalar.Expr) {
	if regs := w.locations[e.Ref].registers; regs != nil {
		at := w.registerIndex(e.Args[0])
		w.f.get(regs[at/lanes])
		vectorWriter{w}.extract(e.Type, int(at%lanes))
		return
	}
	offset := w.address(e.Ref, e.Args[0])
	w.f.memory(loadOf(e.Type), alignLog(e.Type), offset)
	if e.Type.IsBool() {
		w.nonZero(dtype.U32)
	}
}

// store writes an element; value pushes it.
func (w *writer) store(array int, at scalar.Expr, value func()) {
	t := w.k.Arrays[array].DType
	if regs := w.locations[array].registers; regs != nil {
		index := w.registerIndex(at)
		w.f.get(regs[index/lanes])
		value()
		vectorWriter{w}.replace(t, int(index%lanes))
		w.f.set(regs[index/lanes])
		return
	}
	offset := w.address(array, at)
	value()
	w.f.memory(storeOf(t), alignLog(t), offset)
}

// address pushes the address of an element without the offset that it returns.
func (w *writer) address(array int, at scalar.Expr) (offset uint64) {
	p, size := w.locations[array], w.elementBytes(array)
	at, c := w.splitKnown(at)
	if lo, _, ok := scalar.Range(at); c < 0 || !ok || lo < 0 {
		// The offset is added without wrapping, so the address must not be negative.
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

// addBase adds the base address of a location to the address on the stack.
func (w *writer) addBase(p location) {
	if p.hasBase {
		w.f.get(p.param)
		w.f.op(opI32Add)
	}
}

// elementBytes returns the size of an element of an array.
func (w *writer) elementBytes(array int) int {
	a := w.k.Arrays[array]
	return a.Bytes() / a.Len / a.Width
}

// alignLog returns the logarithm, to base 2, of the size of an element.
func alignLog(t dtype.DType) uint32 { return uint32(bits.TrailingZeros(uint(loop.DeviceSize(t)))) }

// splitConstant returns e as the sum of an expression and a constant.
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

// splitKnown is splitConstant that includes terms that are constant in lane 0.
func (w *writer) splitKnown(e scalar.Expr) (rest scalar.Expr, c int64) {
	rest, c = splitConstant(e)
	if rest.Op == scalar.OpAdd {
		if x, ok := w.known(rest.Args[1]); ok {
			return rest.Args[0], c + x
		}
	}
	return rest, c
}

// scaled pushes e times size, with the multiplication folded into constant factors of e.
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

// mulConst multiplies the i32 on the stack by a constant.
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
