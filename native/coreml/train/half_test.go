package train_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
	"github.com/rlx-go/rlx/native/coreml/train"
)

// TestLossScaleAdapts: gradients that overflow fp16 are skipped until they fit.
func TestLossScaleAdapts(t *testing.T) {
	g, err := ir.Build("large", func(b *ir.Builder) {
		w := b.Param("w", ir.F32)
		b.Output("loss", ops.Mul(b, ops.Mul(b, w, b.Input("x", ir.F32)), ops.Const(b, ir.F32, 100)))
	})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, g, train.Options{Optimizer: optim.SGD{}, Rate: 1e-3, Half: true})
	skipped := 0
	for s.Steps() == 0 && skipped < 20 {
		r, err := s.Step(context.Background(), map[string]native.Tensor{"x": native.Float32(10)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Skipped {
			skipped++
		}
	}
	// The gradient is 1000, the largest number 65504: a scale of 64 is the first of
	// 1024, 512, ... under which it is finite, and w moves by −1e-3·1000.
	w, _ := s.Param("w")
	if x, _ := w.Float32s(); skipped != 4 || math.Abs(float64(x[0]+1)) > 1e-3 {
		t.Errorf("%d steps were passed over, w is %v", skipped, x)
	}
}

// TestOverflowInjected: a batch whose gradients overflow fp16 changes nothing but the
// scale, and training continues after it.
func TestOverflowInjected(t *testing.T) {
	s := open(t, bound(t, 8), train.Options{Optimizer: optim.Adam{}, Rate: 0.05, Half: true})
	first, _ := run(t, s, 20)
	before, bad := param(t, s), batch(0, 8)
	huge, _ := bad["y"].Float32s()
	huge[3] = 6e4
	for i := range 2 {
		r, err := s.Step(context.Background(), bad)
		if err != nil || !r.Skipped || s.Steps() != 20 {
			t.Fatalf("overflow %d: %+v after %d steps: %v", i, r, s.Steps(), err)
		}
	}
	if after := param(t, s); !slices.Equal(before, after) {
		t.Errorf("the weights went from %v to %v", before, after)
	}
	if _, last := run(t, s, 100); last >= 0.1*first || s.Steps() != 120 {
		t.Errorf("the loss went from %g to %g in %d steps", first, last, s.Steps())
	}
}

// TestF16StepsTrackF32: five steps of Adam with gradients in fp16, as the Neural Engine
// has them, against the same in f32.
func TestF16StepsTrackF32(t *testing.T) {
	o := train.Options{Rate: 0.05, Units: coreml.CPUOnly}
	single := open(t, bound(t, 8), o)
	o.Half, o.Units = true, coreml.CPUAndNeuralEngine
	half := open(t, bound(t, 8), o)
	run(t, single, 5)
	run(t, half, 5)
	for i, w := range param(t, single) {
		if h := param(t, half)[i]; math.Abs(float64(w-h)) > 2e-3 {
			t.Errorf("weight %d is %g in f32 and %g in fp16", i, w, h)
		}
	}
}

// TestParametersArePassedOncePerUpdate counts the parameters that Core ML gets in three updates by four
// parts of a batch each. Parameters that are states of it are passed when they change; f32,
// which no state can hold, and opsets without states have them as inputs of every part.
func TestParametersArePassedOncePerUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		o     train.Options
		given int
	}{
		"fp16":                {train.Options{Half: true}, 1 + 3},
		"fp16 before CoreML8": {train.Options{Half: true, Opset: coreml.CoreML7}, 12},
		"f32":                 {train.Options{}, 12},
	} {
		c.o.Rate = 0.05
		rt := &software.Runtime{}
		s, err := train.New(rt, bound(t, 2), map[string]native.Tensor{"w": native.Float32s([]float32{1, 0, 0.1}, 3, 1)}, c.o)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for i := range 4 {
				if _, err := s.Accumulate(batch(2*i, 2*i+2)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.StepAccumulated(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if s.Resident() != (c.given == 4) || rt.Given["w"] != c.given || rt.Given["x"] != 12 || rt.Given["y"] != 12 {
			t.Errorf("%s: resident %t, given %v", name, s.Resident(), rt.Given)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestResidentParametersAreThoseOfTheHost: the same steps with parameters as states and as
// inputs give the same parameters, to the bit.
func TestResidentParametersAreThoseOfTheHost(t *testing.T) {
	var got [2][]float32
	for i, opset := range []coreml.Opset{coreml.CoreML8, coreml.CoreML7} {
		s := open(t, bound(t, 8), train.Options{Half: true, Rate: 0.05, Opset: opset})
		run(t, s, 30)
		got[i] = param(t, s)
	}
	if !slices.Equal(got[0], got[1]) {
		t.Errorf("as states %v, as inputs %v", got[0], got[1])
	}
}
