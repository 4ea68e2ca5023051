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
	Step, Steps int     // done, and to be done
	Loss        float32 // of the last step
	Rate        float64 // steps per second
}

// Run does a number of steps. batch writes the batch of a step, counted from 0,
// into the trainer's own memory (see [Trainer.Input]); where it is nil, every
// step takes what is there. About ten times a second and at the end, progress,
// which may be nil, is told how it goes. Run stops at the end of a step where
// ctx is done and returns its error. The error is of kind [ir.ErrAttr] for a negative
// number of steps.
func (t *Trainer) Run(ctx context.Context, steps int, batch func(step int) error, progress func(Progress)) error {
	if err := t.serves(); err != nil {
		return err
	}
	if steps < 0 {
		return ir.Attrf("%d steps: their number is negative", steps)
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
