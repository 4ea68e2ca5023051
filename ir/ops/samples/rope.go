package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpRope, ropeSamples)
	add(ops.OpRopeTable, func() []ir.Sample {
		return []ir.Sample{
			{Name: "positions", Attrs: &ops.RopeTableAttrs{Size: 6, Base: 100}, In: []*ir.Array{ir.Ints(ir.I32, []int64{0, 1, 5, 130, 3, 2}, 2, 3)}},
			{Name: "fractions", Attrs: &ops.RopeTableAttrs{Size: 2, Base: 10000}, In: []*ir.Array{drawn(ir.F32, 3)}},
			{Name: "none", Attrs: &ops.RopeTableAttrs{Size: 4, Base: 10000}, In: []*ir.Array{ir.NewArray(ir.I32, 0)}},
		}
	})
	add(ops.OpAxialRope, func() []ir.Sample {
		sample := func(name string, d ir.DType, dims ...int) ir.Sample {
			return ir.Sample{Name: name, Attrs: &ops.AxialRopeAttrs{Width: 3, Base: 100}, In: []*ir.Array{drawn(d, dims...)}}
		}
		return []ir.Sample{sample("grid", ir.F32, 2, 6, 8), sample("one place", ir.F32, 1, 4), sample("half", ir.F16, 4, 4), sample("none", ir.F32, 0, 4)}
	})
}

func ropeSamples() []ir.Sample {
	sample := func(name string, d ir.DType, interleaved bool, x, table []int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.RopeAttrs{Interleaved: interleaved}, In: []*ir.Array{
			drawn(d, x...), draw(2, d, -1, 1, table...), draw(3, d, -1, 1, table...),
		}}
	}
	return []ir.Sample{
		sample("halves", ir.F32, false, []int{2, 5, 6}, []int{5, 3}),
		sample("neighbours", ir.F32, true, []int{2, 5, 6}, []int{5, 3}),
		sample("heads, in part", ir.F32, false, []int{2, 3, 2, 7}, []int{3, 1, 2}),
		sample("neighbours in part", ir.F32, true, []int{3, 7}, []int{3, 2}),
		sample("beyond a tile", ir.F32, false, []int{33, 130}, []int{33, 65}),
		sample("vector", ir.F32, true, []int{2}, []int{1}),
		sample("no positions", ir.F32, false, []int{0, 4}, []int{0, 2}),
		sample("half", ir.F16, false, []int{3, 4}, []int{3, 2}),
	}
}
