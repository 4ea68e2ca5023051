package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpArgSort, argSortSamples)
	add(ops.OpSort, sortSamples)
	add(ops.OpTopK, topKSamples)
}

func sortInputs() map[string]*ir.Array {
	inf, nan := math.Inf(1), math.NaN()
	row := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	return map[string]*ir.Array{
		"one":        distinct(-1, 1, 1),
		"row":        distinct(-1, 1, 7),
		"ties":       row(1, 3, -1, 3, -1, 1, 1),
		"zeros":      row(0, math.Copysign(0, -1), 0, -1, math.Copysign(0, -1)),
		"nan":        row(1, nan, inf, nan, -inf, -1),
		"tiny":       row(1e-40, -1e-40, 0, 2e-40, -1e-39),
		"beyond 512": distinct(-2, 2, 611),
	}
}

func argSortSamples() []ir.Sample {
	var out []ir.Sample
	add := func(name string, a ops.SortAttrs, x *ir.Array) {
		out = append(out, ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}})
	}
	inputs := sortInputs()
	for _, name := range []string{"one", "row", "ties", "zeros", "nan", "tiny", "beyond 512"} {
		add(name, ops.SortAttrs{}, inputs[name])
		add(name+" descending", ops.SortAttrs{Descending: true}, inputs[name])
	}
	add("columns", ops.SortAttrs{Axis: 0}, distinct(-1, 1, 67, 3))
	add("middle axis", ops.SortAttrs{Axis: 1, Descending: true}, distinct(-1, 1, 2, 5, 3))
	add("many short rows", ops.SortAttrs{Axis: 1}, distinct(-1, 1, 131, 3))
	add("empty rows", ops.SortAttrs{Axis: 1}, ir.NewArray(ir.F32, 2, 0))
	add("no rows", ops.SortAttrs{Axis: 1}, ir.NewArray(ir.F32, 0, 2))
	for _, d := range typesIn(isReal)[1:] {
		add(d.String(), ops.SortAttrs{}, draw(2, d, -3, 3, 17))
		add(d.String()+" descending", ops.SortAttrs{Descending: true}, draw(3, d, -3, 3, 17))
	}
	add("bool", ops.SortAttrs{Descending: true}, ir.Ints(ir.Bool, []int64{0, 1, 1, 0, 1}, 5))
	return out
}

func sortSamples() []ir.Sample {
	inputs := sortInputs()
	const ties = "ties share no slope"
	return []ir.Sample{
		{Name: "row", Attrs: &ops.SortAttrs{}, In: []*ir.Array{inputs["row"]}},
		{Name: "ties", Attrs: &ops.SortAttrs{Descending: true}, In: []*ir.Array{inputs["ties"]}, NoGrad: ties},
		{Name: "nan", Attrs: &ops.SortAttrs{}, In: []*ir.Array{inputs["nan"]}, NoGrad: "NaN elements"},
		{Name: "nan descending", Attrs: &ops.SortAttrs{Descending: true}, In: []*ir.Array{inputs["nan"]}, NoGrad: "NaN elements"},
		{Name: "columns with a payload", Attrs: &ops.SortAttrs{}, In: []*ir.Array{distinct(-1, 1, 5, 3), distinct(-1, 1, 5, 3)}},
		{Name: "integers with payloads", Attrs: &ops.SortAttrs{Axis: 1, Descending: true}, In: []*ir.Array{
			draw(4, ir.I32, -3, 3, 2, 9), distinct(-1, 1, 2, 9), draw(5, ir.I32, -9, 9, 2, 9),
		}},
		{Name: "empty", Attrs: &ops.SortAttrs{}, In: []*ir.Array{ir.NewArray(ir.F32, 0)}},
	}
}

func topKSamples() []ir.Sample {
	inputs := sortInputs()
	sample := func(name string, a ops.TopKAttrs, x *ir.Array, noGrad string) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}, NoGrad: noGrad}
	}
	return []ir.Sample{
		sample("three", ops.TopKAttrs{K: 3}, inputs["row"], ""),
		sample("smallest", ops.TopKAttrs{K: 2, Axis: 0, Smallest: true}, distinct(-1, 1, 5, 3), ""),
		sample("all of each row", ops.TopKAttrs{K: 4, Axis: 1}, distinct(-1, 1, 3, 4), ""),
		sample("none", ops.TopKAttrs{}, inputs["row"], ""),
		sample("ties", ops.TopKAttrs{K: 3}, inputs["ties"], "ties share no slope"),
		sample("nan", ops.TopKAttrs{K: 5}, inputs["nan"], "NaN elements"),
	}
}

