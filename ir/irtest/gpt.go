package irtest

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// GPT is the size of a language model of the GPT-2 kind: layer norms before
// attention and before the two layers that follow it, gelu, learned positions,
// separate queries, keys and values with biases.
type GPT struct {
	Vocab, Context, Width, Heads, Blocks, Batch int
	// Dropout is how probable it is that an element of what attention and the two
	// layers add is dropped, by a state "key", u32[2], and the number of the layer.
	Dropout float64
}

// The models of nanoGPT: characters of Shakespeare, and GPT-2 of 124 million
// parameters.
var (
	CharacterGPT = GPT{Vocab: 65, Context: 256, Width: 384, Heads: 6, Blocks: 6, Batch: 64}
	GPT2         = GPT{Vocab: 50257, Context: 1024, Width: 768, Heads: 12, Blocks: 12, Batch: 4}
)

// Loss returns the graph of the mean cross-entropy of the next token, output
// "loss": inputs "ids" and "next", i32[batch,context].
func (c GPT) Loss() (*ir.Graph, error) {
	return ir.Build("gpt", func(b *ir.Builder) {
		ids := b.Input("ids", ir.I32, ir.Dims(c.Batch, c.Context)...)
		next := b.Input("next", ir.I32, ir.Dims(c.Batch, c.Context)...)
		x := ops.Embedding(b, b.Param("tokens", ir.F32, ir.Dims(c.Vocab, c.Width)...), ids)
		x = ops.Add(b, x, b.Param("positions", ir.F32, ir.Dims(c.Context, c.Width)...))
		drop := c.dropped(b)
		for i := range c.Blocks {
			x = c.block(b, "block"+strconv.Itoa(i)+"/", x, drop)
		}
		logits := c.dense(b, "head", c.norm(b, "norm", x), c.Vocab)
		b.Output("loss", ops.CrossEntropyMean(b, logits, next))
	})
}

// dropped returns what drops elements, by another key each time.
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
	h := c.norm(b, name+"norm1", x)
	heads := func(what string) ir.Value {
		y := ops.Reshape(b, c.dense(b, name+what, h, c.Width), ir.Dims(c.Batch, c.Context, c.Heads, c.Width/c.Heads)...)
		return ops.Transpose(b, y, 0, 2, 1, 3)
	}
	a := ops.Attention(b, heads("query"), heads("key"), heads("value"), ir.Value{}, ops.AttentionAttrs{Causal: true})
	a = ops.Reshape(b, ops.Transpose(b, a, 0, 2, 1, 3), ir.Dims(c.Batch, c.Context, c.Width)...)
	x = ops.Add(b, x, drop(c.dense(b, name+"out", a, c.Width)))
	h = ops.Gelu(b, c.dense(b, name+"up", c.norm(b, name+"norm2", x), 4*c.Width))
	return ops.Add(b, x, drop(c.dense(b, name+"down", h, c.Width)))
}

// dense is a layer from all features to n.
func (c GPT) dense(b *ir.Builder, name string, x ir.Value, n int) ir.Value {
	from, _ := x.Dim(-1).Const()
	return ops.Linear(b, x, b.Param(name+"/w", ir.F32, ir.Dims(from, n)...), b.Param(name+"/b", ir.F32, ir.N(n)))
}

func (c GPT) norm(b *ir.Builder, name string, x ir.Value) ir.Value {
	scale, bias := b.Param(name+"/scale", ir.F32, ir.N(c.Width)), b.Param(name+"/bias", ir.F32, ir.N(c.Width))
	return ops.LayerNorm(b, x, scale, bias, 1e-5)
}
