package rlx

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/internal/report"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
)

// Training holds the options of [Session.Train]. The zero value trains with Adam on the output
// "loss", with a learning rate of 0.001 and weights drawn with seed 0.
type Training struct {
	// Loss names the output to minimise, an f32 of rank 0; "" means "loss".
	Loss string
	// Optimizer is the update rule; nil means [optim.Adam].
	Optimizer optim.Optimizer
	// Rate is the initial learning rate; 0 means [DefaultRate]. It must be 0 if Options has a
	// schedule. See [Trainer.SetRate].
	Rate float64
	// Options are the options of [optim.Step].
	Options optim.Options
	// Precision is the precision of matrix products, convolutions and attention in the step and in
	// Eval; parameters and updates stay f32. With [MixedF16] and no scale in Options the loss is
	// scaled with the defaults of [optim.LossScale].
	Precision Precision
	// Seed seeds the initial weights. A parameter without an initializer in Init uses the rule that
	// it declares ([ir.PortOptions]), as those of package nn do. Without a rule it starts as ones
	// if it is the scale of a norm, by [GlorotUniform] if its rank is 2 or more, and as zeros
	// otherwise. A state without a rule starts as zeros, except the running variance of a batch
	// norm, which starts as ones.
	Seed uint32
	// Init holds initializers by parameter name or by pattern: see [InitGraph].
	Init map[string]Initializer
	// Eval are further entries of the program; they read the current parameters.
	Eval []ir.Entry
	// EvalAverages are further entries, which read the averages of the trained parameters ([optim.Options.Average]) in place
	// of the parameters: see [Trainer.Averages]. They need whole parameters and states on each rank.
	EvalAverages []ir.Entry
	// Sizes lists the sizes that symbols are compiled for: see [CompileOptions.Sizes]. The last
	// batch of an epoch may be smaller if its size is a symbol; means are over its true size.
	Sizes map[string]Size
	// StopOnNaN reports a loss or a trained parameter that is NaN or infinite as an error: see [Trainer.StopOnNaN].
	StopOnNaN bool
	// Parallel trains with several processes; nil means one.
	Parallel *DataParallel
	// Partition divides the step among the processes of a mesh, instead of Parallel.
	Partition *Partition
	// Watch checks each step for the first value that is not finite, and StopOnNaN names it: a
	// parameter, or the result of a layer or of a node without a label. It costs a reduction of
	// each of these values.
	Watch bool
}

// DefaultRate is the learning rate of a trainer before [Trainer.SetRate].
const DefaultRate = 1e-3

// historySteps is the number of losses that the device keeps for the trainer to read.
const historySteps = 256

// Names of the entries made by [Session.Train].
const (
	stepEntry = "step"
	initEntry = "init"
)

