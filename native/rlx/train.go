package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

var trainCommand = command{
	name: "train", args: "FILE", short: "train the parameters of a loss",
	long: `Trains the parameters of a graph whose output is the loss, an f32 of rank 0. -data has a tensor for
each input of the graph, with its examples along the first axis; each step takes as many as the first
axis of the input. Progress is written to the standard error, and the last report to the standard
output, where that is another file.`,
	define: func(f *flag.FlagSet) runner {
		o, s := trainFlags(f), sizesFlag(f)
		var device string
		deviceFlag(f, &device)
		var l learning
		f.StringVar(&l.data, "data", "", "safetensors or npz `FILE` with the examples")
		f.IntVar(&l.steps, "steps", 1000, "`N` steps in all, those of a checkpoint included")
		f.IntVar(&l.every, "every", 100, "`N` steps between reports and checkpoints")
		f.StringVar(&l.save, "save", "", "`FILE` to write the trained parameters to: npz by its ending, else safetensors")
		f.StringVar(&l.log, "log", "", "`FILE` to append reports to, as lines of JSON")
		f.StringVar(&l.events, "events", "", "`FOLDER` for an event file of TensorBoard")
		f.StringVar(&l.folder, "checkpoints", "", "`FOLDER` for checkpoints; training resumes from the last one there")
		return func(ctx context.Context, std stdio, args []string) error {
			file, err := one(args, "FILE")
			if err != nil {
				return err
			}
			if err := l.check(); err != nil {
				return err
			}
			m, err := loadModule(file, std.in, s)
			if err != nil {
				return err
			}
			return l.train(ctx, m.module, o, device, std)
		}
	},
}

// learning are the flags of "train" in addition to those of the step.
type learning struct {
	data, save, folder string
	log, events        string
	steps, every       int
}

// check refuses flags that no training can have, before files are read.
func (l *learning) check() error {
	if l.data == "" {
		return usagef("-data is missing: it must name a safetensors or npz file with the inputs")
	}
	if l.steps < 1 || l.every < 1 {
		return usagef("-steps is %d and -every %d: both must be 1 or more", l.steps, l.every)
	}
	return nil
}

func (l *learning) train(ctx context.Context, m *ir.Module, o *trainOptions, device string, std stdio) error {
	e, err := entryOf(m, o.entry)
	if err != nil {
		return err
	}
	training, err := o.training()
	if err != nil {
		return err
	}
	if err := checkWritable(l.save); err != nil {
		return err
	}
	examples, err := readTensors(l.data)
	if err != nil {
		return err
	}
	rows, err := batchSize(e.Graph, examples)
	if err != nil {
		return err
	}
	s, err := openSession(m, device)
	if err != nil {
		return err
	}
	defer s.Close(context.WithoutCancel(ctx))
	fmt.Fprintf(std.err, "device %s: %s\n", s.Device().Name, s.Device().Description)
	t, err := s.Train(ctx, e.Graph, training)
	if err != nil {
		return err
	}
	loop := rlx.Loop{
		Data: rlx.Shuffled(examples, rows, uint64(training.Seed)), Steps: l.steps, Every: l.every, Progress: std.err,
		EpochSteps: epochSteps(examples, rows),
	}
	if l.folder != "" {
		loop.Save = rlx.Checkpoints{Folder: l.folder, Resume: true}
	}
	end, err := l.observe(&loop)
	if err != nil {
		return err
	}
	last, err := rlx.Fit(ctx, t, loop)
	err = errors.Join(err, end())
	if err != nil && (t.Steps() == 0 || errors.Is(err, rlx.ErrDiverged)) && l.save != "" { // a file may hold better parameters
		return fmt.Errorf("%w; %s is not written", err, l.save)
	}
	if err != nil {
		return errors.Join(err, l.write(context.WithoutCancel(ctx), t))
	}
	if math.IsNaN(last.Loss) { // no step was left: a loss that is NaN is an error
		fmt.Fprintf(std.out, "the checkpoint has %d steps: -steps %d leaves none to do\n", last.Step, l.steps)
	} else if !sameFile(std.out, std.err) { // which has it already
		fmt.Fprintln(std.out, last)
	}
	return l.write(ctx, t)
}

