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
		NoTranspose: notLinear,
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
		NewAttrs:    newAttrs,
		Infer:       inferAttention,
		JVP:         jvpAttention,
		Batch:       batchAttention,
		NoTranspose: notLinear,
		Body:        attentionBody,
		Lower:       &ir.AttendLowering{Spec: attend},
	})
	define(&ir.Def{
		Op: OpAttentionBackward,
		Doc: "The cotangents of q, k, v and an additive mask, from lse, the second result of attention_forward, dout, the " +
			"cotangent of its first result out, and delta = sum(dout·out) over the last axis minus the cotangent of lse.",
		Constraints: numbered(append(slices.Clone(constraints), "lse and delta have the types of lse, dout has the type of the result")...),
		Operands:    []string{"q", "k", "v", "lse", "delta", "dout", "mask"}, Optional: 1,
		NewAttrs:    newAttrs,
		Infer:       inferAttentionBackward,
		Batch:       batchAttention,
		NoTranspose: notLinear,
		Body:        attentionBackwardBody,
		Lower:       &ir.AttendLowering{Spec: attend},
	})
}

// Attention returns softmax(scale·q·kᵀ)·v for queries q [..., heads, m, d], keys k [...,
// heads, n, d] and values v [..., heads, n, e], of one float type: [..., heads, m, e]. q
// may have a multiple of the heads of k and v (grouped-query attention). mask, which may
// be left out (the zero Value), broadcasts to [..., heads, m, n]: booleans, true where a
// query attends to a key, or numbers of the type of q that are added to the scores. A
// fully masked query gives 0. A scale of 0 stands for 1/√d.
func Attention(b *ir.Builder, q, k, v, mask ir.Value, a AttentionAttrs) ir.Value {
	a.resolve(b, OpAttention, q)
	return b.Add1(OpAttention, &a, given(q, k, v, mask)...)
}

// AttentionForward returns the result of [Attention] and the log-sum-exp of the scores of
// each query, [..., heads, m], in f32 for narrower types: −Inf for a fully masked query.
func AttentionForward(b *ir.Builder, q, k, v, mask ir.Value, a AttentionAttrs) (out, lse ir.Value) {
	a.resolve(b, OpAttentionForward, q)
	r := b.Add(OpAttentionForward, &a, given(q, k, v, mask)...)
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	return r[0], r[1]
}

// AttentionBackward returns the cotangents of q, k, v and, if it is additive, mask, which
// are the operands of [Attention]. lse is the second result of [AttentionForward], dout
// the cotangent of the first one, and delta, [..., heads, m], the sum of dout·out over the
// last axis minus the cotangent of lse. A scale of 0 stands for 1/√d.
func AttentionBackward(b *ir.Builder, q, k, v, lse, delta, dout, mask ir.Value, a AttentionAttrs) []ir.Value {
	a.resolve(b, OpAttentionBackward, q)
	return b.Add(OpAttentionBackward, &a, given(q, k, v, lse, delta, dout, mask)...)
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
