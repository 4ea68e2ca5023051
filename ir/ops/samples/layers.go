package samples

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpLinear, linearSamples)
	add(ops.OpEmbedding, embeddingSamples)
}

func linearSamples() []ir.Sample {
	sample := func(name string, d ir.DType, shapes ...[]int) ir.Sample {
		s := ir.Sample{Name: name}
		for _, dims := range shapes {
			s.In = append(s.In, drawn(d, dims...))
		}
		return s
	}
	return []ir.Sample{
		sample("batch", ir.F32, []int{5, 3}, []int{3, 4}, []int{4}),
		sample("beyond a tile", ir.F32, []int{17, 70}, []int{70, 33}, []int{33}),
		sample("no bias", ir.F32, []int{5, 3}, []int{3, 4}),
		sample("vector", ir.F32, []int{3}, []int{3, 4}, []int{4}),
		sample("rank 3", ir.F32, []int{2, 3, 4}, []int{4, 5}, []int{5}),
		sample("no examples", ir.F32, []int{0, 3}, []int{3, 4}, []int{4}),
		sample("no features", ir.F32, []int{2, 0}, []int{0, 4}, []int{4}),
		sample("half", ir.F16, []int{3, 70}, []int{70, 5}, []int{5}),
	}
}

func embeddingSamples() []ir.Sample {
	return []ir.Sample{
		{Name: "tokens", Attrs: &ops.EmbeddingAttrs{}, In: []*ir.Array{drawn(ir.F32, 11, 5), ir.Ints(ir.I32, []int64{10, 0, 3, 3, 7, 1}, 2, 3)}},
		{Name: "one token", Attrs: &ops.EmbeddingAttrs{}, In: []*ir.Array{drawn(ir.F32, 3, 2), ir.Int(ir.U8, 2)}},
		{Name: "tokens in any order", Attrs: &ops.EmbeddingAttrs{Unordered: true}, In: []*ir.Array{drawn(ir.F32, 11, 5), ir.Ints(ir.I32, []int64{10, 3, 3}, 3)}},
		{Name: "no tokens", Attrs: &ops.EmbeddingAttrs{}, In: []*ir.Array{drawn(ir.F32, 3, 2), ir.NewArray(ir.I32, 0)}},
	}
}

func init() {
	const epsilon, momentum = 1e-5, 0.1 // the defaults
	add(ops.OpStandardize, func() []ir.Sample {
		sample := func(name string, d ir.DType, axes []int, dims ...int) ir.Sample {
			a := &ops.StandardizeAttrs{AxesAttrs: ops.AxesAttrs{Axes: axes}, EpsilonAttrs: ops.EpsilonAttrs{Epsilon: epsilon}}
			return ir.Sample{Name: name, Attrs: a, In: []*ir.Array{drawn(d, dims...)}}
		}
		return []ir.Sample{
			sample("columns", ir.F32, []int{0}, 7, 3), sample("around channels", ir.F32, []int{0, 2}, 3, 2, 5),
			sample("all", ir.F32, []int{0, 1}, 2, 4), sample("half", ir.F16, []int{1}, 2, 5),
		}
	})
	add(ops.OpLayerNorm, func() []ir.Sample { return normSamples(3) })
	add(ops.OpRMSNorm, func() []ir.Sample { return normSamples(2) })
	add(ops.OpGroupNorm, func() []ir.Sample {
		return channelSamples(&ops.GroupNormAttrs{Groups: 2, EpsilonAttrs: ops.EpsilonAttrs{Epsilon: epsilon}}, 2)
	})
	add(ops.OpInstanceNorm, func() []ir.Sample { return channelSamples(&ops.EpsilonAttrs{Epsilon: epsilon}, 2) })
	add(ops.OpBatchNormInference, func() []ir.Sample { return channelSamples(&ops.EpsilonAttrs{Epsilon: epsilon}, 4) })
	add(ops.OpBatchNormTraining, func() []ir.Sample {
		out := channelSamples(&ops.BatchNormAttrs{EpsilonAttrs: ops.EpsilonAttrs{Epsilon: epsilon}, Momentum: momentum}, 4)
		for i := range out {
			out[i].NoGrad = "no derivative passes into the running statistics"
		}
		return out
	})
	add(ops.OpAdaNorm, func() []ir.Sample {
		sample := func(name string, d ir.DType, rms bool, dims ...[]int) ir.Sample {
			s := ir.Sample{Name: name, Attrs: &ops.AdaNormAttrs{RMS: rms, EpsilonAttrs: ops.EpsilonAttrs{Epsilon: epsilon}}}
			for i, x := range dims {
				s.In = append(s.In, draw(uint64(i+1), d, -1, 1, x...))
			}
			return s
		}
		return []ir.Sample{
			sample("rows", ir.F32, false, []int{2, 3, 5}, []int{2, 1, 5}, []int{2, 1, 5}), sample("rms", ir.F32, true, []int{3, 4}, []int{4}, []int{3, 1}),
			sample("half", ir.F16, false, []int{2, 4}, []int{2, 4}, []int{4}), sample("empty", ir.F32, false, []int{0, 4}, []int{4}, []int{4}),
		}
	})
	add(ops.OpWeightNorm, func() []ir.Sample {
		sample := func(name string, d ir.DType, axis int, dims ...int) ir.Sample {
			return ir.Sample{Name: name, Attrs: &ops.AxisAttrs{Axis: axis}, In: []*ir.Array{draw(1, d, 0.25, 2, dims...), draw(2, d, 0.5, 2, dims[axis])}}
		}
		return []ir.Sample{
			sample("columns", ir.F32, 1, 3, 4), sample("convolution", ir.F32, 3, 2, 2, 3, 4), sample("half", ir.F16, 0, 2, 3), sample("none", ir.F32, 0, 0, 3),
		}
	})
}

