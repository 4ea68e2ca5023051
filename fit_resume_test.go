package rlx_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPatienceSurvivesResume cuts a training after each step: its checkpoint counts the evaluations
// without an improvement, and ignores the best value of later steps, so that the training ends
// where it does without the cut. One that has ended stays as it is, however often it is resumed, until it is given more patience.
func TestPatienceSurvivesResume(t *testing.T) {
	weight := func(name string, f func(b *ir.Builder, w ir.Value) ir.Value) *ir.Graph {
		g, err := ir.Build(name, func(b *ir.Builder) { b.Output("loss", f(b, b.Param("w", ir.F32))) })
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	loss := weight("loss", func(b *ir.Builder, w ir.Value) ir.Value { return ops.Neg(b, ops.Mul(b, w, b.Input("x", ir.F32))) })
	eval := weight("eval", func(b *ir.Builder, w ir.Value) ir.Value { return ops.Abs(b, ops.Sub(b, w, ops.Const(b, ir.F32, 3))) })
	fit := func(folder string, every, patience int) (last rlx.Report, best []int) {
		trainer, err := session(t).Train(ctx, loss, rlx.Training{Optimizer: optim.SGD{}, Rate: 1, Eval: []ir.Entry{{Name: "eval", Graph: eval}}})
		if err != nil {
			t.Fatal(err)
		}
		last, err = rlx.Fit(ctx, trainer, rlx.Loop{
			Data: func(int) iter.Seq2[rlx.Inputs, error] {
				return func(yield func(rlx.Inputs, error) bool) { yield(rlx.Inputs{"x": rlx.Float32(1)}, nil) }
			},
			Epochs: 100, Every: every, EpochSteps: 1,
			Eval: rlx.Evaluation{Entry: "eval", Data: func() iter.Seq2[rlx.Inputs, error] {
				return func(yield func(rlx.Inputs, error) bool) { yield(rlx.Inputs{}, nil) }
			}},
			Stop: rlx.EarlyStop{Patience: patience},
			Save: rlx.Checkpoints{Folder: folder, Every: 1, Last: 100, Resume: true},
			Callbacks: []func(r rlx.Report) error{func(r rlx.Report) error {
				if r.Best {
					best = append(best, r.Step)
				}
				return nil
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return last, best
	}
	for _, every := range []int{0, 1} { // reports after an epoch, and after a step
		whole := t.TempDir()
		last, all := fit(whole, every, 4)
		if last.Step != 7 || !slices.Equal(all, []int{1, 2, 3}) {
			t.Fatalf("without a cut it ends after %d steps, best after %v", last.Step, all)
		}
		for cut := 1; cut < 7; cut++ {
			folder := t.TempDir()
			for _, name := range []string{"best.txt", "best.safetensors", fmt.Sprintf("step-%08d.safetensors", cut)} {
				data, err := os.ReadFile(filepath.Join(whole, name))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			last, best := fit(folder, every, 4)
			if want := all[min(cut, len(all)):]; last.Step != 7 || !slices.Equal(best, want) || !(math.Abs(last.Eval["loss"]-4) <= 1e-6) {
				t.Errorf("every %d, cut after %d: it ends after %d steps, best after %v, want 7 and %v", every, cut, last.Step, best, want)
			}
		}
		for range 3 {
			if last, best := fit(whole, every, 4); last.Step != 7 || len(best) > 0 || !last.Done {
				t.Errorf("every %d: resumed after its end it ends after %d steps, best after %v", every, last.Step, best)
			}
		}
		if last, _ := fit(whole, every, 5); last.Step != 8 {
			t.Errorf("every %d: with patience for another evaluation it ends after %d steps, want 8", every, last.Step)
		}
	}
}

// TestReportsSurviveResume cuts a training after each step: the reports after the cut, whose means are over steps before it,
// too, and the parameters and states at the end are those of the training without a cut.
func TestReportsSurviveResume(t *testing.T) {
	fit := func(folder string) (reports map[int]string, end []byte) {
		reports = map[int]string{}
		trainer := pointsTrainer(t, 0.05)
		_, err := rlx.Fit(ctx, trainer, rlx.Loop{
			Data: rlx.Prefetch(rlx.Shuffled(points(), 4, 1), 2), Steps: 14, // an epoch has five steps
			Eval: rlx.Evaluation{Entry: "eval", Data: rlx.InOrder(points(), 20)},
			Save: rlx.Checkpoints{Folder: folder, Every: 1, Last: 100, Resume: true},
			Callbacks: []func(r rlx.Report) error{func(r rlx.Report) error {
				reports[r.Step] = fmt.Sprint(r.Epoch, r.Loss, r.Metrics, r.Eval, r.Best, r.Done)
				return nil
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := trainer.Save(ctx, &file); err != nil {
			t.Fatal(err)
		}
		return reports, file.Bytes()
	}
	whole := t.TempDir()
	want, end := fit(whole)
	if len(want) != 3 {
		t.Fatalf("there are reports of %d steps, want 3: %v", len(want), want)
	}
	for cut := 1; cut < 14; cut++ {
		folder, name := t.TempDir(), fmt.Sprintf("step-%08d.safetensors", cut)
		if err := os.Link(filepath.Join(whole, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
		got, last := fit(folder)
		for step, report := range got {
			if report != want[step] {
				t.Errorf("cut after %d: the report of step %d is %s, want %s", cut, step, report, want[step])
			}
		}
		if !bytes.Equal(last, end) {
			t.Errorf("cut after %d: the training ends with other values", cut)
		}
	}
}

// TestEpochStepsAreChecked: by another number than that of its batches a resumed training would take others.
func TestEpochStepsAreChecked(t *testing.T) {
	trainer := pointsTrainer(t, 0.05)
	_, err := rlx.Fit(ctx, trainer, rlx.Loop{Data: rlx.Shuffled(points(), 4, 1), Epochs: 2, EpochSteps: 6})
	if want := "EpochSteps is 6 and epoch 0 has 5 batches: it must be their number"; !errors.Is(err, ir.ErrAttr) || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}
