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
		Eval:      evalWindows,
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
		Eval:      evalOverlapAdd,
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

func evalWindows(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a := n.Attrs().(*WindowsAttrs)
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	windowPairs(a.Axes, a.Strides, a.Dilations, out.Dims, in[0].Dims, func(w, e int) { copyElement(out, w, in[0], e) })
	return []*ir.Array{out}, nil
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
		pos[axis] = scalar.Add(
			scalar.Mul(along(dims[axis], at[axis]), loop.Int(a.Strides[i])),
			scalar.Mul(along(dims[axis], at[outer+i]), loop.Int(a.Dilations[i])))
	}
	return load(0, pos)
}
