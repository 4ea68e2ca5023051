package samples

import (
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
