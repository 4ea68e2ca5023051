package rlx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/safetensors"
)

// ErrCheckpoint is the kind of every [*CheckpointError].
var ErrCheckpoint = errors.New("not a checkpoint of this program")

// CheckpointError says why values, as those of a file that is whole and well formed, are not
// those of a program.
type CheckpointError struct {
	// Missing are the parameters and states that the file does not have, of
	// kind [ir.ErrName] like Unknown: the tensors of the file that are none.
	Missing, Unknown []string
	// Err says which value does not fit, of kind [ir.ErrDType], [ir.ErrShape] or
	// [ir.ErrIndex], where all names are right.
	Err error
}

// Error returns `not a checkpoint of this program: missing ["b1" "w1"]`.
func (e *CheckpointError) Error() string {
	var reasons []string
	add := func(names []string, what string) {
		if len(names) > 0 {
			reasons = append(reasons, what+" "+abbreviated(names))
		}
	}
	add(e.Missing, "missing")
	add(e.Unknown, "unknown")
	if e.Err != nil {
		reasons = append(reasons, e.Err.Error())
	}
	return ErrCheckpoint.Error() + ": " + strings.Join(reasons, "; ")
}

// Unwrap returns [ErrCheckpoint] and what kind of error it is besides.
func (e *CheckpointError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrCheckpoint, e.Err}
	}
	return []error{ErrCheckpoint, ir.ErrName}
}

// abbreviated lists names, the first few of many.
func abbreviated(names []string) string {
	const most = 8
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%q and %d more", names[:most], more)
	}
	return fmt.Sprintf("%q", names)
}

// maxSteps bounds the count of steps in a checkpoint, an i32 on the device, so
// that it does not overflow in the steps to come.
const maxSteps = 1 << 30

// Save writes all parameters and states as a safetensors file: training goes on
// from it as if it had never stopped. To a file, [Trainer.SaveFile] is safer.
func (t *Trainer) Save(ctx context.Context, w io.Writer) error {
	values, err := t.program.Save(ctx)
	if err != nil {
		return err
	}
	return safetensors.Write(w, values, nil)
}

// SaveFile is [Trainer.Save] to a file, which at any time is the old one or the
// new one and whole: see [safetensors.WriteFile].
func (t *Trainer) SaveFile(ctx context.Context, name string) error {
	values, err := t.program.Save(ctx)
	if err != nil {
		return err
	}
	if err := safetensors.WriteFile(name, values, nil); err != nil {
		return fmt.Errorf("saving %s: %w", name, err)
	}
	return nil
}

// Params returns the values of all parameters and states but those of the optimiser,
// the history of losses, and integers, which count steps and random numbers: what a program that only infers loads ([Program.Load]),
// from memory or by way of a file ([safetensors.WriteFile]).
func (t *Trainer) Params(ctx context.Context) (map[string]Tensor, error) {
	values, err := t.program.Save(ctx)
	for name := range values {
		if strings.HasPrefix(name, optim.StatePrefix) || name == t.ring || name == t.counter || values[name].DType.IsInteger() {
			delete(values, name)
		}
	}
	return values, err
}

// Load goes on from a checkpoint that [Trainer.Save] has written. The file must
// hold every parameter and state and nothing else; for a part of them, read it
// with package safetensors and use [Program.Load]. An error of kind
// [safetensors.ErrDamaged], or a [*CheckpointError], leaves the trainer as it
// was.
func (t *Trainer) Load(ctx context.Context, r io.Reader) error {
	values, _, err := safetensors.Read(r)
	if err != nil {
		return err
	}
	return t.load(ctx, values)
}

// LoadFile is [Trainer.Load] from a file.
func (t *Trainer) LoadFile(ctx context.Context, name string) error {
	values, _, err := safetensors.ReadFile(name)
	if err != nil {
		return err
	}
	if err := t.load(ctx, values); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (t *Trainer) load(ctx context.Context, values map[string]Tensor) error {
	if err := t.serves(); err != nil {
		return err
	}
	if err := t.program.isCheckpoint(values); err != nil {
		return err
	}
	if err := t.program.Load(ctx, values); err != nil {
		return err
	}
	return t.resume(ctx)
}

// isCheckpoint returns a [*CheckpointError] where the values are not those of
// all parameters and states.
func (p *Program) isCheckpoint(values map[string]Tensor) error {
	e := &CheckpointError{}
	known := map[string]bool{}
	for _, s := range p.Persistent() {
		known[s.Name] = true
		x, ok := values[s.Name]
		if !ok {
			e.Missing = append(e.Missing, s.Name)
			continue
		}
		if err := s.Accept(x); err != nil && e.Err == nil {
			e.Err = err
		}
	}
	for name := range values {
		if !known[name] {
			e.Unknown = append(e.Unknown, name)
		}
	}
	for _, counter := range []string{optim.HistoryCount, optim.StepState} {
		if x, ok := values[counter]; ok && e.Err == nil {
			_, e.Err = stepCount(counter, x, maxSteps)
		}
	}
	return e.found()
}

// found returns e, with its names sorted, if it says that anything is wrong.
func (e *CheckpointError) found() error {
	slices.Sort(e.Missing)
	slices.Sort(e.Unknown)
	switch {
	case e.Missing != nil || e.Unknown != nil:
		e.Err = nil
	case e.Err == nil:
		return nil
	}
	return e
}
