package onnx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("Attention", attention)
	add("RotaryEmbedding", single(rotary))
	add("LinearAttention", linearAttention)
}

// splitHeads returns [batch, heads, time, d] of [batch, time, heads·d], or x itself if it has four axes.
func splitHeads(c *call, x ir.Value, n int) ir.Value {
	if x.Rank() != 3 || n < 1 {
		return x
	}
	d, err := x.Dim(2).Div(ir.N(n))
	c.fail(err)
	return ops.SwapAxes(c.b, ops.Reshape(c.b, x, x.Dim(0), x.Dim(1), ir.N(n), d), 1, 2)
}

// merged is the inverse of heads.
func merged(c *call, x ir.Value) ir.Value {
	x = ops.SwapAxes(c.b, x, 1, 2)
	return ops.Reshape(c.b, x, x.Dim(0), x.Dim(1), x.Dim(2).Mul(x.Dim(3)))
}

// shareHeads repeats each head of keys or values for the query heads that share it.
func shareHeads(c *call, x ir.Value, heads ir.Dim) ir.Value {
	if x.Dim(1) == heads {
		return x
	}
	n, err := heads.Div(x.Dim(1))
	c.fail(err)
	times, ok := n.Const()
	if !ok || times < 1 {
		c.fail(ir.Shapef("there are %s heads of keys: they must divide the heads of queries, %s", x.Dim(1), heads))
		return x
	}
	return ops.Repeat(c.b, x, 1, times)
}

// attention imports Attention with its caches and with the scores of a stage of
// qk_matmul_output_mode.
func attention(c *call) []ir.Value {
	q, k, v := c.x(0), c.x(1), c.x(2)
	flat := q.Rank() == 3
	q = splitHeads(c, q, c.int("q_num_heads", 0))
	k, v = splitHeads(c, k, c.int("kv_num_heads", 0)), splitHeads(c, v, c.int("kv_num_heads", 0))
	if q.Rank() != 4 || k.Rank() != 4 || v.Rank() != 4 {
		c.fail(ir.Shapef("queries are %s, keys %s and values %s: they must have three axes and numbers of heads, or four", q.Shape(), k.Shape(), v.Shape()))
		return nil
	}
	offset := ops.Const(c.b, ir.I64, 0) // the position of the first query
	if c.has(4) && c.has(5) {
		offset = ops.DimSize(c.b, ir.I64, c.x(4).Dim(2))
		k, v = ops.Concatenate(c.b, 2, c.x(4), k), ops.Concatenate(c.b, 2, c.x(5), v)
	}
	presentK, presentV := k, v
	k, v = shareHeads(c, k, q.Dim(1)), shareHeads(c, v, q.Dim(1))
	n, _ := q.Dim(3).Const()
	scale := math.Sqrt(c.float("scale", 1/math.Sqrt(float64(max(n, 1)))))
	scores := ops.MatMul(c.b, scaled(c, q, scale), ops.SwapAxes(c.b, scaled(c, k, scale), 2, 3))
	shown := scores
	if limit := c.float("softcap", 0); limit > 0 {
		scores = scaled(c, ops.Tanh(c.b, scaled(c, scores, 1/limit)), limit)
	}
	mode := c.int("qk_matmul_output_mode", 0)
	if mode == 1 {
		shown = scores
	}
	bias, allowed := attentionMasks(c, scores, offset)
	if bias.Valid() {
		scores = ops.Add(c.b, scores, bias)
	}
	if allowed.Valid() {
		scores = ops.Select(c.b, allowed, scores, ops.Const(c.b, scores.DType(), math.Inf(-1)))
	}
	if mode == 2 {
		shown = scores
	}
	weights := c.like(maskedSoftmax(c, scores, c.element("softmax_precision", Float)), q)
	if mode == 3 {
		shown = weights
	}
	y := ops.MatMul(c.b, weights, v)
	if flat {
		y = merged(c, y)
	}
	return []ir.Value{y, presentK, presentV, shown}
}

