package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Attention, and the two halves that fused kernels serve.
const (
	OpAttention         ir.Op = "attention"
	OpAttentionForward  ir.Op = "attention_forward"
	OpAttentionBackward ir.Op = "attention_backward"
)

// AttentionAttrs describe how scores come about.
type AttentionAttrs struct {
	// Scale multiplies the products of queries and keys.
	Scale float64
	// Softcap c, where not 0, makes c·tanh(s/c) of each score s.
	Softcap float64
	// Causal lets a query see a key only if the key is not later: the last
	// query belongs to the last key.
	Causal bool
}

// Visit shows the attributes.
func (a *AttentionAttrs) Visit(v ir.AttrVisitor) {
	v.Float("scale", &a.Scale)
	v.Float("softcap", &a.Softcap)
	v.Bool("causal", &a.Causal)
}

func init() {
	newAttrs := func() ir.Attrs { return &AttentionAttrs{Scale: 1} }
	constraints := []string{
		"q, k and v have one float type and one rank of at least 2: [..., m, d], [..., n, d] and [..., n, e]",
		"the axes before these two are those of a batch and, last, the heads: they are the same for all, but q may have a multiple of the heads of k and v",
		"mask, which may be left out, is boolean (true: seen) or of the type of q (added to the scores), and broadcasts to [..., m, n]",
		"softcap is not negative",
	}
	define(&ir.Def{
		Op: OpAttention,
		Doc: "softmax(scale·q·kᵀ)·v. The order is: products, scale, softcap, mask, softmax. A query that sees no key " +
			"gives 0. With causal a query sees no later key, where the last query belongs to the last key. It is computed in f32 for narrower types.",
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
		NoTranspose: notLinear,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			return b.Add(OpAttentionForward, n.Attrs(), in...)[:1]
		},
		Samples: attentionSamples,
	})
	define(&ir.Def{
		Op: OpAttentionForward,
		Doc: "The result of attention, and the logarithm of the sum of the exponentials of each query's scores, [..., m], " +
			"which is what the derivative needs; f32 for narrower types, -Inf for a query that sees no key.",
		Constraints: numbered(constraints...),
		Operands:    []string{"q", "k", "v", "mask"}, Optional: 1,
		NewAttrs:    newAttrs,
		Infer:       inferAttention,
		JVP:         jvpAttention,
		Batch:       batchAttention,
		NoTranspose: notLinear,
		Body:        attentionBody,
		Lower:       &ir.AttendLowering{Spec: attend},
		Samples:     attentionForwardSamples,
	})
	define(&ir.Def{
		Op: OpAttentionBackward,
		Doc: "Cotangents of q, k, v and of an additive mask, given lse, the second result of attention_forward, dout, the " +
			"cotangent of the first one, and delta = sum(dout·out) over the last axis, less the cotangent of lse.",
		Constraints: numbered(append(slices.Clone(constraints), "lse and delta have the types of lse, dout has the type of the result")...),
		Operands:    []string{"q", "k", "v", "lse", "delta", "dout", "mask"}, Optional: 1,
		NewAttrs:    newAttrs,
		Infer:       inferAttentionBackward,
		Batch:       batchAttention,
		NoTranspose: notLinear,
		Body:        attentionBackwardBody,
		Lower:       &ir.AttendLowering{Spec: attend},
		Samples:     attentionBackwardSamples,
	})
}

// Attention returns the attention of queries to keys and values; mask may be
// left out (the zero Value). A scale of 0 stands for 1/√d.
func Attention(b *ir.Builder, q, k, v, mask ir.Value, a AttentionAttrs) ir.Value {
	a.resolve(b, OpAttention, q)
	return b.Add1(OpAttention, &a, given(q, k, v, mask)...)
}

// AttentionForward returns the result of [Attention] and the log-sum-exp of the
// scores of each query.
func AttentionForward(b *ir.Builder, q, k, v, mask ir.Value, a AttentionAttrs) (out, lse ir.Value) {
	a.resolve(b, OpAttentionForward, q)
	r := b.Add(OpAttentionForward, &a, given(q, k, v, mask)...)
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	return r[0], r[1]
}

