package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// rowWithout is a matrix whose second row is masked whole and whose first is masked in part.
var rowWithout = ir.Floats(ir.F64, []float64{
	1, math.Inf(-1), 2,
	math.Inf(-1), math.Inf(-1), math.Inf(-1),
	0, 3, -1,
}, 3, 3)

// TestMaskedRowsHaveValuesAndFiniteDerivatives runs the ops that take -Inf for
// an element that does not count: their results are as documented, and first
// and second derivatives of a weighted sum of the results that are finite are
// neither NaN nor infinite.
func TestMaskedRowsHaveValuesAndFiniteDerivatives(t *testing.T) {
	e := math.Exp
	none := math.Inf(-1)
	last := math.Log(e(0) + e(3) + e(-1))
	for name, c := range map[string]struct {
		build func(b *ir.Builder, x ir.Value) ir.Value
		want  []float64
	}{
		"softmax": {
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) },
			[]float64{e(1) / (e(1) + e(2)), 0, e(2) / (e(1) + e(2)), 0, 0, 0, e(-last), e(3 - last), e(-1 - last)},
		},
		"log_softmax": {
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.LogSoftmax(b, x, 1) },
			[]float64{-math.Log(1 + e(1)), none, -math.Log(1 + e(-1)), none, none, none, -last, 3 - last, -1 - last},
		},
		"logsumexp": {
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.LogSumExp(b, x, 1) },
			[]float64{math.Log(e(1) + e(2)), none, last},
		},
		"attention by a bias": {
			func(b *ir.Builder, x ir.Value) ir.Value {
				one := ops.Ones(b, ir.F64, ir.Dims(3, 2)...)
				v := ops.Convert(b, ops.Iota(b, ir.I32, 0, ir.Dims(3, 1)...), ir.F64)
				return ops.Attention(b, one, one, v, x, ops.AttentionAttrs{Scale: 1})
			},
			[]float64{2 * e(2) / (e(1) + e(2)), 0, e(3-last) + 2*e(-1-last)},
		},
	} {
		g, err := ir.Build(name, func(b *ir.Builder) {
			x := b.Input("x", ir.F64, ir.Dims(3, 3)...)
			y := c.build(b, x)
			b.Output("y", y)
			shown := ops.Select(b, ops.IsFinite(b, y), y, ops.ZerosLike(b, y))
			b.Output("sum", ops.ReduceSum(b, ops.Mul(b, shown, shown)))
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		in := map[string]*ir.Array{"x": rowWithout}
		out, err := evalHeld(g, in, ir.EvalOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, want := range c.want {
			if got := out[0].F[i]; got != want && !(math.Abs(got-want) < 1e-12) {
				t.Errorf("%s: element %d is %v, want %v", name, i, got, want)
			}
		}
		grad := must(autodiff.Grad(g, "sum", "x"))(t)
		in["tangent/x"] = noise(rowWithout.Type(), 5)
		for _, d := range []*ir.Graph{grad, must(autodiff.JVP(grad, "x"))(t)} {
			inputs := map[string]*ir.Array{}
			for _, p := range d.Ports() {
				inputs[p.Name] = in[p.Name]
			}
			out, err := ir.Eval(d, inputs, ir.EvalOptions{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i, o := range d.Outputs() {
				if o.Name != "y" && slices.ContainsFunc(out[i].F, func(x float64) bool { return x-x != 0 }) {
					t.Errorf("%s: %s is %v", name, o.Name, out[i].F)
				}
			}
		}
	}
}

// TestPoolTiesShareTheGradient takes the largest of equal elements, excluding padding.
func TestPoolTiesShareTheGradient(t *testing.T) {
	g, err := ir.Build("pool", func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.Dims(1, 3, 1)...)
		b.Output("y", ops.ReduceSum(b, ops.MaxPool(b, x, ops.PoolAttrs{Sizes: []int{2}, PadLo: []int{1}})))
	})
	if err != nil {
		t.Fatal(err)
	}
	j := slopesOf(t, g)
	back := run(t, j.backward(t, g), []*ir.Array{ir.Floats(ir.F64, []float64{-5, 2, 2}, 1, 3, 1), ir.Float(ir.F64, 1)})
	compareArrays(t, back[0], ir.Floats(ir.F64, []float64{1, 0.5, 0.5}, 1, 3, 1))
}
