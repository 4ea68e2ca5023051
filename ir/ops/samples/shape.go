package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpReshape, reshapeSamples)
	add(ops.OpFlatten, func() []ir.Sample {
		return moved(movement{&ops.FlattenAttrs{AxisFrom: 1}, []int{2, 3, 4}}, movement{&ops.FlattenAttrs{AxisFrom: 0}, []int{}}, movement{&ops.FlattenAttrs{AxisFrom: 2}, []int{0, 3}})
	})
	add(ops.OpSwapAxes, func() []ir.Sample {
		return moved(movement{&ops.SwapAxesAttrs{Axis1: 0, Axis2: 2}, []int{2, 3, 4}}, movement{&ops.SwapAxesAttrs{Axis1: 1, Axis2: 1}, []int{2, 3}}, movement{&ops.SwapAxesAttrs{Axis1: 0, Axis2: 1}, []int{0, 3}})
	})
	add(ops.OpSplit, func() []ir.Sample {
		return moved(movement{&ops.SplitAttrs{Sizes: ir.Dims(2, 0, 3), Axis: 1}, []int{2, 5}}, movement{&ops.SplitAttrs{Sizes: ir.Dims(1, 2), Axis: 0}, []int{3}}, movement{&ops.SplitAttrs{Sizes: ir.Dims(4), Axis: 1}, []int{0, 4}})
	})
	add(ops.OpUnstack, func() []ir.Sample {
		return moved(movement{&ops.AxisAttrs{Axis: 1}, []int{2, 3}}, movement{&ops.AxisAttrs{Axis: 0}, []int{2, 0}}, movement{&ops.AxisAttrs{Axis: 0}, []int{1}})
	})
	add(ops.OpMeshgrid, func() []ir.Sample {
		return []ir.Sample{
			{Name: "two", In: []*ir.Array{draw(1, ir.F32, -2, 2, 3), draw(2, ir.F32, -2, 2, 4)}},
			{Name: "three", In: []*ir.Array{draw(1, ir.F32, -2, 2, 3), draw(2, ir.F32, -2, 2, 1), draw(3, ir.F32, -2, 2, 5)}},
			{Name: "empty", In: []*ir.Array{draw(1, ir.F32, -2, 2, 0), draw(2, ir.F32, -2, 2, 2)}},
		}
	})
	add(ops.OpTensorDot, func() []ir.Sample {
		var out []ir.Sample
		for i, s := range [][2][]int{{{3}, {4}}, {{2, 3}, {3, 5}}, {{2, 3, 4}, {3, 4, 5}}} {
			out = append(out, ir.Sample{Name: shapeName(s[0]), Attrs: &ops.TensorDotAttrs{Count: i}, In: []*ir.Array{draw(1, ir.F32, -1, 1, s[0]...), draw(2, ir.F32, -1, 1, s[1]...)}})
		}
		return out
	})
	add(ops.OpTranspose, transposeSamples)
}

func reshapeSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ from, to []int }{
		{[]int{}, []int{1, 1}},
		{[]int{1}, []int{}},
		{[]int{0, 3}, []int{5, 0}},
		{[]int{6}, []int{2, 3}},
		{[]int{2, 3, 4}, []int{4, 6}},
		{[]int{67, 131}, []int{131, 67}},
		{[]int{4, 1, 3}, []int{12}},
	} {
		out = append(out, ir.Sample{Name: shapeName(c.from), Attrs: &ops.ReshapeAttrs{Shape: ir.Dims(c.to...)}, In: []*ir.Array{draw(1, ir.F32, -2, 2, c.from...)}})
	}
	return append(out, ofTypes(&ops.ReshapeAttrs{Shape: ir.Dims(3, 2)}, 2, 3)...)
}

// ofTypes returns a sample of a move for each class of element type.
func ofTypes(attrs ir.Attrs, dims ...int) []ir.Sample {
	var out []ir.Sample
	for _, d := range []ir.DType{ir.Bool, ir.I32, ir.U8, ir.U64, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), Attrs: attrs, In: []*ir.Array{draw(1, d, -9, 9, dims...)}})
	}
	return out
}

func transposeSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ dims, perm []int }{
		{[]int{}, []int{}},
		{[]int{3}, []int{0}},
		{[]int{2, 0}, []int{1, 0}},
		{[]int{1, 1}, []int{1, 0}},
		{[]int{67, 131}, []int{1, 0}},
		{[]int{2, 3, 5}, []int{2, 0, 1}},
		{[]int{2, 3, 5, 7}, []int{0, 2, 1, 3}},
	} {
		out = append(out, ir.Sample{Name: shapeName(c.dims), Attrs: &ops.TransposeAttrs{Perm: c.perm}, In: []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...)}})
	}
	return append(out, ofTypes(&ops.TransposeAttrs{Perm: []int{1, 0}}, 2, 3)...)
}
