package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpLinearRecurrence, recurrenceSamples)
}

func recurrenceSamples() []ir.Sample {
	var out []ir.Sample
	add := func(name string, d ir.DType, a ops.CumSumAttrs, dims ...int) {
		x, y := draw(3, d, -0.9, 1, dims...), draw(4, d, -1, 1, dims...)
		out = append(out, ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x, y}})
	}
	add("rows", ir.F32, ops.CumSumAttrs{Axis: 1}, 3, 5)
	add("columns from the end", ir.F32, ops.CumSumAttrs{Axis: 0, Reverse: true}, 7, 3)
	add("exclusive", ir.F32, ops.CumSumAttrs{Exclusive: true}, 9)
	add("exclusive from the end", ir.F32, ops.CumSumAttrs{Axis: 1, Reverse: true, Exclusive: true}, 2, 4, 9)
	add("beyond a block", ir.F32, ops.CumSumAttrs{Axis: 1}, 2, 1031)
	add("one element", ir.F32, ops.CumSumAttrs{}, 1)
	add("empty", ir.F32, ops.CumSumAttrs{Axis: 1}, 2, 0)
	for _, d := range typesIn(func(d ir.DType) bool { return isFloat(d) || d.IsComplex() })[1:] {
		add(d.String(), d, ops.CumSumAttrs{}, 6)
	}
	pair := ops.CumSumAttrs{Axis: 1}
	for _, name := range []string{"two together", "two together from the end", "two together, exclusive"} {
		a := pair
		a.Reverse, a.Exclusive = name == "two together from the end", name == "two together, exclusive"
		sample := ir.Sample{Name: name, Attrs: &a}
		for i := range 6 {
			sample.In = append(sample.In, draw(uint64(20+i), ir.F32, -0.6, 0.6, 2, 9))
		}
		out = append(out, sample)
	}
	zero := ir.Sample{Name: "zeros", Attrs: &ops.CumSumAttrs{}, In: []*ir.Array{ir.Floats(ir.F32, []float64{0, 1, 0, 2}, 4), ir.Floats(ir.F32, []float64{1, 0, 2, 0}, 4)}}
	return append(out, zero)
}