// observe adds the callbacks for -log and -events, and returns what closes their files.
func (l *learning) observe(loop *rlx.Loop) (end func() error, err error) {
	var files []io.Closer
	end = func() error {
		var failed []error
		for _, f := range files {
			failed = append(failed, f.Close())
		}
		return errors.Join(failed...)
	}
	if l.log != "" {
		f, err := os.OpenFile(l.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
		if err != nil {
			return nil, err
		}
		files, loop.Callbacks = append(files, f), append(loop.Callbacks, rlx.JSONLines(f))
	}
	if l.events != "" {
		e, err := rlx.NewEvents(l.events)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		files, loop.Callbacks = append(files, e), append(loop.Callbacks, e.Report)
	}
	return end, nil
}

// write writes the parameters.
func (l *learning) write(ctx context.Context, t *rlx.Trainer) error {
	if l.save == "" {
		return nil
	}
	params, err := t.Params(ctx)
	if err != nil {
		return err
	}
	return writeTensors(l.save, params)
}

// batchSize returns the number of examples in a batch: the first axis of all inputs. It deletes
// examples that are no input, and fits the others to the element types of inputs.
func batchSize(g *ir.Graph, examples rlx.Inputs) (int, error) {
	rows, first := 0, ""
	inputs := map[string]bool{}
	for _, p := range g.Ports() {
		if p.Kind != ir.InputPort {
			continue
		}
		inputs[p.Name] = true
		x, ok := examples[p.Name]
		if !ok {
			return 0, ir.Errorf(ir.ErrName, "the data has no tensor %q: it must have one for each input, it has %q", p.Name, slices.Sorted(maps.Keys(examples)))
		}
		dims, _ := p.Value.Shape().Ints()
		if len(dims) == 0 {
			return 0, ir.Shapef("input %q has rank 0: it must have an axis of examples", p.Name)
		}
		if first != "" && dims[0] != rows {
			return 0, ir.Shapef("input %q has %d examples: it must have as many as %q, %d", p.Name, dims[0], first, rows)
		}
		rows, first = dims[0], p.Name
		examples[p.Name] = fitted(x, p.Value.DType())
	}
	if first == "" {
		return 0, ir.Errorf(ir.ErrName, "the graph %q has no inputs: it must have one to train by data", g.Name())
	}
	maps.DeleteFunc(examples, func(name string, _ native.Tensor) bool { return !inputs[name] })
	return rows, nil
}

// epochSteps returns the number of whole batches of the examples, 0 if an example has no rows.
func epochSteps(examples rlx.Inputs, rows int) int {
	for _, x := range examples {
		if len(x.Dims) > 0 && rows > 0 {
			return x.Dims[0] / rows
		}
	}
	return 0
}

// trainOptions are the flags of a training step.
type trainOptions struct {
	entry, loss, optimizer, precision string
	rate, clip                        float64
	seed                              seed
}

func trainFlags(f *flag.FlagSet) *trainOptions {
	o := &trainOptions{}
	f.StringVar(&o.entry, "entry", "", "`NAME` of the entry with the loss; the first by default")
	f.StringVar(&o.loss, "loss", "loss", "`NAME` of the output to minimise")
	f.StringVar(&o.optimizer, "optimizer", "adam", "`NAME` of the update rule: "+fmt.Sprint(optimizerNames()))
	f.Float64Var(&o.rate, "rate", rlx.DefaultRate, "learning `RATE`")
	f.Float64Var(&o.clip, "clip", 0, "greatest `NORM` of all gradients; 0 for no bound")
	precisionFlag(f, &o.precision)
	o.seed.flag(f, "initial parameters and of the order of examples")
	return o
}

// momentum names SGD with a momentum of 0.9.
const momentum = "momentum"

// optimizerNames returns the names of update rules, sorted. Sophia is not among them: nothing here updates
// its estimate of the curvature.
func optimizerNames() []string {
	names := append(slices.Clone(recipe.OptimizerNames), momentum)
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "sophia" })
}

// optimizerOf returns the update rule of a name, with its defaults.
func optimizerOf(name string) (optim.Optimizer, error) {
	if name == momentum {
		return optim.SGD{Momentum: 0.9}, nil
	}
	return recipe.Optimizer(name, nil)
}

func (o *trainOptions) training() (rlx.Training, error) {
	rule, err := optimizerOf(o.optimizer)
	if err != nil {
		return rlx.Training{}, usagef("unknown optimizer %q: have %q", o.optimizer, optimizerNames())
	}
	precision, err := precisionOf(o.precision)
	return rlx.Training{
		Loss: o.loss, Optimizer: rule, Rate: o.rate, Precision: precision, Seed: uint32(o.seed), StopOnNaN: true,
		Options: optim.Options{ClipNorm: o.clip},
	}, err
}

// stepOf returns a module with the training step of a loss and the other entries.
func (o *trainOptions) stepOf(m *ir.Module) (*ir.Module, error) {
	e, err := entryOf(m, o.entry)
	if err != nil {
		return nil, err
	}
	t, err := o.training()
	if err != nil {
		return nil, err
	}
	for _, other := range m.Entries {
		if other.Name != e.Name {
			t.Eval = append(t.Eval, other)
		}
	}
	entries, err := t.Entries(e.Graph)
	if err != nil {
		return nil, err
	}
	return ir.NewModule(m.Name, entries...)
}
