package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Attention, and its forward and backward passes as fused kernels compute them.
const (
	OpAttention         ir.Op = "attention"
	OpAttentionForward  ir.Op = "attention_forward"
	OpAttentionBackward ir.Op = "attention_backward"
)

// AttentionAttrs describe how scores are computed.
type AttentionAttrs struct {
	// Scale multiplies q·kᵀ. Constructors take 0 for 1/√d.
	Scale float64
	// Softcap c, if not 0, replaces each score s by c·tanh(s/c).
	Softcap float64
	// Causal masks keys after the query. Positions are aligned at the end: the last query
	// has the position of the last key.
	Causal bool
	// Window, if not 0, limits how far back a query attends: a query at i attends to keys
	// j with i - j < Window. Fused kernels skip tiles of keys that are masked for all
	// their queries.
	Window int
}

// Visit shows the attributes.
func (a *AttentionAttrs) Visit(v ir.AttrVisitor) {
	v.Float("scale", &a.Scale)
	v.Float("softcap", &a.Softcap)
	v.Bool("causal", &a.Causal)
	v.Int("window", &a.Window)
}

func init() {
	newAttrs := func() ir.Attrs { return &AttentionAttrs{Scale: 1} }
	constraints := []string{
		"q, k and v have one float type and one rank of at least 2: [..., m, d], [..., n, d] and [..., n, e]",
		"the leading axes are batch axes and, last, the heads; they are equal for all operands, except that q may have a multiple of the heads of k and v",
		"mask, which may be left out, is boolean (true: attend) or of the type of q (added to the scores), and broadcasts to [..., m, n]",
		"softcap and window are not negative",
	}
	define(&ir.Def{
		Op: OpAttention,
		Doc: "softmax(scale·q·kᵀ)·v (Vaswani et al., Attention Is All You Need). Scores are scaled, capped by softcap·tanh(s/softcap), masked, and go through softmax. A fully masked query " +
			"gives 0. With causal a query at i attends to keys j ≤ i, with a window to those with i − j < window, where the last query has the position of the last key. It is computed in f32 for narrower types.",
		Constraints: numbered(constraints...),
		Operands:    []string{"q", "k", "v", "mask"}, Optional: 1,
		NewAttrs: newAttrs,
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := inferAttention(n)
			if err != nil {
				return nil, err
			}
			return t[:1], nil
		},
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			return b.Add(OpAttentionForward, n.Attrs(), in...)[:1]
		},
	})
	define(&ir.Def{
		Op: OpAttentionForward,
		Doc: "The result of attention, and the log-sum-exp of each query's scores, [..., m], " +
			"which is the residual of attention_backward; f32 for narrower types, -Inf for a fully masked query.",
		Constraints: numbered(constraints...),
		Operands:    []string{"q", "k", "v", "mask"}, Optional: 1,
		NewAttrs: newAttrs,
		Infer:    inferAttention,
		JVP:      jvpAttention,
		Batch:    batchAttention,
		Body:     attentionBody,
		Lower:    &ir.AttendLowering{Spec: attend},
	})
	define(&ir.Def{
		Op: OpAttentionBackward,
		Doc: "The cotangents of q, k, v and an additive mask, from lse, the second result of attention_forward, dout, the " +
			"cotangent of its first result out, and delta = sum(dout·out) over the last axis minus the cotangent of lse.",
		Constraints: numbered(append(slices.Clone(constraints), "lse and delta have the types of lse, dout has the type of the result")...),
		Operands:    []string{"q", "k", "v", "lse", "delta", "dout", "mask"}, Optional: 1,
		NewAttrs: newAttrs,
		Infer:    inferAttentionBackward,
		Batch:    batchAttention,
		Body:     attentionBackwardBody,
		Lower:    &ir.AttendLowering{Spec: attend},
	})
}

// Attention returns softmax(scale·q·kᵀ)·v for queries q [..., heads, m, d], keys k [...,
// heads, n, d] and values v [..., heads, n, e], of one float type: [..., heads, m, e]. q
// may have a multiple of the heads of k and v (grouped-query attention). mask, which may
// be left out (the zero Value), broadcasts to [..., heads, m, n]: booleans, true where a
// query attends to a key, or numbers of the type of q that are added to the scores. A
// fully masked query gives 0. A scale of 0 means 1/√d.
func Attention(b *ir.Builder, q, k, v, mask ir.Value, a AttentionAttrs) ir.Value {
	a.resolve(b, OpAttention, q)
	return b.Add1(OpAttention, &a, given(q, k, v, mask)...)
}

