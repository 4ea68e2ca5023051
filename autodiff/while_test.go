package autodiff_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// growing takes steps while a sum of squares is below most, 7 at the most, as a
// while_loop, or with iterations that change nothing once it is false.
func growing(most float64, asNode bool) *controlled {
	small := func(b *ir.Builder, v ir.Value) ir.Value {
		return ops.Lt(b, ops.ReduceSum(b, ops.Mul(b, v, v)), ops.Const(b, ir.F64, most))
	}
	step := func(b *ir.Builder, w, v ir.Value) ir.Value {
		return ops.Add(b, ops.MatMul(b, v, w), ops.Mul(b, ops.Sin(b, v), ops.Const(b, ir.F64, 2)))
	}
	up := func(b *ir.Builder, n ir.Value) ir.Value { return ops.Add(b, n, ops.OnesLike(b, n)) }
	return &controlled{"growing", wave(1, 3), wave(2, 3, 3), func(b *ir.Builder, x, w ir.Value, _ loop, _ branch) ir.Value {
		var c []ir.Value
		carries := []ir.Value{x, ops.Zeros(b, ir.I32)}
		if asNode {
			c = ops.WhileLoop(b, ops.While{
				Consts: []ir.Value{w}, Carries: carries, MaxSteps: 7,
				Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value { return small(b, c[0]) },
				Body: func(b *ir.Builder, consts, c []ir.Value) []ir.Value {
					return []ir.Value{step(b, consts[0], c[0]), up(b, c[1])}
				},
			})
		} else {
			c = carries
			for range 7 {
				on := small(b, c[0])
				c = selected(b, on, c, func(b *ir.Builder, c []ir.Value) []ir.Value {
					return []ir.Value{step(b, w, c[0]), up(b, c[1])}
				}, func(_ *ir.Builder, c []ir.Value) []ir.Value { return c })
			}
		}
		return sumAll(b, ops.Mul(b, c[0], ops.Convert(b, up(b, c[1]), ir.F64)))
	}}
}

func TestTransformsOfWhileLoops(t *testing.T) {
	for _, most := range []float64{0, 5, 60, 1e9} { // no step, some, and as many as the bound lets it take
		node, plain := growing(most, true), growing(most, false)
		for name, transform := range controlTransforms {
			want, err := transform(plain.graph(t, unrolled, selected))
			must(t, want, err)
			got, err := transform(node.graph(t, unrolled, selected))
			must(t, got, err)
			t.Run(name, func(t *testing.T) { node.referenceOf(t, want).check(t, got) })
		}
		if err := gradcheck.Check(node.graph(t, unrolled, selected), values{"x": node.x, "w": node.w}, gradcheck.Options{Order: 2}); err != nil {
			t.Errorf("below %v: %v", most, err)
		}
	}
}

func TestWhileLoopWithoutABoundHasNoReverseDerivative(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		b.Output("loss", ops.WhileLoop(b, ops.While{
			Carries: []ir.Value{b.Input("x", ir.F32)},
			Cond:    func(b *ir.Builder, _, c []ir.Value) ir.Value { return ops.Lt(b, c[0], ops.Const(b, ir.F32, 9)) },
			Body:    func(b *ir.Builder, _, c []ir.Value) []ir.Value { return []ir.Value{ops.Add(b, c[0], c[0])} },
		})[0])
	})
	must(t, g, err)
	if _, err := autodiff.Grad(g, "loss", "x"); !errors.Is(err, ir.ErrNoRule) {
		t.Errorf("got %v, want an error of kind %v", err, ir.ErrNoRule)
	}
	d, err := autodiff.JVP(g, "x")
	must(t, d, err)
	out := eval(t, d, values{"x": ir.Float(ir.F32, 1.5), "tangent/x": ir.Float(ir.F32, 1)})
	for name, a := range out {
		if want := map[string]float64{"loss": 12, "tangent/loss": 8}[name]; a.F[0] != want {
			t.Errorf("%s is %v, want %v", name, a.F, want)
		}
	}
}
