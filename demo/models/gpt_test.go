package models_test

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/ir"
)

// Without dropout, the training step's loss equals that of the evaluation graph, which uses the
// attention op. Dropout is random and scaled, so that the loss stays near it.
func TestTheTrainingLossOfAGPTIsItsLoss(t *testing.T) {
	for _, c := range []struct{ rate, tolerance float64 }{{0, 1e-5}, {1e-9, 1e-5}, {0.2, 0.1}} {
		m := models.GPT{Vocab: 11, Context: 8, Width: 16, Heads: 2, Blocks: 2, Batch: 3, Dropout: c.rate, Rate: 1e-3, Steps: 200}
		trained, measured := losses(t, m)
		if d := math.Abs(trained - measured); !(d <= c.tolerance) {
			t.Errorf("dropout %v: %v in training, %v without", c.rate, trained, measured)
		}
	}
}

// losses returns the loss of a model's first step, and that of its measurement
// before, on one batch.
func losses(t *testing.T, m models.GPT) (trained, measured float64) {
	t.Helper()
	ctx := context.Background()
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	loss, err := m.LossGraph()
	if err != nil {
		t.Fatal(err)
	}
	eval, err := m.EvalGraph()
	if err != nil {
		t.Fatal(err)
	}
	how := m.Training(1)
	how.Eval = []ir.Entry{{Name: "eval", Graph: eval}}
	trainer, err := session.Train(ctx, loss, how)
	if err != nil {
		t.Fatal(err)
	}
	defer trainer.Program().Close(ctx)
	tokens, next := make([]int32, m.Batch*m.Context), make([]int32, m.Batch*m.Context)
	for i := range tokens {
		tokens[i], next[i] = int32(i*i%m.Vocab), int32((i+1)*(i+1)%m.Vocab)
	}
	batch := rlx.Inputs{
		models.Tokens: rlx.Int32s(tokens, m.Batch, m.Context),
		models.Next:   rlx.Int32s(next, m.Batch, m.Context),
	}
	out, err := trainer.Program().Call(ctx, "eval", batch)
	if err != nil {
		t.Fatal(err)
	}
	x, err := out[models.Loss].Float32s()
	if err != nil {
		t.Fatal(err)
	}
	if err := trainer.Step(ctx, batch); err != nil {
		t.Fatal(err)
	}
	all, err := trainer.Losses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return float64(all[0]), float64(x[0])
}
