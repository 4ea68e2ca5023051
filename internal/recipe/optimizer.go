// Package recipe builds training steps and plans from names and numbers, the form in which the
// page, the compile service and the command line pass options.
//
// Its input are a graph with a loss and a [Step], or the name and [Limits] of a target; its output are the graph
// of the step, by package optim, and a [Device], for which package plan compiles. Its callers are
// wasm/internal/compiler, wasm/edge and native/rlx. Start reading at step.go, then optimizer.go, the names of update
// rules and schedules, and compile.go, the targets.
package recipe

import (
	"math"
	"strconv"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
)

// Numbers are hyperparameters by name, in snake case as in "weight_decay". A missing one is 0,
// which means the optimizer's default.
type Numbers map[string]float64

const weightDecay = "weight_decay"

// given returns a number, [optim.NoDecay] if it is given as 0: not the default.
func (h Numbers) given(name string) float64 {
	if x, given := h[name]; !given || x != 0 {
		return x
	}
	return optim.NoDecay
}

// check returns an error of kind [ir.ErrAttr] for the first of the given numbers that is not whole.
func (h Numbers) check(names ...string) error {
	for _, name := range names {
		if x := h[name]; x != math.Trunc(x) {
			return ir.Attrf("%s is %v; it must be a whole number", name, x)
		}
	}
	return nil
}

// Optimizer returns the optimizer with a name. The error is of kind [ir.ErrName] for an unknown one,
// and [ir.ErrAttr] for a fraction where a count is wanted.
func Optimizer(name string, h Numbers) (optim.Optimizer, error) {
	if err := h.check("accumulate", "every", "pairs", "warm"); err != nil {
		return nil, err
	}
	momentum := h.given("momentum")
	adam := optim.Adam{Beta1: h.given("beta1"), Beta2: h.given("beta2"), Eps: h.given("epsilon"), WeightDecay: h.given(weightDecay)}
	switch name {
	case "sgd":
		return optim.SGD{Momentum: h["momentum"], Dampening: h["dampening"], Nesterov: h["nesterov"] != 0, WeightDecay: adam.WeightDecay}, nil
	case "adam":
		return adam, nil
	case "adamw":
		return optim.AdamW(adam), nil
	case "nadam":
		return optim.NAdam{Adam: adam, Decoupled: h["decoupled"] != 0}, nil
	case "radam":
		return optim.RAdam{Adam: adam, Decoupled: h["decoupled"] != 0}, nil
	case "lamb":
		return optim.LAMB{Adam: adam}, nil
	case "schedule-free":
		return optim.ScheduleFree{Adam: adam}, nil
	case "lion":
		return optim.Lion{Beta1: adam.Beta1, Beta2: adam.Beta2, WeightDecay: adam.WeightDecay}, nil
	case "adagrad":
		return optim.Adagrad{Eps: adam.Eps, WeightDecay: adam.WeightDecay}, nil
	case "rmsprop":
		return optim.RMSProp{Alpha: adam.Beta2, Eps: adam.Eps, Momentum: h["momentum"], Centered: h["centered"] != 0, WeightDecay: adam.WeightDecay}, nil
	case "adadelta":
		return optim.Adadelta{Rho: adam.Beta2, Eps: adam.Eps, WeightDecay: adam.WeightDecay}, nil
	case "adafactor":
		return optim.Adafactor{WeightDecay: adam.WeightDecay}, nil
	case "soap":
		return optim.SOAP{Beta1: adam.Beta1, Beta2: adam.Beta2, Eps: adam.Eps, Every: int(h["every"]), WeightDecay: adam.WeightDecay}, nil
	case "mars":
		return optim.MARS{Beta1: adam.Beta1, Beta2: adam.Beta2, Gamma: h["gamma"], Eps: adam.Eps, WeightDecay: adam.WeightDecay}, nil
	case "sophia":
		return Sophia(h), nil
	case "muon":
		return optim.Muon{Momentum: momentum, WeightDecay: adam.WeightDecay, Rest: optim.AdamW{WeightDecay: adam.WeightDecay}}, nil
	case "adabelief":
		return optim.AdaBelief{Adam: adam}, nil
	case "adamax":
		return optim.Adamax{Adam: adam}, nil
	case "adan":
		return optim.Adan{Beta1: adam.Beta1, Beta2: adam.Beta2, Eps: adam.Eps, WeightDecay: adam.WeightDecay}, nil
	case "ademamix":
		return optim.AdEMAMix{Adam: adam, Warm: int(h["warm"])}, nil
	case "amsgrad":
		return optim.AMSGrad{Adam: adam, Decoupled: h["decoupled"] != 0}, nil
	case "lars":
		return optim.LARS{Momentum: momentum, WeightDecay: adam.WeightDecay}, nil
	case "qhadamw":
		return optim.QHAdamW{Adam: adam}, nil
	case "kron":
		return optim.Kron{Momentum: momentum, Every: int(h["every"]), WeightDecay: adam.WeightDecay, Diagonal: h["diagonal"] != 0}, nil
	case "lbfgs":
		return optim.LBFGS{Pairs: int(h["pairs"])}, nil
	case "prodigy":
		return optim.Prodigy{Adam: adam}, nil
	case "stiefel":
		return optim.Stiefel{Momentum: h["momentum"], Rest: optim.AdamW{WeightDecay: adam.WeightDecay}}, nil
	}
	return nil, unknown("optimizer", name)
}

