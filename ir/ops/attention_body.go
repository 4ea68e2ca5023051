package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// attentionScores hold the operands in the compute type, and the scaled products and the
// scores of queries and keys.
type attentionScores struct {
	b       *ir.Builder
	a       *AttentionAttrs
	q, k, v ir.Value
	masks   []ir.Value // none or one
	// slope is the derivative of the softcap, the zero Value if there is none.
	slope  ir.Value
	scores ir.Value // -Inf where masked
}

func scoresOf(b *ir.Builder, a *AttentionAttrs, q, k, v ir.Value, masks []ir.Value) *attentionScores {
	s := &attentionScores{b: b, a: a, q: wide(b, q), k: wide(b, k), v: wide(b, v), masks: masks}
	x := s.scaled(s.times(s.q, s.k, -1))
	if a.Softcap != 0 {
		t := Tanh(b, Mul(b, x, ConstLike(b, x, 1/a.Softcap)))
		s.slope = Sub(b, OnesLike(b, t), Mul(b, t, t))
		x = Mul(b, t, ConstLike(b, t, a.Softcap))
	}
	none := ConstLike(b, x, math.Inf(-1))
	for _, m := range masks {
		if m.DType().IsBool() {
			x = Select(b, m, x, none)
		} else {
			x = Add(b, x, wide(b, m))
		}
	}
	if a.Causal || a.Window > 0 {
		x = Select(b, s.seen(x), x, none)
	}
	s.scores = x
	return s
}

// seen masks x by the relative positions of queries and keys, aligned at the end.
func (s *attentionScores) seen(x ir.Value) ir.Value {
	b, shape := s.b, x.Shape()[x.Rank()-2:]
	query, key := Iota(b, ir.I32, 0, shape...), Iota(b, ir.I32, 1, shape...)
	if shape[0] != shape[1] {
		query = Add(b, query, Sub(b, DimSize(b, ir.I32, shape[1]), DimSize(b, ir.I32, shape[0])))
	}
	var seen []ir.Value
	if s.a.Causal {
		seen = append(seen, Ge(b, query, key))
	}
	if s.a.Window > 0 {
		seen = append(seen, Lt(b, Sub(b, query, key), Const(b, ir.I32, float64(s.a.Window))))
	}
	if len(seen) > 1 {
		seen[0] = And(b, seen[0], seen[1])
	}
	return BroadcastTo(b, seen[0], x.Shape())
}

func (s *attentionScores) scaled(x ir.Value) ir.Value {
	return Mul(s.b, x, ConstLike(s.b, x, s.a.Scale))
}

// times contracts query rows with a matrix of each head of k and v: x is [..., m, i], y is
// contracted along its last axis (-1) or the one before (-2), and the result is [..., m,
// j]. The query heads of one head of k and v are merged into the rows.
func (s *attentionScores) times(x, y ir.Value, contract int) ir.Value {
	rank := x.Rank()
	batch := counting(0, rank-2)
	g := s.grouped(x)
	r := DotGeneral(s.b, g, y, DotAttrs{LhsContract: []int{-1}, RhsContract: []int{contract}, LhsBatch: batch, RhsBatch: batch})
	if g == x || s.b.Err() != nil {
		return r
	}
	return Reshape(s.b, r, slices.Concat(x.Shape()[:rank-1], r.Shape()[rank-1:])...)
}

// transposedTimes returns xᵀ·y for x [..., m, i] and y [..., m, j]: [..., i, j], summed
// over the query heads of one head of k and v.
func (s *attentionScores) transposedTimes(x, y ir.Value) ir.Value {
	batch := counting(0, x.Rank()-2)
	return DotGeneral(s.b, s.grouped(x), s.grouped(y), DotAttrs{LhsContract: []int{-2}, RhsContract: []int{-2}, LhsBatch: batch, RhsBatch: batch})
}

// grouped merges [..., heads, m, i] into [..., heads of k, m', i], where m' are the rows
// of all query heads of one head of k.
func (s *attentionScores) grouped(x ir.Value) ir.Value {
	rank := x.Rank()
	if rank < 3 || s.b.Err() != nil || x.Dim(-3) == s.k.Dim(-3) {
		return x
	}
	shape := x.Shape()
	share, err := shape[rank-3].Div(s.k.Dim(-3))
	if err != nil {
		s.b.Failf(OpAttention, []ir.Value{x, s.k}, err)
		return x
	}
	return Reshape(s.b, x, slices.Concat(shape[:rank-3], ir.Shape{s.k.Dim(-3), share.Mul(shape[rank-2]), shape[rank-1]})...)
}

// weights returns the attention probabilities exp(scores − lse).
func (s *attentionScores) weights(lse ir.Value) ir.Value {
	b := s.b
	return Exp(b, Sub(b, s.scores, ExpandDims(b, zeroForNone(b, lse), -1)))
}

func attentionBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	s := scoresOf(b, n.Attrs().(*AttentionAttrs), in[0], in[1], in[2], in[3:])
	out := s.times(Softmax(b, s.scores, -1), s.v, -2)
	return []ir.Value{Convert(b, out, in[0].DType()), LogSumExp(b, s.scores, -1)}
}

func attentionBackwardBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	lse, delta, dout := in[3], in[4], wide(b, in[5])
	s := scoresOf(b, n.Attrs().(*AttentionAttrs), in[0], in[1], in[2], in[6:])
	p := s.weights(lse)
	ds := Mul(b, p, Sub(b, s.times(dout, s.v, -1), ExpandDims(b, delta, -1)))
	dx := ds
	if s.slope.Valid() {
		dx = Mul(b, ds, s.slope)
	}
	dx = s.scaled(dx)
	d := in[0].DType()
	out := []ir.Value{
		Convert(b, s.times(dx, s.k, -2), d),
		Convert(b, s.transposedTimes(dx, s.q), d),
		Convert(b, s.transposedTimes(p, dout), d),
	}
	for _, m := range s.masks {
		if !m.DType().IsBool() {
			out = append(out, Convert(b, sumTo(b, ds, m.Shape()), d))
		}
	}
	return out
}

// sumTo sums x over the axes along which shape was broadcast to the shape of x.
func sumTo(b *ir.Builder, x ir.Value, shape ir.Shape) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	lead := x.Rank() - len(shape)
	axes := counting(0, lead)
	for i, d := range shape {
		if d != x.Dim(lead+i) {
			axes = append(axes, lead+i)
		}
	}
	if len(axes) == 0 {
		return x
	}
	return Reshape(b, ReduceSum(b, x, axes...), shape...)
}
