package rlx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
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
	// parameter has none, [HeNormal] for weights and zeros for biases.
	Seed uint32
	Init map[string]Initializer
	// Eval are further entries, which see the parameters as they are.
	Eval []ir.Entry
	// StopOnNaN makes a loss that is NaN or infinite an error, see
	// [Trainer.StopOnNaN].
	StopOnNaN bool
}

// DefaultRate is the learning rate of a trainer where none was set.
const DefaultRate = 1e-3

// ErrDiverged is the kind of the error for a loss that is NaN or infinite,
// where such losses are to stop the training.
var ErrDiverged = errors.New("the loss is not finite")

// historySteps is for how many steps losses stay on the device before the
// trainer reads them.
const historySteps = 256

// The names of the entries that [Session.Train] makes.
const (
	stepEntry = "step"
	initEntry = "init"
)

// Train compiles a training step for the graph of a loss and initialises its
// parameters, on the CPU where the device has no random numbers. Errors are those of [optim.Step], [InitGraph] and
// [Trainer.SetRate], and of the device.
func (s *Session) Train(ctx context.Context, loss *ir.Graph, o Training) (*Trainer, error) {
	if o.Loss == "" {
		o.Loss = "loss"
	}
	if o.Optimizer == nil {
		o.Optimizer = optim.Adam{}
	}
	if o.Precision == MixedF16 && o.Options.Scale == nil {
		o.Options.Scale = &optim.LossScale{}
	}
	step, err := optim.Step(loss, o.Loss, o.Optimizer, o.Options)
	if err != nil {
		return nil, err
	}
	if step, err = optim.History(step, o.Loss, historySteps); err != nil {
		return nil, err
	}
	var params []string
	for _, p := range loss.Ports() {
		if p.Kind == ir.ParamPort {
			params = append(params, p.Name)
		}
	}
	first, err := InitGraph(step, params, o.Init)
	if err != nil {
		return nil, err
	}
	entries := []ir.Entry{{Name: stepEntry, Graph: step}}
	draw := drawHere
	if n, _ := firstUnsupported(s.backend, first); n == nil {
		entries, draw = append(entries, ir.Entry{Name: initEntry, Graph: first}), drawThere
	}
	m, err := ir.NewModule(loss.Name(), append(entries, o.Eval...)...)
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
		t, err = o.begin(p)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return t, nil
}

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
	if err := drawThere(ctx, from, first, seed); err != nil {
		return errors.Join(err, from.Close())
	}
	for _, s := range from.Persistent() {
		x, err := from.Get(ctx, s.Name)
		if err == nil {
			err = p.Set(s.Name, x)
		}
		if err != nil {
			return errors.Join(err, from.Close())
		}
	}
	return from.Close()
}

// begin returns the trainer of a program with its first weights.
func (o *Training) begin(p *Program) (*Trainer, error) {
	t, err := NewTrainer(p, o.Loss)
	if err != nil {
		return nil, err
	}
	t.StopOnNaN(o.StopOnNaN)
	if o.Rate == 0 {
		return t, nil
	}
	return t, t.SetRate(o.Rate)
}

// Trainer repeats the entry "step" of a program with batches of its own memory,
// so that a step allocates nothing on the host, and keeps the losses. It is for
// one goroutine, and the only trainer of its program: once there is another, its
// methods return an error of kind [native.ErrClosed].
type Trainer struct {
	program *Program
	bound   native.Bound
	inputs  map[string]*stepInput
	missing int       // inputs that were not given yet
	rate    []float32 // in the memory of the input "lr", nil without
	loss    Tensor    // memory of the loss, without data where there is a history
	ring    string    // the state with the history, "" without
	every   int       // steps after which it is read: half of what it keeps
	counter string    // the state that counts steps, "" without
	steps   int       // done, as the counter will have it
	first   int       // the step that losses begin with
	losses  []float32
	stop    bool // at a loss that is not finite
}

// stepInput is an input of the step with the memory it is taken from.
type stepInput struct {
	slot   native.Slot
	memory Tensor
	given  bool
}

