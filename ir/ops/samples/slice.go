package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpSlice, sliceSamples)
	add(ops.OpReverse, reverseSamples)
	add(ops.OpDynamicSlice, dynamicSliceSamples)
	add(ops.OpDynamicUpdateSlice, dynamicUpdateSamples)
}

func sliceSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ dims, start, size, stride []int }{
		{[]int{}, []int{}, []int{}, []int{}},
		{[]int{5}, []int{1}, []int{3}, []int{1}},
		{[]int{5}, []int{5}, []int{0}, []int{2}},
		{[]int{0, 3}, []int{0, 1}, []int{0, 2}, []int{1, 1}},
		{[]int{1, 1}, []int{0, 0}, []int{1, 1}, []int{1, 3}},
		{[]int{67, 131}, []int{2, 1}, []int{22, 65}, []int{3, 2}},
		{[]int{2, 9, 2}, []int{0, 0, 1}, []int{2, 3, 1}, []int{1, 4, 1}},
	} {
		out = append(out, ir.Sample{
			Name:  shapeName(c.dims),
			Attrs: &ops.SliceAttrs{Start: ir.Dims(c.start...), Size: ir.Dims(c.size...), Stride: c.stride},
			In:    []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...)},
		})
	}
	return append(out, ofTypes(&ops.SliceAttrs{Start: ir.Dims(1), Size: ir.Dims(2), Stride: []int{3}}, 5)...)
}

func reverseSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ dims, axes []int }{
		{[]int{}, []int{}},
		{[]int{5}, []int{0}},
		{[]int{0, 2}, []int{0, 1}},
		{[]int{1, 1}, []int{0}},
		{[]int{67, 131}, []int{1}},
		{[]int{2, 3, 4}, []int{0, 2}},
	} {
		out = append(out, ir.Sample{Name: shapeName(c.dims), Attrs: &ops.AxesAttrs{Axes: c.axes}, In: []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...)}})
	}
	return append(out, ofTypes(&ops.AxesAttrs{Axes: []int{1}}, 2, 3)...)
}

func dynamicSliceSamples() []ir.Sample {
	sample := func(name string, x *ir.Array, start []int64, sizes ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.DynamicSliceAttrs{Sizes: ir.Dims(sizes...)}, In: []*ir.Array{x, ir.Ints(ir.I32, start, len(start))}}
	}
	return []ir.Sample{
		sample("rows", drawn(ir.F32, 7, 3), []int64{2, 0}, 3, 3),
		sample("columns", drawn(ir.F32, 3, 7), []int64{0, 4}, 3, 2),
		sample("two axes", drawn(ir.F32, 5, 3, 7), []int64{1, 0, 5}, 2, 3, 2),
		sample("past the end", drawn(ir.F32, 5, 6), []int64{9, -2}, 2, 4),
		sample("all of it", drawn(ir.F32, 2, 3), []int64{1, 1}, 2, 3),
		sample("one element", drawn(ir.F32, 67), []int64{66}, 1),
		sample("nothing", drawn(ir.F32, 4), []int64{2}, 0),
		sample("scalar", drawn(ir.F32), nil),
		sample("i32", draw(1, ir.I32, -9, 9, 4, 2), []int64{1, 0}, 2, 2),
		sample("bool", draw(1, ir.Bool, 0, 1, 4), []int64{1}, 2),
	}
}

func dynamicUpdateSamples() []ir.Sample {
	sample := func(name string, x, u *ir.Array, start ...int64) ir.Sample {
		return ir.Sample{Name: name, In: []*ir.Array{x, u, ir.Ints(ir.I32, start, len(start))}}
	}
	return []ir.Sample{
		sample("rows", drawn(ir.F32, 7, 3), draw(9, ir.F32, -1, 1, 2, 3), 4, 0),
		sample("columns", drawn(ir.F32, 3, 7), draw(9, ir.F32, -1, 1, 3, 2), 0, 1),
		sample("two axes", drawn(ir.F32, 5, 3, 7), draw(9, ir.F32, -1, 1, 2, 3, 2), 1, 0, 5),
		sample("past the end", drawn(ir.F32, 5, 6), draw(9, ir.F32, -1, 1, 2, 4), 9, -2),
		sample("all of it", drawn(ir.F32, 2, 3), draw(9, ir.F32, -1, 1, 2, 3), 1, 1),
		sample("nothing", drawn(ir.F32, 4), ir.NewArray(ir.F32, 0), 2),
		sample("scalar", drawn(ir.F32), draw(9, ir.F32, -1, 1)),
		sample("i32", draw(1, ir.I32, -9, 9, 4, 2), draw(2, ir.I32, -9, 9, 2, 2), 1, 0),
	}
}
