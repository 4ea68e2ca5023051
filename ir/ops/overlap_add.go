package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OverlapAddAttrs describe the sum of windows along some axes. Dims are the sizes of these
// axes in the result.
type OverlapAddAttrs struct {
	Axes, Strides, Dilations []int
	Dims                     []ir.Dim
}

// Visit shows the attributes.
func (a *OverlapAddAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("axes", &a.Axes)
	v.Ints("strides", &a.Strides)
	v.Ints("dilations", &a.Dilations)
	v.Dims("dims", &a.Dims)
}

// OverlapAdd adds windows at their positions along a.Axes, the transpose of [Windows]: x
// has the window positions along these axes and the window elements on its last ones.
func OverlapAdd(b *ir.Builder, x ir.Value, a OverlapAddAttrs) ir.Value {
	return b.Add1(OpOverlapAdd, &a, x)
}

func inferOverlapAdd(n *ir.Node) ([]ir.Type, error) {
	a, x := n.Attrs().(*OverlapAddAttrs), n.Input(0).Type()
	if !x.DType.IsNumeric() {
		return nil, ir.DTypef("x is %s, not of a number type", x)
	}
	if len(a.Dims) != len(a.Axes) {
		return nil, ir.Attrf("dims has %d entries, not one for each of %d axes", len(a.Dims), len(a.Axes))
	}
	outer := len(x.Shape) - len(a.Axes)
	if outer < len(a.Axes) {
		return nil, ir.Shapef("%s lacks %d window axes", x, len(a.Axes))
	}
	window, ok := x.Shape[outer:].Ints()
	if !ok {
		return nil, ir.Shapef("the window sizes %s are not constant", x.Shape[outer:])
	}
	if err := checkWindows(&WindowsAttrs{a.Axes, window, a.Strides, a.Dilations}, outer); err != nil {
		return nil, err
	}
	out := x.Shape[:outer].Clone()
	for i, axis := range a.Axes {
		count, err := windowCount(a.Dims[i], dilated(ir.N(window[i]), a.Dilations[i]), a.Strides[i])
		if err != nil {
			return nil, err
		}
		if count != out[axis] {
			return nil, ir.Shapef("axis %d has %s windows, a result axis of size %s has %s", axis, out[axis], a.Dims[i], count)
		}
		out[axis] = a.Dims[i]
	}
	return []ir.Type{{DType: x.DType, Shape: out}}, nil
}

func evalOverlapAdd(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a := n.Attrs().(*OverlapAddAttrs)
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	windowPairs(a.Axes, a.Strides, a.Dilations, in[0].Dims, out.Dims, func(w, e int) { addElement(out, e, in[0], w) })
	return []*ir.Array{c.Round(out)}, nil
}

func transposeOverlapAdd(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
	a := n.Attrs().(*OverlapAddAttrs)
	return Windows(b, ct, WindowsAttrs{
		Axes: a.Axes, Sizes: sizes(windowDims(n)), Strides: a.Strides, Dilations: a.Dilations,
	})
}

// batchOverlapAdd moves the batch axis to the front, since it may be among the window
// axes.
func batchOverlapAdd(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
	a := *n.Attrs().(*OverlapAddAttrs)
	a.Axes = shiftedBy(a.Axes, 0)
	return []ir.Value{OverlapAdd(b, MoveAxis(b, in[0], axes[0], 0), a)}, []int{0}
}

// overlaps returns the maximum number of windows that cover an element, along each axis.
func overlaps(n *ir.Node) []int {
	a, out := n.Attrs().(*OverlapAddAttrs), sizes(windowDims(n))
	for i, size := range out {
		if a.Dilations[i] == 1 {
			out[i] = (size + a.Strides[i] - 1) / a.Strides[i]
		}
	}
	return out
}

// overlapAddElement returns the element of the r-th window that covers a position, or 0.
func overlapAddElement(n *ir.Node, at, r ir.Index, load ir.Load) []scalar.Expr {
	a := n.Attrs().(*OverlapAddAttrs)
	pos := slices.Concat(at, r)
	var valid scalar.Expr
	for i, axis := range a.Axes {
		cover := denseCover
		if a.Dilations[i] > 1 {
			cover = dilatedCover
		}
		window, element, ok := cover(n, i, at[axis], r[i])
		pos[axis], pos[len(at)+i], valid = window, element, both(valid, ok)
	}
	return []scalar.Expr{scalar.Convert(loadWhere(n, load, 0, pos, valid), sumType(n.Input(0).DType()))}
}

// dilatedCover returns, along axis number i, the window whose element r is at position p,
// that element, and whether the window exists.
func dilatedCover(n *ir.Node, i int, p, r scalar.Expr) (window, element, valid scalar.Expr) {
	a := n.Attrs().(*OverlapAddAttrs)
	axis, step := a.Axes[i], a.Dilations[i]
	size, out := sizes(windowDims(n))[i], sizes(n.Types()[0].Shape)[axis]
	start := scalar.Sub(p, scalar.Mul(r, loop.Int(step)))
	window, valid = strided(start, a.Strides[i], sizes(n.Input(0).Shape())[axis], -(size-1)*step, out-1)
	return window, r, valid
}

// denseCover returns, along axis number i without dilation, the r-th window before the
// last one that begins at or before position p, its element at p, and whether they exist.
func denseCover(n *ir.Node, i int, p, r scalar.Expr) (window, element, valid scalar.Expr) {
	a := n.Attrs().(*OverlapAddAttrs)
	axis, stride := a.Axes[i], a.Strides[i]
	size, count, out := sizes(windowDims(n))[i], sizes(n.Input(0).Shape())[axis], sizes(n.Types()[0].Shape)[axis]
	if count == 0 {
		return loop.Int(0), loop.Int(0), scalar.ConstBool(false)
	}
	window, element = p, scalar.Mul(r, loop.Int(stride))
	if stride > 1 {
		window, element = scalar.Div(p, loop.Int(stride)), scalar.Add(scalar.Rem(p, loop.Int(stride)), element)
	}
	window = scalar.Sub(window, r)
	if size > stride {
		valid = scalar.Ge(window, loop.Int(0))
	}
	if (out-1)/stride >= count {
		valid = both(valid, scalar.Lt(window, loop.Int(count)))
	}
	if size%stride != 0 {
		valid = both(valid, scalar.Lt(element, loop.Int(size)))
	}
	if valid == nil {
		return window, element, nil
	}
	return scalar.Select(valid, window, loop.Int(0)), scalar.Select(valid, element, loop.Int(0)), valid
}
