package lm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/safetensors"
	_ "github.com/rlx-go/rlx/webgpu"
)

// tuning is testdata/tuning.json: the steps of a page that tuned the tiny GGUF file, their losses there, and those of PyTorch.
type tuning struct {
	Rank, Rows, Length, Middle int
	Alpha, Rate                float64
	Batches                    []struct{ Tokens, Next []int32 }
	Losses, Torch              []float32
}

func readTuning(t *testing.T, name string) (of tuning) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// tuningModule returns the module of a step of Adam on an adapter, as a page's openTuning makes it, and of the adapter's
// first values.
func tuningModule(t *testing.T, m *lm.Model, of tuning) *ir.Module {
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
	var adapter []string
	for _, p := range g.Ports() {
		if strings.Contains(p.Name, "/lora_") && !strings.HasPrefix(p.Name, optim.StatePrefix) {
			adapter = append(adapter, p.Name)
		}
	}
	first, err := rlx.InitGraph(g, adapter, nil)
	if err != nil {
		t.Fatal(err)
	}
	module, err := ir.NewModule("tuning", ir.Entry{Name: "init", Graph: first}, ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// TestTuningGoesOnFromAPage trains an adapter on packed weights, from the checkpoint with which a page began and from one of
// the middle of its training: the losses are those of the page, which was not interrupted, and of PyTorch.
func TestTuningGoesOnFromAPage(t *testing.T) {
	of := readTuning(t, "tuning.json")
	m, err := lm.Load(filepath.Join("testdata", "llama", "model.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	// The first values of an adapter are those of the page to the bit.
	p := opened(t, m, of, "cpu")
	begins(t, p, 3)
	values, _, err := safetensors.ReadFile(filepath.Join("testdata", "tuning-begin.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	saved, err := p.Save(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range values {
		if !bytes.Equal(x.Data, saved[name].Data) {
			t.Errorf("%s begins with other values than in the page", name)
		}
	}
	devices := []string{"cpu", "webgpu"}
	if testing.Short() {
		devices = devices[:1] // to compile kernels takes long
	}
	for file, first := range map[string]int{"tuning-begin.safetensors": 0, "tuning.safetensors": of.Middle} {
		for _, device := range devices {
			t.Run(device+" from "+file, func(t *testing.T) {
				for i, loss := range goesOn(t, opened(t, m, of, device), of, file, first) {
					if page, torch := of.Losses[first+i], of.Torch[first+i]; math.Abs(float64(loss-page)) > 1e-5 || math.Abs(float64(loss-torch)) > 1e-5 {
						t.Errorf("the loss of step %d is %v; the page has %v and PyTorch %v", first+i+1, loss, page, torch)
					}
				}
			})
		}
	}
}

// opened compiles the training of a model on a device, with its weights.
func opened(t *testing.T, m *lm.Model, of tuning, device string) *rlx.Program {
	t.Helper()
	ctx := context.Background()
	session, err := rlx.Open(device)
	backendtest.Require(t, device, err)
	t.Cleanup(func() { _ = session.Close(ctx) })
	p, err := session.Compile(ctx, tuningModule(t, m, of))
	if err == nil {
		err = m.Set(ctx, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// trained makes the steps from a first one on, with which a checkpoint or the adapter's first values begin, and returns their
// losses.
func trained(t *testing.T, p *rlx.Program, of tuning, first int) []float32 {
	t.Helper()
	ctx := context.Background()
	trainer, err := rlx.NewTrainer(ctx, p, "loss")
	if err != nil {
		t.Fatal(err)
	}
	if trainer.Steps() != first {
		t.Errorf("%d steps, want %d", trainer.Steps(), first)
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

// goesOn trains from a checkpoint made before a step, to the last step, and returns the losses.
func goesOn(t *testing.T, p *rlx.Program, of tuning, file string, first int) []float32 {
	t.Helper()
	values, metadata, err := safetensors.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if metadata["alpha"] != "6" {
		t.Errorf("metadata %v, of which alpha must be 6", metadata)
	}
	if err := p.LoadWith(context.Background(), values, rlx.LoadOptions{AllowMissing: true}); err != nil {
		t.Fatal(err)
	}
	return trained(t, p, of, first)
}

// begins gives the adapter the first values of a seed, those of a page.
func begins(t *testing.T, p *rlx.Program, seed uint32) {
	t.Helper()
	if _, err := p.Call(context.Background(), "init", rlx.Inputs{rlx.SeedInput: rlx.Uint32(seed)}); err != nil {
		t.Fatal(err)
	}
}

// TestSmolLMTuning holds the losses of two steps on packed weights of SmolLM2 135M to those with which the test of the page
// (js/test/browser/smollm.test.mjs) compares its own, and to those of PyTorch 2.15.0: the model as transformers 5.24.0 reads
// the file, in f32, the same matrices added by hooks, and torch.optim.Adam.
func TestSmolLMTuning(t *testing.T) {
	m := smolLM(t)
	of := readTuning(t, "smollm2-tuning.json")
	p := opened(t, m, of, "cpu")
	begins(t, p, 3)
	for i, loss := range trained(t, p, of, 0) {
		if math.Abs(float64(loss-of.Losses[i])) > 1e-4 || math.Abs(float64(loss-of.Torch[i])) > 1e-4 {
			t.Errorf("the loss of step %d is %v, want %v; PyTorch has %v", i+1, loss, of.Losses[i], of.Torch[i])
		}
	}
}
