package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpConcatenate, concatenateSamples)
	add(ops.OpStack, stackSamples)
}

func concatenateSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct {
		axis int
		dims [][]int
	}{
		{0, [][]int{{3}}},
		{0, [][]int{{0}, {0}}},
		{0, [][]int{{2}, {0}, {3}}},
		{1, [][]int{{1, 1}, {1, 1}}},
		{1, [][]int{{67, 30}, {67, 1}, {67, 100}}},
		{0, [][]int{{2, 3}, {1, 3}}},
		{1, [][]int{{0, 2}, {0, 1}}},
	} {
		s := ir.Sample{Name: shapeName(c.dims[0]), Attrs: &ops.AxisAttrs{Axis: c.axis}}
		for i, dims := range c.dims {
			s.In = append(s.In, draw(uint64(i), ir.F32, -2, 2, dims...))
		}
		out = append(out, s)
	}
	for _, d := range []ir.DType{ir.Bool, ir.I32, ir.U8, ir.U64, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), Attrs: &ops.AxisAttrs{Axis: 0}, In: []*ir.Array{draw(1, d, -9, 9, 3), draw(2, d, -9, 9, 2)}})
	}
	return out
}

func stackSamples() []ir.Sample {
	sample := func(axis int, dims ...int) ir.Sample {
		return ir.Sample{Name: shapeName(dims), Attrs: &ops.AxisAttrs{Axis: axis}, In: []*ir.Array{
			draw(1, ir.F32, -2, 2, dims...), draw(2, ir.F32, -2, 2, dims...), draw(3, ir.F32, -2, 2, dims...),
		}}
	}
	return []ir.Sample{sample(0), sample(1, 5), sample(1, 67, 3), sample(0, 2, 0)}
}
