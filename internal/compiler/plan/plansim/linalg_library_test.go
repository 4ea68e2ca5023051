package plansim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// withFactors is a target whose library factors matrices.
func withFactors() plan.Target {
	t := schedtest.Hopper()
	t.Factors = true
	return t
}

// largeMatrices are the sizes of matrices that a library factors, odd and rectangular ones among them.
var largeMatrices = []struct {
	op   ir.Op
	dims []int
}{
	{ops.OpCholesky, []int{200, 200}},
	{ops.OpCholesky, []int{129, 129}},
	{ops.OpLU, []int{257, 270}},
	{ops.OpLU, []int{2, 1030, 65}},
	{ops.OpHouseholder, []int{2, 1300, 65}},
}

// largeMatrix returns random matrices, which are positive definite for a Cholesky factorisation.
func largeMatrix(op ir.Op, d ir.DType, dims []int) *ir.Array {
	x := numbersLike(ir.NewArray(d, dims...), 0)
	if op == ops.OpCholesky {
		addDiagonal(x, float64(dims[len(dims)-1]))
	}
	return x
}

func TestALibraryFactorsLargeMatrices(t *testing.T) {
	for _, c := range largeMatrices {
		t.Run(fmt.Sprint(c.op, c.dims), func(t *testing.T) {
			s := ir.Sample{In: []*ir.Array{largeMatrix(c.op, ir.F64, c.dims)}}
			g, inputs, err := sampleGraph(c.op, s)
			if err != nil {
				t.Fatal(err)
			}
			program := open(t, g, withFactors())
			checkRun(t, program, g, inputs)
			if r := program.Plan().Routines; len(r) != 1 || r[0].Name() != "factor" {
				t.Errorf("the routines are %v, not a factorisation", r)
			}
		})
	}
}

// TestALibraryFactorsNoSmallMatrices: those of small or many matrices are faster by the op's own kernels, and
// targets without a library have no calls.
func TestALibraryFactorsNoSmallMatrices(t *testing.T) {
	for _, dims := range [][]int{{128, 128}, {2, 300, 300}, {300, 63}, {100, 1000}} {
		g, err := ir.Build("lu", func(b *ir.Builder) { b.Output("y", b.Add(ops.OpLU, nil, b.Input("x", ir.F32, ir.Dims(dims...)...))[0]) })
		if err != nil {
			t.Fatal(err)
		}
		if p := open(t, g, withFactors()).Plan(); len(p.Routines) > 0 {
			t.Errorf("%v: the routines are %v", dims, p.Routines)
		}
	}
}

// TestALibraryFindsEigenvalues compares x·v with v·w, as the reference implementation takes seconds.
func TestALibraryFindsEigenvalues(t *testing.T) {
	const n, batch = 193, 2
	x := largeMatrix(ops.OpEigh, ir.F64, []int{batch, n, n})
	g, err := ir.Build("eigh", func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.Dims(batch, n, n)...)
		w, v := ops.Eigh(b, x)
		x = ops.Mul(b, ops.Add(b, x, ops.Transpose(b, x, 0, 2, 1)), ops.ConstLike(b, x, 0.5))
		unit := ops.Convert(b, ops.Eq(b, ops.Iota(b, ir.I32, 1, ir.Dims(batch, n, n)...), ops.Iota(b, ir.I32, 2, ir.Dims(batch, n, n)...)), ir.F64)
		b.Output("error", ops.ReduceMax(b, ops.Abs(b, ops.Sub(b, ops.MatMul(b, x, v), ops.Mul(b, v, ops.ExpandDims(b, w, 1))))))
		b.Output("product", ops.ReduceMax(b, ops.Abs(b, ops.Sub(b, ops.MatMul(b, ops.Transpose(b, v, 0, 2, 1), v), unit))))
		b.Output("descent", ops.ReduceMax(b, ops.Sub(b, ops.SliceAxis(b, w, 1, ir.N(0), ir.N(n-1)), ops.SliceAxis(b, w, 1, ir.N(1), ir.N(n-1)))))
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := open(t, g, withFactors()).Run("run", map[string]*ir.Array{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	for name, y := range out {
		if !(y.F[0] < 1e-11) {
			t.Errorf("%s is %g", name, y.F[0])
		}
	}
}

func TestALibraryFactorsNoIndefiniteMatrix(t *testing.T) {
	for _, last := range []float64{-1, math.NaN()} {
		x := largeMatrix(ops.OpCholesky, ir.F32, []int{200, 200})
		x.F[100*200+100] = last
		g, inputs, err := sampleGraph(ops.OpCholesky, ir.Sample{In: []*ir.Array{x}})
		if err != nil {
			t.Fatal(err)
		}
		checkRun(t, open(t, g, withFactors()), g, inputs)
	}
}
