package ops_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestDegenerateMatrices checks the documented results where a factorisation is not
// unique or does not exist, by the reference and by the bodies.
func TestDegenerateMatrices(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	square := func(x ...float64) *ir.Array {
		n := int(math.Sqrt(float64(len(x))))
		return ir.Floats(ir.F64, x, n, n)
	}
	grad := func(f func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, x ir.Value) ir.Value {
		return func(b *ir.Builder, x ir.Value) ir.Value {
			loss, err := ir.Build("f", func(b *ir.Builder) {
				b.Output("y", ops.ReduceSum(b, f(b, b.Input("x", ir.F64, x.Shape()...))))
			})
			if err != nil {
				b.Fail(err)
				return x
			}
			d, err := autodiff.Grad(loss, "y", "x")
			if err != nil {
				b.Fail(err)
				return x
			}
			return b.Splice(d, values{x})[0]
		}
	}
	first := func(f func(b *ir.Builder, x ir.Value) (ir.Value, ir.Value)) func(b *ir.Builder, x ir.Value) ir.Value {
		return func(b *ir.Builder, x ir.Value) ir.Value { y, _ := f(b, x); return y }
	}
	second := func(f func(b *ir.Builder, x ir.Value) (ir.Value, ir.Value)) func(b *ir.Builder, x ir.Value) ir.Value {
		return func(b *ir.Builder, x ir.Value) ir.Value { _, y := f(b, x); return y }
	}
	singular := func(b *ir.Builder, x ir.Value) ir.Value { _, s, _ := ops.SVD(b, x, false); return s }
	for name, c := range map[string]struct {
		x    *ir.Array
		f    func(b *ir.Builder, x ir.Value) ir.Value
		want []float64
	}{
		"cholesky of an indefinite matrix":        {square(1, 2, 2, 1), ops.Cholesky, []float64{nan, nan, nan, nan}},
		"cholesky of a semidefinite matrix":       {square(1, 1, 1, 1), ops.Cholesky, []float64{nan, nan, nan, nan}},
		"cholesky takes the symmetric part":       {square(4, 0, 4, 10), ops.Cholesky, []float64{2, 0, 1, 3}},
		"det of a singular matrix":                {square(1, 2, 2, 4), ops.Det, []float64{0}},
		"slogdet of a singular matrix, sign":      {square(1, 2, 2, 4), first(ops.Slogdet), []float64{0}},
		"slogdet of a singular matrix, logarithm": {square(1, 2, 2, 4), second(ops.Slogdet), []float64{-inf}},
		"slope of det at rank 1, zero column":     {square(0, 1, 0, 2), grad(ops.Det), []float64{2, 0, -1, 0}},
		"slope of det at rank 1 of 3":             {square(1, 0, 0, 0, 0, 0, 0, 0, 0), grad(ops.Det), make([]float64, 9)},
		"slope of eigenvalues that are equal":     {square(2, 0, 0, 2), grad(first(ops.Eigh)), []float64{1, 0, 0, 1}},
		"slope of singular values that are equal": {square(0, 3, 3, 0), grad(singular), []float64{0, 1, 1, 0}},
		"slope of the root at equal eigenvalues":  {square(4, 0, 0, 4), grad(ops.SPDSqrtm), []float64{0.25, 0.25, 0.25, 0.25}},
		"slope of log at equal eigenvalues":       {square(4, 0, 0, 4), grad(ops.SPDLogm), []float64{0.25, 0.25, 0.25, 0.25}},
		"curvature of log at equal eigenvalues":   {square(4, 0, 0, 4), grad(grad(ops.SPDLogm)), []float64{-0.125, -0.125, -0.125, -0.125}},
		"pinv of rank 1":                          {square(1, 1, 1, 1), func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pinv(b, x, -1) }, []float64{0.25, 0.25, 0.25, 0.25}},
		"root of an indefinite matrix":            {square(-1, 0, 0, -4), ops.SPDSqrtm, []float64{nan, nan, nan, nan}},
		"exponential of a nilpotent matrix":       {square(0, 3, 0, 0), ops.Expm, []float64{1, 3, 0, 1}},
		"exponential beyond what is squared":      {square(4e5, 0, 0, 1), ops.Expm, []float64{nan, nan, nan, nan}},
		"solution of a singular system is not finite": {
			square(1, 0, 0, 0),
			func(b *ir.Builder, x ir.Value) ir.Value {
				y := ops.Solve(b, x, ops.Ones(b, ir.F64, ir.N(2)), ops.SolveAttrs{})
				return ops.Convert(b, ops.IsFinite(b, ops.ReduceSum(b, y)), ir.F64)
			},
			[]float64{0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := ir.Build("g", func(b *ir.Builder) { b.Output("y", c.f(b, b.Input("x", ir.F64, c.x.Type().Shape...))) })
			if err != nil {
				t.Fatal(err)
			}
			for form, g := range map[string]*ir.Graph{"reference": g, "bodies": must(passes.Run(g, passes.Options{}))(t)} {
				out, err := evalHeld(g, map[string]*ir.Array{"x": c.x}, ir.EvalOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for i, want := range c.want {
					if !closeTo(want, out[0].F[i], 1e-12) {
						t.Errorf("by %s: element %d is %v, want %v", form, i, out[0].F[i], want)
					}
				}
			}
		})
	}
}

