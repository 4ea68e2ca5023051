package ops

import "github.com/rlx-go/rlx/ir"

func gatedDelta(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	d, k, v := in[0].DType(), in[1], in[2]
	in = each(in, func(v ir.Value) ir.Value { return wide(b, v) })
	state := optional(in[5:])
	if !state.Valid() {
		state = Zeros(b, in[0].DType(), k.Dim(0), k.Dim(2), k.Dim(3), v.Dim(3))
	}
	gate := in[3]
	if gate.Rank() == 3 {
		gate = ExpandDims(b, gate, -1)
	}
	q := Mul(b, in[0], ConstLike(b, in[0], n.Attrs().(*ScaleAttrs).Scale))
	xs := each([]ir.Value{q, in[1], in[2], gate, in[4]}, func(v ir.Value) ir.Value { return MoveAxis(b, v, 1, 0) })
	last, ys := Scan(b, Loop{
		Carries: []ir.Value{state}, Xs: xs,
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			q, k, v := ExpandDims(b, xs[0], -1), ExpandDims(b, xs[1], -1), xs[2]
			s := Mul(b, carries[0], ExpandDims(b, Exp(b, xs[3]), -1))
			known := ReduceSum(b, Mul(b, s, k), -2)
			change := Mul(b, Sub(b, v, known), ExpandDims(b, xs[4], -1))
			s = Add(b, s, Mul(b, k, ExpandDims(b, change, -2)))
			return []ir.Value{s}, []ir.Value{ReduceSum(b, Mul(b, s, q), -2)}
		},
	})
	return []ir.Value{Convert(b, MoveAxis(b, optional(ys), 0, 1), d), Convert(b, optional(last), d)}
}

// GatedDelta returns y and the final state of the gated delta rule (Yang, Kautz and
// Hatamizadeh), for q and k [batch, time, heads, d], v [batch, time, heads, e], g and beta
// [batch, time, heads] (or g like k, a gate for each channel), and an initial state
// [batch, heads, d, e], which may be left out (the zero Value) for zeros.
func GatedDelta(b *ir.Builder, q, k, v, g, beta, state ir.Value, scale float64) (y, last ir.Value) {
	out := several(2, b.Add(OpGatedDelta, &ScaleAttrs{scale}, given(q, k, v, g, beta, state)...))
	return out[0], out[1]
}
