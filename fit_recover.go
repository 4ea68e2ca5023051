package rlx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Recovery keeps a training going when its device is lost ([native.ErrLost]). [Fit] copies all
// parameters and states to host memory from time to time. After a loss it opens a device again and
// goes on from the last copy, with the batches after it, so that the training ends as one without a
// loss, to the bit on an equal device. Reports since the copy come again.
//
// The trainer then has another program ([Trainer.Program]) and the old one is closed, so tensors of
// [Trainer.Input] must be asked for again. A process cannot open a CUDA device again that it has
// lost: the training goes on on another GPU or on the CPU.
type Recovery struct {
	// Policy chooses the device to go on with. With the zero Policy that is the device of the
	// training or, if it cannot be opened, the fastest other one that can compute the step.
	Policy Policy
	// Every is the number of steps between copies; 0 means one every five seconds, and fewer if
	// copies would take more than 1 % of the time. There is one before the first step, too. While
	// one is replaced, both are in memory.
	Every int
	// Recovered is called before the training goes on; its error ends the training.
	Recovered func(r Recovered) error
}

// Recovered describes a training that goes on after its device was lost.
type Recovered struct {
	Device Device // the device that it goes on with
	Step   int    // the step of the copy
	Lost   int    // the number of steps since then, which are made again
	Err    error  // the loss
}

// String returns "device lost: ...: training goes on from step 120 on cpu, 13 steps are made again".
func (r Recovered) String() string {
	return fmt.Sprintf("%v: training goes on from step %d on %s, %d steps are made again", r.Err, r.Step, r.Device.Name, r.Lost)
}

// Limits of a recovery.
const (
	copyInterval = 5 * time.Second
	copyShare    = 100 // copies take at most 1/copyShare of the time
	maxLost      = 3   // devices lost within lostWindow that end a training
	lostWindow   = time.Minute
)

// recipe holds the arguments that made a trainer.
type recipe struct {
	session *Session
	loss    *ir.Graph
	options Training
}

// keeper has the last copy of a training, and the times at which its devices were lost.
type keeper struct {
	Recovery
	last copied
	next time.Time // of the next copy, with Every 0
	lost []time.Time
}

// copied is a training between two steps.
type copied struct {
	fit    fit // its counts, reports and evaluations
	values map[string]Tensor
	inputs map[string]Tensor // the inputs that are given, which batches need not have
	losses []float32
	first  int // the step of losses[0]
	steps  int
}

// checkRecovery refuses a recovery of a trainer that cannot be made again.
func (f *fit) checkRecovery() error {
	r := f.loop.Recover
	if r == nil {
		return nil
	}
	if r.Every < 0 {
		return ir.Attrf("Every of Recover is %d: it must not be negative", r.Every)
	}
	if f.t.recipe == nil || f.t.mesh != nil {
		return ir.Errorf(ir.ErrUnsupported, "Recover is given: the trainer must be one of Session.Train with a single rank; others resume from checkpoints")
	}
	f.keeper = &keeper{Recovery: *r}
	return nil
}

// train runs the loop, from the last copy again after each loss of the device.
func (f *fit) train(ctx context.Context) error {
	if f.keeper == nil {
		return f.run(ctx)
	}
	err := f.copy(ctx)
	if err == nil {
		err = f.run(ctx)
	}
	for errors.Is(err, native.ErrLost) && f.keeper.last.values != nil {
		if err := f.recover(ctx, err); err != nil {
			return err
		}
		err = f.run(ctx)
	}
	return err
}

// isDue reports whether it is time for a copy.
func (k *keeper) isDue(step int) bool {
	if k.Every > 0 {
		return step-k.last.steps >= k.Every
	}
	return !time.Now().Before(k.next)
}

