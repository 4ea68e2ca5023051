package nn

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// AttentionOptions are the options of [Attention].
type AttentionOptions struct {
	// Name is the scope of the parameters; "" means "attention" and a number.
	Name string
	// KVHeads is the number of heads of keys and values, a divisor of heads (grouped-query
	// attention); 0 means heads.
	KVHeads int
	// HeadSize is the number of features of a head; 0 means width/heads.
	HeadSize int
	// Context is the sequence that keys and values are projected from, [..., n, features]; the zero
	// Value means x.
	Context ir.Value
	// Separate declares the projections of x as the linear layers q_proj, k_proj and v_proj
	// instead of one weight in_proj_weight. With a Context they always are.
	Separate bool
	// NoBias omits all biases.
	NoBias bool
	// Causal hides later positions, aligned at the end.
	Causal bool
	// Window, if not 0, limits attention: a query at position i attends to keys j with i − j <
	// Window.
	Window int
	// Mask broadcasts to [..., heads, m, n]: booleans, true where a query attends to a key, or
	// numbers that are added to the scores.
	Mask ir.Value
	// Rope rotates queries and keys by their positions; nil means no rotation.
	Rope *RopeOptions
	// ALiBi adds a linear bias of the distance to the scores (Press, Smith and Lewis).
	ALiBi bool
	// NormQK normalises the heads of queries and keys by layers q_norm and k_norm ([RMSNorm]).
	NormQK bool
	// Scale multiplies the scores; 0 means 1/√HeadSize.
	Scale float64
	// Softcap c, if not 0, replaces each score s by c·tanh(s/c).
	Softcap float64
	// Dropout is the rate at which weights of the attention are dropped in training. It needs all
	// scores in memory.
	Dropout float64
	// Init initialises the weights, by default [GlorotUniform] for in_proj_weight and as in
	// [Linear] for others; OutInit is for out_proj and defaults to Init. Biases start as zeros.
	// These are PyTorch's defaults.
	Init, OutInit ir.Initial
}

// Attention returns multi-head attention (Vaswani et al., Attention Is All You Need) of x, [..., m,
// width]: [..., m, width]. Its parameters are in_proj_weight [width, (heads + 2·kv heads)·head
// size], the concatenated projections of queries, keys and values, in_proj_bias, and the linear
// layer out_proj. With a [Cache] causal self-attention appends keys and values to the states
// k_cache and v_cache, [..., kv heads, length, head size]. Errors are recorded in b: of kind
// [ir.ErrAttr] for options outside their domain or that exclude each other.
func Attention(b *ir.Builder, x ir.Value, heads int, o ...AttentionOptions) (y ir.Value) {
	opts := option(b, "attention", o)
	within(b, "attention", opts.Name, x, func(l *layer) {
		a := &attention{layer: l, o: opts, heads: heads}
		if a.complete() {
			y = a.build()
		}
	})
	return y
}

// attention builds one layer.
type attention struct {
	*layer
	o       AttentionOptions
	heads   int
	width   int // width of x
	causal  bool
	cached  bool
	rate    float64  // dropout rate, 0 in inference
	allowed ir.Value // boolean mask; the zero Value for none
	added   ir.Value // additive mask; the zero Value for none
}

// complete checks the options and sets their defaults.
func (a *attention) complete() bool {
	o := &a.o
	if !a.rank(2, "[..., time, width]") {
		return false
	}
	a.width = a.size(-1)
	if !a.require(a.heads >= 1, "heads is %d: it must be 1 or more", a.heads) {
		return false
	}
	if o.KVHeads == 0 {
		o.KVHeads = a.heads
	}
	if o.HeadSize == 0 && a.require(a.width%a.heads == 0, "heads is %d: it must divide the width, %d, or HeadSize must be given", a.heads, a.width) {
		o.HeadSize = a.width / a.heads
	}
	a.require(o.KVHeads >= 1 && a.heads%o.KVHeads == 0, "KVHeads is %d: it must divide heads, %d", o.KVHeads, a.heads)
	a.require(o.HeadSize >= 0 && o.Window >= 0 && o.Softcap >= 0, "HeadSize is %d, Window %d and Softcap %v: none must be negative", o.HeadSize, o.Window, o.Softcap)
	a.require(o.Dropout >= 0 && o.Dropout < 1, "Dropout is %v: it must be in [0, 1)", o.Dropout)
	a.require(!o.Context.Valid() || o.Rope == nil && !o.Causal && o.Window == 0 && !o.ALiBi, "Rope, Causal, Window or ALiBi is given with a Context: they must be left out, as they are for self-attention")
	a.cached = contextOf(a.Builder).cache != nil && !o.Context.Valid()
	a.require(!a.cached || o.Causal && !o.ALiBi && !o.Mask.Valid(), "Causal is %t, ALiBi %t and Mask given: %t: with a cache the first must be set and the others left out", o.Causal, o.ALiBi, o.Mask.Valid())
	if o.Scale == 0 && o.HeadSize > 0 {
		o.Scale = 1 / math.Sqrt(float64(o.HeadSize))
	}
	o.OutInit = or(o.OutInit, o.Init)
	if a.Err() == nil && o.Dropout > 0 && a.training() {
		a.rate = o.Dropout
	}
	a.require(!a.cached || a.rate == 0, "Dropout is %v: in training it must be 0 with a cache", o.Dropout)
	return a.Err() == nil
}