// normSamples returns samples with 1 to operands operands.
func normSamples(operands int) []ir.Sample {
	sample := func(name string, d ir.DType, axes, operands int, dims ...int) ir.Sample {
		s := ir.Sample{Name: name, Attrs: &ops.NormAttrs{Axes: axes, Epsilon: 1e-5}, In: []*ir.Array{drawn(d, dims...)}}
		for i := range operands - 1 {
			s.In = append(s.In, draw(uint64(i), d, 0.5, 1.5, dims[len(dims)-axes:]...))
		}
		return s
	}
	constant := ir.Sample{Name: "constant rows", Attrs: &ops.NormAttrs{Axes: 1, Epsilon: 1e-5}, In: []*ir.Array{ir.NewArray(ir.F32, 2, 3)}}
	return slices.Concat([]ir.Sample{
		sample("rows", ir.F32, 1, operands, 3, 7),
		sample("beyond a tile", ir.F32, 1, operands, 5, 300),
		sample("two axes", ir.F32, 2, operands, 2, 3, 4),
		sample("plain", ir.F32, 1, 1, 2, 5),
		sample("vector", ir.F32, 1, operands, 9),
		sample("no rows", ir.F32, 1, operands, 0, 3),
		sample("half", ir.F16, 1, operands, 2, 6),
	}, []ir.Sample{constant})
}

func channelSamples(a ir.Attrs, vectors int) []ir.Sample {
	sample := func(name string, d ir.DType, dims ...int) ir.Sample {
		s := ir.Sample{Name: name, Attrs: a, In: []*ir.Array{drawn(d, dims...)}}
		for i := range vectors {
			s.In = append(s.In, draw(uint64(i), d, 0.5, 1.5, dims[len(dims)-1]))
		}
		return s
	}
	return []ir.Sample{
		sample("images", ir.F32, 2, 3, 3, 4), sample("sequences", ir.F32, 3, 7, 2),
		sample("rows", ir.F32, 5, 4), sample("half", ir.F16, 2, 5, 2),
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
	add(ops.OpDropout, dropoutSamples)
}

func dropoutSamples() []ir.Sample {
	key := ir.Ints(ir.U32, []int64{6, 28})
	sample := func(name string, rate float64, dims ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.DropoutAttrs{Rate: rate}, In: []*ir.Array{drawn(ir.F32, dims...), key}}
	}
	return []ir.Sample{
		sample("a quarter", 0.25, 7, 33), sample("a hundred-thousandth", 1e-5, 3, 5), sample("none", 0, 5), sample("all", 1, 5), sample("empty", 0.5, 0, 2), sample("scalar", 0.5),
	}
}

