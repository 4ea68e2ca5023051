package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpDotGeneral, dotSamples)
	add(ops.OpKron, func() []ir.Sample {
		return productSamplesOf([][2][]int{{{2, 3}, {4, 2}}, {{3}, {2, 2}}, {{}, {5}}, {{0, 2}, {3, 1}}})
	})
	add(ops.OpOuter, func() []ir.Sample {
		return productSamplesOf([][2][]int{{{5}, {7}}, {{2, 3}, {4}}, {{}, {3}}, {{0}, {3}}})
	})
	add(ops.OpVdot, func() []ir.Sample {
		return productSamplesOf([][2][]int{{{131}, {131}}, {{2, 3}, {6}}, {{}, {}}, {{0}, {0}}})
	})
}

func dotSamples() []ir.Sample {
	sample := func(name string, d ir.DType, x, y []int, a ops.DotAttrs) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(d, x...), drawn(d, y...)}}
	}
	rows := ops.DotAttrs{LhsContract: []int{1}, RhsContract: []int{0}}
	return []ir.Sample{
		sample("matrix", ir.F32, []int{3, 4}, []int{4, 5}, rows),
		sample("beyond a tile", ir.F32, []int{33, 65}, []int{65, 17}, rows),
		sample("both transposed", ir.F32, []int{7, 9}, []int{5, 7}, ops.DotAttrs{LhsContract: []int{0}, RhsContract: []int{1}}),
		sample("batch last", ir.F32, []int{3, 4, 2}, []int{4, 2, 5},
			ops.DotAttrs{LhsContract: []int{1}, RhsContract: []int{0}, LhsBatch: []int{2}, RhsBatch: []int{1}}),
		sample("two contracted axes", ir.F32, []int{2, 3, 4}, []int{4, 5, 2},
			ops.DotAttrs{LhsContract: []int{0, 2}, RhsContract: []int{2, 0}}),
		sample("outer product", ir.F32, []int{3}, []int{4}, ops.DotAttrs{}),
		sample("inner product", ir.F32, []int{70}, []int{70}, ops.DotAttrs{LhsContract: []int{0}, RhsContract: []int{0}}),
		sample("scalars", ir.F32, nil, nil, ops.DotAttrs{}),
		sample("nothing to sum", ir.F32, []int{3, 0}, []int{0, 2}, rows),
		sample("no rows", ir.F32, []int{0, 3}, []int{3, 2}, rows),
		sample("one by one", ir.F32, []int{1, 1}, []int{1, 1}, rows),
		sample("half precision", ir.F16, []int{3, 70}, []int{70, 2}, rows),
		sample("integers", ir.I32, []int{3, 4}, []int{4, 2}, rows),
	}
}

func productSamplesOf(shapes [][2][]int) []ir.Sample {
	var out []ir.Sample
	for _, s := range shapes {
		out = append(out, ir.Sample{Name: shapeName(s[0]) + " " + shapeName(s[1]), In: []*ir.Array{
			draw(1, ir.F32, -1, 1, s[0]...), draw(2, ir.F32, -1, 1, s[1]...),
		}})
	}
	s := shapes[0]
	return append(out, ir.Sample{Name: "c64", In: []*ir.Array{draw(1, ir.C64, -1, 1, s[0]...), draw(2, ir.C64, -1, 1, s[1]...)}})
}

func init() {
	add(ops.OpEinsum, einsumSamples)
}

