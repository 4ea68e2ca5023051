package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// jvpAttention returns a linear_call whose transpose is attention_backward.
func jvpAttention(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a := n.Attrs().(*AttentionAttrs)
	residuals := slices.Concat(in, out)
	linear := differentiable(n.InTypes())
	var tangents []ir.Value
	for _, i := range linear {
		tangents = append(tangents, orZeros(b, t[i], in[i]))
	}
	residualTypes, inTypes := typesOf(residuals), pick(n.InTypes(), linear)
	forward := closed(b, "attention_tangent", slices.Concat(residualTypes, inTypes), func(s *ir.Builder, p []ir.Value) []ir.Value {
		return attentionTangent(s, a, p[:len(in)], p[len(in):len(residuals)], p[len(residuals):])
	})
	transposed := closed(b, "attention_cotangent", slices.Concat(residualTypes, n.Types()), func(s *ir.Builder, p []ir.Value) []ir.Value {
		y, lse, dout, dlse := p[len(in)], p[len(in)+1], p[len(residuals)], p[len(residuals)+1]
		delta := Sub(s, ReduceSum(s, Mul(s, wide(s, dout), wide(s, y)), -1), dlse)
		return AttentionBackward(s, p[0], p[1], p[2], lse, delta, dout, optional(p[3:len(in)]), *a)
	})
	return LinearCall(b, forward, transposed, residuals, tangents)
}

// optional returns the only value of a list, or the zero Value if it is empty.
func optional(list []ir.Value) ir.Value {
	if len(list) == 0 {
		return ir.Value{}
	}
	return list[0]
}

// attentionTangent returns the tangents of the result and of the log-sum-exp.
// With the probabilities p and the tangents ts of the scores they are
// Σ p·(ts - tlse)·v + Σ p·tv and tlse = Σ p·ts.
func attentionTangent(b *ir.Builder, a *AttentionAttrs, in, out, t []ir.Value) []ir.Value {
	s := scoresOf(b, a, in[0], in[1], in[2], in[3:])
	p := s.weights(out[1])
	tq, tk, tv := wide(b, t[0]), wide(b, t[1]), wide(b, t[2])
	ts := s.scaled(Add(b, s.times(tq, s.k, -1), s.times(s.q, tk, -1)))
	if s.slope.Valid() {
		ts = Mul(b, ts, s.slope)
	}
	for _, m := range t[3:] {
		ts = Add(b, ts, wide(b, m))
	}
	pts := Mul(b, p, ts)
	tlse := ReduceSum(b, pts, -1)
	tout := Add(b, s.times(pts, s.v, -2), s.times(p, tv, -2))
	tout = Sub(b, tout, Mul(b, ExpandDims(b, tlse, -1), wide(b, out[0])))
	return []ir.Value{Convert(b, tout, in[0].DType()), tlse}
}

// batchAttention gives all operands one more leading axis. A mask stays broadcast, unless
// it has a cotangent, which is summed within each batch member.
func batchAttention(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	mask := maskOperand(n)
	front := make([]ir.Value, len(in))
	for i, v := range in {
		if i == mask && axes[i] < 0 && (mask == 3 || v.DType().IsBool()) {
			front[i] = v
			continue
		}
		front[i] = BatchAt(b, v, axes[i], 0, size)
		missing := n.Input(0).Rank() - n.Input(i).Rank()
		if i == mask && missing > 0 && b.Err() == nil {
			front[i] = Reshape(b, front[i], slices.Insert(front[i].Shape().Clone(), 1, slices.Repeat(ir.Dims(1), missing)...)...)
		}
	}
	out := b.Add(n.Op(), n.Attrs(), front...)
	if n.Op() == OpAttentionBackward && len(out) > 3 {
		out[3] = Reshape(b, out[3], slices.Concat(ir.Shape{size}, n.Types()[3].Shape)...)
	}
	return out, repeatInt(0, n.NumResults())
}