func init() {
	add(ops.OpAttention, attentionSamples)
	add(ops.OpAttentionForward, attentionForwardSamples)
	add(ops.OpCachedAttention, cachedAttentionSamples)
	add(ops.OpAttentionBackward, attentionBackwardSamples)
	add(ops.OpSinkAttention, func() []ir.Sample {
		sample := func(name string, d ir.DType, a ops.AttentionAttrs, dims ...int) ir.Sample {
			return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{
				draw(1, d, -1, 1, 2, 3, dims[0], 4), draw(2, d, -1, 1, 2, 3, dims[1], 4), draw(3, d, -1, 1, 2, 3, dims[1], 2), draw(4, d, -1, 1, 3),
			}}
		}
		return []ir.Sample{
			sample("causal", ir.F32, ops.AttentionAttrs{Scale: 0.5, Causal: true}, 3, 5),
			sample("half", ir.F16, ops.AttentionAttrs{Scale: 0.5}, 2, 2),
			sample("no queries", ir.F32, ops.AttentionAttrs{Scale: 0.5}, 0, 2),
		}
	})
	add(ops.OpALiBi, byAttrs(&ops.ALiBiAttrs{Shape: ir.Dims(4, 3, 5)}, &ops.ALiBiAttrs{Shape: ir.Dims(6, 2, 2)}, &ops.ALiBiAttrs{Shape: ir.Dims(1, 0, 3)}))
	add(ops.OpWindowMask, byAttrs(&ops.WindowMaskAttrs{Shape: ir.Dims(5, 7), Left: 2}, &ops.WindowMaskAttrs{Shape: ir.Dims(3, 3), Left: -1, Right: 1},
		&ops.WindowMaskAttrs{Shape: ir.Dims(2, 1), Right: -1}))
}

func attentionSamples() []ir.Sample {
	type shapes = [][]int // of q, k, v and the mask
	sample := func(name string, a ops.AttentionAttrs, of shapes) ir.Sample {
		s := ir.Sample{Name: name, Attrs: &a}
		for i, dims := range of {
			s.In = append(s.In, draw(uint64(40+i), ir.F32, -1, 1, dims...))
		}
		return s
	}
	plain := shapes{{2, 3, 4, 5}, {2, 3, 6, 5}, {2, 3, 6, 7}}
	square := shapes{{2, 5, 4}, {2, 5, 4}, {2, 5, 3}}
	boolean := sample("boolean mask", ops.AttentionAttrs{Scale: 0.5}, square)
	boolean.In = append(boolean.In, ir.Ints(ir.Bool, []int64{
		1, 0, 0, 1, 1,
		0, 0, 0, 0, 0, // a query that sees no key
		1, 1, 1, 1, 1,
		0, 0, 1, 0, 0,
		1, 1, 0, 0, 1,
	}, 5, 5))
	half := ir.Sample{Name: "half", Attrs: &ops.AttentionAttrs{Scale: 0.5}, In: []*ir.Array{drawn(ir.F16, 3, 4), drawn(ir.F16, 5, 4), drawn(ir.F16, 5, 2)}}
	return []ir.Sample{
		sample("plain", ops.AttentionAttrs{Scale: 0.4}, plain),
		sample("no batch", ops.AttentionAttrs{Scale: 1}, shapes{{3, 2}, {4, 2}, {4, 5}}),
		sample("causal", ops.AttentionAttrs{Scale: 0.5, Causal: true}, square),
		sample("causal with a past", ops.AttentionAttrs{Scale: 0.5, Causal: true}, shapes{{1, 2, 3}, {1, 5, 3}, {1, 5, 2}}),
		sample("causal with early queries", ops.AttentionAttrs{Scale: 0.5, Causal: true}, shapes{{5, 3}, {3, 3}, {3, 2}}),
		sample("softcap", ops.AttentionAttrs{Scale: 1, Softcap: 0.7}, square),
		sample("bias", ops.AttentionAttrs{Scale: 0.5}, append(slices.Clone(plain), []int{3, 1, 6})),
		sample("bias, softcap and causal", ops.AttentionAttrs{Scale: 0.5, Softcap: 2, Causal: true}, append(slices.Clone(square), []int{2, 5, 5})),
		sample("grouped queries", ops.AttentionAttrs{Scale: 0.5, Causal: true}, shapes{{2, 6, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 2}, {6, 4, 4}}),
		sample("beyond a tile", ops.AttentionAttrs{Scale: 0.2, Causal: true}, shapes{{2, 35, 33}, {2, 67, 33}, {2, 67, 17}}),
		sample("window", ops.AttentionAttrs{Scale: 0.5, Window: 2}, square),
		sample("causal window beyond a tile", ops.AttentionAttrs{Scale: 0.2, Causal: true, Window: 9}, shapes{{2, 35, 33}, {2, 67, 33}, {2, 67, 17}}),
		sample("no queries", ops.AttentionAttrs{Scale: 1}, shapes{{2, 0, 3}, {2, 4, 3}, {2, 4, 5}}),
		sample("no keys", ops.AttentionAttrs{Scale: 1}, shapes{{2, 3, 3}, {2, 0, 3}, {2, 0, 5}}),
		boolean, half,
	}
}

