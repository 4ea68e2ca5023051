package irtest

import (
	"fmt"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// GPT describes a language model like GPT-2: pre-norm blocks with gelu, learned positions
// and biases.
type GPT struct {
	Vocab, Context, Width, Heads, Blocks, Batch int
	// Tied shares the token table with the head, which then has no bias.
	Tied bool
	// Packed computes queries, keys and values by one layer instead of three.
	Packed bool
	// Tanh uses the tanh approximation of gelu, as GPT-2 does.
	Tanh bool
	// Dropout is the dropout rate of the residual branches, with a state "key", u32[2],
	// and the layer number.
	Dropout float64
}

// The models of nanoGPT: characters of Shakespeare, and GPT-2 of 124 million
// parameters.
var (
	CharacterGPT = GPT{Vocab: 65, Context: 256, Width: 384, Heads: 6, Blocks: 6, Batch: 64}
	GPT2         = GPT{Vocab: 50257, Context: 1024, Width: 768, Heads: 12, Blocks: 12, Batch: 4}
)

// PeerGPT2 is GPT-2 of 124 million parameters as other systems time it: a batch of sixteen
// sequences, and the vocabulary padded to a multiple of 64 for tensor cores.
var PeerGPT2 = GPT{Vocab: 50304, Context: 1024, Width: 768, Heads: 12, Blocks: 12, Batch: 16, Tied: true, Packed: true, Tanh: true}

// Loss returns the graph of the mean cross-entropy of the next token, output
// "loss": inputs "ids" and "next", i32[batch,context].
func (c GPT) Loss() (*ir.Graph, error) {
	return ir.Build("gpt", func(b *ir.Builder) {
		ids := b.Input("ids", ir.I32, ir.Dims(c.Batch, c.Context)...)
		next := b.Input("next", ir.I32, ir.Dims(c.Batch, c.Context)...)
		table := b.Param("tokens", ir.F32, ir.Dims(c.Vocab, c.Width)...)
		x := ops.Embedding(b, table, ids)
		x = ops.Add(b, x, b.Param("positions", ir.F32, ir.Dims(c.Context, c.Width)...))
		drop := c.dropped(b)
		for i := range c.Blocks {
			x = c.block(b, "block"+strconv.Itoa(i)+"/", x, drop)
		}
		x = c.norm(b, "norm", x)
		if c.Tied {
			x = ops.MatMul(b, x, ops.Transpose(b, table, 1, 0))
		} else {
			x = c.dense(b, "head", x, c.Vocab)
		}
		b.Output("loss", ops.CrossEntropyMean(b, x, next))
	})
}

// dropped returns a function that applies dropout, with another key each time.
func (c GPT) dropped(b *ir.Builder) func(x ir.Value) ir.Value {
	if c.Dropout == 0 {
		return func(x ir.Value) ir.Value { return x }
	}
	key, drops := b.State("key", ir.U32, ir.N(2)), 0
	b.SetState("key", ops.FoldIn(b, key, ops.Const(b, ir.U32, 0)))
	return func(x ir.Value) ir.Value {
		drops++
		return ops.Dropout(b, x, ops.FoldIn(b, key, ops.Const(b, ir.U32, float64(drops))), c.Dropout)
	}
}

func (c GPT) block(b *ir.Builder, name string, x ir.Value, drop func(x ir.Value) ir.Value) ir.Value {
	q := c.heads(b, name, c.norm(b, name+"norm1", x))
	a := ops.Attention(b, q[0], q[1], q[2], ir.Value{}, ops.AttentionAttrs{Causal: true})
	a = ops.Reshape(b, ops.Transpose(b, a, 0, 2, 1, 3), ir.Dims(c.Batch, c.Context, c.Width)...)
	x = ops.Add(b, x, drop(c.dense(b, name+"out", a, c.Width)))
	gelu := ops.Gelu
	if c.Tanh {
		gelu = ops.GeluTanh
	}
	h := gelu(b, c.dense(b, name+"up", c.norm(b, name+"norm2", x), 4*c.Width))
	return ops.Add(b, x, drop(c.dense(b, name+"down", h, c.Width)))
}

// heads returns queries, keys and values, f32[batch,heads,context,features].
func (c GPT) heads(b *ir.Builder, name string, h ir.Value) (out [3]ir.Value) {
	var packed ir.Value
	if c.Packed {
		packed = ops.Reshape(b, c.dense(b, name+"qkv", h, 3*c.Width), ir.Dims(c.Batch, c.Context, 3, c.Heads, c.Width/c.Heads)...)
	}
	for i, what := range []string{"query", "key", "value"} {
		if c.Packed {
			out[i] = ops.SliceAxis(b, packed, 2, ir.N(i), ir.N(1))
		} else {
			out[i] = c.dense(b, name+what, h, c.Width)
		}
		out[i] = ops.Reshape(b, out[i], ir.Dims(c.Batch, c.Context, c.Heads, c.Width/c.Heads)...)
		out[i] = ops.Transpose(b, out[i], 0, 2, 1, 3)
	}
	return out
}

// dense is a linear layer with n outputs.
func (c GPT) dense(b *ir.Builder, name string, x ir.Value, n int) ir.Value {
	from, _ := x.Dim(-1).Const()
	return ops.Linear(b, x, b.Param(name+"/w", ir.F32, ir.Dims(from, n)...), b.Param(name+"/b", ir.F32, ir.N(n)))
}

func (c GPT) norm(b *ir.Builder, name string, x ir.Value) ir.Value {
	scale, bias := b.Param(name+"/scale", ir.F32, ir.N(c.Width)), b.Param(name+"/bias", ir.F32, ir.N(c.Width))
	return ops.LayerNorm(b, x, scale, bias, 1e-5)
}

// MLP returns the graph of the mean cross-entropy, output "loss", of a
// multi-layer perceptron with ReLUs between layers of the given sizes: inputs
// "x", f32[batch,layers[0]], and "labels", i32[batch]; parameters w0, b0, w1 and
// on.
func MLP(batch int, layers ...int) (*ir.Graph, error) { return MLPOf(ir.F32, batch, layers...) }

// MLPOf is MLP with an input x of a type that the device widens to f32, such as U8 for pixels.
func MLPOf(d ir.DType, batch int, layers ...int) (*ir.Graph, error) {
	return ir.Build("mlp", func(b *ir.Builder) {
		x := b.Input("x", d, ir.Dims(batch, layers[0])...)
		if d != ir.F32 {
			x = ops.Convert(b, x, ir.F32)
		}
		labels := b.Input("labels", ir.I32, ir.N(batch))
		for i, outputs := range layers[1:] {
			if i > 0 {
				x = ops.Relu(b, x)
			}
			w := b.Param("w"+strconv.Itoa(i), ir.F32, ir.Dims(layers[i], outputs)...)
			bias := b.Param("b"+strconv.Itoa(i), ir.F32, ir.N(outputs))
			x = ops.Linear(b, x, w, bias)
		}
		b.Output("loss", ops.CrossEntropyMean(b, x, labels))
	})
}

// ResNet is a residual network for images (He, Zhang, Ren and Sun, Deep Residual Learning
// for Image Recognition), channels last: a convolution of 7×7 and a pool, four stages of
// blocks, and a classifier. Sizes are PyTorch's torchvision.models.resnet18 and resnet50.
type ResNet struct {
	Batch, Size int
	Blocks      [4]int // of each stage
	// Bottleneck means that a block is three convolutions, of 1×1, 3×3 and 1×1 with four times
	// the channels, and not two of 3×3.
	Bottleneck bool
	// Width is how many channels the first stage has, 0 for 64.
	Width   int
	Classes int
}

// ResNet18 and ResNet50 train on images of 224 × 224.
var (
	ResNet18 = ResNet{Batch: 64, Size: 224, Blocks: [4]int{2, 2, 2, 2}, Classes: 1000}
	ResNet50 = ResNet{Batch: 64, Size: 224, Blocks: [4]int{3, 4, 6, 3}, Bottleneck: true, Classes: 1000}
)

// Loss returns the graph of the mean cross-entropy, output "loss", with the running
// statistics of its batch norms as states: inputs "x", f32[batch,size,size,3], and
// "labels", i32[batch].
func (r ResNet) Loss() (*ir.Graph, error) {
	return ir.Build("resnet", func(b *ir.Builder) {
		h, labels := b.Input("x", ir.F32, ir.Dims(r.Batch, r.Size, r.Size, 3)...), b.Input("labels", ir.I32, ir.N(r.Batch))
		width := r.Width
		if width == 0 {
			width = 64
		}
		h = ops.Relu(b, convNorm(b, "stem", h, 7, width, 2))
		h = ops.MaxPool(b, h, ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
		for stage, blocks := range r.Blocks {
			for i := range blocks {
				stride := 1
				if i == 0 && stage > 0 {
					stride = 2
				}
				h = r.block(b, fmt.Sprintf("s%db%d", stage, i), h, width<<stage, stride)
			}
		}
		h = ops.Mean(b, h, 1, 2)
		features, _ := h.Dim(-1 + h.Rank()).Const()
		h = ops.Linear(b, h, b.Param("head/w", ir.F32, ir.Dims(features, r.Classes)...), b.Param("head/b", ir.F32, ir.N(r.Classes)))
		b.Output("loss", ops.CrossEntropyMean(b, h, labels))
	})
}

// block adds convolutions of h to h, or to a projection of it where shapes differ.
func (r ResNet) block(b *ir.Builder, name string, h ir.Value, channels, stride int) ir.Value {
	y, out := h, channels
	if r.Bottleneck {
		out = 4 * channels
		y = ops.Relu(b, convNorm(b, name+"a", y, 1, channels, 1))
		y = ops.Relu(b, convNorm(b, name+"b", y, 3, channels, stride))
		y = convNorm(b, name+"c", y, 1, out, 1)
	} else {
		y = ops.Relu(b, convNorm(b, name+"a", y, 3, out, stride))
		y = convNorm(b, name+"b", y, 3, out, 1)
	}
	if !h.Dim(3).Is(out) || stride != 1 {
		h = convNorm(b, name+"p", h, 1, out, stride)
	}
	return ops.Relu(b, ops.Add(b, y, h))
}

// convNorm is a convolution of windows of size × size without a bias, and a batch norm.
func convNorm(b *ir.Builder, name string, x ir.Value, size, channels, stride int) ir.Value {
	in, _ := x.Dim(3).Const()
	pad := []int{size / 2, size / 2}
	x = ops.Conv2D(b, x, b.Param(name+"/w", ir.F32, ir.Dims(size, size, in, channels)...), ir.Value{},
		ops.Conv2DAttrs{Strides: []int{stride, stride}, PadLo: pad, PadHi: pad})
	vector := func(what string) ir.Value { return b.Param(name+"/"+what, ir.F32, ir.N(channels)) }
	state := func(what string) ir.Value { return b.State(name+"/"+what, ir.F32, ir.N(channels)) }
	mean, variance := state("mean"), state("variance")
	y, mean, variance := ops.BatchNormTraining(b, x, ops.BatchNormVectors{Scale: vector("scale"), Bias: vector("bias"), Mean: mean, Variance: variance}, ops.BatchNormAttrs{})
	b.SetState(name+"/mean", mean)
	b.SetState(name+"/variance", variance)
	return y
}
