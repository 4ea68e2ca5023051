//go:build !js

package optim_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestFrozenParametersAreNamedByPatterns(t *testing.T) {
	loss := build(t, func(b *ir.Builder) {
		sum := ops.Zeros(b, ir.F32)
		for _, name := range []string{"encoder/w", "encoder/b", "head/w", "odd[name"} {
			sum = ops.Add(b, sum, b.Param(name, ir.F32))
		}
		b.Output("loss", ops.Mul(b, sum, sum))
	})
	g, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{Frozen: []string{"encoder/*", "odd[name"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range g.Ports() {
		if trained := p.Kind == ir.StatePort && p.Name != optim.StepState; trained != (p.Name == "head/w") {
			t.Errorf("%s %q", p.Kind, p.Name)
		}
	}
	if _, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{Frozen: []string{"decoder/*"}}); !errors.Is(err, ir.ErrName) {
		t.Errorf("a pattern of no parameter: %v", err)
	}
}

// TestDecayOfMatricesLeavesVectorsAlone takes steps of every optimizer with a gradient of
// 0: what is left of a step is weight decay.
func TestDecayOfMatricesLeavesVectorsAlone(t *testing.T) {
	loss := build(t, func(b *ir.Builder) {
		w, bias := b.Param("w", ir.F64, ir.N(2), ir.N(2)), b.Param("bias", ir.F64, ir.N(2))
		zero := b.Input("zero", ir.F64)
		b.Output("loss", ops.Mul(b, zero, ops.Add(b, ops.ReduceSum(b, w), ops.ReduceSum(b, bias))))
	})
	const decay = 0.5
	for name, opt := range map[string]optim.Decaying{
		"sgd": optim.SGD{}, "adam": optim.Adam{}, "adamw": optim.AdamW{}, "adagrad": optim.Adagrad{}, "rmsprop": optim.RMSProp{},
		"adadelta": optim.Adadelta{}, "nadam": optim.NAdam{}, "radam": optim.RAdam{}, "lamb": optim.LAMB{}, "lion": optim.Lion{},
		"adafactor": optim.Adafactor{}, "muon": optim.Muon{}, "schedule free": optim.ScheduleFree{}, "soap": optim.SOAP{Every: 1},
		"mars": optim.MARS{}, "sophia": optim.Sophia{},
	} {
		with := opt.WithDecay(decay)
		if a, b := fmt.Sprintf("%T", with), fmt.Sprintf("%T", opt); a != b {
			t.Errorf("%s with decay is %s", b, a)
		}
		for _, matrices := range []bool{false, true} {
			g, err := optim.Step(loss, "loss", with, optim.Options{Schedule: optim.Constant(0.1), DecayMatrices: matrices})
			if err != nil {
				t.Fatal(err)
			}
			s := newStepper(t, g, map[string]*ir.Array{
				"w": ir.Floats(ir.F64, []float64{1, 2, 3, 4}, 2, 2), "bias": ir.Floats(ir.F64, []float64{5, 6}, 2),
			})
			s.values["zero"] = ir.Float(ir.F64, 0)
			s.step(t)
			s.step(t)
			if moved := s.values["w"].F[0] != 1; !moved {
				t.Errorf("%s: w does not decay", name)
			}
			if moved := s.values["bias"].F[0] != 5; moved == matrices {
				t.Errorf("%s, of matrices %t: the bias moves: %t", name, matrices, moved)
			}
		}
	}
	if _, err := optim.Step(loss, "loss", stubborn{}, optim.Options{DecayMatrices: true}); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("an optimizer that cannot be told: %v", err)
	}
}

// stubborn has no weight decay to speak of.
type stubborn struct{}

func (stubborn) Slots() []string { return nil }

func (stubborn) Begin(*ir.Builder, ir.Value, ir.Value) optim.Rule {
	return func(_ *ir.Builder, p, _ ir.Value, _ []ir.Value) (ir.Value, []ir.Value) { return p, nil }
}