// attentionForwardSamples omit from gradient checks where a query sees no
// key: its log-sum-exp is -Inf.
func attentionForwardSamples() []ir.Sample {
	samples := attentionSamples()
	for i, s := range samples {
		switch s.Name {
		case "causal with early queries", "no keys", "boolean mask":
			samples[i].NoGrad = "a result is infinite"
		}
	}
	return samples
}

// attentionBackwardSamples are the samples of the forward op, with drawn numbers in place of its results:
// the op is defined for all operands, also those that no forward pass gives.
func attentionBackwardSamples() []ir.Sample {
	samples := attentionSamples()
	for i, s := range samples {
		q, v := s.In[0], s.In[2]
		rows := q.Dims[:len(q.Dims)-1]
		d := ir.F32 // that of the log-sum-exp, for f16 too
		rest := []*ir.Array{
			draw(50, d, 1, 2, rows...), draw(51, d, -1, 1, rows...),
			draw(52, q.DType, -1, 1, slices.Concat(rows, v.Dims[len(v.Dims)-1:])...),
		}
		samples[i].In = slices.Concat(s.In[:3], rest, s.In[3:])
	}
	return samples
}

// cachedAttentionSamples fill caches in part: none but the new positions, up to within a block of keys, across blocks,
// and whole; with one number for all sequences and one for each; with rows, and pages, out of order.
func cachedAttentionSamples() []ir.Sample {
	sample := func(name string, d ir.DType, a ops.CachedAttentionAttrs, q, k []int, width int, past *ir.Array, row ...int64) ir.Sample {
		v := slices.Clone(k)
		v[len(v)-1] = width
		s := ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{draw(50, d, -1, 1, q...), draw(51, d, -1, 1, k...), draw(52, d, -1, 1, v...), past}}
		if row != nil {
			s.In = append(s.In, ir.Ints(ir.I32, row, len(row)))
		}
		return s
	}
	at := func(past ...int64) *ir.Array { return ir.Ints(ir.I32, past, len(past)) }
	count := func(past int64) *ir.Array {
		a := ir.NewArray(ir.I32)
		a.I[0] = past
		return a
	}
	plain := ops.CachedAttentionAttrs{Scale: 0.5}
	paged := func(name string, q, k []int, width int, past *ir.Array, pages ...int64) ir.Sample {
		s := sample(name, ir.F32, ops.CachedAttentionAttrs{Scale: 0.5, Window: 60}, q, k, width, past)
		s.In = append(s.In, ir.Ints(ir.I32, pages, q[0], len(pages)/q[0]))
		return s
	}
	return []ir.Sample{
		sample("first position", ir.F32, plain, []int{1, 2, 1, 4}, []int{1, 2, 9, 4}, 3, count(0)),
		sample("grouped queries", ir.F32, plain, []int{2, 6, 1, 4}, []int{2, 2, 9, 4}, 5, at(3, 8)),
		sample("several positions", ir.F32, ops.CachedAttentionAttrs{Scale: 0.5, Softcap: 0.7}, []int{2, 3, 4}, []int{2, 7, 4}, 4, count(2)),
		sample("across blocks", ir.F32, plain, []int{1, 2, 2, 3}, []int{1, 1, 300, 3}, 70, count(270)),
		sample("vectors", ir.F32, plain, []int{1, 2, 1, 32}, []int{1, 1, 140, 32}, 32, at(133)),
		sample("window", ir.F32, ops.CachedAttentionAttrs{Scale: 0.5, Window: 5}, []int{1, 2, 2, 4}, []int{1, 2, 300, 4}, 3, at(262)),
		sample("rows", ir.F32, plain, []int{3, 2, 1, 4}, []int{4, 1, 6, 4}, 2, at(5, 0, 2), 3, 0, 2),
		paged("pages", []int{3, 4, 1, 4}, []int{9, 2, 5, 4}, 3, at(11, 0, 5), 7, 1, 4, 0, 99, 3, 2, 8, -5),
		paged("pages of vectors", []int{2, 2, 2, 32}, []int{5, 1, 64, 32}, 32, at(70, 126), 4, 1, 0, 2),
		paged("many positions of pages", []int{1, 2, 20, 4}, []int{4, 1, 8, 4}, 3, at(7), 2, 3, 0, 1),
		sample("many positions", ir.F32, plain, []int{1, 2, 20, 4}, []int{1, 2, 40, 4}, 3, count(7)),
		sample("half", ir.F16, plain, []int{1, 2, 1, 4}, []int{1, 2, 9, 4}, 3, at(6)),
		sample("no positions", ir.F32, plain, []int{1, 2, 0, 4}, []int{1, 2, 9, 4}, 3, at(6)),
	}
}

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

