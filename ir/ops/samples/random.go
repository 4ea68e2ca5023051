package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpRandomBits, randomBitsSamples)
	add(ops.OpUniform, randomFloatSamples)
	add(ops.OpNormal, randomFloatSamples)
	add(ops.OpBernoulli, bernoulliSamples)
}

func randomBitsSamples() []ir.Sample {
	key := ir.Ints(ir.U32, []int64{0x13198a2e, 0x03707344})
	keys := ir.Ints(ir.U32, []int64{0, 42, 1, 2, math.MaxUint32, 7}, 3, 2)
	sample := func(name string, pairs bool, shape []int, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.RandomBitsAttrs{RandomAttrs: ops.RandomAttrs{Shape: ir.Dims(shape...), Generator: ops.Threefry}, Pairs: pairs, Halves: false}, In: in}
	}
	by := func(name string, g ops.Generator, shape []int, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.RandomBitsAttrs{RandomAttrs: ops.RandomAttrs{Shape: ir.Dims(shape...), Generator: g}}, In: in}
	}
	return []ir.Sample{
		sample("matrix", false, []int{5, 67}, key),
		sample("pairs", true, []int{3, 4}, key),
		sample("scalar", false, nil, key),
		sample("empty", false, []int{0, 2}, key),
		sample("offset that carries", false, []int{4}, key, ir.Int(ir.U32, math.MaxUint32-1)),
		sample("many keys", true, []int{3}, keys, ir.Ints(ir.U32, []int64{0, 5, math.MaxUint32})),
		{Name: "halves", Attrs: &ops.RandomBitsAttrs{RandomAttrs: ops.RandomAttrs{Shape: ir.Dims(3, 7), Generator: ops.Threefry}, Pairs: false, Halves: true}, In: []*ir.Array{key}},
		by("both words", ops.ThreefryBoth, []int{3, 7}, key),
		by("both words of many keys", ops.ThreefryBoth, []int{5}, keys, ir.Ints(ir.U32, []int64{0, 5, math.MaxUint32})),
		by("both words of 13 rounds", ops.ThreefryBoth13, []int{5, 67}, key),
	}
}

func randomFloatSamples() []ir.Sample {
	var out []ir.Sample
	for _, d := range typesIn(isFloat) {
		out = append(out, ir.Sample{
			Name: d.String(), Attrs: &ops.RandomFloatAttrs{RandomAttrs: ops.RandomAttrs{Shape: ir.Dims(3, 5), Generator: ops.Threefry}, DType: d},
			In: []*ir.Array{ir.Ints(ir.U32, []int64{3, 1415926535})},
		})
	}
	for _, dims := range edgeShapes {
		out = append(out, ir.Sample{
			Name: shapeName(dims), Attrs: &ops.RandomFloatAttrs{RandomAttrs: ops.RandomAttrs{Shape: ir.Dims(dims...), Generator: ops.Threefry}, DType: ir.F32},
			In: []*ir.Array{ir.Ints(ir.U32, []int64{2, 6535897})},
		})
	}
	return append(out, ir.Sample{
		Name: "both words of 13 rounds", Attrs: &ops.RandomFloatAttrs{RandomAttrs: ops.RandomAttrs{Shape: ir.Dims(37), Generator: ops.ThreefryBoth13}, DType: ir.F32},
		In: []*ir.Array{ir.Ints(ir.U32, []int64{2, 6535897})},
	})
}

// edgeShapes are asked of ops whose shape is an attribute.
var edgeShapes = [][]int{{}, {0, 3}, {1}, {37}, {2, 1, 3, 1, 2}}

func bernoulliSamples() []ir.Sample {
	key := ir.Ints(ir.U32, []int64{2, 718281828})
	sample := func(name string, p float64) ir.Sample {
		return ir.Sample{
			Name: name, Attrs: &ops.RandomAttrs{Shape: ir.Dims(7, 3), Generator: ops.Threefry}, In: []*ir.Array{key, ir.Float(ir.F32, p)},
			NoGrad: "the result is a boolean",
		}
	}
	out := []ir.Sample{sample("never", 0), sample("sometimes", 0.3), sample("always", 1)}
	for _, dims := range edgeShapes {
		s := sample(shapeName(dims), 0.5)
		s.Attrs = &ops.RandomAttrs{Shape: ir.Dims(dims...), Generator: ops.Threefry}
		out = append(out, s)
	}
	return out
}

