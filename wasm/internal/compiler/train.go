package compiler

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// hyper reads hyper-parameters by name; a name that is not there reads as 0,
// for which the optimisers have their defaults. A weight decay of 0 is none at all.
func hyper(r *wire.Request) map[string]float64 {
	out := map[string]float64{}
	r.List(func() {
		name := r.Text()
		out[name] = r.F64()
	})
	if decay, given := out[weightDecay]; given && decay == 0 {
		out[weightDecay] = optim.NoDecay
	}
	return out
}

const weightDecay = "weight_decay"

// optimizer returns the optimiser of that name.
func optimizer(name string, h map[string]float64) (optim.Optimizer, error) {
	adam := optim.Adam{Beta1: h["beta1"], Beta2: h["beta2"], Eps: h["epsilon"], WeightDecay: h[weightDecay]}
	switch name {
	case "sgd":
		return optim.SGD{Momentum: h["momentum"], Nesterov: h["nesterov"] != 0, WeightDecay: adam.WeightDecay}, nil
	case "adam":
		return adam, nil
	case "adamw":
		return optim.AdamW(adam), nil
	case "nadam":
		return optim.NAdam{Adam: adam}, nil
	case "radam":
		return optim.RAdam{Adam: adam}, nil
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
		return sophia(h), nil
	case "muon":
		return optim.Muon{Momentum: h["momentum"], WeightDecay: adam.WeightDecay, Rest: optim.AdamW{WeightDecay: adam.WeightDecay}}, nil
	}
	return nil, ir.Errorf(ir.ErrName, "unknown optimizer %q", name)
}

func sophia(h map[string]float64) optim.Sophia {
	return optim.Sophia{Beta1: h["beta1"], Beta2: h["beta2"], Gamma: h["gamma"], Eps: h["epsilon"], WeightDecay: h[weightDecay]}
}

// curvature (loss graph, loss, hyper-parameters of Sophia, frozen, name of its states, seed) → graph that updates the curvature.
func curvature(c *wire.Service, r *wire.Request, w *wire.Response) error {
	g, err := wire.Get[*ir.Graph](c, r)
	if err != nil {
		return err
	}
	loss, h, frozen, stateName, seed := r.Text(), hyper(r), r.Texts(), r.Text(), r.U32()
	if r.Err() != nil {
		return r.Err()
	}
	g, err = sophia(h).Curvature(g, loss, uint64(seed), optim.Options{Frozen: frozen, Name: stateName})
	return keepGraph(c, w, g, err)
}

// readGroups reads groups of parameters: patterns, optimizer, its hyper-parameters and the factor of
// the rate, each.
func readGroups(r *wire.Request) ([]optim.Group, error) {
	var groups []optim.Group
	var err error
	r.List(func() {
		patterns, name, h, rate := r.Texts(), r.Text(), hyper(r), r.F64()
		group := optim.Group{Rate: rate, Match: func(param string) bool {
			return slices.ContainsFunc(patterns, func(p string) bool { return optim.Covers(p, param) })
		}}
		if name != "" {
			o, e := optimizer(name, h)
			group.Optimizer, err = o, cmp.Or(err, e)
		}
		groups = append(groups, group)
	})
	return groups, cmp.Or(err, r.Err())
}

// schedule returns the learning rate as a function of the step, nil where it is
// an input.
func schedule(name string, h map[string]float64) (optim.Schedule, error) {
	var s optim.Schedule
	steps := int(h["steps"])
	switch name {
	case "":
		return nil, nil
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
		return nil, ir.Errorf(ir.ErrName, "unknown schedule %q", name)
	}
	if w := int(h["warm_up"]); w > 0 {
		s = optim.WarmUp(w, s)
	}
	return s, nil
}

// trainingStep (loss graph, loss, optimizer, hyper-parameters, schedule, its
// parameters, frozen, how many losses to keep, groups, checkpoint policy, name of the optimizer's
// states) → step graph.
func trainingStep(c *wire.Service, r *wire.Request, w *wire.Response) error {
	g, err := wire.Get[*ir.Graph](c, r)
	if err != nil {
		return err
	}
	loss, name, h := r.Text(), r.Text(), hyper(r)
	scheduleName, sh, frozen, kept := r.Text(), hyper(r), r.Texts(), r.U32()
	groups, err := readGroups(r)
	if err != nil {
		return err
	}
	keep, err := policy(r.Texts())
	if err != nil {
		return err
	}
	stateName := r.Text()
	if r.Err() != nil {
		return r.Err()
	}
	opt, err := optimizer(name, h)
	if err != nil {
		return err
	}
	s, err := schedule(scheduleName, sh)
	if err != nil {
		return err
	}
	o := optim.Options{
		Schedule: s, ClipNorm: h["clip_norm"], ClipValue: h["clip_value"], Accumulate: int(h["accumulate"]), Average: h["average"], Frozen: frozen,
		Groups: groups, Policy: keep, Name: stateName,
	}
	o.ConstantKeys, o.MeasureNorm = h["constant_keys"] != 0, h["measure_norm"] != 0
	if h["allow_unreached"] != 0 {
		o.Missing = autodiff.MissingIsZero
	}
	if h["decay_matrices"] != 0 {
		h[weightDecay] = optim.NoDecay
		rest, _ := optimizer(name, h)
		o.Groups = append(o.Groups, optim.BelowRank2(g, rest))
	}
	if scale := h["loss_scale"]; scale != 0 {
		o.Scale = &optim.LossScale{Initial: scale}
	}
	g, err = optim.Step(g, loss, opt, o)
	if err == nil && kept > 0 {
		g, err = optim.History(g, loss, kept)
	}
	return keepGraph(c, w, g, err)
}

// initialState (step graph) → graph that sets the optimiser's states.
func initialState(c *wire.Service, r *wire.Request, w *wire.Response) error {
	g, err := wire.Get[*ir.Graph](c, r)
	if err != nil {
		return err
	}
	g, err = optim.Init(g)
	return keepGraph(c, w, g, err)
}
