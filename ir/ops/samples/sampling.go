package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
