package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

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
