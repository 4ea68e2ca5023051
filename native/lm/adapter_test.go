package lm_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/safetensors"
)

// TestAdapters holds the logits of a model with adapters, beside its weights and merged with them, to those of PEFT, which has loaded
// the same files: one that a page has saved after tuning a GGUF file, and one of its own, of some layers and with rsLoRA's scale.
func TestAdapters(t *testing.T) {
	stored := filepath.Join("..", "safetensors", "testdata", "llama")
	want, _, err := safetensors.ReadFile(filepath.Join(stored, "expected.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := lm.Load(filepath.Join("testdata", "llama"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for name, targets := range map[string][]string{
		"page": {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}, "peft": {"q_proj", "o_proj", "down_proj"},
	} {
		a, err := safetensors.ReadAdapter(filepath.Join(stored, name))
		if err != nil {
			t.Fatal(err)
		}
		expected, err := want[name].Float32s()
		if err != nil {
			t.Fatal(err)
		}
		e := expectedOf(t, "llama")
		near(t, name+" merged", logits(t, withWeights(t, m, e, merged(t, m, a), nn.LoRAOptions{Targets: []string{}}), "whole", e.prompt), expected)
		beside := withWeights(t, m, e, a.Tensors, nn.LoRAOptions{Rank: a.Rank, Alpha: a.Alpha, Targets: targets})
		near(t, name+" beside", logits(t, beside, "whole", e.prompt), expected)
	}
}

// merged returns the weights of a model with an adapter in them.
func merged(t *testing.T, m *lm.Model, a safetensors.Adapter) map[string]native.Tensor {
	t.Helper()
	weights := map[string]native.Tensor{}
	for _, name := range m.Weights.Names() {
		var err error
		if weights[name], err = m.Tensor(name); err != nil {
			t.Fatal(err)
		}
	}
	out, err := a.Merge(weights, func(name string) bool { return m.Weights.Storage(name).OutIn })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// withWeights compiles a model with matrices of LoRA for the whole prompt, and sets its weights and then the given ones.
func withWeights(t *testing.T, m *lm.Model, e expected, weights map[string]native.Tensor, o nn.LoRAOptions) *rlx.Program {
	t.Helper()
	g, err := ir.Build("whole", func(b *ir.Builder) {
		nn.Infer(b)
		nn.LoRA(b, o, func() { b.Output("logits", m.Decoder(b, b.Input("tokens", ir.I32, ir.Dims(1, len(e.prompt))...))) })
	})
	if err != nil {
		t.Fatal(err)
	}
	p := programOf(t, m, ir.Entry{Name: "whole", Graph: g})
	for name, x := range weights {
		if err := p.Set(context.Background(), name, x); err != nil {
			t.Fatal(err)
		}
	}
	return p
}
