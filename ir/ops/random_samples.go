package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

func randomBitsSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	key := ir.Ints(ir.U32, []int64{0x13198a2e, 0x03707344})
	keys := ir.Ints(ir.U32, []int64{0, 42, 1, 2, math.MaxUint32, 7}, 3, 2)
	sample := func(name string, pairs bool, shape []int, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &RandomBitsAttrs{RandomAttrs{ir.Dims(shape...), Threefry}, pairs, false}, In: in}
	}
	by := func(name string, g Generator, shape []int, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &RandomBitsAttrs{RandomAttrs: RandomAttrs{ir.Dims(shape...), g}}, In: in}
	}
	return []ir.Sample{
		sample("matrix", false, []int{5, 67}, key),
		sample("pairs", true, []int{3, 4}, key),
		sample("scalar", false, nil, key),
		sample("empty", false, []int{0, 2}, key),
		sample("offset that carries", false, []int{4}, key, ir.Int(ir.U32, math.MaxUint32-1)),
		sample("many keys", true, []int{3}, keys, ir.Ints(ir.U32, []int64{0, 5, math.MaxUint32})),
		{Name: "halves", Attrs: &RandomBitsAttrs{RandomAttrs{ir.Dims(3, 7), Threefry}, false, true}, In: []*ir.Array{key}},
		by("both words", ThreefryBoth, []int{3, 7}, key),
		by("both words of many keys", ThreefryBoth, []int{5}, keys, ir.Ints(ir.U32, []int64{0, 5, math.MaxUint32})),
		by("both words of 13 rounds", ThreefryBoth13, []int{5, 67}, key),
	}
}

func randomFloatSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	var out []ir.Sample
	for _, d := range typesIn(floats) {
		out = append(out, ir.Sample{
			Name: d.String(), Attrs: &RandomFloatAttrs{RandomAttrs{ir.Dims(3, 5), Threefry}, d},
			In: []*ir.Array{ir.Ints(ir.U32, []int64{3, 1415926535})},
		})
	}
	for _, dims := range edgeShapes {
		out = append(out, ir.Sample{
			Name: shapeName(dims), Attrs: &RandomFloatAttrs{RandomAttrs{ir.Dims(dims...), Threefry}, ir.F32},
			In: []*ir.Array{ir.Ints(ir.U32, []int64{2, 6535897})},
		})
	}
	return append(out, ir.Sample{
		Name: "both words of 13 rounds", Attrs: &RandomFloatAttrs{RandomAttrs{ir.Dims(37), ThreefryBoth13}, ir.F32},
		In: []*ir.Array{ir.Ints(ir.U32, []int64{2, 6535897})},
	})
}

// edgeShapes are asked of ops whose shape is an attribute.
var edgeShapes = [][]int{{}, {0, 3}, {1}, {37}, {2, 1, 3, 1, 2}}

func bernoulliSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	key := ir.Ints(ir.U32, []int64{2, 718281828})
	sample := func(name string, p float64) ir.Sample {
		return ir.Sample{
			Name: name, Attrs: &RandomAttrs{ir.Dims(7, 3), Threefry}, In: []*ir.Array{key, ir.Float(ir.F32, p)},
			NoGrad: "the result is a boolean",
		}
	}
	out := []ir.Sample{sample("never", 0), sample("sometimes", 0.3), sample("always", 1)}
	for _, dims := range edgeShapes {
		s := sample(shapeName(dims), 0.5)
		s.Attrs = &RandomAttrs{ir.Dims(dims...), Threefry}
		out = append(out, s)
	}
	return out
}
