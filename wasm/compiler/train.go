package compiler

import (
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/wire"
)

// hyper reads hyper-parameters by name; a name that is not there reads as 0,
// for which the optimisers have their defaults.
func hyper(r *wire.Request) map[string]float64 {
	out := map[string]float64{}
	r.List(func() {
		name := r.Text()
		out[name] = r.F64()
	})
	return out
}

// optimizer returns the optimiser of that name.
func optimizer(name string, h map[string]float64) (optim.Optimizer, error) {
	switch name {
	case "sgd":
		return optim.SGD{Momentum: h["momentum"], Nesterov: h["nesterov"] != 0, WeightDecay: h["weight_decay"]}, nil
	case "adam":
		return optim.Adam{Beta1: h["beta1"], Beta2: h["beta2"], Eps: h["epsilon"], WeightDecay: h["weight_decay"]}, nil
	case "adamw":
		return optim.AdamW{Beta1: h["beta1"], Beta2: h["beta2"], Eps: h["epsilon"], WeightDecay: h["weight_decay"]}, nil
	}
	return nil, ir.Errorf(ir.ErrName, "there is no optimizer %q", name)
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
	default:
		return nil, ir.Errorf(ir.ErrName, "there is no schedule %q", name)
	}
	if w := int(h["warm_up"]); w > 0 {
		s = optim.WarmUp(w, s)
	}
	return s, nil
}

// trainingStep (loss graph, loss, optimizer, hyper-parameters, schedule, its
// parameters, frozen, how many losses to keep) → step graph.
func trainingStep(c *wire.Service, r *wire.Request, w *wire.Response) error {
	g, err := wire.Get[*ir.Graph](c, r)
	if err != nil {
		return err
	}
	loss, name, h := r.Text(), r.Text(), hyper(r)
	scheduleName, sh, frozen, kept := r.Text(), hyper(r), r.Texts(), r.U32()
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
	o := optim.Options{Schedule: s, ClipNorm: h["clip_norm"], Frozen: frozen}
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