func einsumSamples() []ir.Sample {
	sample := func(equation string, shapes ...[]int) ir.Sample {
		s := ir.Sample{Name: equation, Attrs: &ops.EinsumAttrs{Equation: equation}}
		for i, dims := range shapes {
			s.In = append(s.In, draw(uint64(i), ir.F32, -1, 1, dims...))
		}
		return s
	}
	return []ir.Sample{
		sample("ij,jk->ik", []int{5, 3}, []int{3, 4}), sample("bij,bjk", []int{2, 3, 4}, []int{2, 4, 5}),
		sample("...ij,...jk->...ik", []int{2, 1, 3, 4}, []int{5, 4, 2}), sample("i,j->ji", []int{3}, []int{4}),
		sample("ij->", []int{5, 7}), sample("ii->i", []int{4, 4}), sample("ii", []int{3, 3}), sample("iij->j", []int{3, 3, 2}),
		sample("ij->ji", []int{67, 3}), sample("ij,jk,kl->il", []int{2, 3}, []int{3, 4}, []int{4, 2}),
		sample("i,i,i->i", []int{4}, []int{4}, []int{1}), sample("ij,k->i", []int{2, 3}, []int{4}), sample("i,i", []int{0}, []int{0}),
	}
}

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
		sample("phases of uneven windows", ir.F32, []int{1, 3, 5, 4}, []int{2, 3, 3, 3},
			ops.ConvAttrs{PadLo: []int{1, 2}, PadHi: []int{2, 1}, LhsDilation: []int{2, 2}}),
		sample("phases in groups, beyond a tile", ir.F32, []int{1, 18, 6, 6}, []int{34, 9, 4, 2},
			ops.ConvAttrs{PadLo: []int{2, -1}, PadHi: []int{2, 1}, LhsDilation: []int{2, 3}, FeatureGroups: ir.N(2)}),
		sample("phases of odd results, beyond a tile", ir.F32, []int{2, 18, 6, 5}, []int{34, 18, 3, 4},
			ops.ConvAttrs{PadLo: []int{1, 2}, PadHi: []int{1, 1}, LhsDilation: []int{2, 3}}),
		sample("phases of odd results to one channel", ir.F32, []int{1, 9, 6, 19}, []int{1, 9, 3, 4},
			ops.ConvAttrs{PadLo: []int{1, 2}, PadHi: []int{1, 1}, LhsDilation: []int{2, 2}}),
		sample("phases of three axes", ir.F32, []int{2, 3, 2, 4, 3}, []int{2, 3, 2, 3, 1},
			ops.ConvAttrs{PadLo: []int{1, 0, 2}, PadHi: []int{0, 1, 1}, LhsDilation: []int{2, 2, 3}}),
		sample("phases without terms", ir.F32, []int{1, 2, 4}, []int{3, 2, 1}, ops.ConvAttrs{PadHi: []int{1}, LhsDilation: []int{2}}),
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
	add(ops.OpQuantizedGroupedMatMul, quantizedGroupedSamples)
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
		sample("blocks", ir.F32, 2, 2, 1, 0, 1, 1, 1, 5), sample("half in blocks", ir.F16, 4, 2, 1, 0, 1, 1, 0),
	}
}

func quantizedGroupedSamples() []ir.Sample {
	sample := func(name, format string, d ir.DType, w *ir.Array, k int, groups ...int64) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.PackedProductAttrs{PackedAttrs: ops.PackedAttrs{Format: format, DType: ir.F32}}, In: []*ir.Array{
			draw(1, d, -1, 1, len(groups), k), w, ir.Ints(ir.I32, groups, len(groups)),
		}}
	}
	of := func(groups int, a *ir.Array) *ir.Array {
		a.Dims = []int{groups, a.Dims[0] / groups, a.Dims[1]}
		return a
	}
	matrices := func(groups, rows, bytes int) *ir.Array { return of(groups, packedBytes(groups*rows, bytes)) }
	rounded := func(s ir.Sample) ir.Sample {
		s.Attrs.(*ops.PackedProductAttrs).ActivationBits, s.NoGrad = 8, estimator
		return s
	}
	many := make([]int64, 128)
	many[7], many[30] = -1, 1
	return []ir.Sample{
		sample("rows", "q4_0", ir.F32, matrices(3, 4, 2*18), 64, 2, 0, 2, -1, 3), sample("blocks", "q8_0", ir.F32, matrices(2, 3, 34), 32, 1, 0, 1, 1, 1, 7),
		sample("one block after the other", "f8_e4m3", ir.F32, matrices(1, 2, 4), 4, many...),
		rounded(sample("activations of 8 bits", "q4_1", ir.F32, matrices(2, 3, 2*20), 64, 1, 0, 1)),
		sample("words", "q4_1", ir.F32, of(2, wordsOf(packedBytes(2*3, 40))), 64, 0, 1), sample("half", "f8_e4m3", ir.F16, matrices(2, 2, 4), 4, 1, 0, 1),
		sample("long rows of q6_k", "q6_k", ir.F32, matrices(2, 2, 2*210), 512, 1), sample("no rows", "q8_0", ir.F32, matrices(2, 3, 34), 32),
	}
}
