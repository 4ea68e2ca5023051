package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/native/cpu/simd/spec"
)

// Lanes is the kernel of an operation: it writes n results to d from operands
// a, b and c (those that there are), all arrays of 32-bit elements. It goes on
// to a multiple of [Round] lanes, whatever is in the lanes after n.
type Lanes func(n int, d, a, b, c unsafe.Pointer)

// Round is what lengths of arrays for [Lanes] are rounded up to.
const Round = 16

// LanesOf returns the kernel of an operation, nil where there is none.
func LanesOf(o spec.Operation) Lanes {
	if table := lanesTables[Has]; table != nil {
		return table[o]
	}
	return nil
}

// table makes a table of the kernels of all operations.
func table(list []Lanes) map[spec.Operation]Lanes {
	out := map[spec.Operation]Lanes{}
	for i, o := range spec.Operations() {
		out[o] = list[i]
	}
	return out
}
