package ops_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// function is an elementwise function under test.
type function = func(b *ir.Builder, x ir.Value) ir.Value

// slopes returns the first and the second derivative of an elementwise
// function at some points: each by forward and by reverse differentiation,
// which must agree, as must forward over reverse and reverse over forward.
func slopes(t *testing.T, f function, at []float64) (first, second []float64) {
	t.Helper()
	g := must(ir.Build("f", func(b *ir.Builder) {
		b.Output("y", f(b, b.Input("x", ir.F64, ir.N(len(at)))))
	}))(t)
	jvp, vjp := must(autodiff.JVP(g))(t), must(autodiff.VJP(g))(t)
	forward := only(t, jvp, "tangent/y", "tangent/x")
	reverse := only(t, vjp, "grad/x", "cotangent/y")
	first = valueAt(t, forward, at)
	same(t, "reverse", valueAt(t, reverse, at), first)
	second = valueAt(t, only(t, must(autodiff.JVP(reverse))(t), "tangent/d", "tangent/x"), at)
	same(t, "reverse over forward", valueAt(t, only(t, must(autodiff.VJP(forward))(t), "grad/x", "cotangent/d"), at), second)
	return first, second
}

// only returns the graph whose one output "d" is an output of g, with ones for
// a port.
func only(t *testing.T, g *ir.Graph, output, ones string) *ir.Graph {
	t.Helper()
	return must(ir.Build("d", func(b *ir.Builder) {
		in := make([]ir.Value, len(g.Ports()))
		for i, p := range g.Ports() {
			if p.Name == ones {
				in[i] = ops.Ones(b, p.Value.DType(), p.Value.Shape()...)
				continue
			}
			in[i] = b.Input(p.Name, p.Value.DType(), p.Value.Shape()...)
		}
		for i, v := range b.Splice(g, in) {
			if g.Outputs()[i].Name == output {
				b.Output("d", v)
			}
		}
	}))(t)
}

func valueAt(t *testing.T, g *ir.Graph, x []float64) []float64 {
	t.Helper()
	out, err := ir.Eval(g, map[string]*ir.Array{"x": ir.Floats(ir.F64, x, len(x))}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].F
}

func same(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if i >= len(got) || !closeTo(want[i], got[i], 1e-12*(1+math.Abs(want[i]))) {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

// must unpacks a graph and fails the test at an error.
func must(g *ir.Graph, err error) func(t *testing.T) *ir.Graph {
	return func(t *testing.T) *ir.Graph {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
}

// masked returns f where x > 0 and 0 elsewhere.
func masked(f function) function {
	return func(b *ir.Builder, x ir.Value) ir.Value {
		zero := ops.ZerosLike(b, x)
		return ops.Select(b, ops.Gt(b, x, zero), f(b, x), zero)
	}
}

func power(exponent float64) function {
	return func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, ops.ConstLike(b, x, exponent)) }
}

func powerOf(base float64) function {
	return func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, ops.ConstLike(b, x, base), x) }
}