func init() {
	add(ops.OpSearchSorted, searchSamples)
	add(ops.OpSegmentReduce, segmentSamples)
	add(ops.OpUnique, uniqueSamples)
	add(ops.OpQuantile, quantileSamples)
}

func searchSamples() []ir.Sample {
	nan, inf := math.NaN(), math.Inf(1)
	sorted := ir.Floats(ir.F32, []float64{-inf, -1, 0, 0, 0, 2.5, 7, inf, nan}, 9)
	values := ir.Floats(ir.F32, []float64{-inf, -2, 0, 1, 7, 8, nan, inf}, 2, 4)
	long := ir.NewArray(ir.I32, 131)
	for i := range long.I {
		long.I[i] = int64(i / 3)
	}
	sample := func(name string, right bool, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.SearchAttrs{Right: right}, In: in}
	}
	return []ir.Sample{
		sample("left", false, sorted, values), sample("right", true, sorted, values),
		sample("integers", false, long, draw(1, ir.I32, -1, 50, 67)), sample("one", true, ir.Floats(ir.F32, []float64{1}), ir.Float(ir.F32, 1)),
		sample("none", false, ir.NewArray(ir.F32, 0), values),
	}
}

func segmentSamples() []ir.Sample {
	ids := ir.Ints(ir.I32, []int64{2, 0, 2, 5, -1, 0, 2})
	sample := func(name, reduction string, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.SegmentAttrs{Segments: ir.N(4), Reduction: reduction}, In: []*ir.Array{x, ids}}
	}
	out := []ir.Sample{sample("i32", "max", draw(1, ir.I32, -9, 9, 7)), sample("half", "mean", drawn(ir.F16, 7, 2))}
	for _, r := range []string{"sum", "mean", "prod"} {
		out = append(out, sample(r, r, drawn(ir.F32, 7, 3)))
	}
	for _, r := range []string{"max", "min"} {
		s := sample(r, r, distinct(-1, 1, 7, 3))
		s.NoGrad = "infinite results of empty segments"
		out = append(out, s)
	}
	return append(out, ir.Sample{Name: "no elements", Attrs: &ops.SegmentAttrs{Segments: ir.N(2), Reduction: "sum"}, In: []*ir.Array{ir.NewArray(ir.F32, 0, 3), ir.NewArray(ir.I32, 0)}})
}

func uniqueSamples() []ir.Sample {
	sample := func(name string, size int, x *ir.Array, noGrad string) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.SizeAttrs{Size: ir.N(size)}, In: []*ir.Array{x}, NoGrad: noGrad}
	}
	const ties = "equal elements"
	return []ir.Sample{
		sample("different", 6, distinct(-1, 1, 2, 3), ""),
		sample("repeated", 5, ir.Floats(ir.F32, []float64{3, 1, 3, math.NaN(), 1, 0, math.NaN()}), ties),
		sample("more than asked for", 2, draw(1, ir.I32, -3, 3, 17), ties),
		sample("many", 80, draw(2, ir.I32, 0, 70, 131), ties),
		sample("none", 2, ir.NewArray(ir.F32, 0), ties),
	}
}

func quantileSamples() []ir.Sample {
	sample := func(name string, q float64, axis int, x *ir.Array, noGrad string) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.QuantileAttrs{AxisAttrs: ops.AxisAttrs{Axis: axis}, Q: q}, In: []*ir.Array{x}, NoGrad: noGrad}
	}
	return []ir.Sample{
		sample("median", 0.5, 1, distinct(-1, 1, 3, 6), ""), sample("of an odd number", 0.5, 0, distinct(-1, 1, 7), ""),
		sample("columns", 0.3, 0, distinct(-1, 1, 5, 3), ""), sample("largest", 1, 0, distinct(-1, 1, 4), ""),
		sample("one element", 0.25, 0, distinct(-1, 1, 1), ""), sample("no rows", 0.5, 1, ir.NewArray(ir.F32, 0, 3), ""),
		sample("half", 0.5, 0, drawn(ir.F16, 5), ""), sample("nan", 0.5, 0, ir.Floats(ir.F32, []float64{1, math.NaN(), 2}), "NaN elements"),
	}
}

func init() {
	add(ops.OpGather, gatherSamples)
}