// Sophia returns Sophia, which needs another entry that updates the curvature.
func Sophia(h Numbers) optim.Sophia {
	return optim.Sophia{Beta1: h.given("beta1"), Beta2: h.given("beta2"), Gamma: h["gamma"], Eps: h.given("epsilon"), WeightDecay: h.given(weightDecay)}
}

// Schedule returns the learning rate as a function of the step; nil for an empty name, which makes
// it an input. The error for an unknown name is of kind [ir.ErrName], and [ir.ErrAttr] if the rate is
// missing or a count is a fraction.
func Schedule(name string, h Numbers) (optim.Schedule, error) {
	if name == "" {
		return nil, nil
	}
	if err := h.check("steps", "growth", "warm_up"); err != nil {
		return nil, err
	}
	var s optim.Schedule
	steps := int(h["steps"])
	switch name {
	case "constant":
		s = optim.Constant(h["rate"])
	case "linear":
		s = optim.Linear(h["rate"], h["final_rate"], steps)
	case "cosine":
		s = optim.Cosine(h["rate"], h["final_rate"], steps)
	case "steps":
		s = optim.Steps(h["rate"], h["factor"], steps)
	case "exponential":
		s = optim.Exponential(h["rate"], h["factor"])
	case "polynomial":
		s = optim.Polynomial(h["rate"], h["final_rate"], h["exponent"], steps)
	case "cosine-restarts":
		s = optim.CosineRestarts(h["rate"], h["final_rate"], steps, max(int(h["growth"]), 1))
	case "one-cycle":
		s = optim.OneCycle(h["rate"], steps, 0.3)
	default:
		return nil, unknown("schedule", name)
	}
	if _, given := h["rate"]; !given {
		return nil, ir.Attrf("the schedule %s has no rate", name)
	}
	if w := int(h["warm_up"]); w > 0 {
		s = optim.WarmUp(w, s)
	}
	return s, nil
}

// Policy returns a checkpoint policy: its name, followed by its arguments; nil for no words. The error is of kind
// [ir.ErrName] for an unknown name, and [ir.ErrAttr] for arguments that do not fit.
func Policy(words []string) (autodiff.Policy, error) {
	if len(words) == 0 {
		return nil, nil
	}
	switch name, args := words[0], words[1:]; name {
	case "nothing":
		return autodiff.SaveNothing(), nil
	case "products":
		return autodiff.SaveProducts(), nil
	case "min-cut":
		return autodiff.SaveMinCut(), nil
	case "labels":
		return autodiff.SaveLabels(args...), nil
	case "ops":
		kept := make([]ir.Op, len(args))
		for i, arg := range args {
			kept[i] = ir.Op(arg)
		}
		return autodiff.SaveOps(kept...), nil
	case "within":
		if len(args) == 1 {
			if n, err := strconv.Atoi(args[0]); err == nil && n > 0 {
				return autodiff.SaveWithin(n), nil
			}
		}
		return nil, ir.Attrf("the policy is within %v bytes; it must be one positive number", args)
	default:
		return nil, unknown("policy", name)
	}
}
