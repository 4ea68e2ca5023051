package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpReshape, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		return e.value(e.Whole(in[0]), whole(n.Types()[0]))
	}))
	add(ops.OpTranspose, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		r, dims := e.transpose(e.Whole(in[0]), whole(n.Input(0).Type()), n.Attrs().(*ops.TransposeAttrs).Perm)
		return e.value(r, dims)
	}))
	add(ops.OpBroadcastInDim, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		return e.repeated(e.Whole(in[0]), whole(n.Input(0).Type()), n.Attrs().(*ops.BroadcastAttrs).Axes, whole(n.Types()[0]))
	}))
	add(ops.OpSlice, single(sliced))
	add(ops.OpPad, single(padded))
	add(ops.OpConcatenate, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		parts, dims := make([]mil.Ref, len(in)), make([][]int, len(in))
		for i, v := range in {
			parts[i], dims[i] = e.Whole(v), whole(n.Input(i).Type())
		}
		r, out := e.join(parts, dims, n.Attrs().(*ops.AxisAttrs).Axis)
		return e.value(r, out)
	}))
	add(ops.OpReverse, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		r, dims := e.Whole(in[0]), whole(n.Input(0).Type())
		for _, axis := range n.Attrs().(*ops.AxesAttrs).Axes {
			r = e.reversed(r, dims, axis)
		}
		return e.value(r, dims)
	}))
}

// reversed returns a tensor with the elements of an axis in reverse order.
func (m *moves) reversed(r mil.Ref, dims []int, axis int) mil.Ref {
	if dims[axis] == 1 {
		return r
	}
	x, at := m.along(r, dims, axis)
	return m.reshape(m.Op("reverse", mil.Args{"x": x, "axes": []int{at}}), fold(dims))
}

// repeated returns a broadcast of a tensor to the given shape, where axes[i] is the result's axis
// for axis i of the tensor. It broadcasts lazily where MIL can do it.
func (m *moves) repeated(r mil.Ref, from, axes, dims []int) Value {
	if !slices.IsSorted(axes) {
		perm := permute.Counting(0, len(axes))
		slices.SortFunc(perm, func(a, b int) int { return axes[a] - axes[b] })
		r, from = m.transpose(r, from, perm)
		axes = slices.Sorted(slices.Values(axes))
	}
	small := slices.Repeat([]int{1}, len(dims))
	for i, axis := range axes {
		small[axis] = from[i]
	}
	if first := len(dims) - maxRank + 1; first > 1 {
		// The leading axes are merged: they are broadcast here unless all or none of them are.
		group := dims[:first]
		if product(small[:first]) != 1 && !slices.Equal(small[:first], group) {
			rest := product(small[first:])
			if first+1 > maxRank {
				m.Fail(ir.Errorf(ir.ErrUnsupported, "a tile has %d axes; Core ML has tensors of up to five", len(dims)))
				return Value{}
			}
			reps := make([]int, first+1)
			for i := range first {
				reps[i] = group[i] / small[i]
			}
			reps[first] = 1
			r = m.tile(m.reshape(r, append(slices.Clone(small[:first]), rest)), reps)
			copy(small, group)
		}
	}
	folded := fold(dims)
	return Value{m.reshape(r, fold(small)), folded}
}

func sliced(e *Emitter, n *ir.Node, in []Value) Value {
	a, dims := n.Attrs().(*ops.SliceAttrs), whole(n.Input(0).Type())
	start, size := whole(ir.Type{Shape: a.Start}), whole(ir.Type{Shape: a.Size})
	r := e.Whole(in[0])
	for axis := range dims {
		end := start[axis] + (size[axis]-1)*a.Stride[axis] + 1
		r, dims = e.cut(r, dims, axis, start[axis], end, a.Stride[axis])
	}
	return e.value(r, dims)
}

func padded(e *Emitter, n *ir.Node, in []Value) Value {
	a, dims := n.Attrs().(*ops.PadAttrs), whole(n.Input(0).Type())
	low, high := whole(ir.Type{Shape: a.Low}), whole(ir.Type{Shape: a.High})
	r, with := e.Whole(in[0]), in[1].Ref
	for axis := range dims {
		r, dims = e.spread(r, dims, axis, a.Interior[axis], with)
		r, dims = e.padAxis(r, dims, axis, low[axis], high[axis], with)
	}
	return e.value(r, dims)
}

// padAxis adds elements before and after those of an axis, or removes some where a count is
// negative.
func (m *moves) padAxis(r mil.Ref, dims []int, axis, low, high int, with mil.Ref) (mil.Ref, []int) {
	r, dims = m.extend(r, dims, axis, max(low, 0), max(high, 0), with)
	return m.cut(r, dims, axis, max(-low, 0), dims[axis]-max(-high, 0), 1)
}
