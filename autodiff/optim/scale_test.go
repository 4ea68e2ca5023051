package optim_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestScaledStepsAgreeWithPyTorch scales where nothing overflows: the steps are
// those without a scale.
func TestScaledStepsAgreeWithPyTorch(t *testing.T) {
	want := readGolden(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := c.options
			o.Scale = &optim.LossScale{Interval: 3}
			checkRun(t, ir.F64, c.opt, o, want.F64[c.name], 1e-7)
			checkRun(t, ir.F32, c.opt, o, want.F32[c.name], 5e-6)
		})
	}
}

// halfLoss is the sum of w·x, computed in f16. Its gradient is x: it passes through f16 as x times
// the scale.
func halfLoss(t *testing.T) *ir.Graph {
	t.Helper()
	return build(t, func(b *ir.Builder) {
		half := func(v ir.Value) ir.Value { return ops.Convert(b, v, ir.F16) }
		x, w := b.Input("x", ir.F32, ir.N(2)), b.Param("w", ir.F32, ir.N(2))
		b.Output("loss", ops.ReduceSum(b, ops.Convert(b, ops.Mul(b, half(w), half(x)), ir.F32)))
	})
}

// TestLossScaleAdapts follows a scale that begins too high, gets an infinite
// input, and grows again. With x = (4, 1) the gradient 4·2ᵏ is an f16 up to
// k = 13, as the largest f16 is 65504: closed forms all the way.
func TestLossScaleAdapts(t *testing.T) {
	g, err := optim.Step(halfLoss(t), "loss", optim.Adam{}, optim.Options{Scale: &optim.LossScale{Interval: 2}})
	if err != nil {
		t.Fatal(err)
	}
	s := newStepper(t, g, map[string]*ir.Array{"w": ir.Floats(ir.F32, []float64{1, 2})})
	s.values[optim.RateInput] = ir.Float(ir.F32, 0.25)
	inf := math.Inf(1)
	for i, c := range []struct {
		x                   float64
		doubled, good, done int64
	}{
		{4, -1, 0, 0},   // 2¹⁶ is no f16 itself
		{4, -2, 0, 0},   // nor is 4·2¹⁵
		{4, -3, 0, 0},   // nor 4·2¹⁴
		{4, -3, 1, 1},   // 4·2¹³ is
		{inf, -4, 0, 1}, // no scale makes this finite
		{4, -4, 1, 2},
		{4, -3, 0, 3}, // two good ones in a row
		{math.NaN(), -4, 0, 3},
		{4, -4, 1, 4},
	} {
		before := s.values["w"].Clone()
		s.values["x"] = ir.Floats(ir.F32, []float64{c.x, 1})
		loss := s.step(t)["loss"].F[0]
		doubled, good, done := s.values[optim.ScaleState].I[0], s.values[optim.GoodState].I[0], s.values[optim.StepState].I[0]
		if doubled != c.doubled || good != c.good || done != c.done {
			t.Errorf("step %d: doubled %d, good %d, done %d; want %d, %d, %d", i, doubled, good, done, c.doubled, c.good, c.done)
		}
		skipped := c.good == 0 && c.done < 3 || c.x != 4
		for k, w := range before.F {
			// The first moves of Adam are the rate, for any gradient.
			want := w - 0.25
			if skipped {
				want = w
			}
			if got := s.values["w"].F[k]; !(math.Abs(got-want) <= 1e-6) {
				t.Errorf("step %d: w[%d] went from %v to %v, want %v", i, k, w, got, want)
			}
		}
		if m := s.values[optim.SlotState("m", "w")].F[0]; m-m != 0 {
			t.Errorf("step %d: the moment is %v", i, m)
		}
		if want := before.F[0]*c.x + before.F[1]; c.x == 4 && !(math.Abs(loss-want) <= 2e-3*math.Abs(want)) {
			t.Errorf("step %d: the loss is %v, not %v: it must not be scaled", i, loss, want)
		}
	}
}

// TestSkippedStepsKeepStatesOfTheLoss has a running mean of the input, as that of a batch norm, and a count: a step with
// an infinite input is skipped, and both stay.
func TestSkippedStepsKeepStatesOfTheLoss(t *testing.T) {
	loss := build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32), b.Param("w", ir.F32)
		mean, seen := b.State("mean", ir.F32), b.State("seen", ir.I32)
		b.SetState("mean", ops.Mul(b, ops.Add(b, mean, x), ops.Const(b, ir.F32, 0.5)))
		b.SetState("seen", ops.Add(b, seen, ops.Const(b, ir.I32, 1)))
		b.Output("loss", ops.Mul(b, w, x))
	})
	g, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{Scale: &optim.LossScale{Initial: 1}})
	if err != nil {
		t.Fatal(err)
	}
	s := newStepper(t, g, map[string]*ir.Array{"w": ir.Float(ir.F32, 1), "mean": ir.Float(ir.F32, 0), "seen": ir.Int(ir.I32, 0)})
	s.values[optim.RateInput] = ir.Float(ir.F32, 0.25)
	for i, c := range []struct {
		x, mean float64
		seen    int64
	}{{2, 1, 1}, {math.Inf(1), 1, 1}, {3, 2, 2}} {
		s.values["x"] = ir.Float(ir.F32, c.x)
		s.step(t)
		if mean, seen := s.values["mean"].F[0], s.values["seen"].I[0]; mean != c.mean || seen != c.seen {
			t.Errorf("after step %d the mean is %v and the count %d, not %v and %d", i, mean, seen, c.mean, c.seen)
		}
	}
}

func TestLossScaleRefusesBadConstants(t *testing.T) {
	for _, l := range []optim.LossScale{{Initial: 3}, {Initial: 0.5}, {Initial: 0x1p101}, {Initial: math.NaN()}, {Initial: -4}, {Interval: -1}} {
		if _, err := optim.Step(halfLoss(t), "loss", optim.SGD{}, optim.Options{Scale: &l}); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if _, err := optim.Step(halfLoss(t), "gain", optim.SGD{}, optim.Options{Scale: &optim.LossScale{}}); !errors.Is(err, ir.ErrName) {
		t.Errorf("an unknown loss: %v", err)
	}
}
