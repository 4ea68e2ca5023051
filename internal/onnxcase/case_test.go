package onnxcase

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
)

func complexes(x []complex128, dims ...int) *ir.Array {
	a := ir.NewArray(ir.C64, dims...)
	copy(a.C, x)
	return a
}

// TestCompare compares results of every kind with others.
func TestCompare(t *testing.T) {
	c := &Case{atol: 1e-3, rtol: 1e-3}
	for _, k := range []struct {
		got, want *ir.Array
		same      bool
	}{
		{ir.Floats(ir.F32, []float64{1, 2}, 2), ir.Floats(ir.F32, []float64{1.001, 2}, 2), true},
		{ir.Floats(ir.F32, []float64{1, 2}, 2), ir.Floats(ir.F32, []float64{1.1, 2}, 2), false},
		{ir.Floats(ir.F32, []float64{1}, 1), ir.Floats(ir.F64, []float64{1}, 1), false},
		{ir.Ints(ir.I32, []int64{3}, 1), ir.Ints(ir.I32, []int64{4}, 1), false},
		{complexes([]complex128{1 + 2i, 3}, 2), complexes([]complex128{1 + 2.001i, 3}, 2), true},
		{complexes([]complex128{1 + 2i, 3}, 2), complexes([]complex128{1 + 2i, 3.1}, 2), false},
		{complexes([]complex128{1 + 2i, 3}, 2), complexes([]complex128{1 + 2.1i, 3}, 2), false},
	} {
		if err := c.compare(k.got, k.want); (err == nil) != k.same {
			t.Errorf("%v and %v: %v", k.got, k.want, err)
		}
	}
}
