package nn_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// The sizes of a small loss.
const lossRows, lossFeatures, lossClasses = 7, 5, 6

// valuesOf evaluates the loss and its gradients with numbers that depend on the names of the ports.
func valuesOf(t *testing.T, f func(b *ir.Builder, x, labels ir.Value) ir.Value) map[string][]float64 {
	t.Helper()
	g, err := ir.Build("g", func(b *ir.Builder) {
		nn.Train(b)
		x := b.Input("x", ir.F32, ir.Dims(lossRows, lossFeatures)...)
		b.Output("loss", f(b, x, b.Input("labels", ir.I32, ir.Dims(lossRows)...)))
	})
	if err != nil {
		t.Fatal(err)
	}
	if g.Outputs()[0].Value.Rank() == 0 {
		if g, err = autodiff.ValueAndGrad(g, "loss", "x", "weight", "bias"); err != nil {
			t.Fatal(err)
		}
	}
	in := map[string]*ir.Array{"labels": ir.Ints(ir.I32, []int64{3, 0, -100, 5, 1, 2, 3}, lossRows)}
	for _, p := range g.Ports() {
		if p.Value.DType() != ir.F32 {
			continue
		}
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(ir.F32, dims...)
		for i := range a.F {
			a.F[i] = math.Round(64*math.Sin(float64(7*i+len(p.Name)))) / 64
		}
		in[p.Name] = a
	}
	out, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]float64{}
	for i, o := range g.Outputs() {
		values[o.Name] = out[i].F
	}
	return values
}

// TestLinearCrossEntropy holds the loss and its gradients, in parts of several sizes, to those of whole logits.
func TestLinearCrossEntropy(t *testing.T) {
	for _, reduction := range []string{ops.LossMean, ops.LossSum, ops.LossNone} {
		for _, softcap := range []float64{0, 2} {
			whole := valuesOf(t, func(b *ir.Builder, x, labels ir.Value) ir.Value {
				y := nn.Linear(b, x, lossClasses, nn.LinearOptions{Name: nn.Here})
				if softcap != 0 {
					y = ops.Mul(b, ops.Tanh(b, ops.Div(b, y, ops.ConstLike(b, y, softcap))), ops.ConstLike(b, y, softcap))
				}
				return ops.CrossEntropyLoss(b, y, labels, ir.Value{}, ops.ClassLossAttrs{LossAttrs: ops.LossAttrs{Reduction: reduction}, Ignored: []int{-100}, LabelSmoothing: 0.25})
			})
			for _, rows := range []int{0, 1, 3, 6} {
				parts := valuesOf(t, func(b *ir.Builder, x, labels ir.Value) ir.Value {
					return nn.LinearCrossEntropy(b, x, labels, lossClasses, nn.LinearCrossEntropyOptions{
						LinearOptions: nn.LinearOptions{Name: nn.Here}, Softcap: softcap, Ignored: []int{-100}, LabelSmoothing: 0.25, Reduction: reduction, Rows: rows,
					})
				})
				for name, want := range whole {
					if len(parts[name]) != len(want) {
						t.Fatalf("%s: %v, want %v", name, parts, whole)
					}
					for i, x := range parts[name] {
						if !(math.Abs(x-want[i]) <= 1e-5) {
							t.Errorf("%s, %d rows at a time, softcap %v: %s[%d] is %v, want %v", reduction, rows, softcap, name, i, x, want[i])
						}
					}
				}
			}
		}
	}
}