// AttentionForward returns the result of [Attention] and the log-sum-exp of the scores of
// each query, [..., heads, m], in f32 for narrower types: −Inf for a fully masked query.
func AttentionForward(b *ir.Builder, q, k, v, mask ir.Value, a AttentionAttrs) (out, lse ir.Value) {
	a.resolve(b, OpAttentionForward, q)
	return two(b.Add(OpAttentionForward, &a, given(q, k, v, mask)...))
}

// AttentionOperands are the operands of [Attention].
type AttentionOperands struct {
	// Q, K and V are [..., heads, m, d], [..., heads, n, d] and [..., heads, n, e].
	Q, K, V ir.Value
	// Mask, which may be left out (the zero Value), broadcasts to [..., heads, m, n].
	Mask ir.Value
}

// AttentionResiduals are the values that [AttentionBackward] reads besides the operands of [Attention].
type AttentionResiduals struct {
	// LSE, [..., heads, m], is the second result of [AttentionForward].
	LSE ir.Value
	// Delta, of the type of LSE, is the sum of DOut·out over the last axis, out being the first
	// result, minus the cotangent of LSE.
	Delta ir.Value
	// DOut, [..., heads, m, e], is the cotangent of out.
	DOut ir.Value
}

// AttentionBackward returns the cotangents of the operands Q, K, V and, if it is additive,
// Mask. A scale of 0 means 1/√d.
func AttentionBackward(b *ir.Builder, in AttentionOperands, r AttentionResiduals, a AttentionAttrs) []ir.Value {
	a.resolve(b, OpAttentionBackward, in.Q)
	return b.Add(OpAttentionBackward, &a, given(in.Q, in.K, in.V, r.LSE, r.Delta, r.DOut, in.Mask)...)
}

// resolve sets the default scale.
func (a *AttentionAttrs) resolve(b *ir.Builder, op ir.Op, q ir.Value) {
	if a.Scale != 0 || !q.Valid() {
		return
	}
	d, ok := q.Dim(-1).Const()
	if !ok {
		b.Failf(op, []ir.Value{q}, ir.Attrf("the default scale needs a constant last axis, not %s", q.Dim(-1)))
		return
	}
	a.Scale = 1 / math.Sqrt(float64(max(d, 1)))
}

// inferAttention returns the types of the result and the log-sum-exp.
func inferAttention(n *ir.Node) ([]ir.Type, error) {
	var mask *ir.Type
	if len(n.Inputs()) > 3 {
		t := n.Input(3).Type()
		mask = &t
	}
	return attentionTypes(n.Attrs().(*AttentionAttrs), n.InTypes()[:3], mask)
}

