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
	add(ops.OpLinearCall, linearCallSamples)
	add(ops.OpCustomVJP, customVJPSamples)
	add(ops.OpCustomJVP, customJVPSamples)
}

func linearCallSamples() []ir.Sample {
	v := ir.TypeOf(ir.F32, ir.N(3))
	scaled := sampleGraph([]ir.Type{v, v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, in[0], in[1])}
	})
	return []ir.Sample{{
		Name: "scaling", Attrs: &ops.LinearCallAttrs{Residuals: 1}, Subs: []*ir.Graph{scaled, scaled},
		In: []*ir.Array{drawn(ir.F32, 3), ir.Floats(ir.F32, []float64{1, -2, 0.5})},
	}}
}

func customVJPSamples() []ir.Sample {
	v := ir.TypeOf(ir.F32, ir.N(3))
	forward := sampleGraph([]ir.Type{v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, in[0], in[0]), in[0]}
	})
	return []ir.Sample{{
		Name: "square", Attrs: &ops.CustomVJPAttrs{Results: 1}, Subs: []*ir.Graph{forward, doubledProduct(v)}, In: []*ir.Array{drawn(ir.F32, 3)},
	}}
}

func customJVPSamples() []ir.Sample {
	v := ir.TypeOf(ir.F32, ir.N(3))
	f := sampleGraph([]ir.Type{v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, in[0], in[0])}
	})
	return []ir.Sample{{Name: "square", Subs: []*ir.Graph{f, doubledProduct(v)}, In: []*ir.Array{drawn(ir.F32, 3)}}}
}

// doubledProduct is (x, t) ↦ 2·x·t, the derivative of the square in both modes.
func doubledProduct(v ir.Type) *ir.Graph {
	return sampleGraph([]ir.Type{v, v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, ops.Mul(b, in[0], in[1]), ops.ConstLike(b, in[0], 2))}
	})
}
