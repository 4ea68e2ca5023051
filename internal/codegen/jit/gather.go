package jit

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// HasGathers reports whether kernels have [Kernel.Gather] of elements of type t; those of 64 bits are for long kernels.
func HasGathers(t dtype.DType) bool {
	switch t {
	case dtype.F32, dtype.I32, dtype.U32, dtype.BF16, dtype.F64, dtype.I64, dtype.U64:
		return hasGathers()
	}
	return false
}

// Gather loads elements of type t of an array of elems, two or more, at places as wide as the lanes: the last one where a
// place is none of the array. [HasGathers] must be true.
func (k *Kernel) Gather(array int, t dtype.DType, places Value, elems int) Value {
	word := dtype.U32
	if k.Long {
		word = dtype.U64
	}
	number := func(x int) Value { return k.Const(scalar.ConstI(word, int64(x))) }
	apply := func(op scalar.Op, x, y Value) Value {
		v, _ := k.Apply(Operation{op, word, word}, x, y)
		return v
	}
	at := apply(scalar.OpMin, places, number(elems-1))
	if t != dtype.BF16 {
		return k.step(step{kind: gather, typ: t, array: array, args: []argument{{value: at}}, lanes: t.Size(), dst: k.value(inLanes(t))})
	}
	// A word has two elements, and must not end after the last.
	from := apply(scalar.OpMin, at, number(elems-2))
	pair := k.step(step{kind: gather, typ: word, array: array, args: []argument{{value: from}}, lanes: t.Size(), dst: k.value(word)})
	pair = apply(scalar.OpShr, pair, apply(scalar.OpShl, apply(scalar.OpSub, at, from), number(4)))
	x, _ := k.Apply(Operation{scalar.OpBitcast, word, dtype.F32}, apply(scalar.OpShl, pair, number(16)))
	return x
}
