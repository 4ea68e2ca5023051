package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// OpCachedAttention is attention over a cache of keys and values that is filled in part.
const OpCachedAttention ir.Op = "cached_attention"

// CachedAttentionAttrs describe how scores are computed, as [AttentionAttrs] do. The mask is causal.
type CachedAttentionAttrs struct {
	// Scale multiplies q·kᵀ. The constructor takes 0 for 1/√d.
	Scale float64
	// Softcap c, if not 0, replaces each score s by c·tanh(s/c).
	Softcap float64
	// Window, if not 0, limits how far back a query attends: a query at i attends to keys
	// j with i - j < Window.
	Window int
}

// Visit shows the attributes.
func (a *CachedAttentionAttrs) Visit(v ir.AttrVisitor) {
	v.Float("scale", &a.Scale)
	v.Float("softcap", &a.Softcap)
	v.Int("window", &a.Window)
}

func init() {
	define(&ir.Def{
		Op: OpCachedAttention, Operands: []string{"q", "k", "v", "past", "row"}, Optional: 1,
		Doc: "attention of m new positions over caches of keys and values with room for n positions. past positions came before; the query i attends to the keys j ≤ past + i, " +
			"with a window to those with past + i − j < window. Keys from past + m on are not read, and kernels skip them: the cost follows the length, not the room. " +
			"row, if given, is the sequence of the cache that belongs to each sequence of q; of rank 2 it lists the pages of each sequence: k and v are then pages of n positions, " +
			"and the position j is at j mod n of the page row[sequence, j / n].",
		Constraints: numbered(
			"q, k and v have one float type and one rank of at least 3: [..., heads, m, d], [..., kv heads, n, d] and [..., kv heads, n, e]; kv heads divides heads",
			"past is i32, of rank 0 or with the axes of q before the heads",
			"without row k and v have the axes of q before the heads; with row they have one axis there, and row is i32, [sequences of q] or [sequences of q, pages], and in bounds",
			"scale is finite, softcap and window are not negative",
		),
		NewAttrs: func() ir.Attrs { return &CachedAttentionAttrs{Scale: 1} },
		Infer:    inferCachedAttention,
		NoGrad:   "a cache holds what earlier runs computed",
		NoBatch:  "its leading axes are a batch",
		Body:     cachedAttentionBody,
		Lower:    &ir.KernelsLowering{Kernels: cachedAttentionKernels},
	})
}

// KVCache are the keys and values of positions that came before, with room for more.
type KVCache struct {
	// K and V have room for n positions: [..., kv heads, n, d] and [..., kv heads, n, e].
	K, V ir.Value
	// Past is the number of positions before the queries, i32, of rank 0 or one number for each
	// sequence. With m queries the first Past + m positions of K and V are filled.
	Past ir.Value
	// Row, which may be left out (the zero Value), is i32[sequences of q], the sequence of K
	// [sequences, kv heads, n, d] and V that belongs to each of q, or i32[sequences of q, pages],
	// the pages of each: K [all pages, kv heads, n, d] and V are then pages of n positions, which
	// sequences take as they grow (Kwon et al., PagedAttention).
	Row ir.Value
}

// CachedAttention returns [Attention] of queries q [..., heads, m, d] over a cache: [..., heads, m, e].
// The queries are the last m filled positions, and do not see later ones. The cost follows the
// filled positions. A scale of 0 means 1/√d. There is no derivative.
func CachedAttention(b *ir.Builder, q ir.Value, c KVCache, a CachedAttentionAttrs) ir.Value {
	s := AttentionAttrs{Scale: a.Scale}
	s.resolve(b, OpCachedAttention, q)
	a.Scale = s.Scale
	return b.Add1(OpCachedAttention, &a, given(q, c.K, c.V, c.Past, c.Row)...)
}

