package samples

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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

// attentionForwardSamples leave out of gradient checks where a query sees no
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

// attentionBackwardSamples are those of the forward op, with numbers in place
// of what would follow from it: as a function of its operands the op has a
// value everywhere.
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