// Attend returns the attention of queries q, [..., heads, m, size], over keys and values, [..., kv
// heads, m, size], with the heads concatenated: [..., m, heads·size]. It is [Attention] without the
// projections. It uses the options Name, Causal, Window, Mask, Rope, ALiBi, Scale, Softcap and
// Dropout. With a [Cache] it appends k and v, rotated, to the states k_cache and v_cache. Errors
// are recorded in b: of kind [ir.ErrShape] for operands of other shapes, and those of [Attention].
func Attend(b *ir.Builder, q, k, v ir.Value, o ...AttentionOptions) (y ir.Value) {
	opts := option(b, "attend", o)
	if !b.Require("nn.attend", "input", k.Valid()) || !b.Require("nn.attend", "input", v.Valid()) {
		return ir.Value{}
	}
	within(b, "attend", opts.Name, q, func(l *layer) {
		a := &attention{layer: l, o: opts}
		if a.headsOf(q, k, v) && a.complete() {
			if y = a.attendRotated(q, k, v); b.Err() == nil {
				y = a.joined(y)
			}
		}
	})
	return y
}

// headsOf sets the number and size of heads to those of projected queries, keys and values.
func (a *attention) headsOf(q, k, v ir.Value) bool {
	if !a.rank(3, "[..., heads, time, size]") {
		return false
	}
	if k.Rank() != q.Rank() || !k.Type().Equal(v.Type()) || k.DType() != q.DType() || k.Dim(-1) != q.Dim(-1) {
		a.fail(ir.Shapef("k is %s and v %s: they must have the type of q, %s, but for the number of heads", k.Type(), v.Type(), q.Type()))
		return false
	}
	a.heads = a.size(-3)
	a.o.HeadSize = a.size(-1)
	a.o.KVHeads = (&layer{a.Builder, a.kind, k}).size(-3)
	return a.Err() == nil
}

func (a *attention) build() ir.Value {
	q, k, v := a.project()
	q, k, v = a.split(q, a.heads), a.split(k, a.o.KVHeads), a.split(v, a.o.KVHeads)
	if a.o.NormQK {
		q, k = RMSNorm(a.Builder, q, NormOptions{Name: "q_norm"}), RMSNorm(a.Builder, k, NormOptions{Name: "k_norm"})
	}
	return a.projected(a.attendRotated(q, k, v))
}

// attendRotated rotates queries and keys, appends keys and values to the caches, and returns the weighted
// values, [..., heads, time, size].
func (a *attention) attendRotated(q, k, v ir.Value) ir.Value {
	if a.o.Rope != nil && a.Err() == nil {
		q, k = rotate(a.layer, *a.o.Rope, a.o.HeadSize, q, k)
	}
	if a.Err() != nil {
		return ir.Value{}
	}
	a.causal = a.o.Causal
	if a.cached {
		return a.attendCache(q, k, v)
	}
	a.masks(q, k)
	if a.Err() != nil {
		return ir.Value{}
	}
	return a.attend(q, k, v)
}

// project returns queries, keys and values, [..., time, heads·size].
func (a *attention) project() (q, k, v ir.Value) {
	b, o := a.Builder, a.o
	inner, kv := a.heads*o.HeadSize, o.KVHeads*o.HeadSize
	if o.Separate || o.Context.Valid() {
		from := o.Context
		if !from.Valid() {
			from = a.x
		}
		to := func(name string, x ir.Value, out int) ir.Value {
			return Linear(b, x, out, LinearOptions{Name: name, NoBias: o.NoBias, Init: o.Init, BiasInit: Constant(0)})
		}
		return to("q_proj", a.x, inner), to("k_proj", from, kv), to("v_proj", from, kv)
	}
	in := a.param("in_proj_weight", o.Init, GlorotUniform(), a.width, inner+2*kv)
	var bias ir.Value
	if !o.NoBias {
		bias = a.param("in_proj_bias", ir.Initial{}, Constant(0), inner+2*kv)
	}
	all := a.linearOf(weight{value: in}, bias, a.width, inner+2*kv)
	if b.Err() != nil {
		return q, k, v
	}
	parts := ops.Split(b, all, -1, ir.N(inner), ir.N(kv), ir.N(kv))
	return parts[0], parts[1], parts[2]
}

// split returns [..., time, heads·size] as [..., heads, time, size].
func (a *attention) split(x ir.Value, heads int) ir.Value {
	if a.Err() != nil {
		return ir.Value{}
	}
	lead := x.Shape()[:x.Rank()-1].Clone()
	return ops.SwapAxes(a.Builder, ops.Reshape(a.Builder, x, append(lead, ir.N(heads), ir.N(a.o.HeadSize))...), -3, -2)
}