func gatherSamples() []ir.Sample {
	sample := func(name string, x []int, indices *ir.Array, a ops.GatherAttrs) ir.Sample {
		if a.Outside == "" {
			a.Outside = ops.OutsideFill
		}
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(ir.F32, x...), indices}}
	}
	rows := ops.IndexedAxes{Axes: []int{0}}
	clip := ops.IndexedAxes{Axes: []int{1}, Outside: ops.OutsideClip}
	outside := ir.Ints(ir.I32, []int64{-1, 0, 5, 2, 4}, 5, 1)
	return []ir.Sample{
		sample("rows", []int{5, 3}, ir.Ints(ir.I32, []int64{4, 0, 4, 2}, 2, 2, 1), ops.GatherAttrs{IndexedAxes: rows}),
		sample("fill outside", []int{5, 3}, outside, ops.GatherAttrs{IndexedAxes: rows, Fill: -7}),
		sample("clip outside", []int{2, 5, 3}, outside, ops.GatherAttrs{IndexedAxes: clip}),
		sample("points", []int{3, 4}, ir.Ints(ir.U8, []int64{2, 3, 0, 1}, 2, 2), ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}}}),
		sample("along an axis", []int{3, 4}, ir.Ints(ir.I32, []int64{3, 0, 1, 2, 2, 9}, 3, 2, 1),
			ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{1}, OperandBatch: []int{0}, IndexBatch: []int{0}}}),
		sample("one tuple", []int{7, 2}, ir.Ints(ir.I32, []int64{6}, 1), ops.GatherAttrs{IndexedAxes: rows}),
		sample("empty tuples", []int{2, 2}, ir.NewArray(ir.I32, 3, 0), ops.GatherAttrs{}),
		sample("no positions", []int{5, 3}, ir.NewArray(ir.I32, 0, 1), ops.GatherAttrs{IndexedAxes: rows}),
		sample("empty operand", []int{0, 3}, ir.Ints(ir.I32, []int64{0, 1}, 2, 1), ops.GatherAttrs{IndexedAxes: rows, Fill: 2}),
		sample("scalar window", []int{70}, ir.Ints(ir.U32, []int64{69, 1 << 31}, 2, 1), ops.GatherAttrs{IndexedAxes: rows}),
	}
}

// spread returns n indices below bound in scattered order.
func spread(n, bound int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i*7+3) % int64(bound)
	}
	return out
}

func init() {
	for op, mode := range map[ir.Op]ir.ScatterMode{
		ops.OpScatter: ir.ScatterSet, ops.OpScatterAdd: ir.ScatterAdd, ops.OpScatterMul: ir.ScatterMul, ops.OpScatterMin: ir.ScatterMin, ops.OpScatterMax: ir.ScatterMax,
	} {
		add(op, func() []ir.Sample { return scatterSamples(mode) })
	}
}

