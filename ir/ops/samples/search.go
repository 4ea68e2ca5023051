package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
