package ops_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// triangles are what scipy.linalg.lapack.dgeqrf of SciPy 1.17.1 returns for
// pattern(1, dims) times a factor.
var triangles = map[string]struct {
	dims        []int
	factor      float64
	packed, tau []float64
}{
	"tall": {
		[]int{4, 3},
		1,
		[]float64{
			-1.14564392373896, 1.500247995372448, -0.8728715609439694,
			0.07059578626968949, 1.2866646619772195, 0.04626210020592236,
			-0.21178735880906846, -0.4434362417355835, -1.218997562007314,
			-0.4941705038878264, 0.05288553197057668, 0.3556824762051829,
		},
		[]float64{1.545544725589981, 1.667455122854316, 1.7753947657850782},
	},
	"wide": {
		[]int{3, 4},
		1,
		[]float64{
			-1.2054563451241194, 1.062875487098686, -1.1406468642034677, 1.1276849680193375,
			-0.5463118542344653, 0.6696422171015886, -0.6862013727136922, -0.01655915561210375,
			0.13657796355861632, 0.8553072836911759, -0.8347469121048842, -0.8347469121048846,
		},
		[]float64{1.5184758473652127, 1.1550341400872677, 0.0},
	},
	"zero": {[]int{2, 3}, 0, []float64{0, 0, 0, 0, 0, 0}, []float64{0, 0}},
}

// TestReflectionsEqualLAPACK holds reflections against geqrf, by the reference of
// the op and by its body.
func TestReflectionsEqualLAPACK(t *testing.T) {
	for name, c := range triangles {
		x := scaledPattern(c.dims, c.factor)
		for form, out := range bothForms(t, x, func(b *ir.Builder, x ir.Value) {
			packed, tau := ops.Householder(b, x)
			b.Output("packed", packed)
			b.Output("tau", tau)
		}) {
			near(t, name+", packed, by "+form, out[0].F, c.packed)
			near(t, name+", tau, by "+form, out[1].F, c.tau)
		}
	}
}

// lengths are the singular values of the first columns of pattern(1, dims) times a
// factor, by numpy.linalg.svd of NumPy 2.4.6, and 0 for each row more.
var lengths = map[string]struct {
	dims   []int
	length int
	factor float64
	want   []float64
}{
	"whole rows":  {[]int{3, 4}, 4, 1, []float64{2.372197301158567, 1.282678969000703, 0.44290476048390165}},
	"more rows":   {[]int{4, 3}, 3, 1, []float64{2.3488587174905384, 1.2576129794443807, 0.608294599023969, 0.0}},
	"longer rows": {[]int{4, 3}, 2, 1, []float64{2.182317362598404, 0.6754560895436109, 0.0, 0.0}},
	"zero":        {[]int{3, 2}, 2, 0, []float64{0, 0, 0}},
}

// TestRotatedRowsHaveSingularValuesAsNorms checks the definition of the rotation: the rows' first elements
// are orthogonal, so that their norms are singular values, and since the rotation is
// orthogonal it preserves the products of whole columns.
func TestRotatedRowsHaveSingularValuesAsNorms(t *testing.T) {
	for name, c := range lengths {
		x := scaledPattern(c.dims, c.factor)
		for form, out := range bothForms(t, x, func(b *ir.Builder, x ir.Value) {
			y := ops.Jacobi(b, x, ops.JacobiAttrs{Length: c.length})
			head := ops.SliceAxis(b, y, -1, ir.N(0), ir.N(c.length))
			b.Output("rows", ops.MatMul(b, head, ops.SwapAxes(b, head, -1, -2)))
			b.Output("before", ops.MatMul(b, ops.SwapAxes(b, x, -1, -2), x))
			b.Output("after", ops.MatMul(b, ops.SwapAxes(b, y, -1, -2), y))
		}) {
			rows, n := out[0].F, c.dims[0]
			got, apart := make([]float64, n), slices.Clone(rows)
			for i := range n {
				got[i], apart[i*n+i] = math.Sqrt(rows[i*n+i]), 0
			}
			slices.SortFunc(got, func(x, y float64) int { return cmp.Compare(y, x) })
			near(t, name+", lengths, by "+form, got, c.want)
			near(t, name+", products of rows, by "+form, apart, make([]float64, n*n))
			near(t, name+", products of columns, by "+form, out[2].F, out[1].F)
		}
	}
}

func scaledPattern(dims []int, factor float64) *ir.Array {
	x := pattern(1, dims)
	for i := range x.F {
		x.F[i] *= factor
	}
	return x
}

// bothForms evaluates a function of a matrix by the reference of its ops and by
// their bodies.
func bothForms(t *testing.T, x *ir.Array, f func(b *ir.Builder, x ir.Value)) map[string][]*ir.Array {
	t.Helper()
	g := must(ir.Build("f", func(b *ir.Builder) { f(b, b.Input("x", x.DType, ir.Dims(x.Dims...)...)) }))(t)
	out := map[string][]*ir.Array{}
	for form, g := range map[string]*ir.Graph{"reference": g, "bodies": must(passes.Run(g, passes.Options{}))(t)} {
		y, err := evalHeld(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out[form] = y
	}
	return out
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 1e-14*(1+math.Abs(want[i]))) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestEigenvaluesOfZero has the factors of a matrix that no scaling makes 1
// long, and for the derivatives of its trace, the sum of the eigenvalues: 1 on the
// diagonal and 0 next to it.
func TestEigenvaluesOfZero(t *testing.T) {
	const n = 3
	unit := []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}
	zero := ir.NewArray(ir.F64, n, n)
	for form, out := range bothForms(t, zero, func(b *ir.Builder, x ir.Value) {
		w, v := ops.Eigh(b, x)
		b.Output("w", w)
		b.Output("square", ops.MatMul(b, ops.SwapAxes(b, v, -1, -2), v))
		trace := must(ir.Build("trace", func(b *ir.Builder) {
			w, _ := ops.Eigh(b, b.Input("x", ir.F64, ir.Dims(n, n)...))
			b.Output("y", ops.ReduceSum(b, w))
		}))(t)
		grad := must(autodiff.GradWith(trace, autodiff.GradOptions{Loss: "y", Wrt: []string{"x"}, DropOutputs: true}))(t)
		b.Output("dx", b.Splice(grad, values{x})[0])
	}) {
		near(t, "eigenvalues, by "+form, out[0].F, make([]float64, n))
		near(t, "vᵀ·v, by "+form, out[1].F, unit)
		near(t, "derivatives, by "+form, out[2].F, unit)
	}
}
