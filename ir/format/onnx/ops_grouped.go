package onnx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addMicrosoft("GroupQueryAttention", groupQueryAttention)
}

// The operands of GroupQueryAttention.
const (
	groupedPastKey = iota + 3
	groupedPastValue
	groupedLast  // i32 [batch]: the position of the last token
	groupedTotal // the number of keys of the longest sequence
	groupedCos
	groupedSin
	groupedPositions
	groupedBias
	groupedSink
	groupedScaleKey
	groupedScaleValue
	groupedNormQuery
	groupedNormKey
	groupedNew // the number of new tokens of each sequence
)

// grouped is a GroupQueryAttention being imported.
type grouped struct {
	*call
	q, k, v ir.Value // by heads: [batch, heads, time, d]
	length  ir.Dim   // of the cache after the step
	start   ir.Value // i32 [batch, 1]: the position of the first token
	aligned bool     // the last token is at the end of the cache, in all sequences
}

// groupQueryAttention imports attention of a decoder with its cache. The cache grows by the new tokens,
// unless it has a capacity: see [grouped.cacheLength]. Sequences of a batch may have different lengths.
func groupQueryAttention(c *call) []ir.Value {
	g := &grouped{call: c}
	g.refuse()
	g.split(c.int("num_heads", 0), c.int("kv_num_heads", 0))
	if c.err != nil || c.b.Err() != nil {
		return nil
	}
	g.place()
	if c.bool("do_rotary") {
		g.rotate()
	}
	k, v := g.present(g.k, groupedPastKey), g.present(g.v, groupedPastValue)
	return []ir.Value{g.attend(k, v), k, v}
}

// refuse reports what is not imported.
func (g *grouped) refuse() {
	kept := func(name string) bool { return g.text(name, "NONE") != "NONE" }
	switch {
	case kept("k_quant_type") || kept("v_quant_type") || g.has(groupedScaleKey) || g.has(groupedScaleValue) || g.bool("sliding_window_cache"):
		g.failf("the caches are quantised, or of the size of a window: they must be neither")
	case g.has(groupedNormQuery) || g.has(groupedNormKey):
		g.failf("q_norm_weight or k_norm_weight is given: they must be left out, and queries and keys be normalised by nodes of their own")
	case g.has(groupedNew):
		g.failf("query_seqlens is given: it must be left out, so that all sequences have as many new tokens")
	case g.has(groupedPastKey) != g.has(groupedPastValue):
		g.fail(damaged("one of past_key and past_value is missing"))
	}
}

// split makes heads of queries, keys and values, which may be side by side in the first operand.
func (g *grouped) split(heads, shared int) {
	q, k, v := g.x(0), g.opt(1), g.opt(2)
	if heads < 1 || shared < 1 || heads%shared != 0 || heads > 1<<20 {
		g.fail(ir.Attrf("num_heads is %d: it must be a multiple of kv_num_heads, %d", heads, shared))
		return
	}
	if q.Rank() == 3 && !k.Valid() {
		d, err := q.Dim(2).Div(ir.N(heads + 2*shared))
		g.fail(err)
		each := d.Mul(ir.N(shared))
		if parts := ops.Split(g.b, q, 2, d.Mul(ir.N(heads)), each, each); len(parts) == 3 {
			q, k, v = parts[0], parts[1], parts[2]
		}
	}
	if q.Rank() != 3 || !k.Valid() || k.Rank() != 3 || !v.Valid() || v.Rank() != 3 {
		g.fail(ir.Shapef("queries are %s: they, keys and values must have three axes", q.Shape()))
		return
	}
	g.q, g.k, g.v = splitHeads(g.call, q, heads), splitHeads(g.call, k, shared), splitHeads(g.call, v, shared)
}

// place finds where the new tokens are in the cache.
func (g *grouped) place() {
	b, time := g.b, g.q.Dim(2)
	g.length, g.aligned = time, true
	g.start = ops.Zeros(b, ir.I32, g.q.Dim(0), ir.N(1))
	if !g.has(groupedPastKey) {
		return
	}
	past := g.x(groupedPastKey)
	if past.Rank() != 4 {
		g.fail(ir.Shapef("past_key is %s: it must have four axes", past.Shape()))
		return
	}
	g.length = g.cacheLength(past.Dim(2), time)
	g.aligned = g.q.Dim(0).Is(1) && g.length == past.Dim(2).Add(time)
	last := ops.Convert(b, ops.Reshape(b, g.x(groupedLast), g.q.Dim(0), ir.N(1)), ir.I32)
	first := ops.Sub(b, ops.Add(b, last, ops.Const(b, ir.I32, 1)), ops.DimSize(b, ir.I32, time))
	g.start = ops.Max(b, first, ops.Const(b, ir.I32, 0))
}

// cacheLength returns the length of the cache after the step: the past one and the new tokens, or the
// past one where that is a number and total_sequence_length is not known, which is a cache of fixed
// capacity. It is none if the model leaves the length open, whatever number Options.Sizes has for it.
func (g *grouped) cacheLength(past, time ir.Dim) ir.Dim {
	capacity, fixed := past.Const()
	grown := past.Add(time)
	if !fixed || capacity == 0 || !g.has(groupedTotal) || g.im.leavesOpen(g.in[groupedPastKey].from, 2) {
		return grown
	}
	total, known := g.in[groupedTotal].sizes(g.im)
	if !known || len(total) != 1 {
		return past
	}
	n, number := total[0].Const()
	if !number {
		if total[0] == grown {
			return grown
		}
		return past
	}
	return ir.N(max(capacity, n))
}

