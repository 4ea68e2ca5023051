package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
