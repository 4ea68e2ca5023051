package rlx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/safetensors"
)

// Objective is one of several losses over shared parameters, such as those of a GAN, or of an actor
// and its critic.
type Objective struct {
	// Name names the entry with the step, and separates the states of its optimizer from those of
	// the others ([optim.Options.Name]). It must not contain '/' or ':'.
	Name string
	// Loss is the graph, and Output the output to minimise, an f32 of rank 0; "" means "loss".
	Loss   *ir.Graph
	Output string
	// Optimizer is the update rule; nil means [optim.Adam].
	Optimizer optim.Optimizer
	// Rate is the initial learning rate; 0 means [DefaultRate]. It must be 0 if Options has a
	// schedule.
	Rate float64
	// Options are the options of [optim.Step]. Frozen names the parameters that this objective does
	// not train. Name is set to that of the objective.
	Options optim.Options
}

// JointTraining holds the options of [Session.TrainJointly].
type JointTraining struct {
	Objectives []Objective
	// Precision, Seed, Init, Eval, EvalAverages and StopOnNaN are those of [Training]. A key of Init must match a
	// parameter or state of one objective.
	Precision    Precision
	Seed         uint32
	Init         map[string]Initializer
	Eval         []ir.Entry
	EvalAverages []ir.Entry
	StopOnNaN    bool
}

// Joint is a program with a trainer for each of several objectives.
type Joint struct {
	program  *Program
	trainers map[string]*Trainer
}

