package train_test

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml/train"
	"github.com/rlx-go/rlx/native/cpu"
)

// TestOptimizersOnTheHost: every rule of package optim, with the loss that it must come
// below.
func TestOptimizersOnTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		optimizer optim.Optimizer
		rate      float64
		steps     int
		below     float64 // of the first loss
	}{
		"adamw":  {optim.AdamW{}, 0.1, 200, 0.02},
		"lion":   {optim.Lion{}, 0.02, 200, 0.5},
		"muon":   {optim.Muon{}, 0.02, 50, 1},
		"lamb":   {optim.LAMB{}, 0.02, 50, 1},
		"sophia": {optim.Sophia{}, 0.02, 200, 0.5},
		"mars":   {optim.MARS{}, 0.02, 200, 0.5},
		"soap":   {optim.SOAP{}, 0.02, 200, 0.5},

		"sgd with Nesterov's momentum": {optim.SGD{Momentum: 0.9, Nesterov: true}, 0.05, 100, 0.02},
		"adam":                         {optim.Adam{}, 0.1, 200, 0.02},
		"nadam":                        {optim.NAdam{}, 0.05, 200, 0.5},
		"radam":                        {optim.RAdam{}, 0.05, 200, 0.5},
		"adagrad":                      {optim.Adagrad{}, 0.5, 200, 0.5},
		"adadelta":                     {optim.Adadelta{}, 1, 200, 1},
		"rmsprop":                      {optim.RMSProp{}, 0.02, 200, 0.5},
		"adafactor":                    {optim.Adafactor{}, 0.02, 200, 1},
		"schedule-free":                {optim.ScheduleFree{}, 0.05, 200, 0.5},
	} {
		s := open(t, bound(t, 8), train.Options{Optimizer: c.optimizer, Rate: c.rate})
		first, last := run(t, s, c.steps)
		if !(last < c.below*first) || math.IsInf(last, 0) {
			t.Errorf("%s: the loss went from %g to %g", name, first, last)
		}
		if s.FusedActive() {
			t.Errorf("%s is said to be fused", name)
		}
	}
}

// TestStepsEqualTheCPUs: losses and parameters of ten steps are those of a program of the
// CPU whose every step is one graph, update included.
func TestStepsEqualTheCPUs(t *testing.T) {
	loss, err := irtest.MLP(8, 6, 5, 3)
	if err != nil {
		t.Fatal(err)
	}
	step, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("step", ir.Entry{Name: "step", Graph: step})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	p, err := cpu.Backend().Compile(ctx, m, native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	initial, in := map[string]native.Tensor{}, map[string]native.Tensor{}
	for _, port := range loss.Ports() {
		dims, _ := port.Value.Shape().Ints()
		switch {
		case port.Kind == ir.ParamPort:
			initial[port.Name] = small(dims...)
			if err := p.Set(ctx, port.Name, initial[port.Name]); err != nil {
				t.Fatal(err)
			}
		case port.Value.DType() == ir.F32:
			in[port.Name] = small(dims...)
		default:
			in[port.Name] = native.Zeros(port.Value.DType(), dims...)
		}
	}
	s, err := train.New(&software.Runtime{}, loss, initial, train.Options{Rate: 0.05})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 10 {
		report, err := s.Step(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		in[optim.RateInput] = native.Float32(0.05)
		run, err := p.Run(ctx, "step", in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := run.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		delete(in, optim.RateInput)
		if want, _ := out["loss"].Float32s(); !(math.Abs(report.Loss-float64(want[0])) <= 1e-5) {
			t.Fatalf("the loss is %v, on the CPU %v", report.Loss, want[0])
		}
	}
	for name := range initial {
		got, _ := s.Param(name)
		want, err := p.Get(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := got.Float32s()
		y, _ := want.Float32s()
		for i := range y {
			if math.Abs(float64(x[i]-y[i])) > 1e-5 {
				t.Fatalf("element %d of %s is %v, on the CPU %v", i, name, x[i], y[i])
			}
		}
	}
}
