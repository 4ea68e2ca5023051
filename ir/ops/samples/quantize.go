package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpQuantizeLinear, quantizeSamples)
	add(ops.OpDequantizeLinear, dequantizeLinearSamples)
	add(ops.OpQMatMul, func() []ir.Sample {
		return quantProductSamples(&ops.RequantAttrs{XZero: 3, WZero: -2, OutZero: 1, Mult: 1. / 64, DType: ir.I8}, []int{5, 7}, []int{7, 3})
	})
	add(ops.OpQConv2D, func() []ir.Sample {
		conv := ops.Conv2DAttrs{Strides: []int{2, 1}, PadLo: []int{1, 0}, PadHi: []int{0, 1}}
		conv.Complete(nil, nil)
		return quantProductSamples(&ops.QConv2DAttrs{Conv2DAttrs: conv, RequantAttrs: ops.RequantAttrs{XZero: 3, WZero: -2, OutZero: 1, Mult: 1. / 64, DType: ir.I8}}, []int{2, 4, 3, 2}, []int{2, 2, 2, 3})
	})
}

func quantizeSamples() []ir.Sample {
	x := drawn(ir.F32, 3, 4)
	rows := ir.Floats(ir.F32, []float64{0.01, 0.25, 0.5})
	return []ir.Sample{
		{Name: "tensor", Attrs: &ops.LinearQuantAttrs{Axis: 0, DType: ir.I8}, In: []*ir.Array{x, ir.Float(ir.F32, 0.0625)}},
		{Name: "rows", Attrs: &ops.LinearQuantAttrs{Axis: 0, DType: ir.U8}, In: []*ir.Array{x, rows, ir.Ints(ir.U8, []int64{128, 3, 9})}},
		{Name: "in i32", Attrs: &ops.LinearQuantAttrs{Axis: 1, DType: ir.I32}, In: []*ir.Array{x, ir.Float(ir.F32, 0.001), ir.Int(ir.I32, -7)}},
		{Name: "half", Attrs: &ops.LinearQuantAttrs{Axis: 0, DType: ir.I8}, In: []*ir.Array{drawn(ir.F16, 5), ir.Float(ir.F16, 0.25)}},
		{Name: "empty", Attrs: &ops.LinearQuantAttrs{Axis: 0, DType: ir.I8}, In: []*ir.Array{ir.NewArray(ir.F32, 0), ir.Float(ir.F32, 1)}},
	}
}

func dequantizeLinearSamples() []ir.Sample {
	x := draw(1, ir.I8, -9, 9, 3, 4)
	return []ir.Sample{
		{Name: "tensor", Attrs: &ops.AxisAttrs{}, In: []*ir.Array{x, ir.Float(ir.F32, 0.25)}},
		{Name: "columns", Attrs: &ops.AxisAttrs{Axis: 1}, In: []*ir.Array{x, draw(2, ir.F32, 0.1, 1, 4), draw(3, ir.I8, -3, 3, 4)}},
		{Name: "i32", Attrs: &ops.AxisAttrs{Axis: 0}, In: []*ir.Array{draw(1, ir.I32, -9, 9, 3, 4), draw(2, ir.F32, 0.1, 1, 3), draw(3, ir.I32, -3, 3, 3)}},
		{Name: "half", Attrs: &ops.AxisAttrs{}, In: []*ir.Array{x, ir.Float(ir.F16, 0.25)}},
		{Name: "empty", Attrs: &ops.AxisAttrs{}, In: []*ir.Array{ir.NewArray(ir.I8, 0), ir.Float(ir.F32, 1)}},
	}
}

func quantProductSamples(a ir.Attrs, x, w []int) []ir.Sample {
	out := []ir.Sample{}
	for _, d := range []ir.DType{ir.I32, ir.I8, ir.U8} {
		out = append(out, ir.Sample{Name: d.String(), Attrs: a, In: []*ir.Array{
			draw(1, d, -100, 100, x...), draw(2, d, -100, 100, w...), draw(3, ir.I32, -900, 900, w[len(w)-1]),
		}})
	}
	out = append(out, ir.Sample{Name: "no bias", Attrs: a, In: out[0].In[:2]})
	x = append([]int{0}, x[1:]...)
	return append(out, ir.Sample{Name: "no rows", Attrs: a, In: []*ir.Array{ir.NewArray(ir.I32, x...), out[0].In[1]}})
}
