package nn

import (
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Activation names the function between the linear layers of an [MLP].
type Activation string

// The activations. The gated ones halve the result of the first layer into a gate, first, and a
// value (Shazeer, GLU Variants Improve Transformer).
const (
	Gelu     Activation = "gelu" // the default
	GeluTanh Activation = "gelu_tanh"
	Relu     Activation = "relu"
	Relu2    Activation = "relu2" // the square of relu
	Silu     Activation = "silu"
	Tanh     Activation = "tanh"
	SwiGlu   Activation = "swiglu"
	GeGlu    Activation = "geglu"
)

var activations = map[Activation]func(b *ir.Builder, x ir.Value) ir.Value{
	Gelu: ops.Gelu, GeluTanh: ops.GeluTanh, Relu: ops.Relu, Silu: ops.Silu, Tanh: ops.Tanh,
	Relu2:  func(b *ir.Builder, x ir.Value) ir.Value { return ops.Square(b, ops.Relu(b, x)) },
	SwiGlu: func(b *ir.Builder, x ir.Value) ir.Value { return ops.SwiGlu(b, x, -1) },
	GeGlu:  func(b *ir.Builder, x ir.Value) ir.Value { return ops.GeGlu(b, x, -1) },
}

// activation returns the function of an activation, or records an error and returns nil.
func (l *layer) activation(a Activation) func(b *ir.Builder, x ir.Value) ir.Value {
	f := activations[a]
	l.require(f != nil, "Activation is %q: it must be one of %q", string(a), slices.Sorted(maps.Keys(activations)))
	return f
}

// gated reports whether the activation takes twice as many features as it returns.
func (a Activation) gated() bool { return a == SwiGlu || a == GeGlu }

// MLPOptions are the options of [MLP].
type MLPOptions struct {
	// Name is the scope of the layers; "" means "mlp" and a number.
	Name string
	// Activation is the function in between; "" means [Gelu].
	Activation Activation
	// NoBias leaves the biases out.
	NoBias bool
	// Dropout is the rate at which features in between are dropped in training.
	Dropout float64
	// Init is how the weights start, by default as those of [Linear]; OutInit is that of linear2
	// and means Init by default. BiasInit is that of the biases.
	Init, OutInit, BiasInit ir.Initial
}

// MLP returns linear2(activation(linear1(x))) for x [..., width], with hidden features in between:
// [..., width]. A gated activation makes linear1 twice as wide. Errors are recorded in b: of kind
// [ir.ErrAttr] for an unknown activation.
func MLP(b *ir.Builder, x ir.Value, hidden int, o ...MLPOptions) (y ir.Value) {
	opts := option(b, "mlp", o)
	within(b, "mlp", opts.Name, x, func(l *layer) { y = mlp(l, hidden, opts) })
	return y
}

func mlp(l *layer, hidden int, o MLPOptions) ir.Value {
	if o.Activation == "" {
		o.Activation = Gelu
	}
	f := l.activation(o.Activation)
	width := l.size(-1)
	if f == nil || !l.require(hidden >= 1, "hidden is %d: it must be 1 or more", hidden) {
		return ir.Value{}
	}
	if o.Activation.gated() {
		hidden *= 2
	}
	h := Linear(l.Builder, l.x, hidden, LinearOptions{Name: "linear1", NoBias: o.NoBias, Init: o.Init, BiasInit: o.BiasInit})
	if l.Err() != nil {
		return ir.Value{}
	}
	h = l.drop(f(l.Builder, h), o.Dropout)
	return Linear(l.Builder, h, width, LinearOptions{Name: "linear2", NoBias: o.NoBias, Init: or(o.OutInit, o.Init), BiasInit: o.BiasInit})
}

// TransformerOptions are the options of [TransformerBlock].
type TransformerOptions struct {
	// Name is the scope of the block; "" means "transformer_block" and a number.
	Name string
	// Hidden is the number of features within the MLP; 0 means four times the width.
	Hidden int
	// Activation is that of the MLP; "" means [Gelu].
	Activation Activation
	// PostNorm normalises after each sum, as the first transformers did, not before each layer.
	PostNorm bool
	// RMSNorm uses [RMSNorm] instead of [LayerNorm].
	RMSNorm bool
	// Epsilon is that of the norms; 0 means their default.
	Epsilon float64
	// NoBias leaves all biases out, those of the norms included.
	NoBias bool
	// Dropout is the rate at which the results of the layers, weights of the attention and features
	// within the MLP are dropped in training.
	Dropout float64
	// Attention are the options of the self-attention; its NoBias, Dropout, Init and OutInit are
	// those of the block where they are zero.
	Attention AttentionOptions
	// Causal, KVHeads and Rope are those of Attention, for short.
	Causal  bool
	KVHeads int
	Rope    *RopeOptions
	// Context adds attention to a context, [..., n, features], after the self-attention.
	Context ir.Value
	// Init is how the weights start, by default as those of the layers. Depth, if not 0, is the
	// number of blocks of the model: OutInit, that of the layers before each sum, is then normal
	// with deviation 0.02/√(2·Depth), Init is normal(0, 0.02), and biases start as zeros, as in
	// GPT-2.
	Init, OutInit ir.Initial
	Depth         int
}

// TransformerBlock returns a transformer block of x, [..., time, width]: x plus [Attention] of its
// norm, and that plus the [MLP] of its norm. Parameters have the names of PyTorch's
// TransformerEncoderLayer and TransformerDecoderLayer: self_attn, multihead_attn for a context,
// linear1, linear2, norm1, norm2, norm3. Errors are recorded in b: those of the layers.
func TransformerBlock(b *ir.Builder, x ir.Value, heads int, o ...TransformerOptions) (y ir.Value) {
	opts := option(b, "transformer_block", o)
	within(b, "transformer_block", opts.Name, x, func(l *layer) {
		opts.complete(l)
		if b.Err() == nil {
			y = transformer(l, heads, opts)
		}
	})
	return y
}

func (o *TransformerOptions) complete(l *layer) {
	if o.Hidden == 0 {
		o.Hidden = 4 * l.size(-1)
	}
	l.require(o.Depth >= 0 && (o.Depth == 0 || o.Init.IsZero() && o.OutInit.IsZero()), "Depth is %d: it must not be negative, and Init and OutInit must be left out with it", o.Depth)
	if o.Depth > 0 {
		o.Init, o.OutInit = Normal(0, 0.02), Normal(0, 0.02/math.Sqrt(2*float64(o.Depth)))
	}
	o.OutInit = or(o.OutInit, o.Init)
	a := &o.Attention
	a.NoBias = a.NoBias || o.NoBias
	a.Causal = a.Causal || o.Causal
	if a.Dropout == 0 {
		a.Dropout = o.Dropout
	}
	if a.KVHeads == 0 {
		a.KVHeads = o.KVHeads
	}
	if a.Rope == nil {
		a.Rope = o.Rope
	}
	a.OutInit = or(a.OutInit, or(a.Init, o.OutInit))
	a.Init = or(a.Init, o.Init)
}

func transformer(l *layer, heads int, o TransformerOptions) ir.Value {
	b, x := l.Builder, l.x
	attend := func(name string, context ir.Value) func(x ir.Value) ir.Value {
		a := o.Attention
		if a.Name = name; context.Valid() {
			a = AttentionOptions{Name: name, Context: context, NoBias: a.NoBias, Dropout: a.Dropout, Init: a.Init, OutInit: a.OutInit, KVHeads: a.KVHeads, HeadSize: a.HeadSize}
		}
		return func(x ir.Value) ir.Value { return Attention(b, x, heads, a) }
	}
	mlp := func(x ir.Value) ir.Value {
		m := MLPOptions{Activation: o.Activation, NoBias: o.NoBias, Dropout: o.Dropout, Init: o.Init, OutInit: o.OutInit}
		if o.Depth > 0 {
			m.BiasInit = Constant(0)
		}
		return mlp(&layer{b, l.kind, x}, o.Hidden, m)
	}
	norms := []string{"norm1", "norm2", "norm3"}
	sum := func(f func(x ir.Value) ir.Value) {
		name := norms[0]
		norms = norms[1:]
		norm := func(x ir.Value) ir.Value {
			n := NormOptions{Name: name, Epsilon: o.Epsilon, NoBias: o.NoBias}
			if o.RMSNorm {
				return RMSNorm(b, x, n)
			}
			return LayerNorm(b, x, n)
		}
		if o.PostNorm {
			x = norm(Residual(b, x, func(x ir.Value) ir.Value { return Dropout(b, f(x), o.Dropout) }))
			return
		}
		x = Residual(b, x, func(x ir.Value) ir.Value { return Dropout(b, f(norm(x)), o.Dropout) })
	}
	sum(attend("self_attn", ir.Value{}))
	if o.Context.Valid() {
		sum(attend("multihead_attn", o.Context))
	}
	sum(mlp)
	return x
}
