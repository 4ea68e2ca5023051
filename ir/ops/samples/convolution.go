package samples

import (
	"slices"

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

func init() {
	add(ops.OpMaxPool, maxPoolSamples)
	add(ops.OpAvgPool, avgPoolSamples)
	addAll(adaptiveSamples, ops.OpAdaptiveAvgPool, ops.OpAdaptiveMaxPool)
	add(ops.OpPixelShuffle, func() []ir.Sample {
		return moved(movement{&ops.FactorAttrs{Factor: 2}, []int{1, 3, 2, 8}}, movement{&ops.FactorAttrs{Factor: 3}, []int{2, 1, 2, 9}}, movement{&ops.FactorAttrs{Factor: 1}, []int{0, 2, 2, 1}})
	})
	add(ops.OpPixelUnshuffle, func() []ir.Sample {
		return moved(movement{&ops.FactorAttrs{Factor: 2}, []int{1, 4, 2, 3}}, movement{&ops.FactorAttrs{Factor: 3}, []int{2, 3, 6, 1}}, movement{&ops.FactorAttrs{Factor: 1}, []int{0, 2, 2, 1}})
	})
}

// poolSamples returns the windows for samples of both pools.
func poolSamples(attrs func(ops.PoolAttrs) ir.Attrs) []ir.Sample {
	sample := func(name string, a ops.PoolAttrs, dims ...int) ir.Sample {
		a.Complete(nil, nil)
		return ir.Sample{Name: name, Attrs: attrs(a), In: []*ir.Array{drawn(ir.F32, dims...)}}
	}
	return []ir.Sample{
		sample("halving", ops.PoolAttrs{Sizes: []int{2, 2}}, 2, 4, 6, 3),
		sample("overlapping and padded", ops.PoolAttrs{
			Sizes: []int{3, 3}, Strides: []int{2, 1}, PadLo: []int{1, 2}, PadHi: []int{0, 1},
		}, 1, 7, 5, 2),
		sample("one axis, dilated", ops.PoolAttrs{Sizes: []int{3}, Strides: []int{1}, Dilations: []int{2}}, 2, 9, 3),
		sample("whole", ops.PoolAttrs{Sizes: []int{7, 7}}, 1, 7, 7, 33),
		sample("no images", ops.PoolAttrs{Sizes: []int{2, 2}}, 0, 4, 4, 3),
	}
}

func maxPoolSamples() []ir.Sample {
	out := poolSamples(func(a ops.PoolAttrs) ir.Attrs { return &a })
	ties := ir.Sample{
		Name: "ties", Attrs: out[0].Attrs, In: []*ir.Array{ir.NewArray(ir.F32, 1, 4, 4, 1)},
		NoGrad: "ties",
	}
	return append(out, ties)
}

func avgPoolSamples() []ir.Sample {
	return slices.Concat(
		poolSamples(func(a ops.PoolAttrs) ir.Attrs { return &ops.AvgPoolAttrs{PoolAttrs: a} }),
		poolSamples(func(a ops.PoolAttrs) ir.Attrs { return &ops.AvgPoolAttrs{PoolAttrs: a, CountIncludePad: true} }))
}

func adaptiveSamples() []ir.Sample {
	sample := func(name string, sizes []int, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.SizesAttrs{Sizes: sizes}, In: []*ir.Array{x}}
	}
	return []ir.Sample{
		sample("sequence", []int{3}, distinct(-1, 1, 2, 7, 2)), sample("image", []int{2, 3}, distinct(-1, 1, 1, 5, 4, 2)),
		sample("global", []int{1, 1, 1}, distinct(-1, 1, 1, 2, 3, 2, 2)), sample("larger", []int{5}, distinct(-1, 1, 1, 3, 1)),
		sample("half", []int{2}, drawn(ir.F16, 1, 4, 2)), sample("no images", []int{2}, ir.NewArray(ir.F32, 0, 3, 2)),
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
