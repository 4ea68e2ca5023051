package autodiff_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func aValueUsedTwiceGetsBothGradients(t *testing.T) {
	// Σ(X·X) has the gradient 1·Xᵀ + Xᵀ·1.
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(2), ir.N(2))
		b.Output("y", ops.ReduceSum(b, ops.MatMul(b, x, x)))
	})
	d, err := autodiff.Grad(g, "y", "x")
	got := eval(t, must(t, d, err), values{"x": ir.Floats(ir.F64, []float64{1, 2, 3, 4}, 2, 2)})
	checkFloats(t, "grad", got["grad/x"], []float64{3 + 4, 7 + 4, 3 + 6, 7 + 6}, 0)
}

func forwardOverForwardOverReverseIsTheThirdDerivative(t *testing.T) {
	// y = Σ x⁴: H·v = 12x²v, and its derivative along u is 24xuv.
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(2))
		s := ops.Mul(b, x, x)
		b.Output("y", ops.ReduceSum(b, ops.Mul(b, s, s)))
	})
	h, err := autodiff.HVP(g, "y", "x")
	j, err := autodiff.JVP(must(t, h, err), "x")
	got := eval(t, must(t, j, err), values{"x": vec(2, -1), "tangent/x": vec(1, 3), "tangent2/x": vec(5, 7)})
	checkFloats(t, "hvp", got["hvp/x"], []float64{48, 36}, 1e-14)
	checkFloats(t, "third derivative", got["tangent2/hvp/x"], []float64{240, -504}, 1e-14)
}

func gradientsHaveTheTypeOfTheirPort(t *testing.T) {
	// Constants inside the rules must be of the type of the graph.
	for _, d := range []ir.DType{ir.F16, ir.BF16, ir.F32, ir.F64} {
		g := build(t, func(b *ir.Builder) {
			x, w := b.Input("x", d, ir.Sym("batch"), ir.N(4), ir.N(4), ir.N(2)), b.Param("w", d, ir.N(2))
			h := ops.AvgPool(b, ops.Mul(b, x, w), ops.AvgPoolAttrs{PoolAttrs: ops.PoolAttrs{Sizes: []int{2, 2}}})
			h = ops.Concatenate(b, 3, ops.Softmax(b, h, -1), ops.Gelu(b, ops.SliceAxis(b, h, 3, ir.N(1), ir.N(1))))
			b.Output("y", ops.Mean(b, ops.Sqrt(b, ops.Abs(b, h))))
		})
		g, err := autodiff.Grad(g, "y", "w", "x")
		g, err = autodiff.JVP(must(t, g, err))
		for _, o := range must(t, g, err).Outputs() {
			if o.Value.DType() != d {
				t.Errorf("%s: output %s is %s", d, o.Name, o.Value.Type())
			}
		}
	}
}

func TestMaskedInfiniteDerivativeDoesNotPropagate(t *testing.T) {
	// A norm that is masked at 0: sqrt has an infinite slope there and no
	// cotangent.
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(3), ir.N(2))
		s := ops.ReduceSum(b, ops.Mul(b, x, x), 1)
		zero := ops.ZerosLike(b, s)
		b.Output("y", ops.ReduceSum(b, ops.Select(b, ops.Gt(b, s, zero), ops.Sqrt(b, s), zero)))
	})
	h, err := autodiff.HVP(g, "y", "x")
	got := eval(t, must(t, h, err), values{
		"x":         ir.Floats(ir.F64, []float64{0, 0, 3, 4, 0, 0}, 3, 2),
		"tangent/x": ir.Floats(ir.F64, []float64{1, 1, 1, 0, 0, 0}, 3, 2),
	})
	checkFloats(t, "grad", got["grad/x"], []float64{0, 0, 0.6, 0.8, 0, 0}, 1e-15)
	checkFloats(t, "hvp", got["hvp/x"], []float64{0, 0, 16. / 125, -12. / 125, 0, 0}, 1e-15)
}

func TestGradientsBySizesThatAreZeroAreEmpty(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F64, ir.N(0), ir.N(3)), b.Param("w", ir.F64, ir.N(3))
		b.Output("y", ops.ReduceSum(b, ops.Exp(b, ops.MatMul(b, x, w))))
	})
	h, err := autodiff.HVP(g, "y", "x", "w")
	empty := ir.NewArray(ir.F64, 0, 3)
	got := eval(t, must(t, h, err), values{"x": empty, "tangent/x": empty, "w": vec(1, 2, 3), "tangent/w": vec(1, 1, 1)})
	for _, name := range []string{"grad/w", "hvp/w"} {
		checkFloats(t, name, got[name], []float64{0, 0, 0}, 0)
	}
	checkFloats(t, "grad/x", got["grad/x"], nil, 0)
}

func aConstantExponentTakesNoLogarithm(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		b.Output("y", ops.Pow(b, b.Input("x", ir.F64), constant(b, 3)))
	})
	d, err := autodiff.Grad(g, "y", "x")
	for _, n := range must(t, d, err).Nodes() {
		if n.Op() == ops.OpLog {
			t.Error("there is a log for a derivative by the exponent")
		}
	}
}

func attentionGradientsKnowScaleSoftcapAndBias(t *testing.T) {
	for name, a := range map[string]ops.AttentionAttrs{
		"plain": {}, "scale": {Scale: 0.3}, "softcap": {Softcap: 0.7}, "both": {Scale: 1.9, Softcap: 1.1, Causal: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := values{"q": wave(1, 3, 2), "k": wave(2, 3, 2), "v": wave(3, 3, 2), "bias": wave(4, 3, 3)}
			g := build(t, func(b *ir.Builder) {
				var x [4]ir.Value
				for i, port := range []string{"q", "k", "v", "bias"} {
					x[i] = b.Port(ir.InputPort, port, in[port].Type())
				}
				b.Output("y", ops.Attention(b, x[0], x[1], x[2], x[3], a))
			})
			if err := gradcheck.Check(g, in, gradcheck.Options{Order: 2}); err != nil {
				t.Error(err)
			}
			in["cotangent/y"] = wave(5, 3, 2)
			d, err := autodiff.VJP(g)
			got := eval(t, must(t, d, err), in)
			for _, port := range []string{"q", "k", "v", "bias"} {
				if sum := magnitude(got[autodiff.GradName(port)]); !(sum > 0.01) {
					t.Errorf("the gradient by %s is %v in all", port, sum)
				}
			}
		})
	}
}

func magnitude(a *ir.Array) float64 {
	sum := 0.0
	for _, x := range a.F {
		sum += math.Abs(x)
	}
	return sum
}
