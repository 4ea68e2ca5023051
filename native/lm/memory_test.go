package lm_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
)

// TestMemoryOfTuning bounds the bytes of all buffers of a step that trains an adapter of rank 16 on 512 tokens, of
// models with the sizes of Qwen2.5, in blocks of 4 bits, on a WebGPU device with the least limits. Whole logits
// of 512 tokens alone would take 311 MB, more than a binding has there.
func TestMemoryOfTuning(t *testing.T) {
	const tokens, rank = 512, 16
	c := irlm.Config{
		Architecture: "qwen2", Width: 896, Hidden: 4864, Layers: 24, Heads: 14, KVHeads: 2, HeadSize: 64, Vocabulary: 151936, Context: 32768,
		Epsilon: 1e-6, QKVBias: true, Activation: nn.Silu, Gated: true, Tied: true, Rope: &irlm.Rope{Base: 1e6, Size: 64},
	}
	larger := c
	larger.Width, larger.Hidden, larger.Layers, larger.Heads, larger.HeadSize, larger.Rope = 1536, 8960, 28, 12, 128, &irlm.Rope{Base: 1e6, Size: 128}
	for name, model := range map[string]struct {
		irlm.Config
		limit int
	}{"0.5B": {c, 800e6}, "1.5B": {larger, 1700e6}} {
		g, err := ir.Build("loss", func(b *ir.Builder) {
			nn.Train(b)
			in, next := b.Input("tokens", ir.I32, ir.Dims(1, tokens)...), b.Input("next", ir.I32, ir.Dims(1, tokens)...)
			packed := func(name string) nn.Storage {
				if strings.Contains(name, "norm") {
					return nn.Storage{}
				}
				return nn.Storage{Format: "q4_0"}
			}
			nn.Stored(b, packed, func() {
				nn.LoRA(b, nn.LoRAOptions{Rank: rank}, func() {
					b.Output("loss", irlm.Loss(b, model.Config, in, next, irlm.LossOptions{Context: tokens, Checkpoint: true}))
				})
			})
		})
		if err == nil {
			g, err = optim.Step(g, "loss", optim.Adam{}, optim.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		module, err := ir.NewModule("tuning", ir.Entry{Name: "step", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Compile(module, plan.WebGPU(), wgsl.Printer{})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, b := range p.Buffers {
			sum += b.Bytes
		}
		if t.Logf("%s: %d MB", name, sum/1e6); sum > model.limit {
			t.Errorf("%s: the buffers of a step have %d MB, more than %d", name, sum/1e6, model.limit/1e6)
		}
	}
}
