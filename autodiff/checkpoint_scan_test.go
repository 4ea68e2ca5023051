package autodiff_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// lossOfLoop returns the loss of a loop of six steps, h ← tanh(w·h + x), and its gradients by w, h and x.
func lossOfLoop(t *testing.T, reverse bool, scan func(b *ir.Builder, l ops.Loop) (carries, ys []ir.Value)) []*ir.Array {
	t.Helper()
	g, err := ir.Build("loop", func(b *ir.Builder) {
		w, h, x := b.Input("w", ir.F64), b.Input("h", ir.F64, ir.N(2)), b.Input("x", ir.F64, ir.Dims(6, 2)...)
		carries, ys := scan(b, ops.Loop{
			Consts: []ir.Value{w}, Carries: []ir.Value{h}, Xs: []ir.Value{x}, Reverse: reverse,
			Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
				h := ops.Tanh(b, ops.Add(b, ops.Mul(b, consts[0], carries[0]), xs[0]))
				return []ir.Value{h}, []ir.Value{ops.Square(b, h)}
			},
		})
		if b.Err() == nil {
			weights := ops.Add(b, ops.Iota(b, ir.F64, 0, ir.Dims(6, 2)...), ops.Ones(b, ir.F64))
			b.Output("loss", ops.Add(b, ops.ReduceSum(b, carries[0]), ops.ReduceSum(b, ops.Mul(b, ys[0], weights))))
		}
	})
	if err == nil {
		g, err = autodiff.ValueAndGrad(g, "loss", "w", "h", "x")
	}
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float64, 12)
	for i := range x {
		x[i] = math.Sin(float64(i))
	}
	out, err := ir.Eval(g, map[string]*ir.Array{"w": ir.Float(ir.F64, 0.7), "h": ir.Floats(ir.F64, []float64{0.3, -1}, 2), "x": ir.Floats(ir.F64, x, 6, 2)}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestACheckpointedScanIsTheScan(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		want := lossOfLoop(t, reverse, ops.Scan)
		for _, segments := range []int{1, 2, 3, 6} {
			got := lossOfLoop(t, reverse, func(b *ir.Builder, l ops.Loop) (carries, ys []ir.Value) {
				return autodiff.CheckpointedScan(b, l, segments)
			})
			for k := range want {
				for i, w := range want[k].F {
					if !(math.Abs(got[k].F[i]-w) <= 1e-12) {
						t.Errorf("%d segments: output %d is %v, not %v", segments, k, got[k].F, want[k].F)
						break
					}
				}
			}
		}
	}
	_, err := ir.Build("refused", func(b *ir.Builder) {
		autodiff.CheckpointedScan(b, ops.Loop{Xs: []ir.Value{b.Input("x", ir.F32, ir.N(6))}, Body: func(*ir.Builder, []ir.Value, []ir.Value, []ir.Value) (next, ys []ir.Value) { return nil, nil }}, 4)
	})
	if !errors.Is(err, ir.ErrAttr) {
		t.Errorf("4 segments of 6 steps: the error is %v", err)
	}
}