// maskedSoftmax is softmax along the last axis, of rows that are masked as a whole 0.
func maskedSoftmax(c *call, x ir.Value, precision Element) ir.Value {
	if x.DType() != ir.F64 {
		x = ops.Convert(c.b, x, precision.DType())
	}
	last := x.Rank() - 1
	high := ops.StopGradient(c.b, ops.KeepDims(c.b, ops.ReduceMax, x, last))
	none := ops.Eq(c.b, high, ops.ConstLike(c.b, high, math.Inf(-1)))
	e := ops.Exp(c.b, ops.Sub(c.b, x, ops.Select(c.b, none, ops.ConstLike(c.b, high, 0), high)))
	sum := ops.KeepDims(c.b, ops.ReduceSum, e, last)
	return ops.Div(c.b, e, ops.Select(c.b, none, ops.ConstLike(c.b, sum, 1), sum))
}

// attentionMasks returns an additive and a boolean mask; either may be invalid.
func attentionMasks(c *call, scores, offset ir.Value) (bias, allowed ir.Value) {
	b := c.b
	both := func(x ir.Value) {
		if !allowed.Valid() {
			allowed = x
		} else {
			allowed = ops.And(b, allowed, x)
		}
	}
	if c.has(3) {
		mask := c.x(3)
		if missing := scores.Dim(-1).Sub(mask.Dim(-1)); mask.Dim(-1) != scores.Dim(-1) && !mask.Dim(-1).Is(1) {
			high := make([]ir.Dim, mask.Rank())
			for i := range high {
				high[i] = ir.N(0)
			}
			low := append([]ir.Dim{}, high...)
			high[len(high)-1] = missing
			hidden := math.Inf(-1)
			if mask.DType() == ir.Bool {
				hidden = 0
			}
			mask = ops.PadDims(b, mask, ops.Const(b, mask.DType(), hidden), low, high, make([]int, len(low)))
		}
		if mask.DType() == ir.Bool {
			both(mask)
		} else {
			bias = c.like(mask, scores)
		}
	}
	matrix := ir.Shape{scores.Dim(2), scores.Dim(3)}
	query, key := ops.Iota(b, ir.I64, 0, matrix...), ops.Iota(b, ir.I64, 1, matrix...)
	if c.has(6) && !c.has(4) {
		valid := ops.Reshape(b, ops.Convert(b, c.x(6), ir.I64), c.x(6).Shape().Size(), ir.N(1), ir.N(1), ir.N(1))
		both(ops.Lt(b, key, valid))
		offset = ops.Sub(b, valid, ops.DimSize(b, ir.I64, scores.Dim(2)))
	}
	position := ops.Add(b, query, offset)
	if c.bool("is_causal") {
		both(ops.Le(b, key, position))
	}
	if w := c.int("left_window_size", -1); w >= 0 {
		both(ops.Le(b, ops.Sub(b, position, key), ops.Const(b, ir.I64, float64(w))))
	}
	if w := c.int("right_window_size", -1); w >= 0 {
		both(ops.Le(b, ops.Sub(b, key, position), ops.Const(b, ir.I64, float64(w))))
	}
	return bias, allowed
}

// rotary rotates pairs of features: neighbours if interleaved, otherwise those of two halves.
func rotary(c *call) ir.Value {
	x, cos, sin := c.x(0), c.x(1), c.x(2)
	flat := x.Rank() == 3
	x = splitHeads(c, x, c.int("num_heads", 0))
	if x.Rank() != 4 {
		c.fail(ir.Shapef("the operand is %s: it must have four axes, or three and num_heads be given", x.Shape()))
		return ir.Value{}
	}
	if c.has(3) {
		at := c.x(3)
		cos, sin = ops.Take(c.b, cos, at, 0, ops.OutsideClip), ops.Take(c.b, sin, at, 0, ops.OutsideClip)
	}
	y := ops.Rope(c.b, x, ops.ExpandDims(c.b, cos, 1), ops.ExpandDims(c.b, sin, 1), ops.RopeAttrs{Interleaved: c.bool("interleaved")})
	if flat {
		y = merged(c, y)
	}
	return y
}

