package samples

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
