package rlx

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/rlx-go/rlx/ir"
)

// Progress is the state of a training run.
type Progress struct {
	Step, Steps int     // steps done, and steps to do
	Loss        float32 // of the last step
	Rate        float64 // steps per second
}

// Run runs the given number of steps. Before each step it calls batch with the number of the step
// in this run, from 0; batch writes the inputs into the trainer's memory (see [Trainer.Input]).
// With a nil batch every step uses the current inputs. Run calls progress, unless it is nil, about
// ten times a second and after the last step. When ctx is done, Run stops after the current step
// and returns the context's error. The error is of kind [ir.ErrAttr] for a negative number of
// steps.
func (t *Trainer) Run(ctx context.Context, steps int, batch func(step int) error, progress func(Progress)) error {
	if err := trainerGiven(ctx, t, "run"); err != nil {
		return err
	}
	if err := t.checkCurrent(); err != nil {
		return err
	}
	if steps < 0 {
		return ir.Attrf("steps is %d; it must be 0 or greater", steps)
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
		loss := float32(math.NaN()) // for a history that does not count its steps
		if len(losses) > 0 {
			loss = losses[len(losses)-1]
		}
		progress(Progress{k + 1, steps, loss, float64(k+1) / time.Since(began).Seconds()})
	}
	return t.readLosses(ctx)
}