func init() {
	addCell(ops.OpLSTM, 4, 2)
	addCell(ops.OpGRU, 3, 1)
	addCell(ops.OpRNN, 1, 1)
}

func addCell(op ir.Op, gates, carries int) {
	add(op, func() []ir.Sample { return recurrentSamples(op, gates, carries) })
}

func recurrentSamples(op ir.Op, gates, carries int) []ir.Sample {
	sample := func(name string, d ir.DType, a ops.RecurrentAttrs, time, layers int) ir.Sample {
		const batch, features, hidden = 2, 3, 2
		dirs := 1
		if a.Bidirectional {
			dirs = 2
		}
		s := ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{draw(1, d, -1, 1, time, batch, features)}}
		add := func(dims ...int) { s.In = append(s.In, draw(uint64(2+len(s.In)), d, -1, 1, dims...)) }
		for range carries {
			add(layers*dirs, batch, hidden)
		}
		for i := range layers * dirs {
			width := features
			if i >= dirs {
				width = hidden * dirs
			}
			add(width, gates*hidden)
			add(hidden, gates*hidden)
			add(gates * hidden)
			add(gates * hidden)
		}
		return s
	}
	out := []ir.Sample{
		sample("one layer", ir.F32, ops.RecurrentAttrs{}, 3, 1),
		sample("two layers, both ways", ir.F32, ops.RecurrentAttrs{Bidirectional: true}, 2, 2),
		sample("one step", ir.F32, ops.RecurrentAttrs{}, 1, 1),
		sample("no step", ir.F32, ops.RecurrentAttrs{}, 0, 1),
		sample("half", ir.F16, ops.RecurrentAttrs{}, 2, 1),
	}
	if op == ops.OpRNN {
		out = append(out, sample("relu", ir.F32, ops.RecurrentAttrs{Relu: true}, 3, 1))
	}
	return out
}

func init() {
	add(ops.OpSelectiveScan, func() []ir.Sample { return stateSamples(nil, "btd", "btd", "dn", "btn", "btn", "bdn") })
	add(ops.OpSSD, func() []ir.Sample {
		return stateSamples(&ops.ChunkAttrs{Chunk: 2}, "bthp", "bth", "h", "btgn", "btgn", "bhpn")
	})
	add(ops.OpGatedDelta, func() []ir.Sample {
		out := stateSamples(&ops.ScaleAttrs{Scale: 0.5}, "bthd", "bthd", "bthe", "bth", "bth", "bhde")
		chunks := stateSample("by chunks", ir.F32, 9, &ops.ScaleAttrs{Scale: 1}, "bthd", "bthd", "bthe", "bth", "bth", "bhde")
		return append(out, stateSample("gates of channels", ir.F32, 3, &ops.ScaleAttrs{Scale: 1}, "bthd", "bthd", "bthe", "bthd", "bth", "bhde"), chunks)
	})
}

