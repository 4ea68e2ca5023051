package rlx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

// Training says how [Session.Train] trains. The zero value is Adam on the
// output "loss" with a learning rate of 0.001 from weights drawn with seed 0.
type Training struct {
	// Loss is the output to be made small: "loss" where empty. It must be an
	// f32 of rank 0.
	Loss string
	// Optimizer is the update rule, [optim.Adam] where nil.
	Optimizer optim.Optimizer
	// Options are those of [optim.Step]. Without a schedule the learning rate
	// is an input, see [Trainer.SetRate].
	Options optim.Options
	// Seed draws the first weights, by the initializers of Init or, where a
	// parameter has none, [HeNormal] for weights and zeros for biases.
	Seed uint32
	Init map[string]Initializer
	// Eval are further entries, which see the parameters as they are.
	Eval []ir.Entry
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
// parameters. Errors are those of [optim.Step] and [InitGraph], and of the
// device.
func (s *Session) Train(ctx context.Context, loss *ir.Graph, o Training) (*Trainer, error) {
	if o.Loss == "" {
		o.Loss = "loss"
	}
	if o.Optimizer == nil {
		o.Optimizer = optim.Adam{}
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
	entries := append([]ir.Entry{{Name: stepEntry, Graph: step}, {Name: initEntry, Graph: first}}, o.Eval...)
	m, err := ir.NewModule(loss.Name(), entries...)
	if err != nil {
		return nil, err
	}
	p, err := s.Compile(ctx, m)
	if err != nil {
		return nil, err
	}
	if _, err := p.Call(ctx, initEntry, Inputs{SeedInput: Uint32(o.Seed)}); err != nil {
		return nil, err
	}
	return NewTrainer(p, o.Loss)
}

// Trainer repeats the entry "step" of a program with batches of its own memory,
// so that a step allocates nothing on the host, and keeps the losses. It is for
// one goroutine.
type Trainer struct {
	program *Program
	bound   native.Bound
	inputs  map[string]Tensor // memory that the step takes its inputs from
	slots   map[string]native.Slot
	rate    []float32 // in the memory of the input "lr", nil without
	loss    Tensor    // memory of the loss, without data where there is a history
	ring    string    // the state with the history, "" without
	steps   int       // done by this trainer
	before  int       // steps in the history that were done before it
	losses  []float32
}

// NewTrainer returns a trainer for a program with an entry "step", whose output
// loss is an f32 of rank 0. Where the step keeps a history of it
// ([optim.History]), losses are read from time to time only; otherwise each step
// waits for its own.
func NewTrainer(p *Program, loss string) (*Trainer, error) {
	t := &Trainer{program: p, inputs: map[string]Tensor{}, slots: map[string]native.Slot{}}
	out, found := map[string]Tensor{}, false
	for _, s := range p.Slots(stepEntry) {
		switch {
		case s.Role == native.Input:
			t.inputs[s.Name], t.slots[s.Name] = native.Zeros(s.DType, s.Dims...), s
		case s.Name == loss && s.DType == ir.F32 && len(s.Dims) == 0:
			found = true
		}
	}
	if !found {
		return nil, ir.Errorf(ir.ErrName, "the program has no entry %q with an output %q, f32 of rank 0", stepEntry, loss)
	}
	for _, s := range p.Persistent() {
		if s.Name == optim.HistoryState(loss) {
			t.ring = s.Name
		}
	}
	if t.ring == "" {
		t.loss = native.Zeros(ir.F32)
		out[loss] = t.loss
	}
	if in, ok := t.inputs[optim.RateInput]; ok && in.DType == ir.F32 && len(in.Dims) == 0 {
		t.rate, _ = in.Float32s()
		t.rate[0] = DefaultRate
	}
	var err error
	if t.bound, err = p.Bind(stepEntry, t.inputs, out); err != nil {
		return nil, err
	}
	return t, t.resume(context.Background())
}

// resume notes how many steps the history holds.
func (t *Trainer) resume(ctx context.Context) error {
	t.losses, t.steps, t.before = nil, 0, 0
	if t.ring == "" {
		return nil
	}
	var err error
	t.before, err = t.counted(ctx)
	return err
}

// counted returns how many steps the history counts.
func (t *Trainer) counted(ctx context.Context) (int, error) {
	count, err := t.program.Get(ctx, optim.HistoryCount)
	if err != nil {
		return 0, err
	}
	n, err := count.Int32s()
	if err != nil {
		return 0, err
	}
	return int(n[0]), nil
}

// Program returns the program that is trained, for its other entries.
func (t *Trainer) Program() *Program { return t.program }

// SetRate sets the learning rate of the steps to come. It has no effect on a
// step with a schedule.
func (t *Trainer) SetRate(rate float64) {
	if t.rate != nil {
		t.rate[0] = float32(rate)
	}
}

// Input returns the memory of an input of the step, for batches that are
// written in place; the zero Tensor where there is none.
func (t *Trainer) Input(name string) Tensor { return t.inputs[name] }

// Step does a step on a batch, whose tensors are copied; inputs that are not
// given stay as they were. It need not wait for the device. An error of kind
// [ir.ErrIndex] leaves the parameters as they were.
func (t *Trainer) Step(ctx context.Context, batch Inputs) error {
	for name, x := range batch {
		s, ok := t.slots[name]
		if !ok {
			return ir.Errorf(ir.ErrName, "the step has no input %q", name)
		}
		if err := s.Accept(x); err != nil {
			return err
		}
	}
	if err := t.bound.Wait(ctx); err != nil {
		return err
	}
	for name, x := range batch {
		copy(t.inputs[name].Data, x.Data)
	}
	if err := t.bound.Start(ctx); err != nil {
		return err
	}
	t.steps++
	if t.ring != "" {
		if t.steps-len(t.losses) < historySteps/2 {
			return nil
		}
		return t.collect(ctx)
	}
	if err := t.bound.Wait(ctx); err != nil {
		t.steps--
		return err
	}
	x, err := t.loss.Float32s()
	if err != nil {
		return err
	}
	t.losses = append(t.losses, x[0])
	return nil
}

// collect reads the losses that are on the device only. A step that failed was
// not counted there.
func (t *Trainer) collect(ctx context.Context) error {
	failed := t.bound.Wait(ctx)
	if t.ring == "" || failed == nil && t.steps == len(t.losses) {
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
		return err
	}
	t.steps = count - t.before
	for k := max(len(t.losses), t.steps-len(ring)); k < t.steps; k++ {
		t.losses = append(t.losses, ring[(t.before+k)%len(ring)])
	}
	return failed
}

// Steps returns how many steps this trainer has done.
func (t *Trainer) Steps() int { return t.steps }

// Losses returns the loss of every step that this trainer has done, and waits
// for the last one.
func (t *Trainer) Losses(ctx context.Context) ([]float32, error) {
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
// into the trainer's own memory (see [Trainer.Input]). About ten times a second
// and at the end, progress, which may be nil, is told how it goes. Run stops at
// the end of a step where ctx is done and returns its error.
func (t *Trainer) Run(ctx context.Context, steps int, batch func(step int) error, progress func(Progress)) error {
	began, last := time.Now(), time.Now()
	for k := range steps {
		if err := t.bound.Wait(ctx); err != nil {
			return err
		}
		if err := batch(k); err != nil {
			return fmt.Errorf("batch %d: %w", k, err)
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
		progress(Progress{k + 1, steps, losses[len(losses)-1], float64(k+1) / time.Since(began).Seconds()})
	}
	return t.collect(ctx)
}

// Save writes all parameters and states as a safetensors file: training goes on
// from it as if it had never stopped.
func (t *Trainer) Save(ctx context.Context, w io.Writer) error {
	values, err := t.program.Save(ctx)
	if err != nil {
		return err
	}
	return safetensors.Write(w, values, nil)
}

// Load sets the parameters and states that a safetensors file holds; the
// trainer begins to count anew. Errors are of kind [safetensors.ErrDamaged],
// [ir.ErrName], [ir.ErrDType] or [ir.ErrShape], and nothing is set then.
func (t *Trainer) Load(ctx context.Context, r io.Reader) error {
	values, _, err := safetensors.Read(r)
	if err != nil {
		return err
	}
	if err := t.program.Load(values); err != nil {
		return err
	}
	return t.resume(ctx)
}
