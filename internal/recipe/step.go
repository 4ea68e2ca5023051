package recipe

import (
	"maps"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Step describes the training step of a graph with a loss.
type Step struct {
	// Loss is the output to minimise.
	Loss string
	// Optimizer is the name of the update rule. Hyper holds its hyperparameters and the numbers of
	// [optim.Options], with truth values as 0 and 1: clip_norm, clip_value, accumulate, average,
	// decay_matrices, constant_keys, allow_unreached, measure_norm, and loss_scale, the initial
	// scale of a step that scales its loss.
	Optimizer string
	Hyper     Numbers
	// Schedule is the name of the schedule, "" for a rate that is an input.
	Schedule string
	Rates    Numbers
	Frozen   []string
	// History is the number of losses to keep on the device.
	History int
	Groups  []Group
	// Policy chooses what the backward pass saves: see [Policy].
	Policy []string
	// Name separates the states of several optimisers.
	Name string
}

// Group sets another optimiser or rate for some parameters.
type Group struct {
	// Params are names and patterns, as of [optim.Options].
	Params []string
	// Optimizer is the name of the update rule, "" for that of the other parameters.
	Optimizer string
	Hyper     Numbers
	// Rate multiplies the learning rate; 0 means 1.
	Rate float64
}

// Graph returns the graph of the step. Errors are those of [optim.Step], and of the kinds
// [ir.ErrName] and [ir.ErrAttr] for invalid names and numbers.
func (s Step) Graph(g *ir.Graph) (*ir.Graph, error) {
	rule, err := Optimizer(s.Optimizer, s.Hyper)
	if err != nil {
		return nil, err
	}
	o, err := s.options(g)
	if err != nil {
		return nil, err
	}
	if g, err = optim.Step(g, s.Loss, rule, o); err == nil && s.History > 0 {
		g, err = optim.History(g, s.Loss, s.History)
	}
	return g, err
}

func (s Step) options(g *ir.Graph) (optim.Options, error) {
	h := s.Hyper
	o := optim.Options{
		ClipNorm: h["clip_norm"], ClipValue: h["clip_value"], Accumulate: int(h["accumulate"]), Average: h["average"], Frozen: s.Frozen, Name: s.Name,
		ConstantKeys: h["constant_keys"] != 0, MeasureNorm: h["measure_norm"] != 0,
	}
	var err error
	if o.Schedule, err = Schedule(s.Schedule, s.Rates); err != nil {
		return o, err
	}
	if o.Policy, err = Policy(s.Policy); err != nil {
		return o, err
	}
	if o.Groups, err = groups(s.Groups); err != nil {
		return o, err
	}
	if h["allow_unreached"] != 0 {
		o.Missing = autodiff.MissingIsZero
	}
	if h["decay_matrices"] != 0 {
		without := maps.Clone(h)
		without[weightDecay] = 0
		rest, err := Optimizer(s.Optimizer, without)
		if err != nil {
			return o, err
		}
		o.Groups = append(o.Groups, optim.BelowRank2(g, rest))
	}
	if scale := h["loss_scale"]; scale != 0 {
		o.Scale = &optim.LossScale{Initial: scale}
	}
	return o, nil
}

func groups(given []Group) ([]optim.Group, error) {
	var made []optim.Group
	for _, one := range given {
		group := optim.Group{Rate: one.Rate, Match: optim.Matching(one.Params...)}
		if one.Optimizer != "" {
			var err error
			if group.Optimizer, err = Optimizer(one.Optimizer, one.Hyper); err != nil {
				return nil, err
			}
		}
		made = append(made, group)
	}
	return made, nil
}

// Mixed returns a graph with its products in half precision: type is "bf16" or "f16".
func Mixed(g *ir.Graph, typ string) (*ir.Graph, error) {
	d, err := dtype.Parse(typ)
	if err != nil {
		return nil, ir.DTypef("%v", err)
	}
	return passes.Mixed(g, d)
}
