package models

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// activations are the functions within MLPs and heads, by their names in config.json.
var activations = map[string]func(b *ir.Builder, x ir.Value) ir.Value{
	"gelu": ops.Gelu, "gelu_new": ops.GeluTanh, "gelu_pytorch_tanh": ops.GeluTanh, "quick_gelu": ops.QuickGelu,
	"relu": ops.Relu, "silu": ops.Silu, "swish": ops.Silu,
}

// blockNames are the layers of a block, by their names within it.
type blockNames struct {
	q, k, v, out string // of the attention
	norm1, norm2 string // before or after attention and MLP
	up, down     string // of the MLP
}

// tower builds blocks.
type tower struct {
	*ir.Builder
	Tower
	blockNames
	// The projections of queries and values, and of keys, have no bias.
	noQueryBias, noKeyBias bool
	normBias               bool
}

// prenorm returns the tower's block with norms before attention and MLP.
func (t *tower) prenorm(x, mask ir.Value) ir.Value {
	x = t.plus(x, t.norm1, func(x ir.Value) ir.Value { return t.attend(x, nn.AttentionOptions{Mask: mask}) })
	return t.plus(x, t.norm2, t.feed)
}

// postnorm returns the tower's block with norms after attention and MLP, as in the original
// transformer.
func (t *tower) postnorm(x, mask ir.Value) ir.Value {
	x = t.norm(t.norm1, nn.Residual(t.Builder, x, func(x ir.Value) ir.Value { return t.attend(x, nn.AttentionOptions{Mask: mask}) }))
	return t.norm(t.norm2, nn.Residual(t.Builder, x, t.feed))
}

// stack applies the blocks. Their parameters are in the scope name.
func (t *tower) stack(name string, x ir.Value, f func(layer int, x ir.Value) ir.Value) ir.Value {
	layer := 0
	return nn.Stack(t.Builder, name, t.Layers, x, func(_ *ir.Builder, x ir.Value) ir.Value {
		y := f(layer, x)
		layer++
		return y
	})
}

// plus returns x plus f of its norm.
func (t *tower) plus(x ir.Value, norm string, f func(x ir.Value) ir.Value) ir.Value {
	return nn.Residual(t.Builder, x, func(x ir.Value) ir.Value { return f(t.norm(norm, x)) })
}

func (t *tower) norm(name string, x ir.Value) ir.Value {
	return nn.LayerNorm(t.Builder, x, nn.NormOptions{Name: name, Epsilon: t.Epsilon, NoBias: !t.normBias})
}

func (t *tower) linear(name string, x ir.Value, out int) ir.Value {
	return linear(t.Builder, name, x, out, true)
}

// linear adds a linear layer with the initial values of BERT.
func linear(b *ir.Builder, name string, x ir.Value, out int, bias bool) ir.Value {
	return nn.Linear(b, x, out, nn.LinearOptions{Name: name, NoBias: !bias, Init: nn.Normal(0, 0.02), BiasInit: nn.Constant(0)})
}

// embedding returns the rows of a table.
func embedding(b *ir.Builder, name string, ids ir.Value, rows, width int) ir.Value {
	return nn.Embedding(b, ids, rows, width, nn.EmbeddingOptions{Name: name, Init: nn.Normal(0, 0.02)})
}

// attend returns the attention of x, [..., time, width], to itself.
func (t *tower) attend(x ir.Value, o nn.AttentionOptions) ir.Value {
	k, v := t.keys(x)
	return t.attended(t.queries(x), k, v, o)
}

// queries returns those of x, [..., heads, time, size].
func (t *tower) queries(x ir.Value) ir.Value {
	return t.split(linear(t.Builder, t.q, x, t.Heads*t.HeadSize, !t.noQueryBias))
}

// keys returns the keys and values of x, [..., heads, time, size].
func (t *tower) keys(x ir.Value) (k, v ir.Value) {
	inner := t.Heads * t.HeadSize
	k = linear(t.Builder, t.k, x, inner, !t.noKeyBias)
	return t.split(k), t.split(linear(t.Builder, t.v, x, inner, !t.noQueryBias))
}

// attended returns the attention of queries over keys and values, projected.
func (t *tower) attended(q, k, v ir.Value, o nn.AttentionOptions) ir.Value {
	if t.Err() != nil {
		return ir.Value{}
	}
	o.Name = nn.Here
	return t.linear(t.out, nn.Attend(t.Builder, q, k, v, o), t.Width)
}

// split returns [..., time, heads·size] as [..., heads, time, size].
func (t *tower) split(x ir.Value) ir.Value {
	if t.Err() != nil {
		return ir.Value{}
	}
	shape := append(x.Shape()[:x.Rank()-1].Clone(), ir.N(t.Heads), ir.N(t.HeadSize))
	return ops.SwapAxes(t.Builder, ops.Reshape(t.Builder, x, shape...), -3, -2)
}

// feed returns the MLP.
func (t *tower) feed(x ir.Value) ir.Value {
	return t.linear(t.down, activations[t.Activation](t.Builder, t.linear(t.up, x, t.Hidden)), t.Width)
}

// start reports whether a function of this package can add its ops: its input is given and its
// configuration sound.
func start(b *ir.Builder, op ir.Op, x ir.Value, err error) bool {
	if b.Require(op, "input", x.Valid()) && err != nil {
		b.Failf(op, []ir.Value{x}, err)
	}
	return b.Err() == nil
}

// firstPosition returns the first position of x, [..., time, width]: [..., width].
func firstPosition(b *ir.Builder, x ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.Squeeze(b, ops.SliceAxis(b, x, -2, ir.N(0), ir.N(1)), -2)
}

// table declares a table of rows for positions, and returns those of n positions from the first on: [n,
// width].
func table(b *ir.Builder, name string, rows, width, first int, n ir.Dim) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	ids := ops.Add(b, ops.Iota(b, ir.I32, 0, n), ops.Const(b, ir.I32, float64(first)))
	return embedding(b, name, ids, rows, width)
}

// unit returns x, [..., width], divided by its length.
func unit(b *ir.Builder, x ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	squares := ops.KeepDims(b, ops.ReduceSum, ops.Mul(b, x, x), -1)
	return ops.Mul(b, x, ops.Rsqrt(b, ops.Max(b, squares, ops.ConstLike(b, squares, 1e-24))))
}
