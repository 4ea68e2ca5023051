package rlx

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
)

// ErrDiverged is the kind of error for a loss, or a parameter, that is NaN or infinite, if these stop the
// training.
var ErrDiverged = errors.New("the training diverged")

// findStates finds the states that keep the losses and count the steps.
func (t *Trainer) findStates(loss string) {
	if t.objective != nil {
		t.counter = t.objective.Options.StepState()
		return
	}
	counts := ""
	for _, s := range t.program.Persistent() {
		switch s.Name {
		case optim.HistoryState(loss):
			if s.DType != ir.F32 || len(s.Dims) != 1 || s.Dims[0] < 1 {
				continue // a state of the user's own
			}
			t.history, t.readEvery = s.Name, max(1, s.Dims[0]/2)
		default:
			if optim.IsStepState(s.Name) {
				counts = s.Name
			}
		}
	}
	if t.counter = counts; t.history != "" {
		t.counter = optim.HistoryCount
	}
}

// resume continues from the values of the states.
func (t *Trainer) resume(ctx context.Context) error {
	count, err := t.deviceSteps(ctx)
	t.losses, t.steps, t.first = nil, count, count
	return err
}

// deviceSteps returns the step count of the device.
func (t *Trainer) deviceSteps(ctx context.Context) (int, error) {
	if t.counter == "" {
		return t.steps, nil
	}
	count, err := t.program.Get(ctx, t.counter)
	if err != nil {
		return 0, err
	}
	return stepCount(t.counter, count, math.MaxInt32)
}

// stepCount returns the value of a state that counts steps. The error is of kind [ir.ErrIndex] for
// a value outside [0, limit].
func stepCount(name string, x Tensor, limit int) (int, error) {
	n, err := x.Int32s()
	if err != nil {
		return 0, fmt.Errorf("state %q: %w", name, err)
	}
	if len(n) != 1 {
		return 0, ir.Shapef("state %q is %s; it must be a scalar", name, x)
	}
	if n[0] < 0 || int(n[0]) > limit {
		return 0, ir.Errorf(ir.ErrIndex, "state %q is %d; it must be from 0 to %d", name, n[0], limit)
	}
	return int(n[0]), nil
}

// StopOnNaN sets whether a loss that is NaN or infinite is an error. The error is of kind
// [ErrDiverged] and names the step; after [Training.Watch], the value that went wrong first, too. It comes from the call that reads the loss: [Trainer.Losses],
// [Trainer.Run] or [Trainer.Step]. If the device keeps a history of losses, Step reports it up to
// 128 steps late (half the history). By default such losses are recorded like any other and
// training continues.
//
// The gradient of a finite loss can be NaN. So a trained parameter that is not finite is an error, too, where parameters
// are read: of [Trainer.Save], [Trainer.Params], [Trainer.Averages], [Trainer.Whole] and the checkpoints of [Fit].
func (t *Trainer) StopOnNaN(stop bool) { t.stopOnNaN = stop }

// readLosses reads the losses that the trainer has not read yet. The device does not count a step that
// failed.
func (t *Trainer) readLosses(ctx context.Context) error {
	failed := t.bound.Wait(ctx)
	if t.history == "" || failed == nil && t.steps == t.first+len(t.losses) {
		return failed
	}
	history, err := t.program.Get(ctx, t.history)
	if err != nil {
		return errors.Join(failed, err)
	}
	ring, err := history.Float32s()
	if err != nil {
		return err
	}
	count, err := t.deviceSteps(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	read := len(t.losses)
	if known := t.first + read; count < known || count > known+len(ring) { // the states were set, or the step was run without the trainer
		t.losses, t.first, read = nil, max(0, count-len(ring)), 0
	}
	for t.steps = t.first + read; t.steps < count; t.steps++ {
		t.losses = append(t.losses, ring[t.steps%len(ring)])
	}
	return errors.Join(failed, t.checkFinite(ctx, read))
}

// checkFinite returns an error for the first loss, at or after index from, that is not finite, if
// StopOnNaN is set.
func (t *Trainer) checkFinite(ctx context.Context, from int) error {
	if !t.stopOnNaN {
		return nil
	}
	for k, x := range t.losses[from:] {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return t.watched.diverged(ctx, t.program, t.first+from+k, x)
		}
	}
	return nil
}

// Losses returns the loss of every step since the trainer was made or a checkpoint was loaded. It
// waits for the last step. If the program ran steps without the trainer and losses were
// overwritten, the result starts after the lost ones.
func (t *Trainer) Losses(ctx context.Context) ([]float32, error) {
	if err := trainerGiven(ctx, t, "losses"); err != nil {
		return nil, err
	}
	if err := t.checkCurrent(); err != nil {
		return t.losses, err
	}
	err := t.readLosses(ctx)
	return t.losses, err
}
