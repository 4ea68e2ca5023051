package samples

import (
	"slices"

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

func init() {
	add(ops.OpBroadcastInDim, broadcastSamples)
}

func broadcastSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ dims, shape, axes []int }{
		{[]int{}, []int{}, []int{}},
		{[]int{}, []int{67, 3}, []int{}},
		{[]int{1}, []int{0}, []int{0}},
		{[]int{0}, []int{0, 3}, []int{0}},
		{[]int{3}, []int{3, 2}, []int{0}},
		{[]int{2, 1}, []int{2, 131}, []int{0, 1}},
		{[]int{1, 1}, []int{1, 1}, []int{0, 1}},
		{[]int{3, 1, 2}, []int{3, 5, 4, 2}, []int{0, 2, 3}},
	} {
		out = append(out, ir.Sample{Name: shapeName(c.dims), Attrs: &ops.BroadcastAttrs{Shape: ir.Dims(c.shape...), Axes: c.axes}, In: []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...)}})
	}
	return append(out, ofTypes(&ops.BroadcastAttrs{Shape: ir.Dims(2, 3), Axes: []int{1}}, 3)...)
}

func init() {
	add(ops.OpConcatenate, concatenateSamples)
	add(ops.OpStack, stackSamples)
}

func concatenateSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct {
		axis int
		dims [][]int
	}{
		{0, [][]int{{3}}},
		{0, [][]int{{0}, {0}}},
		{0, [][]int{{2}, {0}, {3}}},
		{1, [][]int{{1, 1}, {1, 1}}},
		{1, [][]int{{67, 30}, {67, 1}, {67, 100}}},
		{0, [][]int{{2, 3}, {1, 3}}},
		{1, [][]int{{0, 2}, {0, 1}}},
	} {
		s := ir.Sample{Name: shapeName(c.dims[0]), Attrs: &ops.AxisAttrs{Axis: c.axis}}
		for i, dims := range c.dims {
			s.In = append(s.In, draw(uint64(i), ir.F32, -2, 2, dims...))
		}
		out = append(out, s)
	}
	for _, d := range []ir.DType{ir.Bool, ir.I32, ir.U8, ir.U64, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), Attrs: &ops.AxisAttrs{Axis: 0}, In: []*ir.Array{draw(1, d, -9, 9, 3), draw(2, d, -9, 9, 2)}})
	}
	return out
}

func stackSamples() []ir.Sample {
	sample := func(axis int, dims ...int) ir.Sample {
		return ir.Sample{Name: shapeName(dims), Attrs: &ops.AxisAttrs{Axis: axis}, In: []*ir.Array{
			draw(1, ir.F32, -2, 2, dims...), draw(2, ir.F32, -2, 2, dims...), draw(3, ir.F32, -2, 2, dims...),
		}}
	}
	return []ir.Sample{sample(0), sample(1, 5), sample(1, 67, 3), sample(0, 2, 0)}
}

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

func init() {
	add(ops.OpPad, padSamples)
}

func padSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ dims, low, high, interior []int }{
		{[]int{}, []int{}, []int{}, []int{}},
		{[]int{3}, []int{1}, []int{2}, []int{0}},
		{[]int{0}, []int{2}, []int{1}, []int{3}},
		{[]int{0, 2}, []int{0, 1}, []int{0, 0}, []int{0, 0}},
		{[]int{1, 1}, []int{0, 2}, []int{1, 0}, []int{5, 5}},
		{[]int{67, 43}, []int{3, 1}, []int{0, 4}, []int{0, 2}},
		{[]int{2, 3, 2}, []int{0, 0, 0}, []int{0, 0, 0}, []int{1, 0, 2}},
	} {
		out = append(out, ir.Sample{
			Name:  shapeName(c.dims),
			Attrs: &ops.PadAttrs{Low: ir.Dims(c.low...), High: ir.Dims(c.high...), Interior: c.interior},
			In:    []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...), draw(2, ir.F32, -2, 2)},
		})
	}
	for _, d := range []ir.DType{ir.Bool, ir.I32, ir.U8, ir.U64, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), Attrs: &ops.PadAttrs{Low: ir.Dims(1), High: ir.Dims(2), Interior: []int{1}}, In: []*ir.Array{draw(1, d, -9, 9, 4), draw(2, d, -9, 9)}})
	}
	return out
}

