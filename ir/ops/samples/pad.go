package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpPad, padSamples)
}

func padSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ dims, low, high, interior []int }{
		{[]int{}, []int{}, []int{}, []int{}},
		{[]int{3}, []int{1}, []int{2}, []int{0}},
		{[]int{0}, []int{2}, []int{1}, []int{3}},
		{[]int{0, 2}, []int{0, 1}, []int{0, 0}, []int{0, 0}},
		{[]int{1, 1}, []int{0, 2}, []int{1, 0}, []int{5, 5}},
		{[]int{67, 43}, []int{3, 1}, []int{0, 4}, []int{0, 2}},
		{[]int{2, 3, 2}, []int{0, 0, 0}, []int{0, 0, 0}, []int{1, 0, 2}},
	} {
		out = append(out, ir.Sample{
			Name:  shapeName(c.dims),
			Attrs: &ops.PadAttrs{Low: ir.Dims(c.low...), High: ir.Dims(c.high...), Interior: c.interior},
			In:    []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...), draw(2, ir.F32, -2, 2)},
		})
	}
	for _, d := range []ir.DType{ir.Bool, ir.I32, ir.U8, ir.U64, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), Attrs: &ops.PadAttrs{Low: ir.Dims(1), High: ir.Dims(2), Interior: []int{1}}, In: []*ir.Array{draw(1, d, -9, 9, 4), draw(2, d, -9, 9)}})
	}
	return out
}
