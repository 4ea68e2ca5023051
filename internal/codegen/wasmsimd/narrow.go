package wasmsimd

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Types of 8 and 16 bits have no arithmetic. Kernels are widened (loop.Widen), so only
// loads, stores, conversions and bitcasts have such types. A value is an i32 or a 32-bit
// lane: the integer, or the bits of the float.

func isNarrow(t dtype.DType) bool { return t.On(dtype.WASM) == dtype.Storage }

// rejectsNarrow records an error if t has no arithmetic, and reports whether it did.
func (w *writer) rejectsNarrow(op scalar.Op, t dtype.DType) bool {
	if isNarrow(t) {
		w.fail("%s of %s", op, t)
	}
	return isNarrow(t)
}

// loadOf returns the instruction that loads an element.
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

// storeOf returns the instruction that stores the low bits of an element.
func storeOf(t dtype.DType) opcode {
	switch {
	case !isNarrow(t):
		return stores[classOf(t)]
	case t.Size() == 1:
		return opI32Store8
	}
	return opI32Store16
}

// wrap truncates the i32 on the stack to t and extends it, if t is narrow.
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

// wrapLanes is wrap for four lanes.
func (w vectorWriter) wrapLanes(t dtype.DType) {
	switch {
	case !isNarrow(t):
	case t.IsSigned():
		for _, shift := range []opcode{opI32x4Shl, opI32x4ShrS} {
			w.f.constI32(int32(32 - t.Bits()))
			w.f.op(shift)
		}
	default:
		mask := uint32(1)<<t.Bits() - 1
		w.f.constLanes([4]uint32{mask, mask, mask, mask})
		w.f.op(opV128And)
	}
}

// loadRow loads four contiguous elements at the address on the stack.
func (w vectorWriter) loadRow(t dtype.DType, offset uint64) {
	switch {
	case !isNarrow(t):
		w.f.memory(opV128Load, 2, offset)
	case t.Size() == 2 && t.IsSigned():
		w.f.memory(opV128Load16x4S, 1, offset)
	case t.Size() == 2:
		w.f.memory(opV128Load16x4U, 1, offset)
	default:
		w.f.memory(opV128LoadZero, 0, offset)
		if t.IsSigned() {
			w.f.op(opI16x8ExtendS, opI32x4ExtendS)
		} else {
			w.f.op(opI16x8ExtendU, opI32x4ExtendU)
		}
	}
}

// storeRow stores four contiguous elements.
func (w vectorWriter) storeRow(t dtype.DType, offset uint64) {
	if !isNarrow(t) {
		w.f.memory(opV128Store, 2, offset)
		return
	}
	v, size := w.f.local(typeV128), t.Size()
	w.f.tee(v)
	w.f.get(v)
	var low [16]byte // the low bytes of each lane; the rest is not stored
	for i := range lanes * size {
		low[i] = byte(i/size*wordBytes + i%size)
	}
	w.f.shuffle(low)
	store := opV128StoreLane
	if size == 2 {
		store = opV128Store64Lane
	}
	w.f.memory(store, alignLog(t), offset)
	w.f.code = append(w.f.code, 0)
}

// laneAccess are the instructions that load or store one lane, by the logarithm of
// the element size.
type laneAccess [3]opcode

var (
	laneLoads  = laneAccess{opV128Load8Lane, opV128Load16Lane, opV128LoadLane}
	laneStores = laneAccess{opV128Store8Lane, opV128Store16Lane, opV128StoreLane}
)

// oneLane loads or stores the low bits of one lane.
func (w vectorWriter) oneLane(access laneAccess, t dtype.DType, lane int, offset uint64) {
	align := alignLog(t)
	w.f.memory(access[align], align, offset)
	w.f.code = append(w.f.code, byte(lane<<(2-align)))
}