func init() {
	add(ops.OpCategorical, func() []ir.Sample {
		key := ir.Ints(ir.U32, []int64{1, 41421356})
		return []ir.Sample{
			{Name: "rows", Attrs: &ops.AxisAttrs{Axis: 1}, In: []*ir.Array{drawn(ir.F32, 9, 5), key}},
			{Name: "columns", Attrs: &ops.AxisAttrs{Axis: 0}, In: []*ir.Array{drawn(ir.F32, 3, 4), key}},
			{Name: "certain", Attrs: &ops.AxisAttrs{Axis: 0}, In: []*ir.Array{ir.Floats(ir.F32, []float64{math.Inf(-1), 0, math.Inf(-1)}), key}},
		}
	})
	addAll(randomFloatSamples, ops.OpGumbel, ops.OpExponential)
	add(ops.OpTruncatedNormal, truncatedSamples)
	add(ops.OpRandomGamma, func() []ir.Sample { return parameterSamples(0.2, 4, nil) })
	add(ops.OpRandomBeta, func() []ir.Sample { return parameterSamples(0.3, 4, []float64{0.5, 3}) })
	add(ops.OpRandomPoisson, func() []ir.Sample { return parameterSamples(0, 30, nil) })
}

func truncatedSamples() []ir.Sample {
	var out []ir.Sample
	for _, s := range randomFloatSamples() {
		s.Attrs = &ops.TruncatedAttrs{RandomFloatAttrs: *s.Attrs.(*ops.RandomFloatAttrs), Low: -2, High: 1.5}
		out = append(out, s)
	}
	return out
}

// parameterSamples draws one operand from [from, to), or two with a second range, before
// the key.
func parameterSamples(from, to float64, second []float64) []ir.Sample {
	var out []ir.Sample
	for _, s := range []struct {
		d    ir.DType
		dims []int
	}{{ir.F32, []int{3, 5}}, {ir.F16, []int{4}}, {ir.F32, nil}, {ir.F32, []int{0}}} {
		in := []*ir.Array{draw(1, s.d, from, to, s.dims...)}
		if second != nil {
			in = append(in, draw(2, s.d, second[0], second[1], s.dims...))
		}
		out = append(out, ir.Sample{Name: s.d.String() + ir.Dims(s.dims...).String(), In: append(in, ir.Ints(ir.U32, []int64{5, 77}))})
	}
	return out
}

func init() {
	add(ops.OpPermutation, func() []ir.Sample {
		key := ir.Ints(ir.U32, []int64{0, 42})
		sample := func(n int) ir.Sample {
			return ir.Sample{Name: ir.N(n).String(), Attrs: &ops.SizeAttrs{Size: ir.N(n)}, In: []*ir.Array{key}}
		}
		return []ir.Sample{sample(131), sample(1), sample(0), sample(1700)}
	})
	add(ops.OpSampleToken, sampleTokenSamples)
}

func sampleTokenSamples() []ir.Sample {
	key := ir.Ints(ir.U32, []int64{7, 5})
	sample := func(name string, a ops.SampleAttrs, d ir.DType, dims ...int) ir.Sample {
		x := distinct(-3, 3, dims...)
		x.DType = d
		x.Round()
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x, key}}
	}
	return []ir.Sample{
		sample("all", ops.SampleAttrs{Temperature: 1, TopK: 0, TopP: 1}, ir.F32, 5, 11), sample("the best", ops.SampleAttrs{Temperature: 0, TopK: 0, TopP: 1}, ir.F32, 5, 11),
		sample("three", ops.SampleAttrs{Temperature: 0.7, TopK: 3, TopP: 1}, ir.F32, 5, 11), sample("the likely", ops.SampleAttrs{Temperature: 2, TopK: 0, TopP: 0.8}, ir.F32, 67, 13),
		sample("both", ops.SampleAttrs{Temperature: 1, TopK: 5, TopP: 0.5}, ir.F16, 2, 3, 9), sample("one row", ops.SampleAttrs{Temperature: 1, TopK: 2, TopP: 0.9}, ir.F32, 7), sample("no rows", ops.SampleAttrs{Temperature: 1, TopK: 2, TopP: 0.9}, ir.F32, 0, 7),
	}
}