// rotate rotates queries and keys by their positions.
func (g *grouped) rotate() {
	at := g.opt(groupedPositions)
	if !at.Valid() {
		at = ops.Add(g.b, g.start, ops.Iota(g.b, ir.I32, 1, ir.N(1), g.q.Dim(2)))
	}
	cos, sin := g.x(groupedCos), g.x(groupedSin)
	if g.err != nil || cos.Rank() != 2 || sin.Rank() != 2 || at.Rank() != 2 {
		g.fail(ir.Shapef("cos_cache is %s: it and positions must have two axes", cos.Shape()))
		return
	}
	turn := func(x ir.Value) ir.Value { return rotatedAt(g.call, x, cos, sin, at, g.bool("rotary_interleaved")) }
	g.q, g.k = turn(g.q), turn(g.k)
}

// present returns the cache with the new tokens x.
func (g *grouped) present(x ir.Value, i int) ir.Value {
	if !g.has(i) || g.err != nil {
		return x
	}
	b, past := g.b, g.x(i)
	if g.aligned {
		return ops.Concatenate(b, 2, past, x)
	}
	if more := g.length.Sub(past.Dim(2)); !more.Is(0) {
		none := ir.N(0)
		past = ops.PadDims(b, past, ops.Const(b, past.DType(), 0), []ir.Dim{none, none, none, none}, []ir.Dim{none, none, more, none}, make([]int, 4))
	}
	// The new token of each position in the cache, in [batch, length].
	token := ops.Sub(b, ops.Iota(b, ir.I32, 1, ir.N(1), g.length), g.start)
	taken := ops.Gather(b, x, ops.ExpandDims(b, token, -1), ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{
		Axes: []int{2}, OperandBatch: []int{0}, IndexBatch: []int{0}, Outside: ops.OutsideClip,
	}}) // [batch, length, heads, d]
	taken = ops.SwapAxes(b, taken, 1, 2)
	is := ops.And(b, ops.Ge(b, token, ops.Const(b, ir.I32, 0)), ops.Lt(b, token, ops.DimSize(b, ir.I32, x.Dim(2))))
	is = ops.ExpandDims(b, ops.ExpandDims(b, is, 1), -1)
	return ops.Select(b, is, taken, past)
}

// attend returns the attention to the keys and values of the cache, [batch, time, heads·d].
func (g *grouped) attend(k, v ir.Value) ir.Value {
	b := g.b
	a := ops.AttentionAttrs{Scale: g.float("scale", 0), Softcap: g.float("softcap", 0)}
	mask := g.mask(&a)
	if !g.bool("smooth_softmax") && !g.has(groupedSink) {
		return merged(g.call, ops.Attention(b, g.q, k, v, mask, a))
	}
	// One more score, without a value, which takes its part of the weights.
	y, lse := ops.AttentionForward(b, g.q, k, v, mask, a)
	sink := ops.Const(b, lse.DType(), 0)
	if g.has(groupedSink) {
		sink = g.like(ops.Reshape(b, g.x(groupedSink), g.q.Dim(1), ir.N(1)), lse)
	}
	part := ops.ExpandDims(b, ops.Sigmoid(b, ops.Sub(b, lse, sink)), -1)
	return merged(g.call, ops.Mul(b, y, g.like(part, y)))
}

// mask returns what the scores are masked by: attributes where all sequences end with the cache, and
// otherwise the positions of queries and keys.
func (g *grouped) mask(a *ops.AttentionAttrs) ir.Value {
	b, window := g.b, g.int("local_window_size", -1)
	causal := g.int("causal", 1) != 0
	if window >= 0 && !causal {
		g.fail(ir.Attrf("local_window_size is given: causal must be 1"))
	}
	if g.aligned && causal {
		a.Causal, a.Window = true, max(window, 0)
		return g.biased(ir.Value{})
	}
	byQuery := func(x ir.Value) ir.Value { return ops.ExpandDims(b, ops.ExpandDims(b, x, 1), -1) }
	time := g.q.Dim(2)
	key := ops.Iota(b, ir.I32, 3, ir.N(1), ir.N(1), ir.N(1), g.length)
	if !causal {
		return g.biased(ops.Lt(b, key, byQuery(ops.Add(b, g.start, ops.DimSize(b, ir.I32, time)))))
	}
	at := byQuery(ops.Add(b, g.start, ops.Iota(b, ir.I32, 1, ir.N(1), time)))
	shown := ops.Le(b, key, at)
	if window > 0 {
		shown = ops.And(b, shown, ops.Gt(b, key, ops.Sub(b, at, ops.Const(b, ir.I32, float64(window)))))
	}
	return g.biased(shown)
}

// biased returns the additive operand, padded to the length of the cache, where keys are shown.
func (g *grouped) biased(shown ir.Value) ir.Value {
	if !g.has(groupedBias) {
		return shown
	}
	b, bias := g.b, overKeys(g.call, g.like(g.x(groupedBias), g.q), g.length)
	if !shown.Valid() {
		return bias
	}
	return ops.Select(b, shown, bias, ops.ConstLike(b, bias, math.Inf(-1)))
}
