package lm_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/safetensors"
)

// tuning is testdata/tuning.json: the steps of a page that tuned the tiny GGUF file, their losses there, and those of PyTorch.
type tuning struct {
	Rank, Rows, Length, Middle int
	Alpha, Rate                float64
	Batches                    []struct{ Tokens, Next []int32 }
	Losses, Torch              []float32
}

// tuningStep returns the module of a step of Adam on an adapter, as a page's openTuning makes it.
func tuningStep(t *testing.T, m *lm.Model, of tuning) *ir.Module {
	t.Helper()
	targets := []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
	g, err := ir.Build("loss", func(b *ir.Builder) {
		nn.Train(b)
		tokens, next := b.Input("tokens", ir.I32, ir.Dims(of.Rows, of.Length)...), b.Input("next", ir.I32, ir.Dims(of.Rows, of.Length)...)
		nn.LoRA(b, nn.LoRAOptions{Rank: of.Rank, Alpha: of.Alpha, Targets: targets}, func() {
			b.Output("loss", m.Loss(b, tokens, next, irlm.LossOptions{Context: of.Length, Checkpoint: true}))
		})
	})
	if err == nil {
		g, err = optim.Step(g, "loss", optim.Adam{}, optim.Options{})
	}
	if err == nil {
		g, err = optim.History(g, "loss", 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	module, err := ir.NewModule("tuning", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// TestTuningGoesOnFromAPage trains an adapter on packed weights, from the checkpoint with which a page began and from one of the
// middle of its training: the losses are those of the page, which was not interrupted, and of PyTorch.
func TestTuningGoesOnFromAPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "tuning.json"))
	if err != nil {
		t.Fatal(err)
	}
	var of tuning
	if err := json.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	m, err := lm.Load(filepath.Join("testdata", "llama", "model.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for file, first := range map[string]int{"tuning-begin.safetensors": 0, "tuning.safetensors": of.Middle} {
		losses := goesOn(t, m, of, file, first)
		for i, loss := range losses {
			if page, torch := of.Losses[first+i], of.Torch[first+i]; math.Abs(float64(loss-page)) > 1e-5 || math.Abs(float64(loss-torch)) > 1e-5 {
				t.Errorf("%s: the loss of step %d is %v; the page has %v and PyTorch %v", file, first+i+1, loss, page, torch)
			}
		}
	}
}

// goesOn trains from a checkpoint made before a step, to the last step, and returns the losses.
func goesOn(t *testing.T, m *lm.Model, of tuning, file string, first int) []float32 {
	t.Helper()
	ctx := context.Background()
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(ctx) })
	p, err := session.Compile(ctx, tuningStep(t, m, of))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(ctx, p); err != nil {
		t.Fatal(err)
	}
	values, metadata, err := safetensors.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if metadata["alpha"] != "6" {
		t.Errorf("metadata %v, of which alpha must be 6", metadata)
	}
	if err := p.LoadWith(ctx, values, rlx.LoadOptions{AllowMissing: true}); err != nil {
		t.Fatal(err)
	}
	trainer, err := rlx.NewTrainer(ctx, p, "loss")
	if err != nil {
		t.Fatal(err)
	}
	if trainer.Steps() != first {
		t.Errorf("%s: %d steps, want %d", file, trainer.Steps(), first)
	}
	if err := trainer.SetRate(of.Rate); err != nil {
		t.Fatal(err)
	}
	for _, batch := range of.Batches[first:] {
		in := rlx.Inputs{"tokens": rlx.Int32s(batch.Tokens, of.Rows, of.Length), "next": rlx.Int32s(batch.Next, of.Rows, of.Length)}
		if err := trainer.Step(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	losses, err := trainer.Losses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return losses
}