// copy keeps the training as it is now.
func (f *fit) copy(ctx context.Context) error {
	begun, t := time.Now(), f.t
	losses, err := t.Losses(ctx)
	if err != nil {
		return err
	}
	values, err := t.values(ctx)
	if err != nil {
		return err
	}
	inputs := map[string]Tensor{}
	for name, in := range t.inputs {
		if in.given {
			inputs[name] = Tensor{DType: in.memory.DType, Dims: slices.Clone(in.memory.Dims), Data: bytes.Clone(in.memory.Data)}
		}
	}
	f.keeper.last = copied{*f, values, inputs, slices.Clone(losses), t.first, t.Steps()}
	now := time.Now()
	f.keeper.next = now.Add(max(copyInterval, (copyShare-1)*now.Sub(begun)))
	return nil
}

// recover continues from the last copy on a device that is opened again.
func (f *fit) recover(ctx context.Context, lost error) error {
	k, now := f.keeper, time.Now()
	k.lost = slices.DeleteFunc(append(k.lost, now), func(at time.Time) bool { return now.Sub(at) > lostWindow })
	if len(k.lost) >= maxLost {
		return fmt.Errorf("%d devices were lost within a minute: %w", len(k.lost), lost)
	}
	reached := f.t.Steps()
	fresh, err := f.t.recipe.again(ctx, k.Policy)
	if err != nil {
		return fmt.Errorf("%w; no device was opened in its place: %w", lost, err)
	}
	if err := f.t.become(ctx, fresh, &k.last); err != nil {
		return err
	}
	began, from := time.Now(), k.last.fit
	f.epoch, f.reported, f.before, f.rows, f.last, f.stop, f.ended, f.began = 0, from.reported, from.before, from.rows, from.last, from.stop, false, began
	return k.report(f.loop.Progress, Recovered{Device: f.t.recipe.session.Device(), Step: f.t.Steps(), Lost: reached - f.t.Steps(), Err: lost})
}

// report passes on that a training goes on.
func (k *keeper) report(w io.Writer, r Recovered) error {
	if w != nil {
		if err := writeLine(w, r.String()); err != nil {
			return err
		}
	}
	if k.Recovered == nil {
		return nil
	}
	return k.Recovered(r)
}

// again makes the trainer again, on the first device of the policy on which that is possible.
func (r *recipe) again(ctx context.Context, p Policy) (*Trainer, error) {
	old := r.session.Device().Name
	if len(p.Only) == 0 && len(p.Prefer) == 0 {
		p.Prefer = []string{old}
	}
	entries, err := r.options.Entries(r.loss)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e ir.Entry) bool { return e.Name == initEntry }) // which the CPU computes for any device
	m, err := ir.NewModule(r.loss.Name(), entries...)
	if err != nil {
		return nil, err
	}
	reasons := []error{}
	for _, name := range p.order(m) {
		s, err := Policy{Only: []string{name}}.open(m)
		if err == nil && name == old {
			s = r.session // which closes the program
		}
		if err == nil {
			var t *Trainer
			if t, err = s.Train(ctx, r.loss, r.options); err == nil {
				return t, nil
			}
		}
		reasons = append(reasons, err)
	}
	return nil, errors.Join(reasons...)
}

// become makes t the trainer of the program of a new one, as it was when it was copied.
func (t *Trainer) become(ctx context.Context, fresh *Trainer, from *copied) error {
	old := t.program
	fresh.stopOnNaN = t.stopOnNaN
	if err := fresh.load(ctx, from.values); err != nil {
		return errors.Join(err, fresh.program.Close(context.WithoutCancel(ctx)))
	}
	for name, x := range from.inputs {
		in := fresh.inputs[name]
		in.resize(x)
		copy(in.memory.Data, x.Data)
		fresh.feed[name] = in.memory
		fresh.markGiven(in)
	}
	if from.first+len(from.losses) == fresh.steps {
		fresh.losses, fresh.first = slices.Clone(from.losses), from.first
	}
	*t = *fresh
	t.program.trainer.Store(t)
	_ = old.Close(context.WithoutCancel(ctx)) // its device is gone
	return nil
}
