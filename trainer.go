package rlx

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
)

// Trainer runs the entry "step" of a program repeatedly and records the losses. It copies batches
// into memory that it allocates once, so that a step allocates nothing on the host. A Trainer must
// be used by one goroutine at a time. A program has one trainer: after another one is made, the
// methods of the first return an error of kind [native.ErrClosed].
type Trainer struct {
	program    *Program
	bound      native.Bound
	inputs     map[string]*stepInput
	feed       map[string]Tensor // the memory of inputs, which bound reads
	missing    int               // inputs without a value so far
	rate       []float32         // the memory of input "lr"; nil without that input
	loss       Tensor            // the memory of the loss; without data if the step keeps a history
	history    string            // the state with the history of losses; "" without one
	readEvery  int               // steps between two reads of the history: half its length
	counter    string            // the state that counts steps; "" without one
	steps      int               // steps started, including those of a loaded checkpoint
	first      int               // the step of losses[0]
	losses     []float32
	stopOnNaN  bool                          // stop at a loss that is not finite
	trained    trainedParams                 // parameters that the step changes
	watched    watchedValues                 // values of [Training.Watch], in order; nil without it
	mesh       *collective.Mesh              // group of ranks; nil for one
	placements map[string]parallel.Placement // placements of divided values, by name
	objective  *Objective                    // of [Session.TrainJointly]; nil for the only trainer of a program
	recipe     *recipe                       // of [Session.Train]; nil for other trainers
	unusable   error                         // what its methods return; nil for a trainer of a step
}

// stepInput is an input of the step and its host memory. Its open sizes are those of the last
// batch.
type stepInput struct {
	slot   native.Slot
	memory Tensor
	given  bool
}

// NewTrainer returns a trainer for a program with an entry "step" that has an output named loss, an
// f32 of rank 0. If the step keeps a history of the loss ([optim.History]), the trainer reads the
// losses in batches; otherwise each step waits for its loss. The new trainer replaces the previous
// trainer of the program, if there is one.
func NewTrainer(ctx context.Context, p *Program, loss string) (*Trainer, error) {
	if p == nil || p.Program == nil {
		return nil, ir.Errorf(ir.ErrGraph, "no program given")
	}
	t := &Trainer{program: p, inputs: map[string]*stepInput{}}
	if err := t.bind(ctx, stepEntry, loss); err != nil {
		return nil, err
	}
	p.trainer.Store(t)
	return t, t.resume(ctx)
}

// bind finds the inputs and states of the entry with the step, and binds it.
func (t *Trainer) bind(ctx context.Context, entry, loss string) error {
	p := t.program
	in, found := map[string]Tensor{}, false
	for _, s := range p.Slots(entry) {
		switch {
		case s.Role == native.Input:
			t.inputs[s.Name] = &stepInput{slot: s}
			if !slices.Contains(s.Dims, native.OpenSize) {
				in[s.Name] = native.Zeros(s.DType, s.Dims...)
				t.inputs[s.Name].memory = in[s.Name]
			}
		case s.Name == loss && s.DType == ir.F32 && len(s.Dims) == 0:
			found = true
		}
	}
	if !found {
		return ir.Errorf(ir.ErrName, "the program has no entry %q with an output %q of type f32[]", entry, loss)
	}
	t.missing, t.feed = len(t.inputs), in
	t.findStates(loss)
	out := map[string]Tensor{}
	if t.history == "" {
		t.loss = native.Zeros(ir.F32)
		out[loss] = t.loss
	}
	if lr, ok := in[optim.RateInput]; ok && lr.DType == ir.F32 && len(lr.Dims) == 0 {
		t.markGiven(t.inputs[optim.RateInput])
		t.rate, _ = lr.Float32s()
		t.rate[0] = DefaultRate
	}
	var err error
	t.bound, err = p.Bind(ctx, entry, in, out)
	return err
}