// AttentionBackward returns the cotangents of q, k, v and, where it is added to
// the scores, mask.
func AttentionBackward(b *ir.Builder, q, k, v, lse, delta, dout, mask ir.Value, a AttentionAttrs) []ir.Value {
	return b.Add(OpAttentionBackward, &a, given(q, k, v, lse, delta, dout, mask)...)
}

// resolve puts the default scale in.
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

// inferAttention returns the types of the result and of the log-sum-exp.
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
		return nil, ir.DTypef("q is %s, k is %s and v is %s: they have one type", q.DType, k.DType, v.DType)
	}
	rank := len(q.Shape)
	if rank < 2 || len(k.Shape) != rank || len(v.Shape) != rank {
		return nil, ir.Shapef("q, k and v have rank %d, %d and %d", rank, len(k.Shape), len(v.Shape))
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
	if !(a.Softcap >= 0) || a.Scale-a.Scale != 0 {
		return nil, ir.Attrf("scale %v and softcap %v", a.Scale, a.Softcap)
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

// attentionScores are the operands in the type that is computed in, with the
// products and scores of queries and keys.
type attentionScores struct {
	b       *ir.Builder
	a       *AttentionAttrs
	q, k, v ir.Value
	masks   []ir.Value // none or one
	// slope is the derivative of the softcap, invalid for 1.
	slope  ir.Value
	scores ir.Value // -Inf where a key is not seen
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
	if a.Causal {
		x = Select(b, s.seen(x), x, none)
	}
	s.scores = x
	return s
}

// seen compares the places of queries and keys, counted from the last ones.
func (s *attentionScores) seen(x ir.Value) ir.Value {
	b, shape := s.b, x.Shape()[x.Rank()-2:]
	query, key := Iota(b, ir.I32, 0, shape...), Iota(b, ir.I32, 1, shape...)
	if shape[0] != shape[1] {
		query = Add(b, query, Sub(b, DimSize(b, ir.I32, shape[1]), DimSize(b, ir.I32, shape[0])))
	}
	return BroadcastTo(b, Ge(b, query, key), x.Shape())
}

func (s *attentionScores) scaled(x ir.Value) ir.Value {
	return Mul(s.b, x, ConstLike(s.b, x, s.a.Scale))
}

// times multiplies rows of queries with a matrix for the heads of k and v: x is
// [..., m, i], y has the axis i contracted, its last (-1) or the one before
// (-2), and the result is [..., m, j]. Queries of heads that share a head of k
// are rows of one matrix.
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

// transposedTimes multiplies the transpose of x, [..., m, i], with y,
// [..., m, j], to [..., i, j], summing over the heads that share one of k.
func (s *attentionScores) transposedTimes(x, y ir.Value) ir.Value {
	batch := counting(0, x.Rank()-2)
	return DotGeneral(s.b, s.grouped(x), s.grouped(y), DotAttrs{LhsContract: []int{-2}, RhsContract: []int{-2}, LhsBatch: batch, RhsBatch: batch})
}

// grouped returns [..., heads, m, i] as [..., heads of k, m', i], where m' are
// the rows of all heads that share one of k.
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

// weights returns the probabilities, given the log-sum-exp.
func (s *attentionScores) weights(lse ir.Value) ir.Value {
	b := s.b
	finite := Select(b, Ge(b, lse, ConstLike(b, lse, -lse.DType().MaxFloat())), lse, ZerosLike(b, lse))
	return Exp(b, Sub(b, s.scores, ExpandDims(b, finite, -1)))
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

// sumTo sums x over the axes along which a value of the given shape is
// broadcast to that of x.
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

// optional returns the value of a list of at most one.
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

// batchAttention gives all operands one more axis in front. A mask keeps its
// broadcasting, unless it has a cotangent, which is summed within each member.
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

func attentionSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	type shapes = [][]int // of q, k, v and the mask
	sample := func(name string, a AttentionAttrs, of shapes) ir.Sample {
		s := ir.Sample{Name: name, Attrs: &a}
		for i, dims := range of {
			s.In = append(s.In, draw(uint64(40+i), ir.F32, -1, 1, dims...))
		}
		return s
	}
	plain := shapes{{2, 3, 4, 5}, {2, 3, 6, 5}, {2, 3, 6, 7}}
	square := shapes{{2, 5, 4}, {2, 5, 4}, {2, 5, 3}}
	boolean := sample("boolean mask", AttentionAttrs{Scale: 0.5}, square)
	boolean.In = append(boolean.In, ir.Ints(ir.Bool, []int64{
		1, 0, 0, 1, 1,
		0, 0, 0, 0, 0, // a query that sees no key
		1, 1, 1, 1, 1,
		0, 0, 1, 0, 0,
		1, 1, 0, 0, 1,
	}, 5, 5))
	half := ir.Sample{Name: "half", Attrs: &AttentionAttrs{Scale: 0.5}, In: []*ir.Array{drawn(ir.F16, 3, 4), drawn(ir.F16, 5, 4), drawn(ir.F16, 5, 2)}}
	return []ir.Sample{
		sample("plain", AttentionAttrs{Scale: 0.4}, plain),
		sample("no batch", AttentionAttrs{Scale: 1}, shapes{{3, 2}, {4, 2}, {4, 5}}),
		sample("causal", AttentionAttrs{Scale: 0.5, Causal: true}, square),
		sample("causal with a past", AttentionAttrs{Scale: 0.5, Causal: true}, shapes{{1, 2, 3}, {1, 5, 3}, {1, 5, 2}}),
		sample("causal with early queries", AttentionAttrs{Scale: 0.5, Causal: true}, shapes{{5, 3}, {3, 3}, {3, 2}}),
		sample("softcap", AttentionAttrs{Scale: 1, Softcap: 0.7}, square),
		sample("bias", AttentionAttrs{Scale: 0.5}, append(slices.Clone(plain), []int{3, 1, 6})),
		sample("bias, softcap and causal", AttentionAttrs{Scale: 0.5, Softcap: 2, Causal: true}, append(slices.Clone(square), []int{2, 5, 5})),
		sample("grouped queries", AttentionAttrs{Scale: 0.5, Causal: true}, shapes{{2, 6, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 2}, {6, 4, 4}}),
		sample("beyond a tile", AttentionAttrs{Scale: 0.2, Causal: true}, shapes{{2, 35, 33}, {2, 67, 33}, {2, 67, 17}}),
		sample("no queries", AttentionAttrs{Scale: 1}, shapes{{2, 0, 3}, {2, 4, 3}, {2, 4, 5}}),
		sample("no keys", AttentionAttrs{Scale: 1}, shapes{{2, 3, 3}, {2, 0, 3}, {2, 0, 5}}),
		boolean, half,
	}
}

// attentionForwardSamples leave out of gradient checks where a query sees no
// key: its log-sum-exp is -Inf.
func attentionForwardSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	samples := attentionSamples()
	for i, s := range samples {
		switch s.Name {
		case "causal with early queries", "no keys", "boolean mask":
			samples[i].NoGrad = "a result is infinite"
		}
	}
	return samples
}

// attentionBackwardSamples are those of the forward op, with numbers in place
// of what would follow from it: as a function of its operands the op has a
// value everywhere.
func attentionBackwardSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	samples := attentionSamples()
	for i, s := range samples {
		q, v := s.In[0], s.In[2]
		rows := q.Dims[:len(q.Dims)-1]
		d := sumType(q.DType)
		rest := []*ir.Array{
			draw(50, d, 1, 2, rows...), draw(51, d, -1, 1, rows...),
			draw(52, q.DType, -1, 1, slices.Concat(rows, v.Dims[len(v.Dims)-1:])...),
		}
		samples[i].In = slices.Concat(s.In[:3], rest, s.In[3:])
	}
	return samples
}
