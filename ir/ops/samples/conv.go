package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpConvGeneral, convSamples)
}

func convSamples() []ir.Sample {
	sample := func(name string, d ir.DType, x, w []int, a ops.ConvAttrs) ir.Sample {
		a.Complete([]ir.Type{ir.TypeOf(d, ir.Dims(x...)...)}, nil)
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(d, x...), drawn(d, w...)}}
	}
	return []ir.Sample{
		sample("plain", ir.F32, []int{2, 3, 5, 6}, []int{4, 3, 3, 2}, ops.ConvAttrs{}),
		sample("strides and padding", ir.F32, []int{1, 2, 7, 8}, []int{3, 2, 3, 3},
			ops.ConvAttrs{Strides: []int{2, 3}, PadLo: []int{1, 0}, PadHi: []int{2, 1}}),
		sample("negative padding", ir.F32, []int{1, 1, 9}, []int{1, 1, 2}, ops.ConvAttrs{PadLo: []int{-2}, PadHi: []int{-1}}),
		sample("negative padding with dilation", ir.F32, []int{1, 1, 4}, []int{1, 1, 2},
			ops.ConvAttrs{PadLo: []int{-1}, PadHi: []int{1}, LhsDilation: []int{2}}),
		sample("both dilations", ir.F32, []int{2, 2, 5, 4}, []int{2, 2, 2, 3},
			ops.ConvAttrs{Strides: []int{2, 1}, PadLo: []int{1, 2}, PadHi: []int{0, 3}, LhsDilation: []int{3, 2}, RhsDilation: []int{2, 3}}),
		sample("feature groups", ir.F32, []int{2, 6, 5}, []int{9, 2, 3}, ops.ConvAttrs{FeatureGroups: ir.N(3)}),
		sample("depthwise", ir.F32, []int{1, 4, 5}, []int{4, 1, 3}, ops.ConvAttrs{FeatureGroups: ir.N(4), PadLo: []int{1}, PadHi: []int{1}}),
		sample("batch groups", ir.F32, []int{6, 2, 5}, []int{9, 2, 3}, ops.ConvAttrs{BatchGroups: ir.N(3)}),
		sample("channels last", ir.F32, []int{2, 5, 6, 3}, []int{3, 2, 3, 4},
			ops.ConvAttrs{Lhs: []int{0, 3, 1, 2}, Rhs: []int{3, 2, 0, 1}, Out: []int{0, 3, 1, 2}}),
		sample("mixed layout", ir.F32, []int{5, 2, 3}, []int{2, 3, 4}, ops.ConvAttrs{Lhs: []int{1, 2, 0}, Rhs: []int{2, 1, 0}, Out: []int{2, 0, 1}}),
		sample("beyond a tile", ir.F32, []int{1, 17, 6, 5}, []int{33, 17, 3, 3}, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}),
		sample("three spatial axes", ir.F32, []int{1, 2, 3, 4, 3}, []int{2, 2, 2, 2, 2}, ops.ConvAttrs{}),
		sample("no spatial axes", ir.F32, []int{3, 4}, []int{5, 4}, ops.ConvAttrs{}),
		sample("window too long", ir.F32, []int{1, 1, 2}, []int{1, 1, 4}, ops.ConvAttrs{}),
		sample("no batch", ir.F32, []int{0, 2, 5}, []int{3, 2, 2}, ops.ConvAttrs{}),
		sample("no features", ir.F32, []int{2, 0, 5}, []int{3, 0, 2}, ops.ConvAttrs{}),
		sample("one by one", ir.F32, []int{1, 1, 1, 1}, []int{1, 1, 1, 1}, ops.ConvAttrs{}),
		sample("half", ir.F16, []int{1, 3, 6}, []int{2, 3, 4}, ops.ConvAttrs{}),
	}
}