func attentionTypes(a *AttentionAttrs, qkv []ir.Type, mask *ir.Type) ([]ir.Type, error) {
	q, k, v := qkv[0], qkv[1], qkv[2]
	if err := floats.check(q.DType); err != nil {
		return nil, err
	}
	if k.DType != q.DType || v.DType != q.DType {
		return nil, ir.DTypef("q is %s, k %s and v %s, not of one type", q.DType, k.DType, v.DType)
	}
	rank := len(q.Shape)
	if rank < 2 || len(k.Shape) != rank || len(v.Shape) != rank {
		return nil, ir.Shapef("q, k and v have rank %d, %d and %d, not one rank of 2 or more", rank, len(k.Shape), len(v.Shape))
	}
	switch {
	case q.Shape[rank-1] != k.Shape[rank-1]:
		return nil, ir.Shapef("queries have %s elements, keys have %s: the last axes of q and k", q.Shape[rank-1], k.Shape[rank-1])
	case k.Shape[rank-2] != v.Shape[rank-2]:
		return nil, ir.Shapef("there are %s keys and %s values: the axes before the last of k and v", k.Shape[rank-2], v.Shape[rank-2])
	case !k.Shape[:rank-2].Equal(v.Shape[:rank-2]):
		return nil, ir.Shapef("the axes of k before the last two are %s, those of v %s", k.Shape[:rank-2], v.Shape[:rank-2])
	}
	for i := range rank - 2 {
		if _, err := q.Shape[i].Div(k.Shape[i]); q.Shape[i] != k.Shape[i] && (i < rank-3 || err != nil) {
			return nil, ir.Shapef("axis %d of q has size %s, of k %s", i, q.Shape[i], k.Shape[i])
		}
	}
	if !(a.Softcap >= 0) || a.Scale-a.Scale != 0 || a.Window < 0 {
		return nil, ir.Attrf("scale is %v, softcap %v and window %d: they must be finite, and softcap and window not negative", a.Scale, a.Softcap, a.Window)
	}
	rows := q.Shape[:rank-1]
	if mask != nil {
		if mask.DType != q.DType && !mask.DType.IsBool() {
			return nil, ir.DTypef("the mask is %s, neither bool nor %s", mask.DType, q.DType)
		}
		scores := slices.Concat(rows, ir.Shape{k.Shape[rank-2]})
		if s, err := BroadcastShapes(mask.Shape, scores); err != nil || !s.Equal(scores) {
			return nil, ir.Shapef("the mask %s does not broadcast to the scores %s", mask.Shape, scores)
		}
	}
	return []ir.Type{
		{DType: q.DType, Shape: slices.Concat(rows, ir.Shape{v.Shape[rank-1]})},
		{DType: sumType(q.DType), Shape: rows.Clone()},
	}, nil
}

func inferAttentionBackward(n *ir.Node) ([]ir.Type, error) {
	in := n.InTypes()
	out := slices.Clone(in[:3])
	var mask *ir.Type
	if len(in) > 6 {
		mask = &in[6]
		if !mask.DType.IsBool() {
			out = append(out, *mask)
		}
	}
	forward, err := attentionTypes(n.Attrs().(*AttentionAttrs), in[:3], mask)
	if err != nil {
		return nil, err
	}
	for i, want := range []ir.Type{forward[1], forward[1], forward[0]} {
		if !in[3+i].Equal(want) {
			return nil, ir.Shapef("%s is %s, not %s", n.Def().Operands[3+i], in[3+i], want)
		}
	}
	return out, nil
}

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

