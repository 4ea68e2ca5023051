package onnx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addMicrosoft("RotaryEmbedding", single(microsoftRotary))
	addMicrosoft("MultiHeadAttention", multiHeadAttention)
	addMicrosoft("Attention", mergedAttention)
}

// microsoftRotary is RotaryEmbedding with its operands in another order; a single position is that of
// the first element.
func microsoftRotary(c *call) ir.Value {
	x, at, cos, sin := c.x(0), c.x(1), c.x(2), c.x(3)
	if c.bool("is_packed_batching") || c.float("scale", 1) != 1 {
		c.failf("is_packed_batching or scale is given: they must be 0 and 1")
	}
	if c.err != nil || cos.Rank() != 2 {
		c.fail(ir.Shapef("cos_cache is %s: it must have two axes", cos.Shape()))
		return ir.Value{}
	}
	flat := x.Rank() == 3
	if flat {
		x = splitHeads(c, x, headsOf(c, x, cos))
	}
	if x.Rank() != 4 || at.Rank() < 1 || at.Rank() > 2 {
		c.fail(ir.Shapef("the operand is %s and positions %s: they must have three or four axes, and one or two", x.Shape(), at.Shape()))
		return ir.Value{}
	}
	if at.Rank() == 1 {
		at = ops.Add(c.b, ops.Reshape(c.b, at, ir.N(1), ir.N(1)), ops.Iota(c.b, at.DType(), 1, ir.N(1), x.Dim(2)))
	}
	y := rotatedAt(c, x, cos, sin, at, c.bool("interleaved"))
	if flat {
		y = merged(c, y)
	}
	return y
}

// headsOf returns the number of heads of x [batch, time, width]: that of the node, or as many as have
// the size that is rotated.
func headsOf(c *call, x, cos ir.Value) int {
	n := c.int("num_heads", 0)
	if n > 0 {
		return n
	}
	width, _ := x.Dim(2).Const()
	half, ok := cos.Dim(1).Const()
	if !ok || half < 1 || width < 2*half {
		c.fail(ir.Attrf("num_heads is missing: the width, %s, must be a multiple of twice that of cos_cache, %s", x.Dim(2), cos.Dim(1)))
		return 1
	}
	return width / (2 * half)
}

// rotatedAt rotates the first features of heads x [batch, heads, time, d] by rows of tables of cosines
// and sines at positions [batch or 1, time].
func rotatedAt(c *call, x, cos, sin, at ir.Value, interleaved bool) ir.Value {
	row := func(table ir.Value) ir.Value {
		return ops.ExpandDims(c.b, ops.Take(c.b, table, at, 0, ops.OutsideClip), 1)
	}
	return ops.Rope(c.b, x, row(cos), row(sin), ops.RopeAttrs{Interleaved: interleaved})
}

// headsAttention are queries, keys and values by heads, [batch, heads, time, d], and a mask or bias to add to
// scores.
type headsAttention struct {
	q, k, v ir.Value
	masks   []ir.Value // f32, broadcast to the scores
}

// add adds an operand to the scores, if it is given.
func (h *headsAttention) add(c *call, i int) {
	if c.has(i) {
		h.masks = append(h.masks, overKeys(c, ops.Convert(c.b, c.x(i), ir.F32), h.k.Dim(2)))
	}
}

// overKeys returns a mask whose last axis has the number of keys: zeros follow one for fewer.
func overKeys(c *call, mask ir.Value, keys ir.Dim) ir.Value {
	if mask.Dim(-1) == keys || mask.Dim(-1).Is(1) || !mask.Valid() {
		return mask
	}
	low, high := make([]ir.Dim, mask.Rank()), make([]ir.Dim, mask.Rank())
	for i := range low {
		low[i], high[i] = ir.N(0), ir.N(0)
	}
	high[len(high)-1] = keys.Sub(mask.Dim(-1))
	return ops.PadDims(c.b, mask, ops.Const(c.b, mask.DType(), 0), low, high, make([]int, len(low)))
}

// addMask hides the keys that an operand masks: lengths [batch], ends and starts [2·batch], or zeros of
// [batch, keys] or [batch, queries, keys].
func (h *headsAttention) addMask(c *call, i int) {
	if !c.has(i) {
		return
	}
	b, mask, batch := c.b, c.x(i), h.q.Dim(0)
	switch {
	case mask.Rank() == 2 || mask.Rank() == 3:
		mask = overKeys(c, ops.Ne(b, mask, ops.ConstLike(b, mask, 0)), h.k.Dim(2))
	case mask.Rank() == 1 && (mask.Dim(0) == batch || mask.Dim(0) == batch.Mul(ir.N(2))):
		key := ops.Iota(b, mask.DType(), 1, ir.N(1), h.k.Dim(2))
		from := func(at ir.Dim) ir.Value { return ops.ExpandDims(b, ops.SliceAxis(b, mask, 0, at, batch), 1) }
		shown := ops.Lt(b, key, from(ir.N(0)))
		if mask.Dim(0) != batch {
			shown = ops.And(b, shown, ops.Ge(b, key, from(batch)))
		}
		mask = shown
	default:
		c.failf("the mask is %s: it must be [batch], lengths, [2·batch], ends and starts, [batch, keys] or [batch, queries, keys]", mask.Shape())
		return
	}
	if mask.Rank() == 2 {
		mask = ops.ExpandDims(b, mask, 1)
	}
	mask = ops.ExpandDims(b, mask, 1)
	hidden := ops.Const(b, ir.F32, c.float("mask_filter_value", -10000))
	h.masks = append(h.masks, ops.Select(b, mask, ops.Const(b, ir.F32, 0), hidden))
}

