package jit

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// HasGathers reports whether kernels have [Kernel.Gather] of elements of type t.
func HasGathers(t dtype.DType) bool {
	return hasGathers() && (t == dtype.F32 || t == dtype.I32 || t == dtype.U32)
}

// Gather loads elements of type t of an array of elems, at places of 32 bits: the last one where a place is none of the
// array. [HasGathers] must be true, and the kernel not long.
func (k *Kernel) Gather(array int, t dtype.DType, places Value, elems int) Value {
	last := k.Const(scalar.ConstI(dtype.U32, int64(elems-1)))
	inside, _ := k.Apply(Operation{scalar.OpMin, dtype.U32, dtype.U32}, places, last)
	return k.step(step{kind: gather, typ: t, array: array, args: []argument{{value: inside}}, dst: k.value(inLanes(t))})
}
