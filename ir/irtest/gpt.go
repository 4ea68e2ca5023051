package irtest

import (
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