// TrainJointly compiles a training step for each objective. All of them, and the entries of Eval,
// share parameters by name. Each parameter starts by the first rule found in Init or in its
// declaration, as [Session.Train] does. Each step waits for its loss.
//
//	joint, err := session.TrainJointly(ctx, rlx.JointTraining{Objectives: []rlx.Objective{
//		{Name: "critic", Loss: critic, Options: optim.Options{Frozen: []string{"generator"}}},
//		{Name: "generator", Loss: generator, Options: optim.Options{Frozen: []string{"critic"}}},
//	}})
//	err = joint.Trainer("critic").Step(ctx, batch)
//
// The error is of kind [ir.ErrName] for an objective without a name of its own, and otherwise one of
// [Session.Train].
func (s *Session) TrainJointly(ctx context.Context, o JointTraining) (*Joint, error) {
	if err := s.given(ctx, "train"); err != nil {
		return nil, err
	}
	entries, first, err := o.entries()
	if err != nil {
		return nil, err
	}
	m, err := ir.NewModule("joint", entries...)
	if err != nil {
		return nil, err
	}
	p, err := s.CompileWith(ctx, m, CompileOptions{Precision: o.Precision})
	if err != nil {
		return nil, err
	}
	j := &Joint{p, map[string]*Trainer{}}
	for _, g := range first {
		if err == nil {
			err = initOnHost(ctx, p, g, o.Seed)
		}
	}
	for i := range o.Objectives {
		if err == nil {
			err = j.add(ctx, o.Objectives[i], entries[i].Graph, o.StopOnNaN)
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return j, nil
}

// entries returns the steps of the objectives and the entries of Eval and EvalAverages, and the graphs that
// initialise them.
func (o *JointTraining) entries() (entries []ir.Entry, first []*ir.Graph, err error) {
	if len(o.Objectives) == 0 {
		return nil, nil, ir.Errorf(ir.ErrGraph, "no objectives given")
	}
	used, all := map[string]bool{}, averages{}
	for i := range o.Objectives {
		x := &o.Objectives[i]
		if x.Options.Name = x.Name; x.Name == "" {
			return nil, nil, ir.Errorf(ir.ErrName, "objective %d has no name: it must have one", i)
		}
		if slices.ContainsFunc(entries, func(e ir.Entry) bool { return e.Name == x.Name }) {
			return nil, nil, ir.Errorf(ir.ErrName, "objective %d has the name %q of an earlier one", i, x.Name)
		}
		if x.Loss == nil {
			return nil, nil, ir.Errorf(ir.ErrGraph, "objective %q has no loss: it must have one", x.Name)
		}
		t := x.training(o)
		step, err := t.step(x.Loss)
		if err != nil {
			return nil, nil, err
		}
		t.Init = matching(o.Init, step, used)
		graph, err := t.initial(x.Loss, step)
		if err != nil {
			return nil, nil, err
		}
		all.add(step, x.Options)
		entries, first = append(entries, ir.Entry{Name: x.Name, Graph: step}), append(first, graph)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Init)) {
		if !used[key] {
			return nil, nil, ir.Errorf(ir.ErrName, "an initializer for %q, which matches no parameter or state of an objective", key)
		}
	}
	onAverages, err := all.entries(o.EvalAverages)
	return slices.Concat(entries, o.Eval, onAverages), first, err
}

// training returns the options of an objective's step.
func (x *Objective) training(o *JointTraining) Training {
	return Training{Loss: x.Output, Optimizer: x.Optimizer, Rate: x.Rate, Options: x.Options, Precision: o.Precision}
}

// matching returns the initializers that match a parameter or state of a step, and notes their keys.
func matching(all map[string]Initializer, step *ir.Graph, used map[string]bool) map[string]Initializer {
	out := map[string]Initializer{}
	for key, init := range all {
		for _, p := range step.Ports() {
			if p.Kind != ir.InputPort && (p.Name == key || p.Kind == ir.ParamPort && optim.Covers(key, p.Name)) {
				out[key], used[key] = init, true
			}
		}
	}
	return out
}

// add adds the trainer of an objective.
func (j *Joint) add(ctx context.Context, x Objective, step *ir.Graph, stop bool) error {
	o := x.training(&JointTraining{})
	t := &Trainer{program: j.program, inputs: map[string]*stepInput{}, objective: &x, stopOnNaN: stop, trained: trainedBy(step)}
	if err := t.bind(ctx, x.Name, o.lossName()); err != nil {
		return err
	}
	if err := t.resume(ctx); err != nil {
		return err
	}
	j.trainers[x.Name] = t
	if x.Rate == 0 {
		return nil
	}
	return t.SetRate(x.Rate)
}

// Trainer returns the trainer of an objective. Trainers of one Joint must be used by one goroutine at
// a time. For an unknown name it returns a trainer without inputs, whose methods return an error of
// kind [ir.ErrName].
func (j *Joint) Trainer(objective string) *Trainer {
	if t, ok := j.trainers[objective]; ok {
		return t
	}
	unknown := ir.Errorf(ir.ErrName, "unknown objective %q: have %q", objective, slices.Sorted(maps.Keys(j.trainers)))
	return &Trainer{program: j.program, unusable: unknown}
}

// Program returns the program, whose entries are the steps and those of Eval and EvalAverages.
func (j *Joint) Program() *Program { return j.program }

// Save writes all parameters and states as a safetensors file: see [Trainer.Save].
func (j *Joint) Save(ctx context.Context, w io.Writer) error {
	if err := j.given(ctx, "save"); err != nil {
		return err
	}
	values, err := j.program.Save(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(j.trainers)) {
		if err := j.trainers[name].checkValues(values); err != nil {
			return fmt.Errorf("objective %q: %w", name, err)
		}
	}
	return safetensors.Write(w, values, withChecksum(values, nil))
}

// Load resumes all objectives from a file of [Joint.Save]. The errors are those of [Trainer.Load];
// nothing is changed then.
func (j *Joint) Load(ctx context.Context, r io.Reader) error {
	if err := j.given(ctx, "load"); err != nil {
		return err
	}
	values, _, err := checked(safetensors.Read(r))
	if err != nil {
		return err
	}
	if err := j.program.checkCheckpoint(values); err != nil {
		return err
	}
	if err := j.program.Load(ctx, values); err != nil {
		return err
	}
	for _, t := range j.trainers {
		if err := t.resume(ctx); err != nil {
			return err
		}
	}
	return nil
}
