package plansim_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestFactorisationsOfManySizes holds the kernels and the panels of factorisations to
// their plain meanings, in f64, where a fault is not lost in roundings: sizes around
// those of tiles, of what a workgroup keeps, and beyond.
func TestFactorisationsOfManySizes(t *testing.T) {
	for _, c := range []struct {
		op    ir.Op
		attrs ir.Attrs
		dims  [][]int
	}{
		{ops.OpLU, nil, [][]int{{2, 8, 8}}},
		{ops.OpLU, nil, [][]int{{33, 64}}},
		{ops.OpLU, nil, [][]int{{64, 33}}},
		{ops.OpLU, nil, [][]int{{90, 90}}},
		{ops.OpLU, nil, [][]int{{150, 140}}},
		{ops.OpLU, nil, [][]int{{70, 200}}},
		{ops.OpCholesky, nil, [][]int{{130, 130}}},
		{ops.OpHouseholder, nil, [][]int{{2, 9, 9}}},
		{ops.OpHouseholder, nil, [][]int{{33, 64}}},
		{ops.OpHouseholder, nil, [][]int{{64, 33}}},
		{ops.OpHouseholder, nil, [][]int{{150, 140}}},
		{ops.OpHouseholder, nil, [][]int{{70, 200}}},
		{ops.OpQR, &ops.FullAttrs{}, [][]int{{2, 64, 64}}},
		{ops.OpQR, &ops.FullAttrs{}, [][]int{{110, 100}}},
		{ops.OpTriangularSolve, &ops.TriangularAttrs{LeftSide: true}, [][]int{{40, 40}, {40, 70}}},
		{ops.OpTriangularSolve, &ops.TriangularAttrs{Lower: true, TransposeA: true}, [][]int{{2, 17, 17}, {2, 67, 17}}},
		{ops.OpTriangularSolve, &ops.TriangularAttrs{Lower: true, UnitDiagonal: true}, [][]int{{64, 64}, {1, 64}}},
		{ops.OpTriangularSolve, &ops.TriangularAttrs{LeftSide: true, TransposeA: true}, [][]int{{130, 130}, {130, 65}}},
	} {
		var in []*ir.Array
		for i, dims := range c.dims {
			in = append(in, numbersLike(ir.NewArray(ir.F64, dims...), 0))
			if i == 0 && c.op != ops.OpLU {
				addDiagonal(in[0], float64(dims[len(dims)-1]))
			}
		}
		t.Run(fmt.Sprint(c.op, c.dims), func(t *testing.T) {
			names := checkSampleOn(t, inBytes(), c.op, ir.Sample{Attrs: c.attrs, In: in})
			t.Log(names)
		})
	}
}

// addDiagonal adds a number to the diagonals of square matrices.
func addDiagonal(a *ir.Array, x float64) {
	n := a.Dims[len(a.Dims)-1]
	for i := range a.F {
		if i/n%n == i%n {
			a.F[i] += x
		}
	}
}