// resize changes the shape of the memory to that of x, which may differ in open sizes.
func (in *stepInput) resize(x Tensor) {
	switch n := len(x.Data); {
	case slices.Equal(in.memory.Dims, x.Dims):
	case n <= cap(in.memory.Data):
		in.memory = Tensor{DType: x.DType, Dims: slices.Clone(x.Dims), Data: in.memory.Data[:n]}
	default:
		in.memory = native.Zeros(x.DType, x.Dims...)
	}
}

func (t *Trainer) markGiven(in *stepInput) {
	if !in.given {
		in.given = true
		t.missing--
	}
}

// checkCurrent returns an error if the trainer has no step, or its program has another trainer now.
func (t *Trainer) checkCurrent() error {
	if t.unusable != nil {
		return t.unusable
	}
	if t.objective == nil && t.program.trainer.Load() != t {
		return fmt.Errorf("trainer: %w: a newer trainer owns its program", native.ErrClosed)
	}
	return nil
}

// Program returns the program that is trained; its other entries share the parameters.
func (t *Trainer) Program() *Program { return t.program }

// SetRate sets the learning rate of the following steps. The error is of kind [ir.ErrAttr] for a
// rate that is negative or not a finite f32, and [ir.ErrName] for a step with a schedule, which has
// no input for the rate.
func (t *Trainer) SetRate(rate float64) error {
	if err := trainerGiven(context.Background(), t, "set rate"); err != nil {
		return err
	}
	if t.unusable != nil {
		return t.unusable
	}
	if t.rate == nil {
		return ir.Errorf(ir.ErrName, "the step has no input %q: its learning rate is constant or follows a schedule", optim.RateInput)
	}
	if x := float32(rate); !(x >= 0 && x <= math.MaxFloat32) {
		return ir.Attrf("rate is %v; it must be finite and 0 or greater", rate)
	}
	t.rate[0] = float32(rate)
	return nil
}

// Input returns the memory of an input of the step, for batches that are written in place; the
// input then counts as given. It returns the zero Tensor if the step has no such input, or if the
// input has open sizes, which only [Trainer.Step] supports.
func (t *Trainer) Input(name string) Tensor {
	in := t.inputs[name]
	if in == nil || slices.Contains(in.slot.Dims, native.OpenSize) {
		return Tensor{}
	}
	t.markGiven(in)
	return in.memory
}

// accept checks the tensors of a batch and that every input has a value.
func (t *Trainer) accept(batch Inputs) error {
	missing := t.missing
	for name, x := range batch {
		in, ok := t.inputs[name]
		if !ok {
			return ir.Errorf(ir.ErrName, "unknown input %q: have %q", name, slices.Sorted(maps.Keys(t.inputs)))
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
	return ir.Errorf(ir.ErrName, "inputs %q have no values; the first step needs all inputs", names)
}

// Step runs one step on a batch. The tensors are copied. Inputs that are not in the batch keep
// their previous value; each must have been given once. Step may return before the device is done.
// After an error of kind [ir.ErrIndex], [ir.ErrName], [ir.ErrDType] or [ir.ErrShape] the parameters
// are unchanged.
func (t *Trainer) Step(ctx context.Context, batch Inputs) error {
	if err := trainerGiven(ctx, t, "step"); err != nil {
		return err
	}
	if err := t.checkCurrent(); err != nil {
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
		in.resize(x)
		copy(in.memory.Data, x.Data)
		t.feed[name] = in.memory
		t.markGiven(in)
	}
	if err := t.bound.Start(ctx); err != nil {
		return err
	}
	if t.history != "" {
		t.steps++
		if t.steps-t.first-len(t.losses) < t.readEvery {
			return nil
		}
		return t.readLosses(ctx)
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
	return t.checkFinite(ctx, len(t.losses)-1)
}

// Steps returns the number of steps done, including those of a loaded checkpoint.
func (t *Trainer) Steps() int { return t.steps }