// NewTrainer returns a trainer for a program with an entry "step", whose output
// loss is an f32 of rank 0. Where the step keeps a history of it
// ([optim.History]), losses are read from time to time only; otherwise each step
// waits for its own. It takes the place of the program's trainer before it, if
// there was one.
func NewTrainer(p *Program, loss string) (*Trainer, error) {
	t := &Trainer{program: p, inputs: map[string]*stepInput{}}
	in, found := map[string]Tensor{}, false
	for _, s := range p.Slots(stepEntry) {
		switch {
		case s.Role == native.Input:
			in[s.Name] = native.Zeros(s.DType, s.Dims...)
			t.inputs[s.Name] = &stepInput{slot: s, memory: in[s.Name]}
		case s.Name == loss && s.DType == ir.F32 && len(s.Dims) == 0:
			found = true
		}
	}
	if !found {
		return nil, ir.Errorf(ir.ErrName, "the program has no entry %q with an output %q, f32 of rank 0", stepEntry, loss)
	}
	t.missing = len(t.inputs)
	t.findStates(loss)
	out := map[string]Tensor{}
	if t.ring == "" {
		t.loss = native.Zeros(ir.F32)
		out[loss] = t.loss
	}
	if lr, ok := in[optim.RateInput]; ok && lr.DType == ir.F32 && len(lr.Dims) == 0 {
		t.give(t.inputs[optim.RateInput])
		t.rate, _ = lr.Float32s()
		t.rate[0] = DefaultRate
	}
	var err error
	if t.bound, err = p.Bind(stepEntry, in, out); err != nil {
		return nil, err
	}
	p.trainer.Store(t)
	return t, t.resume(context.Background())
}

// findStates notes which states keep the losses and count the steps.
func (t *Trainer) findStates(loss string) {
	counts := ""
	for _, s := range t.program.Persistent() {
		switch s.Name {
		case optim.HistoryState(loss):
			if s.DType != ir.F32 || len(s.Dims) != 1 || s.Dims[0] < 1 {
				continue // a state of the user's own
			}
			t.ring, t.every = s.Name, max(1, s.Dims[0]/2)
		case optim.StepState:
			counts = s.Name
		}
	}
	if t.counter = counts; t.ring != "" {
		t.counter = optim.HistoryCount
	}
}

func (t *Trainer) give(in *stepInput) {
	if !in.given {
		in.given = true
		t.missing--
	}
}

// serves returns an error unless t is the trainer of its program.
func (t *Trainer) serves() error {
	if t.program.trainer.Load() != t {
		return fmt.Errorf("trainer: %w: its program has another trainer now", native.ErrClosed)
	}
	return nil
}

// resume goes on from what the states say.
func (t *Trainer) resume(ctx context.Context) error {
	count, err := t.counted(ctx)
	t.losses, t.steps, t.first = nil, count, count
	return err
}

// counted returns how many steps the device has counted.
func (t *Trainer) counted(ctx context.Context) (int, error) {
	if t.counter == "" {
		return t.steps, nil
	}
	count, err := t.program.Get(ctx, t.counter)
	if err != nil {
		return 0, err
	}
	return stepCount(t.counter, count, math.MaxInt32)
}

// stepCount returns the value of a state that counts steps. The error is of
// kind [ir.ErrIndex] for one outside [0, most].
func stepCount(name string, x Tensor, most int) (int, error) {
	n, err := x.Int32s()
	if err != nil {
		return 0, fmt.Errorf("state %q: %w", name, err)
	}
	if len(n) != 1 {
		return 0, ir.Shapef("state %q is %s, no number", name, x)
	}
	if n[0] < 0 || int(n[0]) > most {
		return 0, ir.Errorf(ir.ErrIndex, "state %q counts %d steps, outside [0, %d]", name, n[0], most)
	}
	return int(n[0]), nil
}

// Program returns the program that is trained, for its other entries.
func (t *Trainer) Program() *Program { return t.program }

// SetRate sets the learning rate of the steps to come. The error is of kind
// [ir.ErrAttr] for a rate that is negative or not a finite f32, and [ir.ErrName]
// for a step with a schedule, which has no input for it.
func (t *Trainer) SetRate(rate float64) error {
	if t.rate == nil {
		return ir.Errorf(ir.ErrName, "the step has no input %q for a learning rate: it may have a schedule", optim.RateInput)
	}
	if x := float32(rate); !(x >= 0 && x <= math.MaxFloat32) {
		return ir.Attrf("a learning rate of %v is negative or not finite", rate)
	}
	t.rate[0] = float32(rate)
	return nil
}

// StopOnNaN tells whether a loss that is NaN or infinite is an error of kind
// [ErrDiverged] that names the step. It comes from the call that reads the loss:
// [Trainer.Losses], [Trainer.Run], or a [Trainer.Step] up to 128 steps later
// (half of what the history keeps) where the losses stay on the device. By default such losses are kept like any
// other and training goes on.
func (t *Trainer) StopOnNaN(stop bool) { t.stop = stop }

// Input returns the memory of an input of the step, for batches that are
// written in place: the input then counts as given. It is the zero Tensor where
// there is no such input.
func (t *Trainer) Input(name string) Tensor {
	in := t.inputs[name]
	if in == nil {
		return Tensor{}
	}
	t.give(in)
	return in.memory
}

