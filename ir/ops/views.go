package ops

import (
	"github.com/rlx-go/rlx/ir"
)

// Rearrangements that package ops builds of reshapes, slices and the like, as
// ops: hosts that name ops have them so.
const (
	OpFlatten   ir.Op = "flatten"
	OpSwapAxes  ir.Op = "swap_axes"
	OpSplit     ir.Op = "split"
	OpUnstack   ir.Op = "unstack"
	OpMeshgrid  ir.Op = "meshgrid"
	OpTensorDot ir.Op = "tensordot"
)

// FlattenAttrs name the first axis that is joined with those after it.
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

// SplitAttrs say along which axis a value is cut, and how long its parts are.
type SplitAttrs struct {
	Sizes []ir.Dim
	Axis  int
}

// Visit shows the attributes.
func (a *SplitAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("sizes", &a.Sizes)
	v.Int("axis", &a.Axis)
}

// TensorDotAttrs say over how many axes is summed.
type TensorDotAttrs struct{ Count int }

// Visit shows the attributes.
func (a *TensorDotAttrs) Visit(v ir.AttrVisitor) { v.Int("count", &a.Count) }

func init() {
	for _, c := range []composite{
		{
			op: OpFlatten, doc: "The elements of x in row-major order with the axes from one on joined. A value of rank 0 becomes a vector.",
			types: plain, newAttrs: func() ir.Attrs { return &FlattenAttrs{} }, constraints: []string{"axis_from is from 0 to the rank of x"},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				return Flatten(b, in[0], n.Attrs().(*FlattenAttrs).AxisFrom)
			},
			samples: func() []ir.Sample {
				if !withSamples {
					return nil
				}
				return moved(movement{&FlattenAttrs{1}, []int{2, 3, 4}}, movement{&FlattenAttrs{0}, []int{}}, movement{&FlattenAttrs{2}, []int{0, 3}})
			},
		},
		{
			op: OpSwapAxes, doc: "x with two of its axes in each other's place.",
			types: plain, newAttrs: func() ir.Attrs { return &SwapAxesAttrs{} }, constraints: []string{"axis1 and axis2 are axes of x"},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				a := n.Attrs().(*SwapAxesAttrs)
				return SwapAxes(b, in[0], a.Axis1, a.Axis2)
			},
			samples: func() []ir.Sample {
				if !withSamples {
					return nil
				}
				return moved(movement{&SwapAxesAttrs{0, 2}, []int{2, 3, 4}}, movement{&SwapAxesAttrs{1, 1}, []int{2, 3}}, movement{&SwapAxesAttrs{0, 1}, []int{0, 3}})
			},
		},
		{
			op: OpSplit, doc: "The parts of x, of the given sizes, that follow each other along an axis.",
			types: plain, newAttrs: func() ir.Attrs { return &SplitAttrs{} }, constraints: []string{"axis is an axis of x, and the sizes make up all of it"},
			bodies: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
				a := n.Attrs().(*SplitAttrs)
				return Split(b, in[0], a.Axis, a.Sizes...)
			},
			samples: func() []ir.Sample {
				if !withSamples {
					return nil
				}
				return moved(movement{&SplitAttrs{ir.Dims(2, 0, 3), 1}, []int{2, 5}}, movement{&SplitAttrs{ir.Dims(1, 2), 0}, []int{3}}, movement{&SplitAttrs{ir.Dims(4), 1}, []int{0, 4}})
			},
		},
		{
			op: OpUnstack, doc: "The elements of an axis, one after the other, without that axis.",
			types: plain, newAttrs: func() ir.Attrs { return &AxisAttrs{} }, constraints: []string{"axis is an axis of x, of constant size"},
			bodies: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
				return Unstack(b, in[0], n.Attrs().(*AxisAttrs).Axis)
			},
			samples: func() []ir.Sample {
				if !withSamples {
					return nil
				}
				return moved(movement{&AxisAttrs{1}, []int{2, 3}}, movement{&AxisAttrs{0}, []int{2, 0}}, movement{&AxisAttrs{0}, []int{1}})
			},
		},
		{
			op: OpMeshgrid, doc: "The vectors repeated along each other's axes: result k has an axis for each vector, in their order, and differs along axis k alone.",
			operands: []string{"vectors..."}, types: plain, constraints: []string{"all operands are vectors"},
			bodies: func(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value { return Meshgrid(b, in...) },
			samples: func() []ir.Sample {
				if !withSamples {
					return nil
				}
				return []ir.Sample{
					{Name: "two", In: []*ir.Array{draw(1, ir.F32, -2, 2, 3), draw(2, ir.F32, -2, 2, 4)}},
					{Name: "three", In: []*ir.Array{draw(1, ir.F32, -2, 2, 3), draw(2, ir.F32, -2, 2, 1), draw(3, ir.F32, -2, 2, 5)}},
					{Name: "empty", In: []*ir.Array{draw(1, ir.F32, -2, 2, 0), draw(2, ir.F32, -2, 2, 2)}},
				}
			},
		},
		{
			op: OpTensorDot, doc: "The sum of products of x and y over the last axes of x and as many first axes of y.",
			operands: []string{"x", "y"}, types: numbers, newAttrs: func() ir.Attrs { return &TensorDotAttrs{2} }, check: oneDType,
			constraints: []string{"x and y have one element type", "count is not negative and no larger than a rank; the axes have the same sizes"},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				return TensorDot(b, in[0], in[1], n.Attrs().(*TensorDotAttrs).Count)
			},
			samples: func() []ir.Sample {
				if !withSamples {
					return nil
				}
				var out []ir.Sample
				for i, s := range [][2][]int{{{3}, {4}}, {{2, 3}, {3, 5}}, {{2, 3, 4}, {3, 4, 5}}} {
					out = append(out, ir.Sample{Name: shapeName(s[0]), Attrs: &TensorDotAttrs{i}, In: []*ir.Array{draw(1, ir.F32, -1, 1, s[0]...), draw(2, ir.F32, -1, 1, s[1]...)}})
				}
				return out
			},
		},
	} {
		defineComposite(c)
	}
}
