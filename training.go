package rlx

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
)

// Training says how [Session.Train] trains. The zero value is Adam on the
// output "loss" with a learning rate of 0.001 from weights drawn with seed 0.
type Training struct {
	// Loss is the output to be made small: "loss" where empty. It must be an
	// f32 of rank 0.
	Loss string
	// Optimizer is the update rule, [optim.Adam] where nil.
	Optimizer optim.Optimizer
	// Rate is the learning rate to begin with, [DefaultRate] where 0. See
	// [Trainer.SetRate]; with a schedule in Options it must be 0.
	Rate float64
	// Options are those of [optim.Step].
	Options optim.Options
	// Precision is that of products, in the step and in Eval; parameters and
	// updates are f32. With MixedF16 the loss is scaled by the defaults of
	// [optim.LossScale] where Options has no scale of its own.
	Precision Precision
	// Seed draws the first weights, by the initializers of Init or, where a
	// parameter has none, ones for the scales of norms, [GlorotUniform] for weights of two
	// axes and more, and zeros for all else. States begin as zeros, but the running
	// variance of a batch norm as ones.
	Seed uint32
	// Init are initializers by the names of parameters, or by patterns: see [InitGraph].
	Init map[string]Initializer
	// Eval are further entries, which see the parameters as they are.
	Eval []ir.Entry
	// StopOnNaN makes a loss that is NaN or infinite an error, see
	// [Trainer.StopOnNaN].
	StopOnNaN bool
}

// DefaultRate is the learning rate of a trainer where none was set.
const DefaultRate = 1e-3

// historySteps is for how many steps losses stay on the device before the
// trainer reads them.
const historySteps = 256

// The names of the entries that [Session.Train] makes.
const (
	stepEntry = "step"
	initEntry = "init"
)

// Train compiles a training step for the graph of a loss and initialises its
// parameters, on the CPU where the device has no random numbers. Errors are those of
// [Training.Entries] and [Trainer.SetRate], and of the device.
func (s *Session) Train(ctx context.Context, loss *ir.Graph, o Training) (*Trainer, error) {
	entries, err := o.Entries(loss)
	if err != nil {
		return nil, err
	}
	first, draw := entries[1].Graph, drawThere
	if n, _ := firstUnsupported(s.backend, first); n != nil {
		entries, draw = slices.Delete(entries, 1, 2), drawHere
	}
	m, err := ir.NewModule(loss.Name(), entries...)
	if err != nil {
		return nil, err
	}
	p, err := s.CompileWith(ctx, m, CompileOptions{Precision: o.Precision})
	if err != nil {
		return nil, err
	}
	err = draw(ctx, p, first, o.Seed)
	var t *Trainer
	if err == nil {
		t, err = o.begin(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return t, nil
}

// Entries returns what [Session.Train] compiles for the graph of a loss, to make a plan
// of it ahead of time: "step" with the inputs of the loss, "lr" unless a schedule is set,
// and the losses of the last steps as states ([optim.History]); "init" with the input
// "seed" ([InitGraph]); and those of Eval. Errors are those of [optim.Step] and
// [InitGraph].
func (o Training) Entries(loss *ir.Graph) ([]ir.Entry, error) {
	if loss == nil {
		return nil, ir.Errorf(ir.ErrGraph, "no graph given")
	}
	if o.Optimizer == nil {
		o.Optimizer = optim.Adam{}
	}
	if o.Precision == MixedF16 && o.Options.Scale == nil {
		o.Options.Scale = &optim.LossScale{}
	}
	step, err := optim.Step(loss, o.lossName(), o.Optimizer, o.Options)
	if err != nil {
		return nil, err
	}
	if err := o.checkUnchanged(step); err != nil {
		return nil, err
	}
	if step, err = optim.History(step, o.lossName(), historySteps); err != nil {
		return nil, err
	}
	var params []string
	for _, p := range loss.Ports() {
		if p.Kind == ir.ParamPort {
			params = append(params, p.Name)
		}
	}
	by, err := initializers(step, o.Init)
	if err != nil {
		return nil, err
	}
	for name := range loss.BeginAsOnes() {
		if by[name] == nil {
			by[name] = Constant(1)
		}
	}
	first, err := InitGraph(step, params, by)
	if err != nil {
		return nil, err
	}
	return append([]ir.Entry{{Name: stepEntry, Graph: step}, {Name: initEntry, Graph: first}}, o.Eval...), nil
}

// checkUnchanged returns an error of kind [ir.ErrGraph] for a state of the optimiser that the
// step reads but does not change, where no entry of Eval does: Sophia's estimate of the
// curvature would stay 0.
func (o *Training) checkUnchanged(step *ir.Graph) error {
	for _, p := range step.Ports() {
		if !optim.IsState(p) || changes(step, p.Name) {
			continue
		}
		if !slices.ContainsFunc(o.Eval, func(e ir.Entry) bool { return e.Graph != nil && changes(e.Graph, p.Name) }) {
			return ir.Errorf(ir.ErrGraph, "the step reads state %q of the optimizer and no entry changes it: Eval lacks the graph of optim.Sophia.Curvature", p.Name)
		}
	}
	return nil
}

// changes reports whether a graph gives a state another value than it had.
func changes(g *ir.Graph, state string) bool {
	p, _ := g.Port(state)
	return slices.ContainsFunc(g.Outputs(), func(o ir.Output) bool { return o.State && o.Name == state && o.Value != p.Value })
}

// lossName is the output of the graph that is the loss.
func (o *Training) lossName() string { return cmp.Or(o.Loss, "loss") }

// drawThere draws the first weights on the device, by its entry for that.
func drawThere(ctx context.Context, p *Program, _ *ir.Graph, seed uint32) error {
	_, err := p.Call(ctx, initEntry, Inputs{SeedInput: Uint32(seed)})
	return err
}

// drawHere draws them on the CPU, for a device without random numbers.
func drawHere(ctx context.Context, p *Program, first *ir.Graph, seed uint32) error {
	host, err := Open("cpu")
	if err != nil {
		return err
	}
	m, err := ir.NewModule(first.Name(), ir.Entry{Name: initEntry, Graph: first})
	if err != nil {
		return err
	}
	from, err := host.Compile(ctx, m)
	if err != nil {
		return err
	}
	err = drawThere(ctx, from, first, seed)
	for _, s := range from.Persistent() {
		var x Tensor
		if err == nil {
			x, err = from.Get(ctx, s.Name)
		}
		if err == nil {
			err = p.Set(ctx, s.Name, x)
		}
	}
	return errors.Join(err, from.Close(context.WithoutCancel(ctx)))
}

// begin returns the trainer of a program with its first weights.
func (o *Training) begin(ctx context.Context, p *Program) (*Trainer, error) {
	t, err := NewTrainer(ctx, p, o.lossName())
	if err != nil {
		return nil, err
	}
	t.StopOnNaN(o.StopOnNaN)
	if o.Rate == 0 {
		return t, nil
	}
	return t, t.SetRate(o.Rate)
}
