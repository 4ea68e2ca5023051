package rlx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/nearest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native/safetensors"
)

// ErrCheckpoint is the kind of every [*CheckpointError].
var ErrCheckpoint = errors.New("not a checkpoint of this program")

// CheckpointError reports values, for example those of a well-formed file, that do not match the
// parameters and states of a program.
type CheckpointError struct {
	// Missing are the parameters and states without a value, and Unknown the values without a
	// parameter or state. If either is not empty, the error is also of kind [ir.ErrName].
	Missing, Unknown []string
	// Nearest has, by the name of one of the first hundred that are missing, the name of the unused value that is most like it.
	Nearest map[string]string
	// Err reports the first value that does not fit, of kind [ir.ErrDType], [ir.ErrShape] or
	// [ir.ErrIndex]. It is set only if all names match.
	Err error
}

// Error returns `not a checkpoint of this program: missing ["b1" "w1"]; unknown ["w_1"]; nearest to "w1": "w_1"`.
func (e *CheckpointError) Error() string {
	var reasons []string
	add := func(names []string, what string) {
		if len(names) > 0 {
			reasons = append(reasons, what+" "+formatNames(names))
		}
	}
	add(e.Missing, "missing")
	add(e.Unknown, "unknown")
	for _, name := range e.Missing[:min(len(e.Missing), maxShown)] {
		if near, ok := e.Nearest[name]; ok {
			reasons = append(reasons, fmt.Sprintf("nearest to %q: %q", name, near))
		}
	}
	if e.Err != nil {
		reasons = append(reasons, e.Err.Error())
	}
	return ErrCheckpoint.Error() + ": " + strings.Join(reasons, "; ")
}

// Unwrap returns [ErrCheckpoint] and the underlying error or [ir.ErrName].
func (e *CheckpointError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrCheckpoint, e.Err}
	}
	return []error{ErrCheckpoint, ir.ErrName}
}

// The numbers of nearest names that are looked for, and of those in a message.
const (
	maxNearest = 100
	maxShown   = 3
)

// formatNames lists at most 8 names and the number of others.
func formatNames(names []string) string {
	const limit = 8
	if more := len(names) - limit; more > 0 {
		return fmt.Sprintf("%q and %d more", names[:limit], more)
	}
	return fmt.Sprintf("%q", names)
}

// maxSteps limits the step count of a checkpoint, an i32 on the device, so that later steps do not
// overflow it.
const maxSteps = 1 << 30

// values returns all parameters and states after the last step. An error of that step, which [Trainer.Step] may
// not have returned yet, is returned here: values and number of steps would not agree. Parts of values that are divided
// among ranks are not checked: [Trainer.Whole] checks them, and all ranks have the same error.
func (t *Trainer) values(ctx context.Context) (map[string]Tensor, error) {
	if t.unusable != nil {
		return nil, t.unusable
	}
	values, err := t.program.Save(ctx)
	if err == nil {
		err = t.bound.Wait(ctx)
	}
	if err == nil && len(t.placements) == 0 {
		err = t.checkValues(values)
	}
	if err != nil {
		return nil, err
	}
	return values, nil
}

// Save writes all parameters and states as a safetensors file, with a checksum. Training resumes from it exactly
// where it stopped. To write a file, prefer [Trainer.SaveFile]. Of values divided among ranks it
// writes this rank's part: see [Trainer.SaveShards].
func (t *Trainer) Save(ctx context.Context, w io.Writer) error {
	if err := trainerGiven(ctx, t, "save"); err != nil {
		return err
	}
	values, err := t.values(ctx)
	if err != nil {
		return err
	}
	return safetensors.Write(w, values, withChecksum(values, nil))
}

// SaveFile is [Trainer.Save] to a file. It replaces the file atomically: see
// [safetensors.WriteFile].
func (t *Trainer) SaveFile(ctx context.Context, name string) error {
	if err := trainerGiven(ctx, t, "save"); err != nil {
		return err
	}
	values, err := t.values(ctx)
	if err != nil {
		return err
	}
	return saveWholeFile(name, values, nil)
}

// Params returns the values of the parameters and states that inference needs, for [Program.Load]
// or [safetensors.WriteFile]. It omits the states of the optimizer and of metrics, the history of
// losses, and integer values, which count steps and random numbers. Of values divided among ranks
// it returns this rank's part: see [Trainer.Whole].
func (t *Trainer) Params(ctx context.Context) (map[string]Tensor, error) {
	if err := trainerGiven(ctx, t, "params"); err != nil {
		return nil, err
	}
	values, err := t.values(ctx)
	if err != nil {
		return nil, err
	}
	return inferenceValues(t, values), nil
}

// inferenceValues returns the values of a trainer's program that inference needs.
func inferenceValues(t *Trainer, values map[string]Tensor) map[string]Tensor {
	out := map[string]Tensor{}
	for name, x := range values {
		if !strings.HasPrefix(name, optim.StatePrefix) && !strings.HasPrefix(name, nn.MetricPrefix) && name != t.history && name != t.counter && !x.DType.IsInteger() {
			out[name] = x
		}
	}
	return out
}

// Load resumes from a checkpoint written by [Trainer.Save]. The file must contain every parameter
// and state and nothing else; to load a part, read the file with package safetensors and use
// [Program.LoadWith]. The error is of kind [safetensors.ErrDamaged], also for a file whose checksum is wrong, or a
// [*CheckpointError]; the trainer is then unchanged.
func (t *Trainer) Load(ctx context.Context, r io.Reader) error {
	if err := trainerGiven(ctx, t, "load"); err != nil {
		return err
	}
	values, _, err := checked(safetensors.Read(r))
	if err != nil {
		return err
	}
	return t.load(ctx, values)
}

// LoadFile is [Trainer.Load] from a file.
func (t *Trainer) LoadFile(ctx context.Context, name string) error {
	if err := trainerGiven(ctx, t, "load"); err != nil {
		return err
	}
	values, _, err := checked(safetensors.ReadFile(name))
	if err != nil {
		return err
	}
	if err := t.load(ctx, values); err != nil {
		return fmt.Errorf("load %s: %w", name, err)
	}
	return nil
}

func (t *Trainer) load(ctx context.Context, values map[string]Tensor) error {
	if err := t.checkCurrent(); err != nil {
		return err
	}
	if err := t.program.checkCheckpoint(values); err != nil {
		return err
	}
	if err := t.program.Load(ctx, values); err != nil {
		return err
	}
	return t.resume(ctx)
}

// checkCheckpoint returns a [*CheckpointError] unless the values are exactly those of all parameters
// and states.
func (p *Program) checkCheckpoint(values map[string]Tensor) error {
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
	return e.errOrNil(e.Unknown)
}

// errOrNil returns e with its names sorted and the nearest ones of unused values, or nil if e reports nothing.
func (e *CheckpointError) errOrNil(unused []string) error {
	slices.Sort(e.Missing)
	slices.Sort(e.Unknown)
	slices.Sort(unused)
	for _, name := range e.Missing[:min(len(e.Missing), maxNearest)] {
		if near := nearest.Name(name, unused); near != "" {
			if e.Nearest == nil {
				e.Nearest = map[string]string{}
			}
			e.Nearest[name] = near
		}
	}
	switch {
	case e.Missing != nil || e.Unknown != nil:
		e.Err = nil
	case e.Err == nil:
		return nil
	}
	return e
}