// linearAttention imports attention with a matrix as state for each head: a step applies a decay
// and a correction by update_rule, and adds the product of key and value.
func linearAttention(c *call) []ir.Value {
	b, rule := c.b, c.text("update_rule", "gated_delta")
	gated, delta := rule == "gated" || rule == "gated_delta", rule == "delta" || rule == "gated_delta"
	if !gated && !delta && rule != "linear" {
		c.failf("update_rule is %q: it must be linear, gated, delta or gated_delta", rule)
		return nil
	}
	queries, shared := c.int("q_num_heads", 0), c.int("kv_num_heads", 0)
	wide := func(i, heads int) ir.Value { return ops.Convert(b, splitHeads(c, c.x(i), heads), ir.F32) }
	q, k, v := wide(0, queries), wide(1, shared), wide(2, shared)
	if q.Rank() != 4 || k.Rank() != 4 || v.Rank() != 4 {
		c.fail(ir.Shapef("queries are %s, q_num_heads %d and kv_num_heads %d: they must have three axes, and the numbers be 1 or more", c.x(0).Shape(), queries, shared))
		return nil
	}
	state := c.opt(3)
	kept := c.x(0).DType()
	if state.Valid() {
		kept = state.DType()
		state = ops.Convert(b, state, ir.F32)
	} else {
		state = ops.Zeros(b, ir.F32, k.Dim(0), k.Dim(1), k.Dim(3), v.Dim(3))
	}
	steps := []ir.Value{k, v}
	if gated {
		steps = append(steps, ops.Exp(b, perHead(c, 4, shared)))
	}
	if delta {
		steps = append(steps, perHead(c, 5, shared))
	}
	for i, x := range steps {
		steps[i] = ops.MoveAxis(b, x, 2, 0)
	}
	steps = append(steps, ops.MoveAxis(b, q, 2, 0))
	n, _ := q.Dim(3).Const()
	scale := c.float("scale", 0)
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(max(n, 1)))
	}
	heads := q.Dim(1)
	carries, ys := ops.Scan(b, ops.Loop{Carries: []ir.Value{state}, Xs: steps, Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
		inner := &call{scope: &scope{im: c.im, b: b}}
		s := linearStep(b, carries[0], xs, gated, delta)
		y := ops.Einsum(b, "bhd,bhdm->bhm", xs[len(xs)-1], shareHeads(inner, s, heads))
		return []ir.Value{s}, []ir.Value{scaled(inner, y, scale)}
	}})
	if len(ys) == 0 || len(carries) == 0 {
		return nil
	}
	y := merged(c, ops.MoveAxis(b, ys[0], 0, 2))
	return []ir.Value{c.like(y, c.x(0)), ops.Convert(b, carries[0], kept)}
}

// linearStep returns the state of a linear attention after a step, from the key, the value, the decay (if gated),
// the rate of correction (with delta) and the query of the step.
func linearStep(b *ir.Builder, state ir.Value, xs []ir.Value, gated, delta bool) ir.Value {
	k, v := xs[0], xs[1]
	if gated {
		state = ops.Mul(b, state, ops.ExpandDims(b, xs[2], 3))
	}
	if delta {
		v = ops.Mul(b, xs[len(xs)-2], ops.Sub(b, v, ops.Einsum(b, "bhdm,bhd->bhm", state, k)))
	}
	return ops.Add(b, state, ops.Einsum(b, "bhd,bhm->bhdm", k, v))
}

// perHead returns an operand [batch, time, heads] or [batch, time, heads·d] as [batch, heads, time,
// 1 or d]; one head of it serves all.
func perHead(c *call, i, heads int) ir.Value {
	x := ops.Convert(c.b, c.x(i), ir.F32)
	if x.Rank() == 3 && x.Dim(2).Is(1) {
		return splitHeads(c, x, 1)
	}
	return splitHeads(c, x, heads)
}