// stateSample draws operands whose shapes are named by letters.
func stateSample(name string, d ir.DType, time int, a ir.Attrs, shapes ...string) ir.Sample {
	sizes := map[rune]int{'b': 2, 't': time, 'd': 3, 'n': 2, 'h': 2, 'p': 3, 'g': 1, 'e': 2}
	s := ir.Sample{Name: name, Attrs: a}
	for i, shape := range shapes {
		var dims []int
		for _, letter := range shape {
			dims = append(dims, sizes[letter])
		}
		s.In = append(s.In, draw(uint64(i+1), d, -0.6, 0.5, dims...))
	}
	return s
}

func stateSamples(a ir.Attrs, shapes ...string) []ir.Sample {
	return []ir.Sample{
		stateSample("some steps", ir.F32, 3, a, shapes...),
		stateSample("without a state", ir.F32, 4, a, shapes[:5]...),
		stateSample("one step", ir.F32, 1, a, shapes...),
		stateSample("no step", ir.F32, 0, a, shapes...),
		stateSample("half", ir.F16, 3, a, shapes...),
	}
}

func init() {
	any2, unit := [2]float64{-2, 2}, [2]float64{0.1, 0.9}
	add(ops.OpCrossEntropy, crossEntropySamples)
	addElementLoss(ops.OpMSE, any2, any2)
	addElementLoss(ops.OpMAE, any2, any2)
	addElementLoss(ops.OpHuber, any2, any2)
	addElementLoss(ops.OpSmoothL1, any2, any2)
	addElementLoss(ops.OpBCE, unit, unit)
	addElementLoss(ops.OpBCELogits, any2, unit)
	addElementLoss(ops.OpHinge, any2, any2)
	addElementLoss(ops.OpKLDiv, any2, unit)
	addElementLoss(ops.OpFocal, any2, unit)
}

func crossEntropySamples() []ir.Sample {
	sample := func(name string, axis int, logits, labels *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.AxisAttrs{Axis: axis}, In: []*ir.Array{logits, labels}}
	}
	return []ir.Sample{
		sample("batch", 1, drawn(ir.F32, 4, 3), ir.Ints(ir.I32, []int64{2, 0, 1, 1})),
		sample("many classes", 1, drawn(ir.F32, 3, 300), ir.Ints(ir.I32, []int64{299, 0, 17})),
		sample("one example", 0, drawn(ir.F32, 5), ir.Int(ir.U8, 3)),
		sample("class axis in the middle", 1, drawn(ir.F32, 2, 3, 2), ir.Ints(ir.I32, []int64{2, 0, 1, 1}, 2, 2)),
		sample("no examples", 1, ir.NewArray(ir.F32, 0, 3), ir.NewArray(ir.I32, 0)),
	}
}

// addElementLoss adds samples of a loss of elements in the ranges x and target.
func addElementLoss(op ir.Op, x, target [2]float64) {
	add(op, func() []ir.Sample { return elementLossSamples(op, x, target) })
}

func elementLossSamples(op ir.Op, x, target [2]float64) []ir.Sample {
	sample := func(name, reduction string, d ir.DType, dims ...int) ir.Sample {
		a := defaultsOf(op)
		switch a := a.(type) {
		case *ops.LossAttrs:
			a.Reduction = reduction
		case *ops.DeltaLossAttrs:
			a.Reduction = reduction
		case *ops.FocalAttrs:
			a.Reduction = reduction
		}
		return ir.Sample{Name: name, Attrs: a, In: []*ir.Array{
			draw(1, d, x[0], x[1], dims...), draw(2, d, target[0], target[1], dims...),
		}}
	}
	empty := sample("none", ops.LossMean, ir.F32, 0, 3)
	empty.NoGrad = "NaN result"
	return []ir.Sample{
		sample("mean", ops.LossMean, ir.F32, 5, 7), sample("sum", ops.LossSum, ir.F32, 9), sample("each", ops.LossNone, ir.F32, 3, 4),
		sample("one", ops.LossMean, ir.F32), sample("half", ops.LossSum, ir.F16, 5), sample("empty", ops.LossNone, ir.F32, 0, 3), empty,
	}
}