// Train compiles a training step for the graph of a loss and initialises the parameters, on the CPU
// if the device has no random numbers. The errors are those of [Training.Entries],
// [Trainer.SetRate] and the device.
func (s *Session) Train(ctx context.Context, loss *ir.Graph, o Training) (*Trainer, error) {
	if err := s.given(ctx, "train"); err != nil {
		return nil, err
	}
	entries, placements, err := o.entries(loss)
	if err != nil {
		return nil, err
	}
	first, draw := entries[1].Graph, initOnDevice
	if n, _ := report.First(first, reported(s.backend)); n != nil {
		entries, draw = slices.Delete(entries, 1, 2), initOnHost
	}
	m, err := ir.NewModule(loss.Name(), entries...)
	if err != nil {
		return nil, err
	}
	mesh, err := o.mesh(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.CompileWith(ctx, m, CompileOptions{Precision: o.Precision, Mesh: mesh, Sizes: o.Sizes})
	if err != nil {
		return nil, err
	}
	err = draw(ctx, p, first, o.Seed)
	if err == nil {
		err = spread(ctx, p, mesh, placements)
	}
	var t *Trainer
	if err == nil {
		t, err = o.newTrainer(ctx, p)
	}
	if err == nil {
		t.mesh, t.placements, t.recipe, t.trained = mesh, placements, &recipe{s, loss, o}, trainedBy(entries[0].Graph)
	}
	if err == nil && o.Watch {
		_, t.watched, err = watch(loss)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return t, nil
}

// Entries returns the entries that [Session.Train] compiles for the graph of a loss, for compiling
// ahead of time. Entry "step" has the inputs of the loss, the input "lr" unless a schedule is set,
// and the last losses as states ([optim.History]). Entry "init" has the input "seed" ([InitGraph]).
// The entries of Eval and EvalAverages follow. The errors are those of [optim.Step] and [InitGraph], of kind
// [ir.ErrGraph] for an entry of EvalAverages that reads no parameter with an average, and of kind [ir.ErrUnsupported]
// for such entries if parameters or states are divided among ranks.
func (o Training) Entries(loss *ir.Graph) ([]ir.Entry, error) {
	entries, _, err := o.entries(loss)
	return entries, err
}

// entries returns the entries, and the placement of parameters and states on several devices.
func (o Training) entries(loss *ir.Graph) ([]ir.Entry, map[string]parallel.Placement, error) {
	step, err := o.step(loss)
	if err != nil {
		return nil, nil, err
	}
	if err := o.checkCurvature(step); err != nil {
		return nil, nil, err
	}
	if step, err = optim.History(step, o.lossName(), historySteps); err != nil {
		return nil, nil, err
	}
	first, err := o.initial(loss, step)
	if err != nil {
		return nil, nil, err
	}
	onAverages, err := o.averaged(step)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range slices.Concat(o.Eval, onAverages) {
		if e.Name == "" || e.Name == stepEntry || e.Name == initEntry {
			return nil, nil, ir.Errorf(ir.ErrName, "an entry of Eval or EvalAverages has the name %q: it must have one other than %q and %q, which are those of the training", e.Name, stepEntry, initEntry)
		}
	}
	entries := slices.Concat([]ir.Entry{{Name: stepEntry, Graph: step}, {Name: initEntry, Graph: first}}, o.Eval, onAverages)
	if o.Partition != nil {
		return o.Partition.divide(entries)
	}
	return o.Parallel.divide(entries)
}

// averaged returns the entries of EvalAverages, for a step.
func (o *Training) averaged(step *ir.Graph) ([]ir.Entry, error) {
	if len(o.EvalAverages) > 0 && (o.Partition != nil || o.Parallel != nil && (o.Parallel.Shard || o.Parallel.ShardParams)) {
		return nil, ir.Errorf(ir.ErrUnsupported, "EvalAverages is given: parameters and states must not be divided among ranks")
	}
	all := averages{}
	all.add(step, o.Options)
	return all.entries(o.EvalAverages)
}

// mesh returns the mesh to compile for, nil for one rank. The error is of kind [ir.ErrAttr] for both of
// Parallel and Partition.
func (o *Training) mesh(ctx context.Context) (*collective.Mesh, error) {
	switch {
	case o.Partition == nil:
		return o.Parallel.mesh(ctx)
	case o.Parallel != nil:
		return nil, ir.Attrf("Parallel and Partition are given: one of them must be left out, as a mesh can have an axis for the batch")
	}
	return o.Partition.mesh()
}

// step returns the training step of a loss.
func (o Training) step(loss *ir.Graph) (*ir.Graph, error) {
	if loss == nil {
		return nil, ir.Errorf(ir.ErrGraph, "no graph given")
	}
	if o.Optimizer == nil {
		o.Optimizer = optim.Adam{}
	}
	if o.Precision == MixedF16 && o.Options.Scale == nil {
		o.Options.Scale = &optim.LossScale{}
	}
	if o.Watch {
		var err error
		if loss, _, err = watch(loss); err != nil {
			return nil, err
		}
	}
	o.Options.Gradients = o.Parallel.gradients(o.lossName(), o.Options.Gradients)
	step, err := optim.Step(loss, o.lossName(), o.Optimizer, o.Options)
	if err == nil && o.Watch {
		return keepFirst(step)
	}
	return step, err
}

// initial returns the graph that initialises the states of the step of a loss.
func (o Training) initial(loss, step *ir.Graph) (*ir.Graph, error) {
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
	for name := range loss.InitAsOnes() {
		if p, _ := loss.Port(name); by[name] == nil && p.Options().Initial.IsZero() {
			by[name] = Constant(1)
		}
	}
	return InitGraph(step, params, by)
}

// checkCurvature returns an error of kind [ir.ErrGraph] if the step reads an optimizer state that
// neither the step nor an entry of Eval updates: Sophia's estimate of the curvature would stay 0.
func (o *Training) checkCurvature(step *ir.Graph) error {
	for _, p := range step.Ports() {
		if !optim.IsState(p) || updatesState(step, p.Name) {
			continue
		}
		if !slices.ContainsFunc(o.Eval, func(e ir.Entry) bool { return e.Graph != nil && updatesState(e.Graph, p.Name) }) {
			return ir.Errorf(ir.ErrGraph, "the step reads state %q of the optimizer and no entry changes it: Eval lacks the graph of optim.Sophia.Curvature", p.Name)
		}
	}
	return nil
}

// updatesState reports whether a graph updates a state with a new value.
func updatesState(g *ir.Graph, state string) bool {
	p, _ := g.Port(state)
	return slices.ContainsFunc(g.Outputs(), func(o ir.Output) bool { return o.State && o.Name == state && o.Value != p.Value })
}

// lossName returns the name of the loss output.
func (o *Training) lossName() string { return cmp.Or(o.Loss, "loss") }

// initOnDevice initialises the weights on the device, with the program's own entry.
func initOnDevice(ctx context.Context, p *Program, _ *ir.Graph, seed uint32) error {
	_, err := p.Call(ctx, initEntry, Inputs{SeedInput: Uint32(seed)})
	return err
}

// initOnHost initialises the weights on the CPU, for a device without random numbers.
func initOnHost(ctx context.Context, p *Program, first *ir.Graph, seed uint32) error {
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
	err = initOnDevice(ctx, from, first, seed)
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

// newTrainer returns the trainer of a program whose weights are initialised.
func (o *Training) newTrainer(ctx context.Context, p *Program) (*Trainer, error) {
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
