package ops_test

import (
	"maps"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// By NumPy 2.4.6 (searchsorted, quantile, take, swapaxes, meshgrid, split) and
// JAX 0.10.2 (unique with a size, segment_sum and relatives, dynamic slices).
func init() {
	maps.Copy(golden, goldenIndexing)
	twice := func(b *ir.Builder, x ir.Value) ir.Value { return ops.Round(b, ops.Add(b, x, x)) }
	unique := func(size int) func(b *ir.Builder, in values) values {
		return func(b *ir.Builder, in values) values {
			v, inverse, counts := ops.Unique(b, twice(b, in[0]), ir.N(size))
			return values{v, inverse, counts}
		}
	}
	results("unique", shapes{{3, 5}}, unique(8), [][]int{{8}, {3, 5}, {8}}, 10.5, -4.5, -3.75)
	results("unique with some left out", shapes{{3, 5}}, unique(3), [][]int{{3}, {3, 5}, {3}}, 5.25, -4.5, -4.75)
	results("meshgrid", shapes{{3}, {4}}, func(b *ir.Builder, in values) values { return b.Add(ops.OpMeshgrid, nil, in...) },
		[][]int{{3, 4}, {3, 4}}, -0.25, -3.28125)
	results("split", shapes{{2, 5}}, func(b *ir.Builder, in values) values {
		return b.Add(ops.OpSplit, &ops.SplitAttrs{Sizes: ir.Dims(2, 3), Axis: 1}, in...)
	}, [][]int{{2, 2}, {2, 3}}, 1.375, -4.21875)
	results("unstack", shapes{{2, 3}}, func(b *ir.Builder, in values) values { return b.Add(ops.OpUnstack, &ops.AxisAttrs{Axis: 1}, in...) },
		[][]int{{2}, {2}, {2}}, -0.71875, 2.375, -2.4375)
}

func searched(right bool) func(b *ir.Builder, in values) ir.Value {
	return func(b *ir.Builder, in values) ir.Value {
		sorted := ops.Sort(b, ops.SortAttrs{}, in[0])[0]
		return ops.Convert(b, ops.SearchSorted(b, sorted, in[1], right), ir.F64)
	}
}

func segments(reduction string, n int) func(b *ir.Builder, in values) ir.Value {
	return func(b *ir.Builder, in values) ir.Value {
		y := ops.SegmentReduce(b, in[0], indices(b, []int64{2, 0, 2, 5, 0}, 5), ops.SegmentAttrs{Segments: ir.N(n), Reduction: reduction})
		return ops.Select(b, ops.IsFinite(b, y), y, ops.ConstLike(b, y, 0))
	}
}

var goldenIndexing = map[string]goldenCase{
	"searchsorted":            {shapes{{9}, {2, 3}}, searched(false), []int{2, 3}, -3.75},
	"searchsorted from right": {shapes{{9}, {2, 3}}, searched(true), []int{2, 3}, -5.75},
	"quantile": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Quantile(b, in[0], 0.3, 1) },
		[]int{3},
		0.13124999999999998,
	},
	"median":           {shapes{{4, 3}}, func(b *ir.Builder, in values) ir.Value { return ops.Median(b, in[0], 0) }, []int{3}, 0.21875},
	"segment sums":     {shapes{{5, 3}}, segments("sum", 4), []int{4, 3}, 4.375},
	"segment products": {shapes{{5, 3}}, segments("prod", 4), []int{4, 3}, -0.1796875},
	"segment maxima":   {shapes{{5, 3}}, segments("max", 3), []int{3, 3}, 1.1875},
	"dynamic_slice": {
		shapes{{4, 5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.DynamicSlice(b, in[0], indices(b, []int64{3, 9}, 2), ir.Dims(2, 3)...)
		},
		[]int{2, 3},
		-1.84375,
	},
	"dynamic_update_slice": {
		shapes{{4, 5}, {2, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.DynamicUpdateSlice(b, in[0], in[1], indices(b, []int64{1, 4}, 2))
		},
		[]int{4, 5},
		2.75,
	},
	"take that wraps": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Take(b, in[0], indices(b, []int64{-1, 7, 2}, 3), 1, ops.OutsideWrap)
		},
		[]int{3, 3},
		-1.84375,
	},
	"take_along_axis that wraps": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.TakeAlongAxis(b, in[0], indices(b, []int64{-1, 7, 0, 4, 12, 3}, 3, 2), 1, ops.OutsideWrap)
		},
		[]int{3, 2},
		1.84375,
	},
	"swap_axes": {
		shapes{{2, 3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return b.Add1(ops.OpSwapAxes, &ops.SwapAxesAttrs{Axis1: 0, Axis2: 2}, in...)
		},
		[]int{4, 3, 2},
		8.4375,
	},
}