func init() {
	add(ops.OpTile, func() []ir.Sample {
		return moved(
			movement{&ops.TileAttrs{Repeats: []int{}}, nil}, movement{&ops.TileAttrs{Repeats: []int{3}}, []int{5}}, movement{&ops.TileAttrs{Repeats: []int{2, 3}}, []int{67, 3}},
			movement{&ops.TileAttrs{Repeats: []int{1, 2}}, []int{2, 3}}, movement{&ops.TileAttrs{Repeats: []int{0, 2}}, []int{2, 3}})
	})
	add(ops.OpRepeat, func() []ir.Sample {
		return moved(movement{&ops.RepeatAttrs{Axis: 0, Repeats: 3}, []int{5}}, movement{&ops.RepeatAttrs{Axis: 1, Repeats: 2}, []int{67, 3}}, movement{&ops.RepeatAttrs{Axis: 0, Repeats: 0}, []int{2, 3}})
	})
	add(ops.OpRoll, func() []ir.Sample {
		return moved(movement{&ops.RollAttrs{Axis: 0, Shift: 2}, []int{5}}, movement{&ops.RollAttrs{Axis: 1, Shift: -1}, []int{67, 3}}, movement{&ops.RollAttrs{Axis: 0, Shift: 12}, []int{7}},
			movement{&ops.RollAttrs{Axis: 0, Shift: 1}, []int{0, 2}})
	})
	add(ops.OpPadMode, padModeSamples)
}

func padModeSamples() []ir.Sample {
	var list []movement
	for _, mode := range []string{ops.PadConstant, ops.PadEdge, ops.PadReflect, ops.PadWrap} {
		list = append(list,
			movement{&ops.PadModeAttrs{Low: []int{1}, High: []int{3}, Mode: mode, Value: 1.5}, []int{5}},
			movement{&ops.PadModeAttrs{Low: []int{2, 0}, High: []int{1, 2}, Mode: mode, Value: 0}, []int{4, 3}})
	}
	list = append(list, movement{&ops.PadModeAttrs{Low: []int{0, 1}, High: []int{0, 0}, Mode: ops.PadEdge, Value: 0}, []int{0, 3}})
	return moved(list...)
}

func init() {
	addAll(func() []ir.Sample {
		return moved(movement{&ops.OffsetAttrs{}, []int{67, 31}}, movement{&ops.OffsetAttrs{Offset: 1}, []int{2, 3, 3}},
			movement{&ops.OffsetAttrs{Offset: -1}, []int{4, 3}}, movement{&ops.OffsetAttrs{}, []int{0, 3}})
	}, ops.OpTril, ops.OpTriu)
	add(ops.OpDiag, func() []ir.Sample {
		return moved(movement{&ops.OffsetAttrs{}, []int{5}}, movement{&ops.OffsetAttrs{Offset: 2}, []int{2, 3}}, movement{&ops.OffsetAttrs{Offset: -1}, []int{3}},
			movement{&ops.OffsetAttrs{}, []int{0}})
	})
	diagonals := func() []ir.Sample {
		return moved(movement{&ops.OffsetAttrs{}, []int{7, 7}}, movement{&ops.OffsetAttrs{Offset: 1}, []int{2, 3, 5}}, movement{&ops.OffsetAttrs{Offset: -2}, []int{67, 31}},
			movement{&ops.OffsetAttrs{Offset: 3}, []int{2, 5}}, movement{&ops.OffsetAttrs{}, []int{3, 0}})
	}
	add(ops.OpDiagonal, diagonals)
	add(ops.OpTrace, func() []ir.Sample {
		return slices.DeleteFunc(diagonals(), func(s ir.Sample) bool { return s.In[0].DType == ir.Bool })
	})
	add(ops.OpOneHot, func() []ir.Sample {
		sample := func(name string, a ops.OneHotAttrs, x *ir.Array) ir.Sample {
			return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}}
		}
		ids := ir.Ints(ir.I32, []int64{2, 0, -1, 4, 7})
		return []ir.Sample{
			sample("last axis", ops.OneHotAttrs{Classes: ir.N(5), Axis: 1, DType: ir.F32}, ids), sample("first axis", ops.OneHotAttrs{Classes: ir.N(5), Axis: 0, DType: ir.I32}, ids),
			sample("scalar", ops.OneHotAttrs{Classes: ir.N(3), Axis: 0, DType: ir.Bool}, ir.Int(ir.U32, 1)), sample("more classes than the type has numbers", ops.OneHotAttrs{Classes: ir.N(300), Axis: 1, DType: ir.F32}, ir.Ints(ir.U8, []int64{3, 250})),
			sample("no classes", ops.OneHotAttrs{Classes: ir.N(0), Axis: 1, DType: ir.F32}, ids),
		}
	})
}

func init() {
	add(ops.OpWindows, windowsSamples)
	add(ops.OpOverlapAdd, overlapAddSamples)
}