// TestLinearCrossEntropyTrainsAdapters holds the gradients of an adapter, with a packed weight, to those of whole logits.
func TestLinearCrossEntropyTrainsAdapters(t *testing.T) {
	labels := ir.Ints(ir.I32, []int64{2, 1}, 2)
	packed, _ := packedRows()
	gradients := func(f func(b *ir.Builder, x, labels ir.Value) ir.Value) []*ir.Array {
		var g *ir.Graph
		var err error
		if g, err = ir.Build("g", func(b *ir.Builder) {
			nn.Train(b)
			x, labels := b.Input("x", ir.F32, ir.Dims(2, storedIn)...), b.Input("labels", ir.I32, ir.Dims(2)...)
			nn.Stored(b, func(string) nn.Storage { return nn.Storage{Format: "q8_0"} }, func() {
				nn.LoRA(b, nn.LoRAOptions{Rank: 2, Alpha: 3}, func() { b.Output("loss", f(b, x, labels)) })
			})
		}); err == nil {
			g, err = autodiff.ValueAndGrad(g, "loss", "x", "lora_A/weight", "lora_B/weight")
		}
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]*ir.Array{"weight": packed, "labels": labels}
		for name, dims := range map[string][]int{"x": {2, storedIn}, "lora_A/weight": {storedIn, 2}, "lora_B/weight": {2, storedOut}} {
			a := ir.NewArray(ir.F32, dims...)
			for i := range a.F {
				a.F[i] = float64(i%5-2) / 16
			}
			in[name] = a
		}
		out, err := ir.Eval(g, in, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	whole := gradients(func(b *ir.Builder, x, labels ir.Value) ir.Value {
		return ops.CrossEntropyLoss(b, nn.Linear(b, x, storedOut, nn.LinearOptions{Name: nn.Here, NoBias: true}), labels, ir.Value{}, ops.ClassLossAttrs{})
	})
	parts := gradients(func(b *ir.Builder, x, labels ir.Value) ir.Value {
		return nn.LinearCrossEntropy(b, x, labels, storedOut, nn.LinearCrossEntropyOptions{LinearOptions: nn.LinearOptions{Name: nn.Here, NoBias: true}, Rows: 1})
	})
	for i := range whole {
		for j, x := range parts[i].F {
			if want := whole[i].F[j]; !(math.Abs(x-want) <= 1e-6) {
				t.Errorf("result %d, element %d: %v, want %v", i, j, x, want)
			}
		}
	}
}

// TestLinearCrossEntropyRefuses has options and operands outside their domain.
func TestLinearCrossEntropyRefuses(t *testing.T) {
	for _, c := range []struct {
		kind   error
		x      ir.Shape
		labels ir.Shape
		o      nn.LinearCrossEntropyOptions
	}{
		{ir.ErrAttr, ir.Dims(4, 3), ir.Dims(4), nn.LinearCrossEntropyOptions{Rows: -1}},
		{ir.ErrAttr, ir.Dims(4, 3), ir.Dims(4), nn.LinearCrossEntropyOptions{Softcap: math.NaN()}},
		{ir.ErrAttr, ir.Dims(4, 3), ir.Dims(4), nn.LinearCrossEntropyOptions{Softcap: math.Inf(1)}},
		{ir.ErrAttr, ir.Dims(4, 3), ir.Dims(4), nn.LinearCrossEntropyOptions{Reduction: "all"}},
		{ir.ErrAttr, ir.Dims(4, 3), ir.Dims(4), nn.LinearCrossEntropyOptions{LabelSmoothing: 2}},
		{ir.ErrShape, ir.Dims(4, 3), ir.Dims(3), nn.LinearCrossEntropyOptions{}},
		{ir.ErrShape, ir.Dims(), ir.Dims(), nn.LinearCrossEntropyOptions{}},
		{ir.ErrSymbol, ir.Shape{ir.Sym("n"), ir.N(3)}, ir.Shape{ir.Sym("n")}, nn.LinearCrossEntropyOptions{}},
	} {
		_, err := ir.Build("g", func(b *ir.Builder) {
			b.Output("loss", nn.LinearCrossEntropy(b, b.Input("x", ir.F32, c.x...), b.Input("labels", ir.I32, c.labels...), 5, c.o))
		})
		if !errors.Is(err, c.kind) {
			t.Errorf("x %s, labels %s, %+v: %v, want %v", c.x, c.labels, c.o, err, c.kind)
		}
	}
}
