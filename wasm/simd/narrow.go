package simd

import "github.com/rlx-go/rlx/ir/dtype"

// Types of 8 and 16 bits are stored only. Kernels come widened (loop.Widen):
// what they do with such types is loads, stores, conversions and bitcasts. A value
// of one is an i32: that of an integer, or the bits of a float.

func isNarrow(t dtype.DType) bool { return t.On(dtype.WASM) == dtype.Storage }

// loadOf is the instruction that loads an element.
func loadOf(t dtype.DType) opcode {
	switch {
	case !isNarrow(t):
		return loads[classOf(t)]
	case t.Size() == 1 && t.IsSigned():
		return opI32Load8S
	case t.Size() == 1:
		return opI32Load8U
	case t.IsSigned():
		return opI32Load16S
	}
	return opI32Load16U
}

// storeOf is the instruction that stores an element: of a narrow type, the low
// bits.
func storeOf(t dtype.DType) opcode {
	switch {
	case !isNarrow(t):
		return stores[classOf(t)]
	case t.Size() == 1:
		return opI32Store8
	}
	return opI32Store16
}

// wrap makes the low bits of the i32 on the stack a value of t, if t is narrow.
func (w *writer) wrap(t dtype.DType) {
	switch {
	case !isNarrow(t):
	case !t.IsSigned():
		w.f.constI32(1<<t.Bits() - 1)
		w.f.op(opI32And)
	case t.Size() == 1:
		w.f.op(opI32Extend8S)
	default:
		w.f.op(opI32Extend16S)
	}
}
