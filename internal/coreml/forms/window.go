package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpWindows, single(windows))
	add(ops.OpOverlapAdd, single(overlapAdd))
}

// windows reads, axis by axis, the elements of all windows one after the other,
// and then brings the axes within windows to the end.
func windows(e *Emitter, n *ir.Node, in []Value) Value {
	a, dims := n.Attrs().(*ops.WindowsAttrs), slices.Clone(whole(n.Input(0).Type()))
	out := whole(n.Types()[0])
	r := e.Whole(in[0])
	for i, axis := range a.Axes {
		count := out[axis]
		if count == 1 && a.Sizes[i] == dims[axis] && a.Dilations[i] == 1 {
			continue
		}
		var places []int
		for o := range count {
			for k := range a.Sizes[i] {
				places = append(places, o*a.Strides[i]+k*a.Dilations[i])
			}
		}
		x, at := e.along(r, dims, axis)
		r = e.withoutBools(x, func(x mil.Ref) mil.Ref {
			return e.Op("gather", mil.Args{"x": x, "indices": places, "axis": at})
		})
		dims[axis] = len(places)
		r = e.reshape(r, fold(dims))
	}
	var apart, perm, inner []int
	for axis, d := range dims {
		perm = append(perm, len(apart))
		if i := slices.Index(a.Axes, axis); i >= 0 {
			apart = append(apart, out[axis], a.Sizes[i])
			continue
		}
		apart = append(apart, d)
	}
	for _, axis := range a.Axes {
		inner = append(inner, perm[axis]+1)
	}
	r, _ = e.transpose(r, apart, slices.Concat(perm, inner))
	return e.value(r, out)
}

// overlapAdd takes one axis after the other, the last one first, so that its
// window axis is the last one left.
func overlapAdd(e *Emitter, n *ir.Node, in []Value) Value {
	a, dims := n.Attrs().(*ops.OverlapAddAttrs), slices.Clone(whole(n.Input(0).Type()))
	out := whole(n.Types()[0])
	r := e.Whole(in[0])
	for i := len(a.Axes) - 1; i >= 0; i-- {
		axis, last := a.Axes[i], len(dims)-1
		// [before, windows, after, elements] → [before·after, windows, elements]
		perm := slices.Concat(permute.Others(len(dims), []int{axis, last}), []int{axis, last})
		moved, md := e.transpose(r, dims, perm)
		rows := product(md[:len(md)-2])
		moved = e.reshape(moved, []int{rows, dims[axis], dims[last]})
		r = e.overlapped(moved, out[axis], a.Strides[i], a.Dilations[i])
		rest := append(slices.Clone(md[:len(md)-2]), out[axis])
		back := make([]int, len(rest))
		for k := range back {
			switch {
			case k < axis:
				back[k] = k
			case k == axis:
				back[k] = len(rest) - 1
			default:
				back[k] = k - 1
			}
		}
		r, dims = e.transpose(r, rest, back)
	}
	return e.value(r, out)
}

// overlapped adds windows [rows, n, k] that begin stride elements after each other
// to [rows, size]. Windows without dilation are cut into pieces as long as the
// stride: piece j of all windows is one row without gaps, and the rows are added,
// each moved on by one stride.
func (e *Emitter) overlapped(r mil.Ref, size, stride, dilation int) mil.Ref {
	rows, n, k := r.Type.Dims[0], r.Type.Dims[1], r.Type.Dims[2]
	zero := e.number(r.Type.DType, 0)
	piece, step := stride, stride
	if dilation > 1 {
		piece, step = 1, dilation
	}
	pieces := (k + piece - 1) / piece
	r, _ = e.extend(r, []int{rows, n, k}, 2, 0, pieces*piece-k, zero)
	length := max(size, (pieces-1)*step+n*stride)
	var sum mil.Ref
	for j := range pieces {
		part, dims := e.cut(r, []int{rows, n, pieces * piece}, 2, j*piece, (j+1)*piece, 1)
		part, dims = e.extend(part, dims, 2, 0, stride-piece, zero)
		part = e.reshape(part, []int{rows, n * dims[2]})
		part, _ = e.extend(part, []int{rows, n * stride}, 1, j*step, length-j*step-n*stride, zero)
		if j == 0 {
			sum = part
		} else {
			sum = e.op2("add", sum, part)
		}
	}
	sum, _ = e.cut(sum, []int{rows, length}, 1, 0, size, 1)
	return sum
}