// result returns the attention, [batch, time, heads·d].
func (h *headsAttention) result(c *call) ir.Value {
	var mask ir.Value
	for _, m := range h.masks {
		if mask.Valid() {
			m = ops.Add(c.b, mask, m)
		}
		mask = m
	}
	if mask.Valid() {
		mask = c.like(mask, h.q)
	}
	y := ops.Attention(c.b, h.q, h.k, h.v, mask, ops.AttentionAttrs{Scale: c.float("scale", 0), Causal: c.bool("unidirectional")})
	return merged(c, y)
}

// multiHeadAttention imports attention of projected queries, keys and values.
func multiHeadAttention(c *call) []ir.Value {
	h := headsAttention{}
	if c.has(8) || c.has(9) {
		c.failf("past_sequence_length or cache_indirection is given: they must be left out, as caches have no fixed capacity")
	}
	h.q, h.k, h.v = multiHeads(c, c.int("num_heads", 0))
	if c.err != nil || h.q.Rank() != 4 || h.k.Rank() != 4 || h.v.Rank() != 4 {
		c.fail(ir.Shapef("queries are %s, keys %s and values %s: they must have four axes after they are split into heads", h.q.Shape(), h.k.Shape(), h.v.Shape()))
		return nil
	}
	if c.has(6) && c.has(7) {
		h.k, h.v = ops.Concatenate(c.b, 2, c.x(6), h.k), ops.Concatenate(c.b, 2, c.x(7), h.v)
	}
	h.addMask(c, 4)
	h.add(c, 5)
	return []ir.Value{h.result(c), h.k, h.v}
}

// multiHeads returns the heads of MultiHeadAttention's queries, keys and values, [batch, heads, time,
// d], given as [batch, time, heads·d], or keys and values as heads.
func multiHeads(c *call, heads int) (q, k, v ir.Value) {
	q, k, v = c.x(0), c.opt(1), c.opt(2)
	if q.Rank() != 3 || !k.Valid() || !v.Valid() {
		c.failf("queries are %s: they must have three axes, and keys and values be operands of their own", q.Shape())
		return q, k, v
	}
	if heads < 1 {
		c.fail(ir.Attrf("num_heads is %d: it must be 1 or more", heads))
	}
	width := q.Dim(2)
	split := func(x ir.Value, at ir.Dim) ir.Value {
		if x.Rank() == 3 && c.has(3) {
			x = ops.Add(c.b, x, ops.SliceAxis(c.b, c.x(3), 0, at, x.Dim(2)))
		}
		return splitHeads(c, x, heads)
	}
	return split(q, ir.N(0)), split(k, width), split(v, width.Mul(ir.N(2)))
}

// mergedAttention imports the op Attention of com.microsoft: one product computes queries, keys and
// values.
func mergedAttention(c *call) []ir.Value {
	b, heads := c.b, c.int("num_heads", 0)
	if c.bool("do_rotary") || c.bool("past_present_share_buffer") || c.has(6) {
		c.failf("do_rotary, past_present_share_buffer or past_sequence_length is given: they must be left out")
	}
	all := plus(c, ops.MatMul(b, c.x(0), c.x(1)), 2)
	if c.err != nil || all.Rank() != 3 || heads < 1 {
		c.fail(ir.Shapef("the product of input and weights is %s and num_heads %d: they must have three axes, and be 1 or more", all.Shape(), heads))
		return nil
	}
	parts := ops.Split(b, all, 2, mergedSizes(c, all.Dim(2))...)
	if len(parts) != 3 {
		return nil
	}
	h := headsAttention{q: splitHeads(c, parts[0], heads), k: splitHeads(c, parts[1], heads), v: splitHeads(c, parts[2], heads)}
	if c.has(4) {
		past := ops.Unstack(b, c.x(4), 0)
		if len(past) != 2 {
			c.fail(ir.Shapef("past is %s: it must be a pair of keys and values", c.x(4).Shape()))
			return nil
		}
		h.k, h.v = ops.Concatenate(b, 2, past[0], h.k), ops.Concatenate(b, 2, past[1], h.v)
	}
	h.addMask(c, 3)
	h.add(c, 5)
	out := []ir.Value{h.result(c), {}}
	if c.wants(1) {
		out[1] = ops.Stack(b, 0, h.k, h.v)
	}
	return out
}

// mergedSizes returns the sizes of queries, keys and values side by side.
func mergedSizes(c *call, size ir.Dim) []ir.Dim {
	var out []ir.Dim
	for _, n := range c.ints("qkv_hidden_sizes") {
		if n < 0 {
			c.fail(ir.Attrf("qkv_hidden_sizes has %d: it must be 0 or greater", n))
			n = 0
		}
		out = append(out, ir.N(n))
	}
	if len(out) == 3 {
		return out
	}
	each, err := size.Div(ir.N(3))
	c.fail(err)
	return []ir.Dim{each, each, each}
}
