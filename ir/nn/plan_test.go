package nn_test

import (
	"bytes"
	"runtime"
	"slices"
	"strconv"
	"testing"

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

// handmade is a builder with the layers of the examples in ops, under the names of those of nn.
type handmade struct {
	*ir.Builder
	counts map[string]int
}

// scoped calls f in the scope of the next layer of a kind.
func (h handmade) scoped(kind string, f func(param func(name string, dims ...int) ir.Value)) {
	h.Scope(kind+strconv.Itoa(h.counts[kind]), func() {
		f(func(name string, dims ...int) ir.Value { return h.Param(name, ir.F32, ir.Dims(dims...)...) })
	})
	h.counts[kind]++
}

func (h handmade) conv(x ir.Value, out, kernel int) (y ir.Value) {
	in, _ := x.Dim(-1).Const()
	h.scoped("conv", func(param func(name string, dims ...int) ir.Value) {
		around := []int{kernel / 2, kernel / 2}
		y = ops.Conv2D(h.Builder, x, param("weight", kernel, kernel, in, out), param("bias", out), ops.Conv2DAttrs{PadLo: around, PadHi: around})
	})
	return y
}

func (h handmade) halved(x ir.Value) ir.Value {
	return ops.MaxPool(h.Builder, x, ops.PoolAttrs{Sizes: []int{2, 2}, Strides: []int{2, 2}})
}

// cnn is [cnn] in ops.
func (h handmade) cnn(x ir.Value, classes int) (y ir.Value) {
	b := h.Builder
	for _, channels := range []int{16, 32} {
		x = h.conv(x, channels, 3)
		h.scoped("batch_norm", func(param func(name string, dims ...int) ir.Value) {
			weight, bias := param("weight", channels), param("bias", channels)
			mean, variance := b.State("running_mean", ir.F32, ir.N(channels)), b.State("running_var", ir.F32, ir.N(channels))
			x, mean, variance = ops.BatchNormTraining(b, x, ops.BatchNormVectors{Scale: weight, Bias: bias, Mean: mean, Variance: variance}, ops.BatchNormAttrs{EpsilonAttrs: ops.EpsilonAttrs{Epsilon: 1e-5}})
			b.SetState("running_mean", mean)
			b.SetState("running_var", variance)
		})
		x = h.halved(ops.Relu(b, x))
	}
	x = ops.Dropout(b, ops.Flatten(b, x, 1), nn.Key(b, "dropout"), 0.1)
	in, _ := x.Dim(-1).Const()
	h.scoped("linear", func(param func(name string, dims ...int) ir.Value) {
		y = ops.Linear(b, x, param("weight", in, classes), param("bias", classes))
	})
	return y
}

// unet is [unet] in ops.
func (h handmade) unet(x ir.Value, channels ...int) ir.Value {
	b := h.Builder
	double := func(x ir.Value, channels int) ir.Value {
		for range 2 {
			x = h.conv(x, channels, 3)
			h.scoped("group_norm", func(param func(name string, dims ...int) ir.Value) {
				x = ops.GroupNorm(b, x, param("weight", channels), param("bias", channels), 4, 1e-5)
			})
			x = ops.Silu(b, x)
		}
		return x
	}
	in, _ := x.Dim(-1).Const()
	var skips []ir.Value
	for _, c := range channels {
		x = double(x, c)
		skips = append(skips, x)
		x = h.halved(x)
	}
	x = double(x, 2*channels[len(channels)-1])
	for i, c := range slices.Backward(channels) {
		wide, _ := x.Dim(-1).Const()
		h.scoped("conv_transpose", func(param func(name string, dims ...int) ir.Value) {
			x = ops.ConvTranspose(b, x, param("weight", 2, 2, wide, c), param("bias", c), ops.ConvTransposeAttrs{Strides: []int{2, 2}})
		})
		x = double(ops.Concatenate(b, -1, skips[i], x), c)
	}
	return h.conv(x, in, 1)
}

// cnnOf and unetOf return losses of the examples: of layers, or by hand.
func cnnOf(byHand bool) (*ir.Graph, error) {
	return ir.Build("cnn", func(b *ir.Builder) {
		nn.Train(b)
		x, network := b.Input("images", ir.F32, ir.Dims(2, 8, 8, 1)...), cnn
		if byHand {
			network = func(b *ir.Builder, x ir.Value, classes int) ir.Value {
				return handmade{b, map[string]int{}}.cnn(x, classes)
			}
		}
		b.Output("loss", ops.CrossEntropyMean(b, network(b, x, 2), b.Input("labels", ir.I32, ir.N(2))))
	})
}

func unetOf(byHand bool) (*ir.Graph, error) {
	return ir.Build("unet", func(b *ir.Builder) {
		x, network := b.Input("noisy", ir.F32, ir.Dims(1, 8, 8, 1)...), unet
		if byHand {
			network = func(b *ir.Builder, x ir.Value, channels ...int) ir.Value {
				return handmade{b, map[string]int{}}.unet(x, channels...)
			}
		}
		b.Output("loss", ops.MSE(b, network(b, x, 4, 8), b.Input("clean", ir.F32, ir.Dims(1, 8, 8, 1)...), ops.LossMean))
	})
}

func gptOf(hand bool) (*ir.Graph, error) {
	if hand {
		return byHand(depth)
	}
	return byLayers(depth)
}

// planOf returns the plan file of a training step.
func planOf(tb testing.TB, g *ir.Graph) []byte {
	tb.Helper()
	step, err := optim.Step(g, "loss", optim.Adam{}, optim.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	m, err := ir.NewModule(g.Name(), ir.Entry{Name: "step", Graph: step})
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
// byte, as one built of ops with the same names, and that what layers add to the allocations of
// building the graph is below a twentieth of those of compiling the step.
func TestLayersHaveTheSamePlanAsOps(t *testing.T) {
	for name, loss := range map[string]func(byHand bool) (*ir.Graph, error){"gpt": gptOf, "cnn": cnnOf, "unet": unetOf} {
		t.Run(name, func(t *testing.T) {
			build := func(byHand bool) (g *ir.Graph, allocations float64) {
				allocations = testing.AllocsPerRun(1, func() {
					var err error
					if g, err = loss(byHand); err != nil {
						t.Fatal(err)
					}
				})
				return g, allocations
			}
			layers, more := build(false)
			hand, fewer := build(true)
			var file []byte
			whole := allocations(func() { file = planOf(t, layers) })
			if want := planOf(t, hand); !bytes.Equal(file, want) {
				t.Errorf("a plan of %d bytes by layers and another of %d by hand", len(file), len(want))
			}
			if more-fewer > whole/20 {
				t.Errorf("layers add %v allocations to building, compiling makes %v", more-fewer, whole)
			}
			t.Logf("%v allocations by layers, %v by hand, %v of compiling", more, fewer, whole)
		})
	}
}

// allocations returns the number of allocations of one call.
func allocations(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs)
}

// BenchmarkCompile compares the time from a model's function to the plan of its training step.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct {
		name string
		loss func(depth int) (*ir.Graph, error)
	}{{"layers", byLayers}, {"hand", byHand}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				g, err := c.loss(12)
				if err != nil {
					b.Fatal(err)
				}
				planOf(b, g)
			}
		})
	}
}
