package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpIota, iotaSamples)
	add(ops.OpDimSize, func() []ir.Sample {
		var out []ir.Sample
		for i, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.I32, ir.I64, ir.C64} {
			a := &ops.DimSizeAttrs{DType: d, Sizes: ir.Dims([]int{5, 4, 3, 2, 0, 7}[i:]...)}
			out = append(out, ir.Sample{Name: ir.FormatAttrs(a), Attrs: a})
		}
		return out
	})
}

func iotaSamples() []ir.Sample {
	var out []ir.Sample
	add := func(d ir.DType, axis int, dims ...int) {
		a := &ops.IotaAttrs{DType: d, Axis: axis, Shape: ir.Dims(dims...)}
		out = append(out, ir.Sample{Name: ir.FormatAttrs(a), Attrs: a})
	}
	add(ir.I32, 0, 0)
	add(ir.I32, 0, 1)
	add(ir.I32, 1, 3, 0)
	add(ir.I32, 0, 67, 131)
	add(ir.I32, 1, 67, 131)
	add(ir.U8, 0, 300)
	for _, d := range typesIn(isReal) {
		add(d, 0, 5, 2)
	}
	return out
}
