package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpConv2D, conv2DSamples)
	add(ops.OpConvTranspose, convTransposeSamples)
}

func conv2DSamples() []ir.Sample {
	sample := func(name string, a ops.Conv2DAttrs, shapes ...[]int) ir.Sample {
		a.Complete(nil, nil)
		s := ir.Sample{Name: name, Attrs: &a}
		for _, dims := range shapes {
			s.In = append(s.In, drawn(ir.F32, dims...))
		}
		return s
	}
	return []ir.Sample{
		sample("bias", ops.Conv2DAttrs{}, []int{2, 5, 6, 3}, []int{3, 2, 3, 4}, []int{4}),
		sample("strides and padding", ops.Conv2DAttrs{Strides: []int{2, 3}, PadLo: []int{1, 0}, PadHi: []int{2, 1}},
			[]int{1, 7, 8, 2}, []int{3, 3, 2, 5}),
		sample("depthwise", ops.Conv2DAttrs{Groups: 4}, []int{1, 4, 4, 4}, []int{2, 2, 1, 4}, []int{4}),
		sample("no images", ops.Conv2DAttrs{}, []int{0, 4, 4, 2}, []int{2, 2, 2, 3}),
	}
}

func convTransposeSamples() []ir.Sample {
	sample := func(name string, a ops.ConvTransposeAttrs, shapes ...[]int) ir.Sample {
		a.Complete([]ir.Type{ir.TypeOf(ir.F32, ir.Dims(shapes[0]...)...)}, nil)
		s := ir.Sample{Name: name, Attrs: &a}
		for _, dims := range shapes {
			s.In = append(s.In, drawn(ir.F32, dims...))
		}
		return s
	}
	return []ir.Sample{
		sample("doubling", ops.ConvTransposeAttrs{Strides: []int{2, 2}}, []int{1, 3, 4, 2}, []int{2, 2, 2, 3}, []int{3}),
		sample("padded", ops.ConvTransposeAttrs{Strides: []int{2, 3}, PadLo: []int{1, 0}, PadHi: []int{1, 2}, OutputPadding: []int{1, 0}},
			[]int{2, 3, 3, 2}, []int{3, 3, 2, 2}),
		sample("groups of a sequence", ops.ConvTransposeAttrs{Groups: 2, Dilations: []int{2}}, []int{1, 5, 4}, []int{3, 4, 3}, []int{6}),
		sample("no images", ops.ConvTransposeAttrs{}, []int{0, 3, 2}, []int{2, 2, 3}),
	}
}
