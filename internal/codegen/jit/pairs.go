package jit

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
)

// LoadPart loads the real (0) or imaginary (1) parts, of type F32 or in long kernels F64, of contiguous complex
// numbers. [HasPairs] must be true.
func (k *Kernel) LoadPart(array int, t dtype.DType, part int) Value {
	return k.step(step{kind: loadPart, typ: t, array: array, skip: k.offset, shift: k.shift, lanes: part, dst: k.value(t)})
}

// StorePairs stores two values of type t, as of [Kernel.LoadPart], as contiguous complex numbers.
func (k *Kernel) StorePairs(array int, t dtype.DType, re, im Value) {
	k.step(step{kind: storePairs, typ: t, array: array, skip: k.offset, shift: k.shift, args: []argument{{value: re}, {value: im}}, dst: noValue})
}

// isPaired reports whether a kernel accesses only complex numbers and uniform values, so that the order of its lanes
// may be another one, the same for loads and stores.
func (k *Kernel) isPaired() bool {
	return len(k.after)+len(k.accumulators) == 0 && !slices.ContainsFunc(k.steps, func(s step) bool {
		switch s.kind {
		case load, store, storeFirst, rotate, loadRuns, storeRuns:
			return true
		}
		return false
	})
}