// TestLargeMatricesAreHalved factors min(i, j) + 1, whose factor is the triangle of ones, and the same
// with a last pivot of -1, which has none, by the body.
func TestLargeMatricesAreHalved(t *testing.T) {
	const n = 520
	for _, c := range []struct{ last, want float64 }{{n, 1}, {n - 2, math.NaN()}} {
		x := ir.NewArray(ir.F64, n, n)
		for i := range x.F {
			x.F[i] = float64(min(i/n, i%n) + 1)
		}
		x.F[n*n-1] = c.last
		g := must(ir.Build("g", func(b *ir.Builder) { b.Output("l", ops.Cholesky(b, b.Input("x", ir.F64, ir.Dims(n, n)...))) }))(t)
		out, err := evalHeld(must(passes.Run(g, passes.Options{}))(t), map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range out[0].F {
			want := c.want
			if i/n < i%n && !math.IsNaN(want) {
				want = 0
			}
			if !closeTo(want, l, 1e-12) {
				t.Fatalf("last pivot %v: element %d, %d is %v, want %v", c.last-n+1, i/n, i%n, l, want)
			}
		}
	}
}

// TestInverseTransformsRestoreSignals cuts signals into frames and puts them together again.
func TestInverseTransformsRestoreSignals(t *testing.T) {
	for name, a := range map[string]ops.FrameAttrs{"centred": {Hop: 4, Center: true}, "whole frames": {Hop: 3}} {
		x := pattern(1, []int{2, 61})
		g := must(ir.Build("g", func(b *ir.Builder) {
			window := ops.Window(b, ops.WindowAttrs{Kind: "hamming", Length: 16, DType: ir.F64})
			re, im := ops.STFT(b, b.Input("x", ir.F64, ir.Dims(2, 61)...), window, a)
			b.Output("y", ops.ISTFT(b, re, im, window, ops.UnframeAttrs{FrameAttrs: a}))
		}))(t)
		out, err := evalHeld(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		length := out[0].Dims[1]
		if length < 60 {
			t.Errorf("%s: %d elements came back of 61", name, length)
		}
		for i, y := range out[0].F {
			if want := x.F[i/length*61+i%length]; !(math.Abs(y-want) <= 1e-13) {
				t.Errorf("%s: element %d is %v, want %v", name, i, y, want)
			}
		}
	}
}

// TestFactorsOfSubnormalColumns has a column of which quotients are inexact, as rounding leaves them of
// columns that depend on others.
func TestFactorsOfSubnormalColumns(t *testing.T) {
	g, err := ir.Build("qr", func(b *ir.Builder) {
		q, r := ops.QR(b, ops.Literal(b, ir.Floats(ir.F64, []float64{1, 1, 0, 1.5e-323, 0, 1e-323}, 3, 2)), true)
		b.Output("q", q)
		b.Output("r", r)
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, nil, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q := out[0].F
	for i := range 3 {
		for j := range 3 {
			got, want := q[i]*q[j]+q[3+i]*q[3+j]+q[6+i]*q[6+j], 0.
			if i == j {
				want = 1
			}
			if !(math.Abs(got-want) <= 1e-15) {
				t.Errorf("the product of columns %d and %d of q is %v", i, j, got)
			}
		}
	}
}

// TestTallPanels factors a matrix whose panels are factored by narrower ones, by the body,
// as the reference does. The diagonal from upper right to lower left dominates.
func TestTallPanels(t *testing.T) {
	const n = 520
	x := ir.NewArray(ir.F64, n, n)
	for i := range x.F {
		x.F[i] = math.Sin(float64(7*i) * float64(i%11+1))
		if i/n == n-1-i%n {
			x.F[i] += n
		}
	}
	g := must(ir.Build("g", func(b *ir.Builder) {
		lu, pivots, order := ops.LU(b, b.Input("x", ir.F64, ir.Dims(n, n)...))
		b.Output("lu", lu)
		b.Output("pivots", ops.Convert(b, pivots, ir.F64))
		b.Output("order", ops.Convert(b, order, ir.F64))
	}))(t)
	in := map[string]*ir.Array{"x": x}
	want, err := evalHeld(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := evalHeld(must(passes.Run(g, passes.Options{}))(t), in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for k := range want {
		for i, v := range want[k].F {
			if !closeTo(v, got[k].F[i], 1e-9) {
				t.Fatalf("element %d of result %d is %v, want %v", i, k, got[k].F[i], v)
			}
		}
	}
}
