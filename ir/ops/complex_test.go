package ops_test

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestComplexDerivatives checks the ops that take complex numbers against the
// difference quotient in a complex direction, and the transpose by the pairing
// Re Σ x·y, without a conjugate.
func TestComplexDerivatives(t *testing.T) {
	x := &ir.Array{DType: ir.C128, Dims: []int{3}, C: []complex128{1 + 2i, -0.5 + 1i, 2 - 1i}}
	v := &ir.Array{DType: ir.C128, Dims: []int{3}, C: []complex128{0.3 - 1i, 1 + 1i, -2i}}
	w := complex(0.7, -0.4)
	for name, f := range map[string]function{
		"add":         func(b *ir.Builder, x ir.Value) ir.Value { return ops.Add(b, x, ops.Mul(b, x, x)) },
		"sub":         func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sub(b, ops.Mul(b, x, x), x) },
		"neg":         ops.Neg,
		"div":         func(b *ir.Builder, x ir.Value) ir.Value { return ops.Div(b, ops.Const(b, ir.C128, 2), x) },
		"mul_zero":    func(b *ir.Builder, x ir.Value) ir.Value { return ops.MulZero(b, x, ops.Mul(b, x, x)) },
		"reduce_sum":  func(b *ir.Builder, x ir.Value) ir.Value { return ops.Mul(b, x, ops.ReduceSum(b, x)) },
		"reduce_prod": func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceProd(b, x) },
		"mean":        func(b *ir.Builder, x ir.Value) ir.Value { return ops.Mean(b, ops.Mul(b, x, x)) },
		"select": func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Select(b, ops.Eq(b, x, ops.Const(b, ir.C128, 0)), x, ops.Mul(b, x, x))
		},
		"conj": func(b *ir.Builder, x ir.Value) ir.Value { return ops.Mul(b, x, ops.Conj(b, x)) },
		"parts": func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Complex(b, ops.Imag(b, x), ops.Mul(b, ops.Real(b, x), ops.Imag(b, x)))
		},
		"views": func(b *ir.Builder, x ir.Value) ir.Value {
			y := ops.Concatenate(b, 0, ops.Reverse(b, x, 0), ops.Mul(b, x, x))
			return ops.Pad(b, y, ops.ReduceSum(b, x), []int{1}, []int{-2}, []int{1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := must(ir.Build("f", func(b *ir.Builder) { b.Output("y", f(b, b.Input("x", ir.C128, ir.N(3)))) }))(t)
			y := complexOutput(t, g, map[string]*ir.Array{"x": x})
			forward := complexOutput(t, must(autodiff.JVP(g))(t), map[string]*ir.Array{"x": x, "tangent/x": v})
			const h = 1e-6
			up := complexOutput(t, g, map[string]*ir.Array{"x": movedBy(x, v, h)})
			down := complexOutput(t, g, map[string]*ir.Array{"x": movedBy(x, v, -h)})
			ct := &ir.Array{DType: ir.C128, Dims: y.Dims, C: make([]complex128, y.Len())}
			for i := range y.C {
				if want := (up.C[i] - down.C[i]) / (2 * h); cmplx.Abs(forward.C[i]-want) > 1e-8*(1+cmplx.Abs(want)) {
					t.Errorf("derivative %d is %v, want %v", i, forward.C[i], want)
				}
				ct.C[i] = cmplx.Pow(w, complex(float64(i+1), 0))
			}
			back := complexOutput(t, must(autodiff.VJP(g))(t), map[string]*ir.Array{"x": x, "cotangent/y": ct})
			if a, b := pairing(forward, ct), pairing(v, back); !(math.Abs(a-b) <= 1e-12*(1+math.Abs(a))) {
				t.Errorf("forward pairs to %v, reverse to %v", a, b)
			}
		})
	}
}

// complexOutput returns the last output of a graph.
func complexOutput(t *testing.T, g *ir.Graph, in map[string]*ir.Array) *ir.Array {
	t.Helper()
	out, err := evalHeld(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out[len(out)-1]
}

func movedBy(x, v *ir.Array, h float64) *ir.Array {
	y := x.Clone()
	for i := range y.C {
		y.C[i] += complex(h, 0) * v.C[i]
	}
	return y
}

func pairing(x, y *ir.Array) float64 {
	sum := 0.0
	for i := range x.C {
		sum += real(x.C[i] * y.C[i])
	}
	return sum
}
