package ops

import (
	"github.com/rlx-go/rlx/ir"
)

// Composites of reshapes, slices and the like, for hosts that add ops by name.
const (
	OpFlatten   ir.Op = "flatten"
	OpSwapAxes  ir.Op = "swap_axes"
	OpSplit     ir.Op = "split"
	OpUnstack   ir.Op = "unstack"
	OpMeshgrid  ir.Op = "meshgrid"
	OpTensorDot ir.Op = "tensordot"
)

// FlattenAttrs hold the first axis to merge.
type FlattenAttrs struct{ AxisFrom int }

// Visit shows the attributes.
func (a *FlattenAttrs) Visit(v ir.AttrVisitor) { v.Int("axis_from", &a.AxisFrom) }

// SwapAxesAttrs name two axes.
type SwapAxesAttrs struct{ Axis1, Axis2 int }

// Visit shows the attributes.
func (a *SwapAxesAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis1", &a.Axis1)
	v.Int("axis2", &a.Axis2)
}

// SplitAttrs hold the axis and the sizes of the parts.
type SplitAttrs struct {
	Sizes []ir.Dim
	Axis  int
}

// Visit shows the attributes.
func (a *SplitAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("sizes", &a.Sizes)
	v.Int("axis", &a.Axis)
}

// TensorDotAttrs hold the number of contracted axes.
type TensorDotAttrs struct{ Count int }

// Visit shows the attributes.
func (a *TensorDotAttrs) Visit(v ir.AttrVisitor) { v.Int("count", &a.Count) }

func init() {
	for _, c := range []composite{
		{
			op: OpFlatten, doc: "x with its axes from axis_from on merged. A value of rank 0 becomes a vector.",
			types: plain, newAttrs: func() ir.Attrs { return &FlattenAttrs{} }, constraints: []string{"axis_from is from 0 to the rank of x"},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				return Flatten(b, in[0], n.Attrs().(*FlattenAttrs).AxisFrom)
			},
		},
		{
			op: OpSwapAxes, doc: "x with two axes swapped.",
			types: plain, newAttrs: func() ir.Attrs { return &SwapAxesAttrs{} }, constraints: []string{"axis1 and axis2 are axes of x"},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				a := n.Attrs().(*SwapAxesAttrs)
				return SwapAxes(b, in[0], a.Axis1, a.Axis2)
			},
		},
		{
			op: OpSplit, doc: "Consecutive slices of x along an axis, of the given sizes.",
			types: plain, newAttrs: func() ir.Attrs { return &SplitAttrs{} }, constraints: []string{"axis is an axis of x, and the sizes add up to its size"},
			bodies: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
				a := n.Attrs().(*SplitAttrs)
				return Split(b, in[0], a.Axis, a.Sizes...)
			},
		},
		{
			op: OpUnstack, doc: "The slices of x along an axis, without that axis.",
			types: plain, newAttrs: func() ir.Attrs { return &AxisAttrs{} }, constraints: []string{"axis is an axis of x, of constant size"},
			bodies: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
				return Unstack(b, in[0], n.Attrs().(*AxisAttrs).Axis)
			},
		},
		{
			op: OpMeshgrid, doc: "The coordinate arrays of a grid (numpy.meshgrid with indexing \"ij\"): result k has one axis for each vector and varies along axis k alone.",
			operands: []string{"vectors..."}, types: plain, constraints: []string{"all operands are vectors"},
			bodies: func(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value { return Meshgrid(b, in...) },
		},
		{
			op: OpTensorDot, doc: "The contraction of the last count axes of x with the first count axes of y (numpy.tensordot).",
			operands: []string{"x", "y"}, types: numbers, newAttrs: func() ir.Attrs { return &TensorDotAttrs{2} }, check: oneDType,
			constraints: []string{"x and y have one element type", "count is not negative and no larger than a rank; the axes have the same sizes"},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				return TensorDot(b, in[0], in[1], n.Attrs().(*TensorDotAttrs).Count)
			},
		},
	} {
		defineComposite(c)
	}
}
