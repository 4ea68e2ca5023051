package plansim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestFactorisationsOfManySizes compares the kernels and panels of factorisations with their
// reference implementations, in f64, where rounding hides no fault: sizes around those of tiles and
// of a workgroup's memory, and beyond.
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
		{ops.OpTriangularSolve, &ops.TriangularAttrs{LeftSide: true, UnitDiagonal: true}, [][]int{{300, 300}, {300, 2}}},
		{ops.OpTriangularSolve, &ops.TriangularAttrs{Lower: true, TransposeA: true}, [][]int{{90, 90}, {2, 90}}},
		{ops.OpTriangularSolve, &ops.TriangularAttrs{Lower: true}, [][]int{{90, 90}, {2, 90}}},
	} {
		if testing.Short() && ir.NewArray(ir.F64, c.dims[0]...).Len() > 64*64 {
			continue
		}
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

// TestTrianglesOfThreeBlocks evaluates the body of a solution that is halved twice, whose kernels are those of the
// sizes of TestFactorisationsOfManySizes.
func TestTrianglesOfThreeBlocks(t *testing.T) {
	s := ir.Sample{Attrs: &ops.TriangularAttrs{LeftSide: true, Lower: true}}
	for _, dims := range [][]int{{530, 530}, {530, 2}} {
		s.In = append(s.In, numbersLike(ir.NewArray(ir.F64, dims...), 0))
	}
	addDiagonal(s.In[0], 530)
	g, inputs, err := sampleGraph(ops.OpTriangularSolve, s)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	body, err := passes.Run(g, passes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(body.Nodes(), func(n *ir.Node) bool { return n.Op() == ops.OpTriangularSolve }) {
		t.Fatalf("the solution is no body:\n%s", body)
	}
	got, err := ir.Eval(body, inputs, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := compare(got[0], want[0], 1e-12); diff != "" {
		t.Error(diff)
	}
}

// TestTransformsOfManyLengths compares the passes of Fourier transforms with the defining sum: one,
// two and three passes, rows that fill workgroups and rows that do not, contiguous and strided
// columns.
func TestTransformsOfManyLengths(t *testing.T) {
	for _, c := range []struct {
		d       ir.DType
		inverse bool
		parts   int
		dims    []int
	}{
		{ir.F32, false, 2, []int{3, 64}},
		{ir.F32, true, 2, []int{70, 64}},
		{ir.F32, false, 1, []int{2, 128}},
		{ir.F32, false, 2, []int{256}},
		{ir.F32, false, 2, []int{2, 512}},
		{ir.F64, true, 1, []int{1024}},
		{ir.F64, false, 1, []int{3, 64}},
		{ir.F64, true, 2, []int{1 << 13}},
	} {
		t.Run(fmt.Sprint(c.d, c.dims, c.parts, c.inverse), func(t *testing.T) {
			in := []*ir.Array{numbersLike(ir.NewArray(c.d, c.dims...), 0), ir.NewArray(c.d, c.dims...)}
			for i := range in[1].F {
				in[1].F[i] = in[0].F[(7*i+1)%len(in[0].F)]
			}
			t.Log(checkSampleOn(t, inBytes(), ops.OpDFT, ir.Sample{Attrs: &ops.DFTAttrs{Inverse: c.inverse}, In: in[:c.parts]}))
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