// masks sorts the masks into allowed and added.
func (a *attention) masks(q, k ir.Value) {
	b := a.Builder
	switch m := a.o.Mask; {
	case !m.Valid():
	case m.DType() == ir.Bool:
		a.allowed = m
	case m.DType() == q.DType():
		a.added = m
	default:
		a.fail(ir.DTypef("Mask is %s: it must be bool or of the type of x, %s", m.Type(), q.DType()))
	}
	if !a.o.ALiBi || b.Err() != nil {
		return
	}
	bias := ops.Convert(b, ops.ALiBi(b, ir.N(a.heads), q.Dim(-2), k.Dim(-2)), q.DType())
	if a.added.Valid() {
		bias = ops.Add(b, bias, a.added)
	}
	if a.added = bias; a.allowed.Valid() {
		a.added = ops.Select(b, a.allowed, bias, ops.ConstLike(b, bias, math.Inf(-1)))
		a.allowed = ir.Value{}
	}
}

// attendCache appends keys and values to the caches and returns the weighted values. Each query sees the
// positions up to its own.
func (a *attention) attendCache(q, k, v ir.Value) ir.Value {
	c := contextOf(a.Builder).cache
	if c.Past.Valid() && (q.Rank() != 4 || q.Dim(0) != c.Past.Dim(0)) {
		a.fail(ir.Shapef("x is %s and Past of the cache %s: x must be [sequences, time, width]", a.x.Type(), c.Past.Type()))
		return ir.Value{}
	}
	past, d := c.before(a.layer, k.Dim(-2)), q.DType()
	if c.DType.Valid() {
		q, k, v = ops.Convert(a.Builder, q, c.DType), ops.Convert(a.Builder, k, c.DType), ops.Convert(a.Builder, v, c.DType)
	}
	k, v = c.write(a.layer, "k_cache", k), c.write(a.layer, "v_cache", v)
	row := c.Row
	switch {
	case c.Table.Valid():
		row = c.Table
	case c.Rows > 0 && !row.Valid() && a.Err() == nil:
		row = ops.Iota(a.Builder, ir.I32, 0, q.Dim(0))
	}
	y := ops.CachedAttention(a.Builder, q, ops.KVCache{K: k, V: v, Past: past, Row: row}, ops.CachedAttentionAttrs{Scale: a.o.Scale, Softcap: a.o.Softcap, Window: a.o.Window})
	return ops.Convert(a.Builder, y, d)
}

// attend returns the weighted values, [..., heads, time, size].
func (a *attention) attend(q, k, v ir.Value) ir.Value {
	mask := a.allowed
	if !mask.Valid() {
		mask = a.added
	}
	if a.rate == 0 {
		return ops.Attention(a.Builder, q, k, v, mask, ops.AttentionAttrs{Scale: a.o.Scale, Softcap: a.o.Softcap, Causal: a.causal, Window: a.o.Window})
	}
	b := a.Builder
	if groups := a.heads / a.o.KVHeads; groups > 1 {
		k, v = ops.Repeat(b, k, k.Rank()-3, groups), ops.Repeat(b, v, v.Rank()-3, groups)
	}
	scores := ops.MatMul(b, ops.Mul(b, q, ops.ConstLike(b, q, a.o.Scale)), ops.SwapAxes(b, k, -2, -1))
	scores = Softcap(b, scores, a.o.Softcap)
	if a.added.Valid() {
		scores = ops.Add(b, scores, a.added)
	}
	hide := func(seen ir.Value) {
		scores = ops.Select(b, seen, scores, ops.ConstLike(b, scores, math.Inf(-1)))
	}
	if a.allowed.Valid() {
		hide(a.allowed)
	}
	if a.causal || a.o.Window > 0 {
		left, right := -1, -1
		if a.causal {
			right = 0
		}
		if a.o.Window > 0 {
			left = a.o.Window - 1
		}
		hide(ops.WindowMask(b, q.Dim(-2), k.Dim(-2), left, right))
	}
	return ops.MatMul(b, a.drop(ops.Softmax(b, scores, -1), a.rate), v)
}

// projected joins the heads and applies out_proj.
func (a *attention) projected(y ir.Value) ir.Value {
	if a.Err() != nil {
		return ir.Value{}
	}
	return Linear(a.Builder, a.joined(y), a.width, LinearOptions{Name: "out_proj", NoBias: a.o.NoBias, Init: a.o.OutInit, BiasInit: Constant(0)})
}

// joined returns [..., heads, time, size] as [..., time, heads·size].
func (a *attention) joined(y ir.Value) ir.Value {
	y = ops.SwapAxes(a.Builder, y, -3, -2)
	if a.Err() != nil {
		return ir.Value{}
	}
	return ops.Reshape(a.Builder, y, append(y.Shape()[:y.Rank()-2].Clone(), ir.N(a.heads*a.o.HeadSize))...)
}
