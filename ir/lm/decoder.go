package lm

import (
	"cmp"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// DecoderOptions are the options of [Decoder].
type DecoderOptions struct {
	// Last returns the logits of the last position alone, [..., 1, vocabulary].
	Last bool
	// At, i32[sequences], returns the logits of one position of each sequence, [sequences, 1, vocabulary],
	// for tokens of [sequences, time] that are padded at the end. It replaces Last.
	At ir.Value
	// Context is the number of positions that the program has at most, such as the length of [nn.Cache]; 0 means
	// that of the model. Where it is at most Rope.Original, the angles are divided by Rope.Divisors, as the model
	// was trained for such lengths, instead of Rope.LongDivisors.
	Context int
	// Checkpoint has the backward pass recompute each block from its input ([nn.Stack]). It cannot be
	// used with a cache.
	Checkpoint bool
}

// plain are the activations without a gate.
var plain = map[nn.Activation]func(b *ir.Builder, x ir.Value) ir.Value{
	nn.Gelu: ops.Gelu, nn.GeluTanh: ops.GeluTanh, nn.Relu: ops.Relu, nn.Silu: ops.Silu,
	nn.Relu2: func(b *ir.Builder, x ir.Value) ir.Value { return ops.Square(b, ops.Relu(b, x)) },
}

// Decoder returns the logits of the token after each of tokens, integers [..., time]: f32[...,
// time, vocabulary]. After [nn.Cache] it continues the sequence of earlier runs by a cache of keys
// and values. [nn.Stored] sets the storage of the weights. Errors are recorded in b: those of
// [Config.Check] and of the layers.
func Decoder(b *ir.Builder, c Config, tokens ir.Value, o ...DecoderOptions) ir.Value {
	const op ir.Op = "lm.decoder"
	var opts DecoderOptions
	if len(o) > 0 {
		opts = o[0]
	}
	d, x, ok := features(b, op, c, tokens, opts.Context, opts.Checkpoint)
	if !ok {
		return ir.Value{}
	}
	switch {
	case opts.At.Valid():
		if x.Rank() != 3 || !opts.At.Type().Equal(ir.Type{DType: ir.I32, Shape: ir.Shape{x.Dim(0)}}) {
			b.Failf(op, []ir.Value{tokens, opts.At}, ir.Shapef("tokens are %s and At %s: they must be [sequences, time] and i32[sequences]", tokens.Type(), opts.At.Type()))
			return ir.Value{}
		}
		at := ops.BroadcastTo(b, ops.Reshape(b, opts.At, x.Dim(0), ir.N(1), ir.N(1)), ir.Shape{x.Dim(0), ir.N(1), x.Dim(2)})
		x = ops.TakeAlongAxis(b, x, at, 1, ops.OutsideClip)
	case opts.Last:
		time := x.Dim(-2)
		x = ops.SliceAxis(b, x, -2, time.Sub(ir.N(1)), ir.N(1))
	}
	return d.logits(d.normed(x))
}

// LossOptions are the options of [Loss].
type LossOptions struct {
	// Context and Checkpoint are those of [DecoderOptions].
	Context    int
	Checkpoint bool
	// Ignored are labels that do not count, such as −100 for the tokens of a prompt.
	Ignored []int
	// Reduction is that of the tokens: [ops.LossMean], also for "", [ops.LossSum] or [ops.LossNone].
	Reduction string
	// Rows is the number of tokens whose logits exist at a time; 0 means the default of
	// [nn.LinearCrossEntropy].
	Rows int
}

// Loss returns the cross entropy of next, integers [..., time], for the tokens before them: that of the logits
// of [Decoder], but in blocks: the logits of some tokens exist at a time ([nn.LinearCrossEntropy]). Errors are those
// of both.
func Loss(b *ir.Builder, c Config, tokens, next ir.Value, o ...LossOptions) ir.Value {
	const op ir.Op = "lm.loss"
	var opts LossOptions
	if len(o) > 0 {
		opts = o[0]
	}
	d, x, ok := features(b, op, c, tokens, opts.Context, opts.Checkpoint)
	if !ok || !b.Require(op, "next tokens", next.Valid()) {
		return ir.Value{}
	}
	return nn.LinearCrossEntropy(b, d.normed(x), next, c.Vocabulary, nn.LinearCrossEntropyOptions{
		LinearOptions: d.headOptions(), Softcap: c.LogitSoftcap, Ignored: opts.Ignored, Reduction: opts.Reduction, Rows: opts.Rows,
	})
}

// features returns the result of the blocks of a decoder.
func features(b *ir.Builder, op ir.Op, c Config, tokens ir.Value, context int, checkpoint bool) (d *decoder, x ir.Value, ok bool) {
	if !b.Require(op, "input", tokens.Valid()) {
		return d, x, false
	}
	if err := c.Check(); err != nil {
		b.Failf(op, []ir.Value{tokens}, err)
		return d, x, false
	}
	if context < 0 {
		b.Failf(op, []ir.Value{tokens}, ir.Attrf("Context is %d: it must not be negative", context))
		return d, x, false
	}
	f, _ := familyOf(c.Architecture)
	span := cmp.Or(context, c.Context)
	d = &decoder{Builder: b, Config: c, names: f.names, span: span}
	layer := 0
	x = nn.Stack(b, d.blocks, c.Layers, d.embed(tokens), func(b *ir.Builder, x ir.Value) ir.Value {
		y := d.in(b).block(layer, x)
		layer++
		return y
	}, nn.StackOptions{Checkpoint: checkpoint})
	return d, x, b.Err() == nil
}

// decoder builds a decoder with the parameter names of a family.
type decoder struct {
	*ir.Builder
	Config
	names
	span int // the positions of the program
}

// in returns the decoder with another builder.
func (d *decoder) in(b *ir.Builder) *decoder {
	inner := *d
	inner.Builder = b
	return &inner
}

func (d *decoder) embed(tokens ir.Value) ir.Value {
	x := nn.Embedding(d.Builder, tokens, d.Vocabulary, d.Width, nn.EmbeddingOptions{Name: d.embedding, Init: nn.Normal(0, 0.02)})
	x = scaled(d.Builder, x, d.EmbeddingScale)
	if d.Rope == nil {
		x = nn.PositionalEmbedding(d.Builder, x, d.Config.Context, nn.PositionalEmbeddingOptions{Name: d.positions})
	}
	return x
}

// scaled returns x times a scale, for which 0 means 1.
func scaled(b *ir.Builder, x ir.Value, scale float64) ir.Value {
	if scale == 0 || scale == 1 || b.Err() != nil {
		return x
	}
	return ops.Mul(b, x, ops.ConstLike(b, x, scale))
}

// block returns x plus attention, and that plus the MLP; with Parallel x plus both.
func (d *decoder) block(layer int, x ir.Value) ir.Value {
	attend := func(x ir.Value) ir.Value {
		return nn.In(d.Builder, d.attention, func() ir.Value { return d.attend(layer, x) })
	}
	if d.Parallel {
		return d.sum(x, d.norm1, "", func(normed ir.Value) ir.Value {
			in := normed
			if d.ParallelNorms {
				in = d.norm(d.norm2, x)
			}
			return ops.Add(d.Builder, attend(normed), d.perceptron(in))
		})
	}
	return d.sum(d.sum(x, d.norm1, d.post1, attend), d.norm2, d.post2, d.perceptron)
}

// perceptron returns the MLP, or the results of the experts.
func (d *decoder) perceptron(x ir.Value) ir.Value {
	return nn.In(d.Builder, d.mlp, func() ir.Value {
		if d.Experts > 0 {
			return d.mixture(x)
		}
		return d.feed(x, d.Hidden, d.dense)
	})
}

// sum returns x plus f of its norm, or with NoPreNorms of x itself; with PostNorms the result of f is normalised.
func (d *decoder) sum(x ir.Value, before, after string, f func(x ir.Value) ir.Value) ir.Value {
	return nn.Residual(d.Builder, x, func(x ir.Value) ir.Value {
		if !d.NoPreNorms {
			x = d.norm(before, x)
		}
		y := f(x)
		if d.PostNorms {
			y = d.norm(after, y)
		}
		return scaled(d.Builder, y, d.ResidualScale)
	})
}

func (d *decoder) norm(name string, x ir.Value) ir.Value {
	o := nn.NormOptions{Name: name, Epsilon: d.Epsilon, NoBias: d.NoNormBias}
	if d.LayerNorm {
		return nn.LayerNorm(d.Builder, x, o)
	}
	return nn.RMSNorm(d.Builder, x, o)
}

func (d *decoder) linear(name string, x ir.Value, out int, bias bool) ir.Value {
	return nn.Linear(d.Builder, x, out, nn.LinearOptions{Name: name, NoBias: !bias, Init: nn.Normal(0, 0.02), BiasInit: nn.Constant(0)})
}

// attend returns causal attention with its projections.
func (d *decoder) attend(layer int, x ir.Value) ir.Value {
	q, k, v := d.project(x)
	if d.NormQK {
		q, k = d.norm(d.qNorm, q), d.norm(d.kNorm, k)
	}
	o := nn.AttentionOptions{Name: nn.Here, Causal: true, Rope: d.rope(layer, d.span), Scale: d.Scale, Softcap: d.ScoreSoftcap}
	if d.windowed(layer) {
		o.Window = d.Window
	}
	return d.linear(d.out, nn.Attend(d.Builder, q, k, v, o), d.Width, d.OutBias)
}

// project returns queries, keys and values, [..., heads, time, size].
func (d *decoder) project(x ir.Value) (q, k, v ir.Value) {
	inner, kv := d.Heads*d.HeadSize, d.KVHeads*d.HeadSize
	if d.FusedQKV {
		all := d.linear(d.qkv, x, inner+2*kv, d.QKVBias)
		if d.Err() != nil {
			return q, k, v
		}
		if d.GroupedQKV {
			return d.grouped(all)
		}
		parts := ops.Split(d.Builder, all, -1, ir.N(inner), ir.N(kv), ir.N(kv))
		q, k, v = parts[0], parts[1], parts[2]
	} else {
		q, k, v = d.linear(d.q, x, inner, d.QKVBias), d.linear(d.k, x, kv, d.QKVBias), d.linear(d.v, x, kv, d.QKVBias)
	}
	if d.NormQKWhole {
		q, k = d.norm(d.qNorm, q), d.norm(d.kNorm, k)
	}
	return d.split(q, d.Heads), d.split(k, d.KVHeads), d.split(v, d.KVHeads)
}

// grouped returns queries, keys and values of projections that have, for each head of keys, its queries, the key and
// the value.
func (d *decoder) grouped(all ir.Value) (q, k, v ir.Value) {
	group := d.Heads / d.KVHeads
	shape := append(all.Shape()[:all.Rank()-1].Clone(), ir.N(d.KVHeads), ir.N(group+2), ir.N(d.HeadSize))
	parts := ops.Split(d.Builder, ops.Reshape(d.Builder, all, shape...), -2, ir.N(group), ir.N(1), ir.N(1))
	of := func(x ir.Value, heads int) ir.Value {
		return d.split(ops.Reshape(d.Builder, x, append(shape[:len(shape)-3].Clone(), ir.N(heads*d.HeadSize))...), heads)
	}
	return of(parts[0], d.Heads), of(parts[1], d.KVHeads), of(parts[2], d.KVHeads)
}

// split returns [..., time, heads·size] as [..., heads, time, size].
func (d *decoder) split(x ir.Value, heads int) ir.Value {
	if d.Err() != nil {
		return ir.Value{}
	}
	shape := append(x.Shape()[:x.Rank()-1].Clone(), ir.N(heads), ir.N(d.HeadSize))
	return ops.SwapAxes(d.Builder, ops.Reshape(d.Builder, x, shape...), -3, -2)
}

// matrix returns x times the matrix of a name, [..., out].
type matrix func(name string, x ir.Value, out int) ir.Value

// dense is the matrix of a linear layer of the MLP.
func (d *decoder) dense(name string, x ir.Value, out int) ir.Value {
	return d.linear(name, x, out, d.MLPBias)
}

// feed returns the MLP, or an expert, with a number of features within. Its parameters are in the open scope.
func (d *decoder) feed(x ir.Value, hidden int, times matrix) ir.Value {
	f := plain[d.Activation]
	var h ir.Value
	switch {
	case d.FusedGateUp:
		both := times(d.gateUp, x, 2*hidden)
		if d.Err() != nil {
			return ir.Value{}
		}
		parts := ops.Split(d.Builder, both, -1, ir.N(hidden), ir.N(hidden))
		h = ops.Mul(d.Builder, f(d.Builder, parts[0]), parts[1])
	case d.Gated:
		gate := f(d.Builder, times(d.gate, x, hidden))
		h = ops.Mul(d.Builder, gate, times(d.up, x, hidden))
	default:
		h = f(d.Builder, times(d.up, x, hidden))
	}
	return times(d.down, h, d.Width)
}

// The tokens of an expert are in blocks of an eighth of all tokens, but of minQueueBlock at least: a larger block is
// computed in part for nothing, and each reads the weights.
const (
	minQueueBlock = 32
	queueBlocks   = 8
)

// mixture returns the sum of the results of the best experts of each token by the softmax of the router's
// scores, normalised to sum to 1 (Jiang et al., Mixtral of Experts).
func (d *decoder) mixture(x ir.Value) ir.Value {
	b := d.Builder
	tokens, ok := x.Shape()[:max(x.Rank()-1, 0)].Size().Const()
	if b.Err() == nil && !ok {
		b.Failf("lm.decoder", []ir.Value{x}, ir.Errorf(ir.ErrSymbol, "x is %s: a model with experts must have a constant number of tokens", x.Type()))
	}
	if b.Err() != nil || tokens == 0 {
		return x
	}
	rows := ops.Reshape(b, x, ir.N(tokens), ir.N(d.Width))
	scores := d.linear(d.router, rows, d.Experts, false)
	if b.Err() != nil {
		return ir.Value{}
	}
	y := d.ofExperts(rows, scores)
	if b.Err() != nil {
		return ir.Value{}
	}
	if d.SharedHidden > 0 {
		y = ops.Add(b, y, d.sharedExpert(rows))
	}
	return ops.Reshape(b, y, x.Shape()...)
}

// ofExperts returns the sums of the results of the experts of rows.
func (d *decoder) ofExperts(rows, scores ir.Value) (y ir.Value) {
	route := ops.MoERouteAttrs{K: d.ExpertsPerToken, Normalize: !d.RawShares}
	if !d.packedExperts() {
		return d.inQueues(rows, scores, route)
	}
	shares, chosen, _, _ := ops.MoERoute(d.Builder, scores, route)
	d.Scope(d.experts, func() {
		y = nn.ChosenExperts(d.Builder, rows, shares, chosen, func(x, groups ir.Value) ir.Value {
			return d.feed(x, d.Hidden, func(name string, x ir.Value, out int) ir.Value {
				return nn.GroupedLinear(d.Builder, x, groups, d.Experts, out, nn.GroupedLinearOptions{Name: name})
			})
		})
	})
	return y
}

// packedExperts reports whether the weights of all experts of a layer are packed in one parameter for each matrix.
func (d *decoder) packedExperts() bool {
	for _, name := range []string{d.gateUp, d.gate, d.up, d.down} {
		if name != "" && nn.StorageOf(d.Builder, d.experts+"/"+name+"/weight").Format == "" {
			return false
		}
	}
	return !d.MLPBias
}

// inQueues computes experts with parameters of their own. Each has a queue of the tokens that
// chose it, in blocks; empty blocks are not computed, nor are the weights of experts read that no token chose.
func (d *decoder) inQueues(rows, scores ir.Value, route ops.MoERouteAttrs) ir.Value {
	b := d.Builder
	tokens, _ := rows.Dim(0).Const()
	size := min(tokens, max(minQueueBlock, (tokens+queueBlocks-1)/queueBlocks))
	blocks := (tokens + size - 1) / size
	all := d.Experts * blocks * size
	route.Capacity = blocks * size
	shares, chosen, slots, _ := ops.MoERoute(b, scores, route)
	queues := ops.Reshape(b, ops.MoEDispatch(b, rows, slots, ir.N(all)), ir.Dims(d.Experts, blocks, size, d.Width)...)
	lengths := ops.ReduceSum(b, ops.OneHot(b, chosen, ir.N(d.Experts), ir.I32), 0, 1)
	starts := ops.Mul(b, ops.Iota(b, ir.I32, 1, ir.Dims(d.Experts, blocks)...), ops.Const(b, ir.I32, float64(size)))
	active := ops.Gt(b, ops.ExpandDims(b, lengths, 1), starts)
	var parts []ir.Value
	for e := range d.Experts {
		of := func(v ir.Value) ir.Value {
			return ops.Reshape(b, ops.SliceAxis(b, v, 0, ir.N(e), ir.N(1)), v.Shape()[1:]...)
		}
		b.Scope(d.experts+"/"+strconv.Itoa(e), func() {
			parts = append(parts, nn.ActiveBlocks(b, of(queues), of(active), func(b *ir.Builder, x ir.Value) ir.Value {
				inner := d.in(b)
				return inner.feed(x, d.Hidden, inner.dense)
			}))
		})
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	y := ops.Reshape(b, ops.Concatenate(b, 0, parts...), ir.Dims(all, d.Width)...)
	return ops.MoECombine(b, y, shares, slots)
}

// sharedExpert returns the result of the expert of all tokens, times its gate.
func (d *decoder) sharedExpert(x ir.Value) (y ir.Value) {
	gate := ops.Sigmoid(d.Builder, d.linear(d.sharedGate, x, 1, false))
	d.Scope(d.shared, func() { y = d.feed(x, d.SharedHidden, d.dense) })
	return ops.Mul(d.Builder, gate, y)
}

// normed returns the last norm of x times LogitScale: what the table of logits is multiplied with.
func (d *decoder) normed(x ir.Value) ir.Value {
	return scaled(d.Builder, d.norm(d.final, x), d.LogitScale)
}

// logits returns the scores of the vocabulary.
func (d *decoder) logits(x ir.Value) ir.Value {
	return nn.Softcap(d.Builder, nn.Linear(d.Builder, x, d.Vocabulary, d.headOptions()), d.LogitSoftcap)
}

// headOptions returns those of the layer of the logits.
func (d *decoder) headOptions() nn.LinearOptions {
	o := nn.LinearOptions{Name: d.head, NoBias: !d.HeadBias, Init: nn.Normal(0, 0.02), BiasInit: nn.Constant(0)}
	if d.Tied {
		o.Tied = d.embedding + "/weight"
	}
	return o
}
