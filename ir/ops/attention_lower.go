package ops

import "github.com/rlx-go/rlx/ir"

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
