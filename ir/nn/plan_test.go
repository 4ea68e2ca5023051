package nn_test

import (
	"bytes"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// Sizes of the model that is built in two ways.
const vocab, length, features, parts, depth, batch = 65, 32, 64, 4, 3, 4

// byLayers returns the loss of a GPT built with package nn.
func byLayers(depth int) (*ir.Graph, error) {
	return ir.Build("gpt", func(b *ir.Builder) {
		tokens, next := b.Input("tokens", ir.I32, ir.Dims(batch, length)...), b.Input("next", ir.I32, ir.Dims(batch, length)...)
		x := nn.Embedding(b, tokens, vocab, features, nn.EmbeddingOptions{Name: "wte"})
		x = nn.PositionalEmbedding(b, x, length, nn.PositionalEmbeddingOptions{Name: "wpe"})
		x = nn.Stack(b, "h", depth, x, func(b *ir.Builder, x ir.Value) ir.Value {
			return nn.TransformerBlock(b, x, parts, nn.TransformerOptions{Name: nn.Here, Causal: true})
		})
		x = nn.LayerNorm(b, x, nn.NormOptions{Name: "norm"})
		b.Output("loss", ops.CrossEntropyMean(b, nn.Linear(b, x, vocab, nn.LinearOptions{Name: "head", NoBias: true}), next))
	})
}

// byHand returns the same loss built of ops.
func byHand(depth int) (*ir.Graph, error) {
	return ir.Build("gpt", func(b *ir.Builder) {
		tokens, next := b.Input("tokens", ir.I32, ir.Dims(batch, length)...), b.Input("next", ir.I32, ir.Dims(batch, length)...)
		weight := func(dims ...int) ir.Value { return b.Param("weight", ir.F32, ir.Dims(dims...)...) }
		bias := func(n int) ir.Value { return b.Param("bias", ir.F32, ir.N(n)) }
		norm := func(name string, x ir.Value) (y ir.Value) {
			b.Scope(name, func() { y = ops.LayerNorm(b, x, weight(features), bias(features), 1e-5) })
			return y
		}
		dense := func(name string, x ir.Value, in, out int) (y ir.Value) {
			b.Scope(name, func() { y = ops.Linear(b, x, weight(in, out), bias(out)) })
			return y
		}
		var x ir.Value
		b.Scope("wte", func() { x = ops.Embedding(b, weight(vocab, features), tokens) })
		b.Scope("wpe", func() { x = ops.Add(b, x, weight(length, features)) })
		block := func() {
			h := norm("norm1", x)
			b.Scope("self_attn", func() {
				qkv := ops.Linear(b, h, b.Param("in_proj_weight", ir.F32, ir.Dims(features, 3*features)...), b.Param("in_proj_bias", ir.F32, ir.N(3*features)))
				heads := make([]ir.Value, 3)
				for i, v := range ops.SplitEvenly(b, qkv, -1, 3) {
					v = ops.Reshape(b, v, ir.Dims(batch, length, parts, features/parts)...)
					heads[i] = ops.Transpose(b, v, 0, 2, 1, 3)
				}
				y := ops.Attention(b, heads[0], heads[1], heads[2], ir.Value{}, ops.AttentionAttrs{Causal: true})
				y = ops.Reshape(b, ops.Transpose(b, y, 0, 2, 1, 3), ir.Dims(batch, length, features)...)
				h = dense("out_proj", y, features, features)
			})
			x = ops.Add(b, x, h)
			h = ops.Gelu(b, dense("linear1", norm("norm2", x), features, 4*features))
			x = ops.Add(b, x, dense("linear2", h, 4*features, features))
		}
		b.Scope("h", func() {
			for i := range depth {
				b.Scope(strconv.Itoa(i), block)
			}
		})
		x = norm("norm", x)
		b.Scope("head", func() { x = ops.MatMul(b, x, weight(features, vocab)) })
		b.Output("loss", ops.CrossEntropyMean(b, x, next))
	})
}

// planOf returns the plan file of a training step.
func planOf(tb testing.TB, loss func(depth int) (*ir.Graph, error), depth int) []byte {
	tb.Helper()
	g, err := loss(depth)
	if err != nil {
		tb.Fatal(err)
	}
	step, err := optim.Step(g, "loss", optim.Adam{}, optim.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	m, err := ir.NewModule("gpt", ir.Entry{Name: "step", Graph: step})
	if err != nil {
		tb.Fatal(err)
	}
	p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
	if err != nil {
		tb.Fatal(err)
	}
	file, err := plan.Encode(p)
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// TestLayersHaveTheSamePlanAsOps asserts that a training step built with layers has the same plan, to the
// byte, as one built of ops with the same names.
func TestLayersHaveTheSamePlanAsOps(t *testing.T) {
	layers, hand := planOf(t, byLayers, depth), planOf(t, byHand, depth)
	if !bytes.Equal(layers, hand) {
		t.Errorf("a plan of %d bytes by layers and another of %d by hand", len(layers), len(hand))
	}
}

// TestLayersBuildFast asserts that what layers add to the time of building a graph is below a
// twentieth of the time of compiling its training step. The least of several times is taken.
func TestLayersBuildFast(t *testing.T) {
	least := func(n int, f func()) time.Duration {
		best := time.Duration(math.MaxInt64)
		for range n {
			start := time.Now()
			f()
			best = min(best, time.Since(start))
		}
		return best
	}
	building := func(loss func(depth int) (*ir.Graph, error)) time.Duration {
		return least(20, func() {
			if _, err := loss(12); err != nil {
				t.Fatal(err)
			}
		})
	}
	extra := building(byLayers) - building(byHand)
	if whole := least(2, func() { planOf(t, byLayers, 12) }); extra > whole/20 {
		t.Errorf("layers add %v to building, compiling takes %v", extra, whole)
	}
}

// BenchmarkCompile compares the time from a model's function to the plan of its training step.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct {
		name string
		loss func(depth int) (*ir.Graph, error)
	}{{"layers", byLayers}, {"hand", byHand}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				planOf(b, c.loss, 12)
			}
		})
	}
}
