package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addAll(varSamples, ops.OpVar, ops.OpStd)
	add(ops.OpNorm, normOrderSamples)
	addAll(countSamples, ops.OpAll, ops.OpAny, ops.OpCountNonzero)
	add(ops.OpBincount, func() []ir.Sample {
		return []ir.Sample{
			{Name: "some", Attrs: &ops.BinsAttrs{Bins: 4}, In: []*ir.Array{ir.Ints(ir.I32, []int64{3, 1, 1, -1, 4, 0, 3, 3}, 2, 4)}},
			{Name: "many", Attrs: &ops.BinsAttrs{Bins: 70}, In: []*ir.Array{draw(1, ir.U8, 0, 80, 131)}},
			{Name: "none", Attrs: &ops.BinsAttrs{Bins: 3}, In: []*ir.Array{ir.NewArray(ir.I32, 0)}},
		}
	})
	add(ops.OpHistogram, func() []ir.Sample {
		return []ir.Sample{
			{Name: "ends", Attrs: &ops.HistogramAttrs{BinsAttrs: ops.BinsAttrs{Bins: 4}, Low: -1, High: 1}, In: []*ir.Array{
				ir.Floats(ir.F32, []float64{-1, 1, 0, 0.5, -0.2, 2, -3, math.NaN(), math.Inf(1)}),
			}},
			{Name: "matrix", Attrs: &ops.HistogramAttrs{BinsAttrs: ops.BinsAttrs{Bins: 7}, Low: -2, High: 2}, In: []*ir.Array{draw(1, ir.F32, -3, 3, 13, 11)}},
			{Name: "none", Attrs: &ops.HistogramAttrs{BinsAttrs: ops.BinsAttrs{Bins: 3}, Low: 0, High: 1}, In: []*ir.Array{ir.NewArray(ir.F32, 0)}},
		}
	})
}

func varSamples() []ir.Sample {
	sample := func(name string, correction int, x *ir.Array, axes ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.VarAttrs{AxesAttrs: ops.AxesAttrs{Axes: axes}, Correction: correction}, In: []*ir.Array{x}}
	}
	equal := sample("equal", 0, ir.NewArray(ir.F32, 2, 3), 1)
	equal.NoGrad = "the root of 0"
	return []ir.Sample{
		sample("rows", 0, drawn(ir.F32, 5, 7), 1), sample("unbiased", 1, drawn(ir.F32, 5, 7), 0),
		sample("all", 1, drawn(ir.F32, 2, 3, 4), 0, 1, 2), sample("beyond a tile", 0, drawn(ir.F32, 3, 300), 1),
		sample("half", 0, drawn(ir.F16, 2, 6), 1), sample("no rows", 0, ir.NewArray(ir.F32, 0, 3), 1), equal,
	}
}

func normOrderSamples() []ir.Sample {
	sample := func(name string, order float64, x *ir.Array, axes ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.NormOrderAttrs{AxesAttrs: ops.AxesAttrs{Axes: axes}, Order: order}, In: []*ir.Array{x}}
	}
	out := []ir.Sample{
		sample("zero", 2, ir.NewArray(ir.F32, 3), 0), sample("half", 2, drawn(ir.F16, 2, 6), 1),
		sample("no rows", 2, ir.NewArray(ir.F32, 0, 3), 1), sample("all", 2, drawn(ir.F32, 3, 131), 0, 1),
	}
	out[0].NoGrad = "a kink"
	for _, p := range []float64{0, 1, 2, 3, 0.5, math.Inf(1), math.Inf(-1)} {
		out = append(out, sample("order "+ir.FormatAttrs(&ops.NormOrderAttrs{Order: p}), p, drawn(ir.F32, 4, 5), 1))
	}
	return out
}

func countSamples() []ir.Sample {
	sample := func(name string, x *ir.Array, axes ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.AxesAttrs{Axes: axes}, In: []*ir.Array{x}}
	}
	return []ir.Sample{
		sample("bool", draw(1, ir.Bool, 0, 1, 67, 3), 1), sample("numbers", ir.Floats(ir.F32, []float64{0, 1, 0, 0, 2, math.NaN()}, 3, 2), 1),
		sample("all axes", draw(1, ir.I32, 0, 3, 5, 7), 0, 1), sample("no elements", ir.NewArray(ir.Bool, 2, 0), 1),
		sample("no rows", ir.NewArray(ir.Bool, 0, 3), 1), sample("scalar", ir.Int(ir.Bool, 1)),
	}
}