// accept checks a batch, and that nothing is missing with it.
func (t *Trainer) accept(batch Inputs) error {
	missing := t.missing
	for name, x := range batch {
		in, ok := t.inputs[name]
		if !ok {
			return ir.Errorf(ir.ErrName, "the step has no input %q: it has %q", name, slices.Sorted(maps.Keys(t.inputs)))
		}
		if err := in.slot.Accept(x); err != nil {
			return err
		}
		if !in.given {
			missing--
		}
	}
	if missing == 0 {
		return nil
	}
	var names []string
	for name, in := range t.inputs {
		if _, ok := batch[name]; !ok && !in.given {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return ir.Errorf(ir.ErrName, "the step needs values for the inputs %q, which were never given", names)
}

// Step does a step on a batch, whose tensors are copied; inputs that are not
// given stay as they were, but each must have been given once. It need not wait
// for the device. An error of kind [ir.ErrIndex] leaves the parameters as they
// were, and so does one of kind [ir.ErrName], [ir.ErrDType] or [ir.ErrShape],
// for a batch that does not fit.
func (t *Trainer) Step(ctx context.Context, batch Inputs) error {
	if err := t.serves(); err != nil {
		return err
	}
	if err := t.accept(batch); err != nil {
		return err
	}
	if err := t.bound.Wait(ctx); err != nil {
		return err
	}
	for name, x := range batch {
		in := t.inputs[name]
		copy(in.memory.Data, x.Data)
		t.give(in)
	}
	if err := t.bound.Start(ctx); err != nil {
		return err
	}
	if t.ring != "" {
		t.steps++
		if t.steps-t.first-len(t.losses) < t.every {
			return nil
		}
		return t.collect(ctx)
	}
	if err := t.bound.Wait(ctx); err != nil {
		return err
	}
	t.steps++
	x, err := t.loss.Float32s()
	if err != nil {
		return err
	}
	t.losses = append(t.losses, x[0])
	return t.finite(len(t.losses) - 1)
}

// collect reads the losses that are on the device only. A step that failed was
// not counted there.
func (t *Trainer) collect(ctx context.Context) error {
	failed := t.bound.Wait(ctx)
	if t.ring == "" || failed == nil && t.steps == t.first+len(t.losses) {
		return failed
	}
	history, err := t.program.Get(ctx, t.ring)
	if err != nil {
		return errors.Join(failed, err)
	}
	ring, err := history.Float32s()
	if err != nil {
		return err
	}
	count, err := t.counted(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	read := len(t.losses)
	if known := t.first + read; count < known || count > known+len(ring) { // the states were set, or steps run beside
		t.losses, t.first, read = nil, max(0, count-len(ring)), 0
	}
	for t.steps = t.first + read; t.steps < count; t.steps++ {
		t.losses = append(t.losses, ring[t.steps%len(ring)])
	}
	return errors.Join(failed, t.finite(read))
}

// finite returns an error for the first of the losses from one on that is not
// finite, where those are to stop the training.
func (t *Trainer) finite(from int) error {
	if !t.stop {
		return nil
	}
	for k, x := range t.losses[from:] {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("step %d: %w: %v", t.first+from+k, ErrDiverged, x)
		}
	}
	return nil
}

// Steps returns how many steps were done: those of a checkpoint that was
// loaded, and those since.
func (t *Trainer) Steps() int { return t.steps }

// Losses returns the loss of every step since the trainer was made or a
// checkpoint was loaded, and waits for the last one. Where the program ran so
// many steps without the trainer that losses were lost, it begins after those.
func (t *Trainer) Losses(ctx context.Context) ([]float32, error) {
	if err := t.serves(); err != nil {
		return t.losses, err
	}
	err := t.collect(ctx)
	return t.losses, err
}

// Progress is the state of a training run.
type Progress struct {
	Step, Steps int     // done, and to be done
	Loss        float32 // of the last step
	Rate        float64 // steps per second
}

// Run does a number of steps. batch writes the batch of a step, counted from 0,
// into the trainer's own memory (see [Trainer.Input]); where it is nil, every
// step takes what is there. About ten times a second and at the end, progress,
// which may be nil, is told how it goes. Run stops at the end of a step where
// ctx is done and returns its error.
func (t *Trainer) Run(ctx context.Context, steps int, batch func(step int) error, progress func(Progress)) error {
	if err := t.serves(); err != nil {
		return err
	}
	began, last := time.Now(), time.Now()
	for k := range steps {
		if err := t.bound.Wait(ctx); err != nil {
			return err
		}
		if batch != nil {
			if err := batch(k); err != nil {
				return fmt.Errorf("batch %d: %w", k, err)
			}
		}
		if err := t.Step(ctx, nil); err != nil {
			return err
		}
		if progress == nil || k+1 < steps && time.Since(last) < 100*time.Millisecond {
			continue
		}
		last = time.Now()
		losses, err := t.Losses(ctx)
		if err != nil {
			return err
		}
		loss := float32(math.NaN()) // of a history that does not count its steps
		if len(losses) > 0 {
			loss = losses[len(losses)-1]
		}
		progress(Progress{k + 1, steps, loss, float64(k+1) / time.Since(began).Seconds()})
	}
	return t.collect(ctx)
}