func init() {
	addAll(classLossSamples, ops.OpCrossEntropyLoss, ops.OpNLL)
	add(ops.OpCosineSimilarity, cosineSamples)
	add(ops.OpCTC, ctcSamples)
}

func classLossSamples() []ir.Sample {
	sample := func(name string, a ops.ClassLossAttrs, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: in}
	}
	mean, each := ops.LossAttrs{Reduction: ops.LossMean}, ops.LossAttrs{Reduction: ops.LossNone}
	x, labels := drawn(ir.F32, 4, 3), ir.Ints(ir.I32, []int64{2, 0, 1, 1})
	some := ir.Ints(ir.I32, []int64{2, -100, 1, -1})
	weight := ir.Floats(ir.F32, []float64{0.5, 1, 2})
	return []ir.Sample{
		sample("mean", ops.ClassLossAttrs{LossAttrs: mean, Axis: 1, Ignored: nil, LabelSmoothing: 0}, x, labels),
		sample("each, class axis first", ops.ClassLossAttrs{LossAttrs: each, Axis: 0, Ignored: nil, LabelSmoothing: 0}, drawn(ir.F32, 5, 3), ir.Ints(ir.I32, []int64{4, 0, 1})),
		sample("smoothed and weighted", ops.ClassLossAttrs{LossAttrs: mean, Axis: 1, Ignored: []int{-100, -1}, LabelSmoothing: 0.1}, x, some, weight),
		sample("sum, another label ignored", ops.ClassLossAttrs{LossAttrs: ops.LossAttrs{Reduction: ops.LossSum}, Axis: 1, Ignored: []int{0}, LabelSmoothing: 0.3}, x, labels),
		sample("half", ops.ClassLossAttrs{LossAttrs: each, Axis: 1, Ignored: nil, LabelSmoothing: 0}, drawn(ir.F16, 4, 3), labels),
		sample("no examples", ops.ClassLossAttrs{LossAttrs: each, Axis: 1, Ignored: nil, LabelSmoothing: 0}, ir.NewArray(ir.F32, 0, 3), ir.NewArray(ir.I32, 0)),
	}
}

func cosineSamples() []ir.Sample {
	a := &ops.CosineAttrs{Axis: 1, Epsilon: 1e-8}
	return []ir.Sample{
		{Name: "rows", Attrs: a, In: []*ir.Array{drawn(ir.F32, 4, 9), draw(8, ir.F32, -1, 1, 4, 9)}},
		{Name: "one against all", Attrs: a, In: []*ir.Array{drawn(ir.F32, 4, 5), draw(8, ir.F32, -1, 1, 5)}},
		{Name: "zero vector", Attrs: a, In: []*ir.Array{ir.NewArray(ir.F32, 1, 3), draw(8, ir.F32, -1, 1, 1, 3)}, NoGrad: "steep near zero"},
		{Name: "empty", Attrs: a, In: []*ir.Array{ir.NewArray(ir.F32, 0, 3), ir.NewArray(ir.F32, 0, 3)}},
	}
}

func ctcSamples() []ir.Sample {
	sample := func(name, reduction string, d ir.DType, time int, labels *ir.Array, times, lengths []int64) ir.Sample {
		logs := draw(1, d, -3, -0.5, time, labels.Dims[0], 4)
		return ir.Sample{Name: name, Attrs: &ops.CTCAttrs{LossAttrs: ops.LossAttrs{Reduction: reduction}}, In: []*ir.Array{
			logs, labels, ir.Ints(ir.I32, times, len(times)), ir.Ints(ir.I32, lengths, len(lengths)),
		}}
	}
	labels := ir.Ints(ir.I32, []int64{1, 1, 2, 3, 2, 0}, 2, 3)
	return []ir.Sample{
		sample("mean", ops.LossMean, ir.F32, 5, labels, []int64{5, 4}, []int64{3, 2}),
		sample("each", ops.LossNone, ir.F32, 4, labels, []int64{4, 4}, []int64{2, 0}),
		sample("sum", ops.LossSum, ir.F16, 3, labels, []int64{3, 2}, []int64{1, 2}),
		sample("no labels", ops.LossNone, ir.F32, 2, ir.NewArray(ir.I32, 2, 0), []int64{2, 1}, []int64{0, 0}),
	}
}