// jvpAttention returns a linear_call whose transpose is attention_backward.
func jvpAttention(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a := n.Attrs().(*AttentionAttrs)
	residuals := slices.Concat(in, out)
	linear := differentiable(n.InTypes())
	var tangents []ir.Value
	for _, i := range linear {
		tangents = append(tangents, orZeros(b, t[i], in[i]))
	}
	residualTypes, inTypes := ir.TypesOf(residuals), pick(n.InTypes(), linear)
	forward := closed(b, "attention_tangent", slices.Concat(residualTypes, inTypes), func(s *ir.Builder, p []ir.Value) []ir.Value {
		return attentionTangent(s, a, p[:len(in)], p[len(in):len(residuals)], p[len(residuals):])
	})
	transposed := closed(b, "attention_cotangent", slices.Concat(residualTypes, n.Types()), func(s *ir.Builder, p []ir.Value) []ir.Value {
		y, lse, dout, dlse := p[len(in)], p[len(in)+1], p[len(residuals)], p[len(residuals)+1]
		delta := Sub(s, ReduceSum(s, Mul(s, wide(s, dout), wide(s, y)), -1), dlse)
		operands := AttentionOperands{Q: p[0], K: p[1], V: p[2], Mask: optional(p[3:len(in)])}
		return AttentionBackward(s, operands, AttentionResiduals{LSE: lse, Delta: delta, DOut: dout}, *a)
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

// attend describes a node of attention_forward or of attention_backward whose
// shapes are constant.
func attend(n *ir.Node) ir.Attend {
	a := n.Attrs().(*AttentionAttrs)
	q, _ := n.Input(0).Shape().Ints()
	v, _ := n.Input(2).Shape().Ints()
	rank := len(q)
	s := ir.Attend{
		Heads: q[:rank-2], Share: 1,
		Queries: q[rank-2], Keys: v[rank-2], Depth: q[rank-1], Width: v[rank-1],
		Scale: a.Scale, Softcap: a.Softcap, Causal: a.Causal, Window: a.Window,
		Mask: -1, Backward: n.Op() == OpAttentionBackward,
	}
	if rank > 2 && v[rank-3] > 0 {
		s.Share = q[rank-3] / v[rank-3]
	}
	if mask := maskOperand(n); mask < len(n.Inputs()) {
		s.Mask = mask
	}
	return s
}

// maskOperand returns the operand index of a node's mask.
func maskOperand(n *ir.Node) int {
	if n.Op() == OpAttentionBackward {
		return 6
	}
	return 3
}

// Biases, masks and sinks of attention.
const (
	OpALiBi         ir.Op = "alibi"
	OpWindowMask    ir.Op = "window_mask"
	OpSinkAttention ir.Op = "sink_attention"
)

// ALiBiAttrs hold the shape of a bias: heads, queries and keys.
type ALiBiAttrs struct{ Shape []ir.Dim }

// Visit shows the attributes.
func (a *ALiBiAttrs) Visit(v ir.AttrVisitor) { v.Dims("shape", &a.Shape) }

// WindowMaskAttrs hold the numbers of queries and keys, and how many keys to the left and
// to the right of its own position a query attends to; a negative number is no limit.
type WindowMaskAttrs struct {
	Shape       []ir.Dim
	Left, Right int
}

// Visit shows the attributes.
func (a *WindowMaskAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("shape", &a.Shape)
	v.Int("left", &a.Left)
	v.Int("right", &a.Right)
}

const lastQueryDoc = " The last query has the position of the last key."

func init() {
	defineMask(OpALiBi, "The linear bias −slope·|i − j| of attention scores, f32[heads, queries, keys], for a query at i and a key at j, with the slope "+
		"2^(−8·h/n) for head h of n, from 1, where n is a power of two (Press, Smith and Lewis, Train Short, Test Long)."+lastQueryDoc,
		func() ir.Attrs { return &ALiBiAttrs{} }, "shape has three sizes, the first of them constant",
		func(n *ir.Node) (ir.DType, []ir.Dim, bool) {
			shape := n.Attrs().(*ALiBiAttrs).Shape
			heads := len(shape) == 3
			if heads {
				_, heads = shape[0].Const()
			}
			return ir.F32, shape, heads
		},
		func(b *ir.Builder, n *ir.Node, _ []ir.Value) []ir.Value {
			shape := n.Attrs().(*ALiBiAttrs).Shape
			heads, _ := shape[0].Const()
			slopes := table(b, ir.F32, heads, 1, 1)
			if slopes == nil {
				return []ir.Value{{}}
			}
			copy(slopes.F, alibiSlopes(heads))
			slopes.Round()
			gap := Convert(b, Abs(b, distances(b, shape[1:])), ir.F32)
			return []ir.Value{Mul(b, Neg(b, gap), Literal(b, slopes))}
		})
	defineMask(OpWindowMask, "The mask of local attention, bool[queries, keys]: true where a query at i attends to a key j, i − left ≤ j ≤ i + right. A negative bound is none."+lastQueryDoc,
		func() ir.Attrs { return &WindowMaskAttrs{Left: -1} }, "shape has two sizes",
		func(n *ir.Node) (ir.DType, []ir.Dim, bool) {
			shape := n.Attrs().(*WindowMaskAttrs).Shape
			return ir.Bool, shape, len(shape) == 2
		},
		func(b *ir.Builder, n *ir.Node, _ []ir.Value) []ir.Value {
			a := n.Attrs().(*WindowMaskAttrs)
			gap := distances(b, a.Shape)
			seen := Const(b, ir.Bool, 1, a.Shape...)
			if a.Left >= 0 && a.Left <= math.MaxInt32 {
				seen = And(b, seen, Ge(b, gap, ConstLike(b, gap, float64(-a.Left))))
			}
			if a.Right >= 0 && a.Right <= math.MaxInt32 {
				seen = And(b, seen, Le(b, gap, ConstLike(b, gap, float64(a.Right))))
			}
			return []ir.Value{seen}
		})
	defineComposite(composite{
		op: OpSinkAttention, operands: []string{"q", "k", "v", "sink", "mask"}, optional: 1, types: floats,
		newAttrs: func() ir.Attrs { return &AttentionAttrs{Scale: 1} },
		doc: "attention with one more score for each head, its sink, in the denominator of the softmax, so that a head need not attend to " +
			"any key (Xiao et al., Efficient Streaming Language Models).",
		constraints: []string{"q, k, v and mask are those of attention, with heads on the axis before the last two", "sink has the type of q and shape [heads of q]"},
		check:       checkSink,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			out, lse := AttentionForward(b, in[0], in[1], in[2], optional(in[4:]), *n.Attrs().(*AttentionAttrs))
			// exp(lse) / (exp(lse) + exp(sink)), the share of the keys
			share := Sigmoid(b, Sub(b, lse, ExpandDims(b, wide(b, in[3]), -1)))
			return Convert(b, Mul(b, wide(b, out), ExpandDims(b, share, -1)), in[0].DType())
		},
	})
}

func checkSink(n *ir.Node) error {
	q, sink := n.Input(0), n.Input(3)
	if q.Rank() < 3 || !sink.Type().Equal(ir.TypeOf(q.DType(), q.Dim(-3))) {
		return ir.Shapef("sink is %s, not of the type of q, %s, with an element for each head", sink.Type(), q.Type())
	}
	return nil
}

// defineMask defines an op without operands.
func defineMask(op ir.Op, doc string, newAttrs func() ir.Attrs, constraint string, typ func(n *ir.Node) (ir.DType, []ir.Dim, bool), body func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value) {
	define(&ir.Def{
		Op: op, Doc: doc, NewAttrs: newAttrs, Constraints: numbered(constraint),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			d, shape, ok := typ(n)
			for _, s := range shape {
				ok = ok && s.Valid()
			}
			if !ok {
				return nil, ir.Attrf("shape is %s: it must have the sizes that the constraints list, none negative", ir.Shape(shape))
			}
			return []ir.Type{{DType: d, Shape: shape}}, nil
		},
		NoGrad: "no operands",
		Body:   body,
	})
}

// distances returns query position minus key position, i32[queries, keys].
func distances(b *ir.Builder, shape []ir.Dim) ir.Value {
	query, key := Iota(b, ir.I32, 0, shape...), Iota(b, ir.I32, 1, shape...)
	return Sub(b, key, Add(b, query, Sub(b, DimSize(b, ir.I32, shape[1]), DimSize(b, ir.I32, shape[0]))))
}

// alibiSlopes returns the slopes of the paper's code: for n heads, n no power of two,
// those of the next lower power of two, then every other one of the next higher power.
func alibiSlopes(heads int) []float64 {
	power := 1
	for 2*power <= heads {
		power *= 2
	}
	var out []float64
	for i := range min(heads, power) {
		out = append(out, math.Pow(2, -8*float64(i+1)/float64(power)))
	}
	for i := range heads - len(out) {
		out = append(out, math.Pow(2, -4*float64(2*i+1)/float64(power)))
	}
	return out
}

// ALiBi returns the linear bias of attention scores, f32[heads, queries, keys]: −slope·|i
// − j| for a query at i and a key at j (Press, Smith and Lewis, Train Short, Test Long).
// heads is constant; positions are aligned at the end.
func ALiBi(b *ir.Builder, heads, queries, keys ir.Dim) ir.Value {
	return b.Add1(OpALiBi, &ALiBiAttrs{[]ir.Dim{heads, queries, keys}})
}

// WindowMask returns the mask of local attention, bool[queries, keys]: true where i − left
// ≤ j ≤ i + right for a query at i and a key at j. A negative bound is none, nor is one from 2³¹. Positions are
// aligned at the end.
func WindowMask(b *ir.Builder, queries, keys ir.Dim, left, right int) ir.Value {
	return b.Add1(OpWindowMask, &WindowMaskAttrs{[]ir.Dim{queries, keys}, left, right})
}

// SinkAttention is [Attention] with one more score for each head, sink [heads], in the
// denominator of the softmax (Xiao et al., Efficient Streaming Language Models).
func SinkAttention(b *ir.Builder, in AttentionOperands, sink ir.Value, a AttentionAttrs) ir.Value {
	a.resolve(b, OpSinkAttention, in.Q)
	return b.Add1(OpSinkAttention, &a, given(in.Q, in.K, in.V, sink, in.Mask)...)
}
