package optim_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestFrozenParametersAreNamedByPatterns(t *testing.T) {
	all := []string{"encoder/w", "encoder/block/w", "encoders/w", "head/w", "odd[name", "w"}
	loss := build(t, func(b *ir.Builder) {
		sum := ops.Zeros(b, ir.F32)
		for _, name := range all {
			sum = ops.Add(b, sum, b.Param(name, ir.F32))
		}
		b.Output("loss", ops.Mul(b, sum, sum))
	})
	for _, c := range []struct{ frozen, want []string }{
		{[]string{"encoder", "odd[name"}, []string{"encoder/w", "encoder/block/w", "odd[name"}},
		{[]string{"encoder/*"}, []string{"encoder/w", "encoder/block/w"}},
		{[]string{"*/block"}, []string{"encoder/block/w"}},
		{[]string{"*/w"}, []string{"encoder/w", "encoders/w", "head/w"}},
	} {
		g, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{Frozen: c.frozen})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range g.Ports() {
			if frozen := !g.Updates(p.Name); slices.Contains(all, p.Name) && frozen != slices.Contains(c.want, p.Name) {
				t.Errorf("of %q: %s %q", c.frozen, p.Kind, p.Name)
			}
		}
	}
	for _, pattern := range []string{"decoder/*", "encoder/b", "block"} {
		if _, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{Frozen: []string{pattern}}); !errors.Is(err, ir.ErrName) {
			t.Errorf("%s, a pattern of no parameter: %v", pattern, err)
		}
	}
}

// TestMatrixDecayExcludesVectors takes steps of every optimizer with a gradient of
// 0: the rest of a step is weight decay.
func TestMatrixDecayExcludesVectors(t *testing.T) {
	loss := build(t, func(b *ir.Builder) {
		w, bias := b.Param("w", ir.F64, ir.N(2), ir.N(2)), b.Param("bias", ir.F64, ir.N(2))
		zero := b.Input("zero", ir.F64)
		b.Output("loss", ops.Mul(b, zero, ops.Add(b, ops.ReduceSum(b, w), ops.ReduceSum(b, bias))))
	})
	const decay = 0.5
	for name, with := range map[string]func(decay float64) optim.Optimizer{
		"sgd":           func(d float64) optim.Optimizer { return optim.SGD{WeightDecay: d} },
		"adam":          func(d float64) optim.Optimizer { return optim.Adam{WeightDecay: d} },
		"adamw":         func(d float64) optim.Optimizer { return optim.AdamW{WeightDecay: d} },
		"adagrad":       func(d float64) optim.Optimizer { return optim.Adagrad{WeightDecay: d} },
		"rmsprop":       func(d float64) optim.Optimizer { return optim.RMSProp{WeightDecay: d} },
		"adadelta":      func(d float64) optim.Optimizer { return optim.Adadelta{WeightDecay: d} },
		"nadam":         func(d float64) optim.Optimizer { return optim.NAdam{Adam: optim.Adam{WeightDecay: d}} },
		"radam":         func(d float64) optim.Optimizer { return optim.RAdam{Adam: optim.Adam{WeightDecay: d}} },
		"lamb":          func(d float64) optim.Optimizer { return optim.LAMB{Adam: optim.Adam{WeightDecay: d}} },
		"lion":          func(d float64) optim.Optimizer { return optim.Lion{WeightDecay: d} },
		"adafactor":     func(d float64) optim.Optimizer { return optim.Adafactor{WeightDecay: d} },
		"muon":          func(d float64) optim.Optimizer { return optim.Muon{WeightDecay: d, Rest: optim.AdamW{WeightDecay: d}} },
		"schedule free": func(d float64) optim.Optimizer { return optim.ScheduleFree{Adam: optim.Adam{WeightDecay: d}} },
		"soap":          func(d float64) optim.Optimizer { return optim.SOAP{Every: 1, WeightDecay: d} },
		"kron":          func(d float64) optim.Optimizer { return optim.Kron{WeightDecay: d} },
		"mars":          func(d float64) optim.Optimizer { return optim.MARS{WeightDecay: d} },
		"amsgrad": func(d float64) optim.Optimizer {
			return optim.AMSGrad{Adam: optim.Adam{WeightDecay: d}, Decoupled: true}
		},
		"adamax":    func(d float64) optim.Optimizer { return optim.Adamax{Adam: optim.Adam{WeightDecay: d}} },
		"adabelief": func(d float64) optim.Optimizer { return optim.AdaBelief{Adam: optim.Adam{WeightDecay: d}} },
		"qhadamw":   func(d float64) optim.Optimizer { return optim.QHAdamW{Adam: optim.Adam{WeightDecay: d}} },
		"adan":      func(d float64) optim.Optimizer { return optim.Adan{WeightDecay: d} },
		"ademamix":  func(d float64) optim.Optimizer { return optim.AdEMAMix{Adam: optim.Adam{WeightDecay: d}} },
		"lars":      func(d float64) optim.Optimizer { return optim.LARS{WeightDecay: d} },
		"prodigy":   func(d float64) optim.Optimizer { return optim.Prodigy{Adam: optim.Adam{WeightDecay: d}} },
		"sophia":    func(d float64) optim.Optimizer { return optim.Sophia{WeightDecay: d} },
	} {
		for _, matrices := range []bool{false, true} {
			o := optim.Options{Schedule: optim.Constant(0.1)}
			if matrices {
				o.Groups = []optim.Group{optim.BelowRank2(loss, with(optim.NoDecay))}
			}
			g, err := optim.Step(loss, "loss", with(decay), o)
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
}

// TestBelowRank2GoesByTheBlocksOfALoop has a stack of blocks as one loop, whose biases and scales have an axis of blocks, and a matrix
// that a loop takes in slices and something else as a whole.
func TestBelowRank2GoesByTheBlocksOfALoop(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 4)...)
		x = nn.Stack(b, "h", 3, x, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.LayerNorm(b, nn.Linear(b, x, 4))
		}, nn.StackOptions{Scan: true})
		both := b.Param("both", ir.F32, ir.Dims(3, 4)...)
		y, _ := ops.Scan(b, ops.Loop{
			Carries: []ir.Value{x}, Xs: []ir.Value{both, b.Param("slices", ir.F32, ir.Dims(3, 4)...)},
			Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.Add(b, carries[0], ops.Mul(b, xs[0], xs[1]))}, nil
			},
		})
		b.Output("loss", ops.Add(b, ops.ReduceSum(b, y[0]), ops.ReduceSum(b, both)))
	})
	if err != nil {
		t.Fatal(err)
	}
	group := optim.BelowRank2(loss, optim.AdamW{})
	var below []string
	for _, p := range loss.Ports() {
		if p.Kind == ir.ParamPort && group.Match(p.Name) {
			below = append(below, p.Name)
		}
	}
	slices.Sort(below)
	if want := []string{"h/layer_norm0/bias", "h/layer_norm0/weight", "h/linear0/bias", "slices"}; !slices.Equal(below, want) {
		t.Errorf("%q are of rank 0 and 1, want %q", below, want)
	}
}
