package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The view of a value as overlapping windows, and its transpose.
const (
	OpWindows    ir.Op = "windows"
	OpOverlapAdd ir.Op = "overlap_add"
)

// WindowsAttrs describe sliding windows along some axes; the lists have one
// entry for each of them.
type WindowsAttrs struct {
	Axes, Sizes, Strides, Dilations []int
}

// Visit shows the attributes.
func (a *WindowsAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("axes", &a.Axes)
	v.Ints("sizes", &a.Sizes)
	v.Ints("strides", &a.Strides)
	v.Ints("dilations", &a.Dilations)
}

func init() {
	define(&ir.Def{
		Op: OpWindows,
		Doc: "The sliding windows of x along some of its axes. Each of these axes becomes one of window " +
			"positions, and one axis of window elements for each of them is appended: " +
			"result[…, o, …, k] = x[…, o·stride + k·dilation, …]. Partial windows are dropped.",
		Constraints: numbered(
			"axes are distinct axes of x; the lists have one length.",
			"sizes, strides and dilations are at least 1.",
			"along a symbolic axis the number of windows must come out as a polynomial.",
		),
		Operands:  []string{"x"},
		NewAttrs:  func() ir.Attrs { return &WindowsAttrs{} },
		Infer:     inferWindows,
		Eval:      evalResult(evalWindows),
		JVP:       linearJVP,
		Transpose: transposeEach(transposeWindows),
		Batch:     batchWindows,
		Lower:     &ir.MapLowering{Element: windowsElement},
	})
	define(&ir.Def{
		Op: OpOverlapAdd,
		Doc: "Adds windows at their positions along some axes: the transpose of windows. " +
			"Elements that no window covers are zero.",
		Constraints: numbered(
			"axes are distinct and lie before the window axes, which come last, one for each of them.",
			"strides and dilations are at least 1.",
			"the number of windows along an axis is what windows would find in the size given by dims.",
		),
		Operands:  []string{"x"},
		NewAttrs:  func() ir.Attrs { return &OverlapAddAttrs{} },
		Infer:     inferOverlapAdd,
		Eval:      evalResult(evalOverlapAdd),
		JVP:       linearJVP,
		Transpose: transposeEach(transposeOverlapAdd),
		Batch:     batchOverlapAdd,
		Lower: &ir.ReduceLowering{
			Space: overlaps,
			Accumulators: func(n *ir.Node) []ir.Accumulator {
				acc := sumType(n.Input(0).DType())
				return []ir.Accumulator{{DType: acc, Init: scalar.Const(acc, 0)}}
			},
			Element: overlapAddElement,
			Combine: func(_ *ir.Node, x, y []scalar.Expr) []scalar.Expr {
				return []scalar.Expr{scalar.Add(x[0], y[0])}
			},
			Finish: func(n *ir.Node, _ ir.Index, acc []scalar.Expr) []scalar.Expr {
				return []scalar.Expr{scalar.Convert(acc[0], n.Input(0).DType())}
			},
		},
	})
}

// Windows returns the sliding windows of x along a.Axes: each of these axes becomes the
// axis of window positions, and the axes of window elements are appended. Nil strides and
// dilations are 1; negative axes count from the last.
func Windows(b *ir.Builder, x ir.Value, a WindowsAttrs) ir.Value {
	a.Axes = fromFront(a.Axes, x.Rank())
	fillNil(repeatInt(1, len(a.Axes)), &a.Strides, &a.Dilations)
	return b.Add1(OpWindows, &a, x)
}

func inferWindows(n *ir.Node) ([]ir.Type, error) {
	a, x := n.Attrs().(*WindowsAttrs), n.Input(0).Type()
	if err := checkWindows(a, len(x.Shape)); err != nil {
		return nil, err
	}
	out := x.Shape.Clone()
	for i, axis := range a.Axes {
		count, err := windowCount(out[axis], dilated(ir.N(a.Sizes[i]), a.Dilations[i]), a.Strides[i])
		if err != nil {
			return nil, err
		}
		out[axis] = count
	}
	return []ir.Type{{DType: x.DType, Shape: slices.Concat(out, ir.Dims(a.Sizes...))}}, nil
}

func checkWindows(a *WindowsAttrs, rank int) error {
	if len(a.Sizes) != len(a.Axes) || len(a.Strides) != len(a.Axes) || len(a.Dilations) != len(a.Axes) {
		return ir.Attrf("sizes, strides and dilations have %d, %d and %d entries, not one for each of %d axes", len(a.Sizes), len(a.Strides), len(a.Dilations), len(a.Axes))
	}
	for i := range a.Axes {
		if a.Sizes[i] < 1 || a.Strides[i] < 1 || a.Dilations[i] < 1 {
			return ir.Attrf("sizes has %d, strides %d and dilations %d: they must be 1 or more", a.Sizes[i], a.Strides[i], a.Dilations[i])
		}
	}
	return checkAxes(a.Axes, rank)
}

// windowDims returns the shape of the operand of windows whose transpose n is.
func windowDims(n *ir.Node) ir.Shape {
	x := n.Input(0).Shape()
	return x[len(x)-len(n.Attrs().(*OverlapAddAttrs).Axes):]
}

// windowPairs calls f with the offset of each window element and the offset of the element
// of x it is a copy of. all is the shape of the windows, base that of x.
func windowPairs(axes, steps, dilations, all, base []int, f func(window, element int)) {
	outer, move := len(base), strides(base)
	for i, axis := range axes {
		move = append(move, move[axis]*dilations[i])
	}
	for i, axis := range axes {
		move[axis] *= steps[i]
	}
	positions(all, func(w int, pos []int) {
		element := 0
		for axis, p := range pos[:outer+len(axes)] {
			element += p * move[axis]
		}
		f(w, element)
	})
}

func evalWindows(n *ir.Node, in []*ir.Array, out *ir.Array) {
	a := n.Attrs().(*WindowsAttrs)
	windowPairs(a.Axes, a.Strides, a.Dilations, out.Dims, in[0].Dims, func(w, e int) { copyElement(out, w, in[0], e) })
}

func transposeWindows(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
	a := n.Attrs().(*WindowsAttrs)
	return OverlapAdd(b, ct, OverlapAddAttrs{
		Axes: a.Axes, Strides: a.Strides, Dilations: a.Dilations, Dims: pick(n.Input(0).Shape(), a.Axes),
	})
}

func batchWindows(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
	a := *n.Attrs().(*WindowsAttrs)
	a.Axes = shiftedBy(a.Axes, axes[0])
	return []ir.Value{Windows(b, in[0], a)}, axes
}

func windowsElement(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
	a := n.Attrs().(*WindowsAttrs)
	outer := len(at) - len(a.Axes)
	pos := slices.Concat(at[:outer])
	dims := sizes(n.Input(0).Shape())
	for i, axis := range a.Axes {
		pos[axis] = scalar.Add(times(along(dims[axis], at[axis]), a.Strides[i]), times(along(dims[axis], at[outer+i]), a.Dilations[i]))
	}
	return load(0, pos)
}

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

func evalOverlapAdd(n *ir.Node, in []*ir.Array, out *ir.Array) {
	a := n.Attrs().(*OverlapAddAttrs)
	windowPairs(a.Axes, a.Strides, a.Dilations, in[0].Dims, out.Dims, func(w, e int) { addElement(out, e, in[0], w) })
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
	start := scalar.Sub(p, times(r, step))
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
	window, element = p, times(r, stride)
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