func inferCachedAttention(n *ir.Node) ([]ir.Type, error) {
	a, in := n.Attrs().(*CachedAttentionAttrs), n.InTypes()
	q, k, v, past := in[0], in[1], in[2], in[3]
	if a.Window < 0 || !(a.Softcap >= 0) || math.IsInf(a.Softcap, 0) || math.IsNaN(a.Scale) || math.IsInf(a.Scale, 0) {
		return nil, ir.Attrf("scale is %v, softcap %v and window %d: scale must be finite, the others not negative", a.Scale, a.Softcap, a.Window)
	}
	if !q.DType.IsFloat() || k.DType != q.DType || v.DType != q.DType {
		return nil, ir.DTypef("q is %s, k %s and v %s: they must have one float type", q.DType, k.DType, v.DType)
	}
	rank := len(q.Shape)
	if rank < 3 || len(k.Shape) != rank || len(v.Shape) != rank {
		return nil, ir.Shapef("q is %s, k %s and v %s: they must have one rank of at least 3", q.Shape, k.Shape, v.Shape)
	}
	lead, heads := q.Shape[:rank-3], k.Shape[rank-3]
	if !k.Shape[:rank-1].Equal(v.Shape[:rank-1]) || k.Shape[rank-1] != q.Shape[rank-1] {
		return nil, ir.Shapef("q is %s, k %s and v %s: k must have the last axis of q, and the other axes of v", q.Shape, k.Shape, v.Shape)
	}
	if _, err := q.Shape[rank-3].Div(heads); err != nil {
		return nil, ir.Shapef("q has %s heads and k %s: the heads of k must divide those of q", q.Shape[rank-3], heads)
	}
	if past.DType != ir.I32 || len(past.Shape) > 0 && !past.Shape.Equal(lead) {
		return nil, ir.Shapef("past is %s: it must be i32, or i32%s", past, lead)
	}
	switch {
	case len(in) == 4 && !k.Shape[:rank-3].Equal(lead):
		return nil, ir.Shapef("q is %s and k %s: their axes before the heads must be equal", q.Shape, k.Shape)
	case len(in) > 4 && (rank != 4 || in[4].DType != ir.I32 || len(in[4].Shape) < 1 || len(in[4].Shape) > 2 || !in[4].Shape[:1].Equal(lead)):
		return nil, ir.Shapef("q is %s and row %s: q must have one axis before the heads, and row must be i32 with its size, or that and pages", q.Shape, in[4])
	}
	return []ir.Type{{DType: q.DType, Shape: append(q.Shape[:rank-1].Clone(), v.Shape[rank-1])}}, nil
}

// cachedAttentionBody is attention over the whole caches, with a mask. Values that are not filled are zeros: those of an earlier
// sequence may be NaN, and a weight of 0 does not hide that.
func cachedAttentionBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a, q, k, v, past := n.Attrs().(*CachedAttentionAttrs), in[0], in[1], in[2], in[3]
	if len(in) > 4 {
		k, v = cachedRows(b, k, in[4]), cachedRows(b, v, in[4])
	}
	grid := ir.Shape{q.Dim(-2), k.Dim(-2)}
	query, key := Iota(b, ir.I32, 0, grid...), Iota(b, ir.I32, 1, grid...)
	if past.Rank() > 0 {
		past = Reshape(b, past, slices.Concat(past.Shape(), ir.Dims(1, 1, 1))...)
	}
	query = Add(b, query, past)
	seen := Ge(b, query, key)
	if a.Window > 0 {
		seen = And(b, seen, Lt(b, Sub(b, query, key), Const(b, ir.I32, float64(a.Window))))
	}
	filled := Lt(b, Iota(b, ir.I32, 0, k.Dim(-2), ir.N(1)), Add(b, past, DimSize(b, ir.I32, q.Dim(-2))))
	v = Select(b, filled, v, Const(b, v.DType(), 0))
	return []ir.Value{Attention(b, q, k, v, seen, AttentionAttrs{Scale: a.Scale, Softcap: a.Softcap})}
}

// cachedRows returns the cache of each sequence, [sequences, kv heads, positions, size].
func cachedRows(b *ir.Builder, x, row ir.Value) ir.Value {
	x = Take(b, x, row, 0, OutsideClip)
	if b.Err() != nil || row.Rank() < 2 {
		return x
	}
	s := x.Shape() // [sequences, pages, kv heads, positions, size]
	return Reshape(b, Transpose(b, x, 0, 2, 1, 3, 4), s[0], s[2], s[1].Mul(s[3]), s[4])
}
