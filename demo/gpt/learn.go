package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/demo/cli"
	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// learner is a model in training.
type learner struct {
	out     io.Writer
	options options
	text    data.Text
	model   models.GPT
	prompt  []int32
	trainer *rlx.Trainer
	dir     string // folder for its files
	bar     *cli.Bar
	// The memory of the step's batch.
	tokens, next []int32
	held         float64 // the last loss on the held-out text
	best         float64 // the smallest one so far, 0 before the first
	bestStep     int
	worse        int // measurements since the best one
}

// measured is the number of batches of a measurement, except the last one.
const measured = 20

// learn runs the remaining steps, and at intervals measures, saves and shows a
// sample.
func (l *learner) learn(ctx context.Context) error {
	every := max(1, l.options.every)
	for l.trainer.Steps() < l.model.Steps {
		begun := l.trainer.Steps()
		steps := min(every-begun%every, l.model.Steps-begun)
		err := l.trainer.Run(ctx, steps, func(k int) error {
			l.text.Batch(l.options.seed, begun+k, l.model.Context, l.tokens, l.next)
			return nil
		}, func(p rlx.Progress) { l.show(p, begun) })
		if err != nil {
			return err
		}
		if l.trainer.Steps() < l.model.Steps {
			if err := l.look(ctx); err != nil {
				return err
			}
		}
		if l.options.patience > 0 && l.worse >= l.options.patience {
			break
		}
	}
	if l.options.patience == 0 || l.best == 0 {
		return nil
	}
	return l.trainer.LoadFile(ctx, l.file("best"))
}

// file is a temporary file of the learner.
func (l *learner) file(name string) string { return filepath.Join(l.dir, name+".safetensors") }

func (l *learner) show(p rlx.Progress, begun int) {
	p.Step, p.Steps = begun+p.Step, l.model.Steps
	tokens := p.Rate * float64(len(l.tokens))
	more := fmt.Sprintf("%.0f tokens/s", tokens)
	if l.held > 0 {
		more = fmt.Sprintf("held out %.4f  ", l.held) + more
	}
	l.bar.Show(p, more)
}

// look measures, shows a sample and saves.
func (l *learner) look(ctx context.Context) error {
	if err := l.measure(ctx, min(measured, l.heldBatches())); err != nil {
		return err
	}
	sample, err := l.sample(ctx)
	if err != nil {
		return err
	}
	l.bar.Leave()
	fmt.Fprintf(l.out, "--- step %d, loss on the text held out %.4f\n%s\n---\n", l.trainer.Steps(), l.held, sample)
	return l.saved(ctx)
}

// finish measures on the whole held-out text, shows a last sample and saves.
func (l *learner) finish(ctx context.Context) error {
	l.bar.Leave()
	sample, err := l.sample(ctx)
	if err != nil {
		return err
	}
	if err := l.measure(ctx, l.heldBatches()); err != nil {
		return err
	}
	fmt.Fprintf(l.out, "%s\n---\n", sample)
	if err := l.saved(ctx); err != nil {
		return err
	}
	if l.options.save != "" {
		fmt.Fprintf(l.out, "saved %s\n", l.options.save)
	}
	if l.bestStep != l.trainer.Steps() {
		fmt.Fprintf(l.out, "least loss on the text held out %.4f, after %d steps\n", l.best, l.bestStep)
	}
	fmt.Fprintf(l.out, "after %d steps, loss on the text held out %.4f\n", l.trainer.Steps(), l.held)
	return nil
}

func (l *learner) saved(ctx context.Context) error {
	if l.options.save == "" {
		return nil
	}
	return l.trainer.SaveFile(ctx, l.options.save)
}

// heldBatches returns the number of batches in the held-out text.
func (l *learner) heldBatches() int { return max(1, l.text.Windows(l.model.Context)/l.model.Batch) }

// measure sets the mean loss on the first batches of the held-out text.
func (l *learner) measure(ctx context.Context, batches int) error {
	tokens, next := make([]int32, len(l.tokens)), make([]int32, len(l.next))
	sum := 0.
	for k := range batches {
		l.text.Window(k*l.model.Batch, l.model.Context, tokens, next)
		out, err := l.trainer.Program().Call(ctx, evalEntry, rlx.Inputs{
			models.Tokens: rlx.Int32s(tokens, l.model.Batch, l.model.Context),
			models.Next:   rlx.Int32s(next, l.model.Batch, l.model.Context),
		})
		if err != nil {
			return err
		}
		loss, err := out[models.Loss].Float32s()
		if err != nil {
			return err
		}
		sum += float64(loss[0])
	}
	l.worse++
	if l.held = sum / float64(batches); l.best > 0 && l.held >= l.best {
		return nil
	}
	l.best, l.bestStep, l.worse = l.held, l.trainer.Steps(), 0
	if l.options.patience == 0 {
		return nil
	}
	return l.trainer.SaveFile(ctx, l.file("best"))
}

// profiled is the number of steps of a profile.
const profiled = 10

// profile shows how the time of a step is spent. Its steps are undone.
func (l *learner) profile(ctx context.Context) error {
	p, ok := l.trainer.Program().Program.(native.Profiler)
	if !ok {
		return ir.Errorf(ir.ErrUnsupported, "the device does not report where the time of a step goes")
	}
	if err := l.trainer.SaveFile(ctx, l.file("profiled")); err != nil {
		return err
	}
	timings, err := p.Profile(ctx, p.Entries()[0], profiled)
	if err == nil {
		err = l.trainer.LoadFile(ctx, l.file("profiled"))
	}
	if err != nil {
		return err
	}
	l.bar.Leave()
	return native.WriteTimings(l.out, timings)
}

// sample returns the model's continuation of the prompt.
func (l *learner) sample(ctx context.Context) (string, error) {
	text := append([]int32(nil), l.prompt...)
	window := make([]int32, l.model.Context)
	for k := range l.options.length {
		from := max(0, len(text)-l.model.Context)
		n := copy(window, text[from:])
		out, err := l.trainer.Program().Call(ctx, drawEntry, rlx.Inputs{
			models.Tokens:      rlx.Int32s(window, 1, l.model.Context),
			models.Length:      rlx.Int32(int32(n)),
			models.Seed:        rlx.Uint32(uint32(l.trainer.Steps()*l.options.length + k)),
			models.Temperature: rlx.Float32(float32(l.options.temperature)),
		})
		if err != nil {
			return "", err
		}
		drawn, err := out[models.Drawn].Int32s()
		if err != nil {
			return "", err
		}
		text = append(text, drawn[0])
	}
	return l.text.Decode(text), nil
}
