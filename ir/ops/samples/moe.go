package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpMoERoute, moeRouteSamples)
	add(ops.OpMoEDispatch, func() []ir.Sample {
		return slotSamples(&ops.RowsAttrs{Rows: ir.N(7)}, func(d ir.DType) []*ir.Array { return []*ir.Array{drawn(d, 3, 5), slotsOf()} })
	})
	add(ops.OpMoECombine, func() []ir.Sample {
		return slotSamples(nil, func(d ir.DType) []*ir.Array { return []*ir.Array{drawn(d, 7, 5), draw(2, d, 0, 1, 3, 2), slotsOf()} })
	})
	add(ops.OpLoRAMatMul, func() []ir.Sample {
		sample := func(name string, d ir.DType, x ...int) ir.Sample {
			return ir.Sample{Name: name, Attrs: &ops.ScaleAttrs{Scale: 0.5}, In: []*ir.Array{draw(1, d, -1, 1, x...), draw(2, d, -1, 1, 4, 5), draw(3, d, -1, 1, 4, 2), draw(4, d, -1, 1, 2, 5)}}
		}
		return []ir.Sample{sample("matrix", ir.F32, 3, 4), sample("vector", ir.F32, 4), sample("no rows", ir.F32, 0, 4), sample("half", ir.F16, 3, 4)}
	})
	add(ops.OpGroupedMatMul, groupedSamples)
}

func moeRouteSamples() []ir.Sample {
	sample := func(name string, d ir.DType, a ops.MoERouteAttrs, dims ...int) ir.Sample {
		x := distinct(-1, 1.5, dims...)
		x.DType = d
		x.Round()
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}}
	}
	return []ir.Sample{
		sample("two of four", ir.F32, ops.MoERouteAttrs{K: 2, Capacity: 3, Normalize: true}, 7, 4),
		sample("one of three", ir.F32, ops.MoERouteAttrs{K: 1, Capacity: 0, Normalize: false}, 5, 3),
		sample("all", ir.F32, ops.MoERouteAttrs{K: 2, Capacity: 1, Normalize: false}, 3, 2),
	}
}

func slotsOf() *ir.Array { return ir.Ints(ir.I32, []int64{4, -1, 0, 6, 2, 3}, 3, 2) }

func slotSamples(a ir.Attrs, in func(d ir.DType) []*ir.Array) []ir.Sample {
	return []ir.Sample{{Name: "slots", Attrs: a, In: in(ir.F32)}, {Name: "half", Attrs: a, In: in(ir.F16)}}
}

func groupedSamples() []ir.Sample {
	sample := func(name string, d ir.DType, block, g int, groups ...int64) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.GroupedAttrs{Block: block}, In: []*ir.Array{
			draw(1, d, -1, 1, len(groups), 3), draw(2, d, -1, 1, g, 3, 2), ir.Ints(ir.I32, groups, len(groups)),
		}}
	}
	return []ir.Sample{
		sample("rows", ir.F32, 2, 3, 2, 0, 2, 2, 0), sample("outside", ir.F32, 4, 2, 0, -1, 1, 5),
		sample("one group", ir.F32, 3, 1, 0, 0, 0), sample("no rows", ir.F32, 2, 2), sample("half", ir.F16, 2, 2, 1, 0, 1),
	}
}