func windowsSamples() []ir.Sample {
	sample := func(name string, a ops.WindowsAttrs, dims ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(ir.F32, dims...)}}
	}
	return []ir.Sample{
		sample("images", ops.WindowsAttrs{Axes: []int{1, 2}, Sizes: []int{2, 3}, Strides: []int{2, 1}, Dilations: []int{1, 1}}, 2, 4, 5, 3),
		sample("dilated", ops.WindowsAttrs{Axes: []int{0}, Sizes: []int{3}, Strides: []int{2}, Dilations: []int{3}}, 17, 2),
		sample("axes out of order", ops.WindowsAttrs{Axes: []int{2, 0}, Sizes: []int{2, 3}, Strides: []int{1, 2}, Dilations: []int{2, 1}}, 5, 2, 6),
		sample("strides skip elements", ops.WindowsAttrs{Axes: []int{0}, Sizes: []int{1}, Strides: []int{4}, Dilations: []int{1}}, 70),
		sample("no window fits", ops.WindowsAttrs{Axes: []int{0}, Sizes: []int{4}, Strides: []int{1}, Dilations: []int{1}}, 3),
		sample("empty", ops.WindowsAttrs{Axes: []int{1}, Sizes: []int{2}, Strides: []int{1}, Dilations: []int{1}}, 0, 3),
		sample("no axes", ops.WindowsAttrs{}, 2, 2),
	}
}

func overlapAddSamples() []ir.Sample {
	sample := func(name string, a ops.OverlapAddAttrs, dims ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(ir.F32, dims...)}}
	}
	half := sample("half", ops.OverlapAddAttrs{Axes: []int{0}, Strides: []int{1}, Dilations: []int{1}, Dims: ir.Dims(9)}, 3, 7)
	half.In = []*ir.Array{drawn(ir.F16, 3, 7)}
	return []ir.Sample{
		sample("images", ops.OverlapAddAttrs{Axes: []int{1, 2}, Strides: []int{2, 1}, Dilations: []int{1, 1}, Dims: ir.Dims(4, 5)}, 2, 2, 3, 3, 2, 3),
		sample("uncovered elements", ops.OverlapAddAttrs{Axes: []int{0}, Strides: []int{4}, Dilations: []int{1}, Dims: ir.Dims(70)}, 18, 1),
		sample("dilated", ops.OverlapAddAttrs{Axes: []int{0}, Strides: []int{2}, Dilations: []int{3}, Dims: ir.Dims(17)}, 6, 2, 3),
		sample("axes out of order", ops.OverlapAddAttrs{Axes: []int{2, 0}, Strides: []int{1, 2}, Dilations: []int{2, 1}, Dims: ir.Dims(6, 5)}, 2, 2, 4, 2, 3),
		sample("longer than the stride", ops.OverlapAddAttrs{Axes: []int{0, 1}, Strides: []int{2, 3}, Dilations: []int{1, 1}, Dims: ir.Dims(11, 9)}, 4, 2, 5, 4),
		sample("pooled images", ops.OverlapAddAttrs{Axes: []int{1, 2}, Strides: []int{2, 2}, Dilations: []int{1, 1}, Dims: ir.Dims(6, 5)}, 2, 3, 2, 3, 2, 2),
		sample("no windows", ops.OverlapAddAttrs{Axes: []int{0}, Strides: []int{1}, Dilations: []int{1}, Dims: ir.Dims(3)}, 0, 4),
		half,
	}
}

func init() {
	add(ops.OpResize, resizeSamples)
}

func resizeSamples() []ir.Sample {
	var out []ir.Sample
	for _, mode := range []string{ops.ResizeNearest, ops.ResizeLinear, ops.ResizeCubic} {
		for _, align := range []bool{false, true} {
			a := &ops.ResizeAttrs{Sizes: []int{5, 2}, Mode: mode, AlignCorners: align}
			out = append(out, ir.Sample{Name: ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{drawn(ir.F32, 2, 3, 4, 2)}})
		}
	}
	return append(out,
		ir.Sample{Name: "doubled sequence", Attrs: &ops.ResizeAttrs{Sizes: []int{6}, Mode: ops.ResizeLinear, AlignCorners: false}, In: []*ir.Array{drawn(ir.F16, 2, 3, 2)}},
		ir.Sample{Name: "one element", Attrs: &ops.ResizeAttrs{Sizes: []int{1, 3}, Mode: ops.ResizeLinear, AlignCorners: true}, In: []*ir.Array{drawn(ir.F32, 1, 4, 1, 2)}},
		ir.Sample{Name: "empty", Attrs: &ops.ResizeAttrs{Sizes: []int{0}, Mode: ops.ResizeLinear, AlignCorners: false}, In: []*ir.Array{drawn(ir.F32, 1, 4, 2)}})
}