// TestDerivativesAtSpecialPoints states what the rules give where a formula
// would divide by zero, and where there is no derivative. The wanted values
// are limits worked out by hand, or the conventions in the package's
// documentation.
func TestDerivativesAtSpecialPoints(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name              string
		f                 function
		at, first, second []float64
	}{
		{"abs", ops.Abs, []float64{-2, 0, 3}, []float64{-1, 0, 1}, []float64{0, 0, 0}},
		{"sign", ops.Sign, []float64{-2, 0, 3}, []float64{0, 0, 0}, []float64{0, 0, 0}},
		{"relu", masked(func(_ *ir.Builder, x ir.Value) ir.Value { return x }), []float64{-1, 0, 2, inf, -inf}, []float64{0, 0, 1, 1, 0}, []float64{0, 0, 0, 0, 0}},
		{"round", ops.Round, []float64{0.5, 1, 1.5, 1.7}, []float64{0, 0, 0, 0}, []float64{0, 0, 0, 0}},
		{"floor", ops.Floor, []float64{1, 1.5}, []float64{0, 0}, []float64{0, 0}},
		{"sqrt", ops.Sqrt, []float64{4}, []float64{0.25}, []float64{-1. / 32}},
		{"sqrt at 0", ops.Sqrt, []float64{0}, []float64{inf}, []float64{-inf}},
		{"rsqrt", ops.Rsqrt, []float64{4}, []float64{-1. / 16}, []float64{3. / 128}},
		{"rsqrt at 0", ops.Rsqrt, []float64{0}, []float64{-inf}, []float64{inf}},
		{"log at 0", ops.Log, []float64{0}, []float64{inf}, []float64{-inf}},
		{"masked sqrt", masked(ops.Sqrt), []float64{-1, 0, 4}, []float64{0, 0, 0.25}, []float64{0, 0, -1. / 32}},
		{"masked rsqrt", masked(ops.Rsqrt), []float64{-1, 0, 1}, []float64{0, 0, -0.5}, []float64{0, 0, 0.75}},
		{"masked log", masked(ops.Log), []float64{-1, 0, 2}, []float64{0, 0, 0.5}, []float64{0, 0, -0.25}},
		{"masked log1p", masked(ops.Log1p), []float64{-3, -1, 1}, []float64{0, 0, 0.5}, []float64{0, 0, -0.25}},
		{"masked asin", masked(ops.Asin), []float64{-2, -1, 0.6}, []float64{0, 0, 1.25}, []float64{0, 0, 0.6 / 0.512}},
		{"masked reciprocal", masked(func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Div(b, ops.OnesLike(b, x), x)
		}), []float64{-1, 0, 2}, []float64{0, 0, -0.25}, []float64{0, 0, 0.25}},
		{"masked x log x", masked(func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Mul(b, x, ops.Log(b, x))
		}), []float64{-1, 0, 1}, []float64{0, 0, 1}, []float64{0, 0, 1}},
		{"masked exp beyond its range", func(b *ir.Builder, x ir.Value) ir.Value {
			limit := ops.ConstLike(b, x, 700)
			return ops.Select(b, ops.Lt(b, x, limit), ops.Exp(b, x), limit)
		}, []float64{0, 1000}, []float64{1, 0}, []float64{1, 0}},
		{
			"masked nested", masked(func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sin(b, ops.Log(b, ops.Sqrt(b, x))) }),
			[]float64{-1, 0, 1},
			[]float64{0, 0, 0.5},
			[]float64{0, 0, -0.5},
		},
		{"sqrt times 0", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Mul(b, ops.Sqrt(b, x), ops.ZerosLike(b, x))
		}, []float64{0, 4}, []float64{0, 0}, []float64{0, 0}},
		{
			"x sqrt x", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Mul(b, x, ops.Sqrt(b, x)) },
			[]float64{0, 4},
			[]float64{0, 3},
			[]float64{inf, 0.375},
		},
		{
			"norm", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sqrt(b, ops.Mul(b, x, x)) },
			[]float64{-2, 0, 2},
			[]float64{-1, 0, 1},
			[]float64{0, inf, 0},
		},
		{"pow 0", power(0), []float64{-2, 0, 3}, []float64{0, 0, 0}, []float64{0, 0, 0}},
		{"pow 1", power(1), []float64{-2, 0, 3}, []float64{1, 1, 1}, []float64{0, 0, 0}},
		{"pow 2", power(2), []float64{-2, 0, 3}, []float64{-4, 0, 6}, []float64{2, 2, 2}},
		{"pow 3", power(3), []float64{-2, 0, 3}, []float64{12, 0, 27}, []float64{-12, 0, 18}},
		{"pow 1/2", power(0.5), []float64{0, 4}, []float64{inf, 0.25}, []float64{-inf, -1. / 32}},
		{"pow -1", power(-1), []float64{-2, 2}, []float64{-0.25, -0.25}, []float64{-0.25, 0.25}},
		{"pow of 0", powerOf(0), []float64{0, 0.5, 2}, []float64{0, 0, 0}, []float64{0, 0, 0}},
		{"pow of 1", powerOf(1), []float64{-1, 0, 2}, []float64{0, 0, 0}, []float64{0, 0, 0}},
		{"pow of e", powerOf(math.E), []float64{0, 1}, []float64{1, math.E}, []float64{1, math.E}},
		{
			"max with 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Max(b, x, ops.ZerosLike(b, x)) },
			[]float64{-1, 0, 2, nan},
			[]float64{0, 0.5, 1, nan},
			[]float64{0, 0, 0, 0},
		},
		{
			"min with itself", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Min(b, x, x) },
			[]float64{-1, 0},
			[]float64{1, 1},
			[]float64{0, 0},
		},
		{"clamp", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Clamp(b, x, ops.Const(b, ir.F64, -1), ops.Const(b, ir.F64, 1))
		}, []float64{-2, -1, 0, 1, 2}, []float64{0, 1, 1, 1, 0}, []float64{0, 0, 0, 0, 0}},
		{"clamp by its bounds", func(b *ir.Builder, x ir.Value) ir.Value {
			zero := ops.ZerosLike(b, x)
			return ops.Clamp(b, zero, x, ops.Add(b, x, ops.OnesLike(b, x)))
		}, []float64{-2, -0.5, 0, 3}, []float64{1, 0, 0, 1}, []float64{0, 0, 0, 0}},
		{
			"atan2 from the origin", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Atan2(b, x, ops.ZerosLike(b, x)) },
			[]float64{0, 1},
			[]float64{0, 0},
			[]float64{0, 0},
		},
		{"mul_zero of infinity by 0", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.MulZero(b, ops.ZerosLike(b, x), ops.Log(b, x))
		}, []float64{0, 1}, []float64{0, 0}, []float64{0, 0}},
		{
			"mul_zero of squares", func(b *ir.Builder, x ir.Value) ir.Value { return ops.MulZero(b, ops.Mul(b, x, x), x) },
			[]float64{2, -1},
			[]float64{12, 3},
			[]float64{12, -6},
		},
		{
			"stop_gradient", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Mul(b, x, ops.StopGradient(b, x)) },
			[]float64{3},
			[]float64{3},
			[]float64{0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := slopes(t, c.f, c.at)
			same(t, "first derivative", first, c.first)
			same(t, "second derivative", second, c.second)
		})
	}
}

