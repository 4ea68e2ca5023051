package lm_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/safetensors"
)

// models are the folders that testdata/models.py writes.
var models = []string{
	"llama", "smollm", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "gpt2",
	"qwen2_moe", "qwen3_moe", "olmo2", "olmo3", "olmoe", "granite", "smollm3", "starcoder2",
	"cohere", "cohere2", "ernie4_5", "exaone4", "glm4", "seed_oss", "stablelm",
	"arcee", "falcon", "gpt_neox", "gptj", "nemotron", "phi",
}

const chunk = 5

// expected is what transformers computes of a model, in f32.
type expected struct {
	prompt, greedy []int32
	logits, ofGGUF []float32 // of the prompt, in a GGUF file without windows by layer
}

func expectedOf(t *testing.T, name string) (e expected) {
	t.Helper()
	tensors, _, err := safetensors.ReadFile(filepath.Join("testdata", name, "expected.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	e.prompt, err = tensors["prompt"].Int32s()
	if err != nil {
		t.Fatal(err)
	}
	if e.greedy, err = tensors["greedy"].Int32s(); err != nil {
		t.Fatal(err)
	}
	if e.logits, err = tensors["logits"].Float32s(); err != nil {
		t.Fatal(err)
	}
	e.ofGGUF = e.logits
	if of, ok := tensors["of_gguf"]; ok {
		if e.ofGGUF, err = of.Float32s(); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// program compiles a model for the whole prompt and, if cached, for chunks and single tokens.
func program(t *testing.T, m *lm.Model, e expected, cached bool) *rlx.Program {
	t.Helper()
	build := func(name string, n int, cached bool) ir.Entry {
		g, err := ir.Build(name, func(b *ir.Builder) {
			nn.Infer(b)
			if cached {
				nn.Cache(b, len(e.prompt)+len(e.greedy))
			}
			b.Output("logits", m.Decoder(b, b.Input("tokens", ir.I32, ir.Dims(1, n)...)))
		})
		if err != nil {
			t.Fatal(err)
		}
		return ir.Entry{Name: name, Graph: g}
	}
	entries := []ir.Entry{build("whole", len(e.prompt), false)}
	if cached {
		entries = append(entries, build("chunk", chunk, true), build("one", 1, true))
	}
	return programOf(t, m, entries...)
}

// programOf compiles entries for the CPU, with the weights of a model.
func programOf(t *testing.T, m *lm.Model, entries ...ir.Entry) *rlx.Program {
	t.Helper()
	module, err := ir.NewModule("model", entries...)
	if err != nil {
		t.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	t.Cleanup(func() { _ = session.Close(ctx) })
	p, err := session.Compile(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(ctx, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// logits runs an entry with tokens.
func logits(t *testing.T, p *rlx.Program, entry string, tokens []int32) []float32 {
	t.Helper()
	out, err := p.Call(context.Background(), entry, rlx.Inputs{"tokens": rlx.Int32s(tokens, 1, len(tokens))})
	if err != nil {
		t.Fatal(err)
	}
	x, err := out["logits"].Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// near fails unless logits differ by 1e-4 at most.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d logits, want %d", what, len(got), len(want))
	}
	worst := 0.
	for i := range got {
		worst = max(worst, math.Abs(float64(got[i])-float64(want[i])))
	}
	if !(worst <= 1e-4) {
		t.Errorf("%s: logits differ by %v", what, worst)
	}
}

func argmax(x []float32) (best int32) {
	for i, v := range x {
		if v > x[best] {
			best = int32(i)
		}
	}
	return best
}

// TestModels holds the logits of a prompt, whole, in chunks and token by token, and the greedy
// continuation to those of transformers.
func TestModels(t *testing.T) {
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			m, err := lm.Load(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			e := expectedOf(t, name)
			p, vocabulary := program(t, m, e, true), m.Config.Vocabulary
			near(t, "whole", logits(t, p, "whole", e.prompt), e.logits)
			for from := 0; from < len(e.prompt); from += chunk {
				near(t, fmt.Sprintf("chunk at %d", from), logits(t, p, "chunk", e.prompt[from:][:chunk]), e.logits[from*vocabulary:][:chunk*vocabulary])
			}
			if err := p.Set(context.Background(), nn.CacheState, rlx.Int32(0)); err != nil {
				t.Fatal(err)
			}
			var last []float32
			for i, token := range e.prompt {
				last = logits(t, p, "one", []int32{token})
				near(t, fmt.Sprintf("token %d", i), last, e.logits[i*vocabulary:][:vocabulary])
			}
			var greedy []int32
			for range e.greedy {
				greedy = append(greedy, argmax(last))
				last = logits(t, p, "one", greedy[len(greedy)-1:])
			}
			if !slices.Equal(greedy, e.greedy) {
				t.Errorf("greedy continuation %v, want %v", greedy, e.greedy)
			}
		})
	}
}

// TestGGUFModels holds the logits of GGUF files with the same weights to those of transformers.
func TestGGUFModels(t *testing.T) {
	for _, name := range models {
		path := filepath.Join("testdata", name, "model.gguf")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m, err := lm.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			e := expectedOf(t, name)
			near(t, "whole", logits(t, program(t, m, e, false), "whole", e.prompt), e.ofGGUF)
		})
	}
}

// TestExpertsInBlocks holds the logits of a prompt whose experts have several blocks of tokens to those of parts that
// have one.
func TestExpertsInBlocks(t *testing.T) {
	m, err := lm.Load(filepath.Join("testdata", "mixtral"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prompt := make([]int32, 45)
	for i := range prompt {
		prompt[i] = int32(3 + i*13%60)
	}
	p := program(t, m, expected{prompt: prompt}, true)
	whole, vocabulary := logits(t, p, "whole", prompt), m.Config.Vocabulary
	for from := 0; from < len(prompt); from += chunk {
		near(t, fmt.Sprintf("chunk at %d", from), logits(t, p, "chunk", prompt[from:][:chunk]), whole[from*vocabulary:][:chunk*vocabulary])
	}
}
