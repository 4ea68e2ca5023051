package padding

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// attention keeps attention with open keys whole, so that its kernels serve, where its body would be
// masked: padded keys are masked, keys and values are finite, and in the gradient padded queries have
// no cotangent. It reports false where the body has to do.
func attention(p *ir.Padding) bool {
	n, a := p.Node, p.Node.Attrs().(*ops.AttentionAttrs)
	q := n.Input(0)
	keys, width := q.Rank()-2, q.Rank()-1
	extent := p.At(1, keys)
	backward := n.Op() == ops.OpAttentionBackward
	last := 3 // operand with the mask
	if backward {
		last = 6
	}
	masked := len(n.Inputs()) > last
	switch {
	case !p.IsOpen(extent), p.IsOpen(p.At(0, width)):
		return false
	case (a.Causal || a.Window > 0) && !slices.Equal(p.At(0, keys), extent), a.Window > 0 && len(extent) > 1:
		return false // positions of the padded array are compared: padding must not move one against another
	case backward && (masked && !n.Input(last).DType().IsBool() || p.IsOpen(p.At(2, width))):
		return false
	}
	out, ok := attentionExtents(p, keys)
	if !ok || masked && !maskFits(p, last, keys) {
		return false
	}
	zero := zeros(q.DType())
	p.Fill(1, keys, extent, zero)
	p.Fill(2, keys, extent, zero)
	p.Out = [][]ir.Extent{out, out[:width]}
	if backward {
		rows := p.At(0, keys)
		for _, operand := range []int{0, 3, 4, 5} {
			p.Fill(operand, keys, rows, zeros(n.Input(operand).DType()))
		}
		p.Out = [][]ir.Extent{p.In[0], slices.Clone(p.In[1]), slices.Clone(p.In[2])}
		p.Out[1][keys], p.Out[2][keys] = extent, extent
	}
	p.Out = p.Out[:n.NumResults()]
	p.Emit = func(e ir.PadEmitter, in []ir.Value) []ir.Value {
		valid := validKeys(e, extent, q.Rank())
		if masked {
			in[last] = both(e.Builder(), in[last], valid)
		} else {
			in = append(in, valid)
		}
		return e.Builder().Add(n.Op(), n.Attrs(), in...)
	}
	return true
}

// attentionExtents returns the extents of the result, or false where operands have padding in different
// places.
func attentionExtents(p *ir.Padding, keys int) (out []ir.Extent, ok bool) {
	out = slices.Clone(p.In[0])
	for axis := range keys {
		for operand := 1; operand < len(p.In); operand++ {
			if len(p.In[operand]) <= axis || p.Node.Input(operand).Dim(axis) != p.Node.Input(0).Dim(axis) {
				continue // a head of keys for several of queries, or a mask that is repeated
			}
			e, err := p.Unify(out[axis], p.In[operand][axis])
			if err != nil {
				return nil, false
			}
			out[axis] = e
		}
	}
	if e, err := p.Unify(p.In[1][keys], p.In[2][keys]); err != nil || e == nil && p.IsOpen(p.At(1, keys)) {
		return nil, false
	}
	out[keys], out[keys+1] = p.At(0, keys), p.At(2, keys+1)
	return out, true
}

// maskFits reports whether the padding of a mask is where queries and keys have theirs.
func maskFits(p *ir.Padding, operand, keys int) bool {
	axes := p.In[operand]
	for i, of := range []ir.Extent{p.At(0, keys), p.At(1, keys)} {
		axis := len(axes) - 2 + i
		if axis < 0 || p.Node.Input(operand).Dim(axis).Is(1) {
			continue
		}
		if _, err := p.Unify(axes[axis], of); err != nil {
			return false
		}
	}
	return true
}

// validKeys returns a mask of the scores, true for keys that are no padding.
func validKeys(e ir.PadEmitter, extent ir.Extent, rank int) ir.Value {
	b := e.Builder()
	count := ir.N(e.Bound(extent.Size()))
	valid := e.Mask(ops.Ones(b, ir.Bool, count), 0, extent, ops.Zeros(b, ir.Bool))
	shape := ir.Dims(slices.Repeat([]int{1}, rank)...)
	shape[rank-1] = count
	return ops.Reshape(b, valid, shape...)
}

// both returns a mask that masks what either does; an additive one with −∞.
func both(b *ir.Builder, mask, valid ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	shape, err := ops.BroadcastShapes(mask.Shape(), valid.Shape())
	if err != nil {
		b.Fail(err)
		return ir.Value{}
	}
	mask, valid = ops.BroadcastTo(b, mask, shape), ops.BroadcastTo(b, valid, shape)
	if mask.DType().IsBool() {
		return ops.And(b, mask, valid)
	}
	return ops.Select(b, valid, mask, ops.ConstLike(b, mask, math.Inf(-1)))
}