func scatterSamples(mode ir.ScatterMode) []ir.Sample {
	sample := func(name string, x []int, indices *ir.Array, u []int, a ops.IndexedAxes) ir.Sample {
		if a.Outside == "" {
			a.Outside = ops.OutsideDrop
		}
		operand, updates := distinct(-1, 1, x...), distinct(-1.3, 1.1, u...)
		if mode == ir.ScatterMul { // products of many stay near 1
			updates = draw(8, ir.F32, 0.8, 1.25, u...)
		}
		return ir.Sample{Name: name, Attrs: &ops.ScatterAttrs{IndexedAxes: a}, In: []*ir.Array{operand, indices, updates}}
	}
	typed := func(s ir.Sample, d ir.DType, x, u *ir.Array) ir.Sample {
		s.Name, s.In = s.Name+" of "+d.String(), []*ir.Array{x, s.In[1], u}
		return s
	}
	rows := ops.IndexedAxes{Axes: []int{0}}
	unique := ops.IndexedAxes{Axes: []int{0}, Unique: true}
	unordered := ops.IndexedAxes{Axes: []int{0}, Unordered: true}
	repeated := ir.Ints(ir.I32, []int64{4, 0, 4, 2, 4}, 5, 1)
	outside := ir.Ints(ir.I32, []int64{-1, 0, 5, 2, 4}, 5, 1)
	many := ir.Ints(ir.I32, spread(70, 2), 70, 1)
	sorted := ir.NewArray(ir.I32, 150, 1) // rows 1 to 3 of many positions, and some outside
	for i := range sorted.I {
		sorted.I[i] = int64(i/36 - 1 + i/148)
	}
	out := []ir.Sample{
		sample("repeated rows", []int{5, 3}, repeated, []int{5, 3}, rows),
		sample("drop outside", []int{5, 3}, outside, []int{5, 3}, rows),
		sample("unique", []int{5, 3}, outside, []int{5, 3}, unique),
		sample("clip outside", []int{2, 5, 3}, outside, []int{5, 2, 3}, ops.IndexedAxes{Axes: []int{1}, Outside: ops.OutsideClip}),
		sample("points", []int{3, 4}, ir.Ints(ir.I32, []int64{2, 3, 2, 3}, 2, 2), []int{2}, ops.IndexedAxes{Axes: []int{0, 1}}),
		sample("along an axis", []int{3, 4}, ir.Ints(ir.I32, []int64{3, 0, 1, 1, 2, 9}, 3, 2, 1), []int{3, 2},
			ops.IndexedAxes{Axes: []int{1}, OperandBatch: []int{0}, IndexBatch: []int{0}}),
		sample("more updates than rows", []int{2, 33}, many, []int{70, 33}, rows),
		sample("in any order", []int{90, 5}, ir.Ints(ir.I32, spread(70, 91), 70, 1), []int{70, 5}, unordered),
		sample("many along the last axis", []int{3, 7}, ir.Ints(ir.I32, spread(131, 8), 131, 1), []int{131, 3}, ops.IndexedAxes{Axes: []int{1}}),
		sample("sorted", []int{4, 3}, sorted, []int{150, 3}, ops.IndexedAxes{Axes: []int{0}, Sorted: true}),
		sample("no updates", []int{5, 3}, ir.NewArray(ir.I32, 0, 1), []int{0, 3}, rows),
		sample("empty operand", []int{0, 3}, ir.Ints(ir.I32, []int64{0, 1}, 2, 1), []int{2, 3}, rows),
	}
	class := isNumber
	if mode == ir.ScatterMin || mode == ir.ScatterMax {
		class = isReal
	}
	for _, d := range typesIn(class)[1:] {
		out = append(out, typed(out[0], d, draw(3, d, -3, 3, 5, 3), draw(4, d, -3, 3, 5, 3)))
	}
	for _, d := range []ir.DType{ir.I32, ir.U32} {
		out = append(out, typed(out[6], d, draw(5, d, -9, 9, 2, 33), draw(6, d, -3, 3, 70, 33)))
	}
	if mode == ir.ScatterSet {
		yes := ir.Ints(ir.Bool, []int64{0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1}, 5, 3)
		no := ir.Ints(ir.Bool, []int64{1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0}, 5, 3)
		out = append(out, typed(out[0], ir.Bool, yes, no))
	}
	return out
}

func init() {
	add(ops.OpPermutation, func() []ir.Sample {
		key := ir.Ints(ir.U32, []int64{0, 42})
		sample := func(n int) ir.Sample {
			return ir.Sample{Name: ir.N(n).String(), Attrs: &ops.SizeAttrs{Size: ir.N(n)}, In: []*ir.Array{key}}
		}
		return []ir.Sample{sample(131), sample(1), sample(0), sample(1700)}
	})
	add(ops.OpSampleToken, sampleTokenSamples)
}

func sampleTokenSamples() []ir.Sample {
	key := ir.Ints(ir.U32, []int64{7, 5})
	sample := func(name string, a ops.SampleAttrs, d ir.DType, dims ...int) ir.Sample {
		x := distinct(-3, 3, dims...)
		x.DType = d
		x.Round()
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x, key}}
	}
	return []ir.Sample{
		sample("all", ops.SampleAttrs{Temperature: 1, TopK: 0, TopP: 1}, ir.F32, 5, 11), sample("the best", ops.SampleAttrs{Temperature: 0, TopK: 0, TopP: 1}, ir.F32, 5, 11),
		sample("three", ops.SampleAttrs{Temperature: 0.7, TopK: 3, TopP: 1}, ir.F32, 5, 11), sample("the likely", ops.SampleAttrs{Temperature: 2, TopK: 0, TopP: 0.8}, ir.F32, 67, 13),
		sample("both", ops.SampleAttrs{Temperature: 1, TopK: 5, TopP: 0.5}, ir.F16, 2, 3, 9), sample("one row", ops.SampleAttrs{Temperature: 1, TopK: 2, TopP: 0.9}, ir.F32, 7), sample("no rows", ops.SampleAttrs{Temperature: 1, TopK: 2, TopP: 0.9}, ir.F32, 0, 7),
	}
}
