package rlx_test

import (
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPatienceSurvivesResume cuts a training after each step: its checkpoint counts the evaluations
// without an improvement, and ignores the best value of later steps, so that the training ends
// where it does without the cut.
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
	fit := func(folder string, every int) (last rlx.Report, best []int) {
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
			Stop: rlx.EarlyStop{Patience: 4},
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
		last, all := fit(whole, every)
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
			last, best := fit(folder, every)
			if want := all[min(cut, len(all)):]; last.Step != 7 || !slices.Equal(best, want) || math.Abs(last.Eval["loss"]-4) > 1e-6 {
				t.Errorf("every %d, cut after %d: it ends after %d steps, best after %v, want 7 and %v", every, cut, last.Step, best, want)
			}
		}
	}
}