// hessian returns gradient and matrix of second derivatives of a scalar
// function of a vector, each row of the matrix in turn.
func hessian(t *testing.T, f function, at []float64) (gradient, matrix []float64) {
	t.Helper()
	g := must(ir.Build("f", func(b *ir.Builder) {
		b.Output("y", f(b, b.Input("x", ir.F64, ir.N(len(at)))))
	}))(t)
	h := must(autodiff.Hessian(must(autodiff.ValueAndGrad(g, "y", "x"))(t), "y", "x"))(t)
	out, err := ir.Eval(h, map[string]*ir.Array{"x": ir.Floats(ir.F64, at, len(at))}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range h.Outputs() {
		switch o.Name {
		case autodiff.GradName("x"):
			gradient = out[i].F
		case autodiff.HessianName("x", "x"):
			matrix = out[i].F
		}
	}
	return gradient, matrix
}

// TestProductIsRightWithZeros compares with the products of the other elements,
// worked out by hand.
func TestProductIsRightWithZeros(t *testing.T) {
	prod := func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceProd(b, x) }
	for _, c := range []struct{ at, gradient, matrix []float64 }{
		{[]float64{2, 3, 5}, []float64{15, 10, 6}, []float64{0, 5, 3, 5, 0, 2, 3, 2, 0}},
		{[]float64{2, 0, 3}, []float64{0, 6, 0}, []float64{0, 3, 0, 3, 0, 2, 0, 2, 0}},
		{[]float64{0, 0, 5}, []float64{0, 0, 0}, []float64{0, 5, 0, 5, 0, 0, 0, 0, 0}},
		{[]float64{0, 0, 0}, []float64{0, 0, 0}, make([]float64, 9)},
		{[]float64{7}, []float64{1}, []float64{0}},
	} {
		gradient, matrix := hessian(t, prod, c.at)
		same(t, "gradient", gradient, c.gradient)
		same(t, "second derivatives", matrix, c.matrix)
	}
}

// TestTiesShareTheGradient checks that the gradient of an extremum is 1 in
// sum, shared equally, and NaN where the extremum is.
func TestTiesShareTheGradient(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		f            function
		at, gradient []float64
	}{
		{reduceMax, []float64{1, 3, 3, 2}, []float64{0, 0.5, 0.5, 0}},
		{reduceMax, []float64{3, 3, 3, 3}, []float64{0.25, 0.25, 0.25, 0.25}},
		{reduceMax, []float64{3, nan, 3, 1}, []float64{nan, nan, nan, nan}},
		{reduceMax, []float64{math.Inf(-1), math.Inf(-1)}, []float64{0.5, 0.5}},
		{reduceMin, []float64{1, 3, 1, 2}, []float64{0.5, 0, 0.5, 0}},
	} {
		gradient, matrix := hessian(t, c.f, c.at)
		same(t, "gradient", gradient, c.gradient)
		same(t, "second derivatives", matrix, make([]float64, len(c.at)*len(c.at)))
	}
}

func reduceMax(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceMax(b, x) }

func reduceMin(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceMin(b, x) }

// TestMeanOfHalvesNeitherOverflowsNorLosesItsType takes the mean of more
// elements than f16 has finite numbers, and differentiates it.
func TestMeanOfHalvesNeitherOverflowsNorLosesItsType(t *testing.T) {
	for _, d := range []ir.DType{ir.F16, ir.BF16, ir.F32, ir.F64} {
		const n = 1 << 17
		g := must(ir.Build("f", func(b *ir.Builder) {
			b.Output("y", ops.Mean(b, b.Input("x", d, ir.N(n))))
		}))(t)
		x := ir.NewArray(d, n)
		for i := range x.F {
			x.F[i] = 3
		}
		out, err := ir.Eval(must(autodiff.ValueAndGrad(g, "y", "x"))(t), map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if out[0].DType != d || out[0].F[0] != 3 {
			t.Errorf("%s: mean of threes is %s %v", d, out[0].DType, out[0].F[0])
		}
		if out[1].DType != d || out[1].F[n-1] != 1./n {
			t.Errorf("%s: derivative is %s %v, want %v", d, out[1].DType, out[1].F[n-1], 1./n)
		}
	}
}
