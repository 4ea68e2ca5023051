package samples

import (
	"maps"
	"slices"

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

func init() {
	add(ops.OpFakeQuant, fakeQuantSamples)
	add(ops.OpFakeQuantLSQ, lsqSamples)
}

// sizesAlong returns the sizes of some axes.
func sizesAlong(dims, axes []int) []int {
	var out []int
	for _, axis := range axes {
		out = append(out, dims[axis])
	}
	return out
}

const estimator = "the derivative is an estimator"

func fakeQuantSamples() []ir.Sample {
	sample := func(name string, d ir.DType, a ops.FakeQuantAttrs, dims ...int) ir.Sample {
		largest := draw(4, d, 0.5, 1.5, sizesAlong(dims, a.Axes)...)
		return ir.Sample{Name: name, Attrs: &a, NoGrad: estimator, In: []*ir.Array{draw(1, d, -2, 2, dims...), largest}}
	}
	return []ir.Sample{
		sample("tensor", ir.F32, ops.FakeQuantAttrs{Bits: 8, Axes: nil, STE: ops.STEIdentity, Scale: ops.ScaleBatch, Decay: 0}, 3, 5),
		sample("columns", ir.F32, ops.FakeQuantAttrs{Bits: 4, Axes: []int{1}, STE: ops.STEClipped, Scale: ops.ScaleEMA, Decay: 0.75}, 4, 3),
		sample("given", ir.F32, ops.FakeQuantAttrs{Bits: 2, Axes: []int{0, 2}, STE: ops.STETanh, Scale: ops.ScaleFixed, Decay: 0}, 2, 3, 2),
		sample("half", ir.F16, ops.FakeQuantAttrs{Bits: 8, Axes: nil, STE: ops.STEHardTanh, Scale: ops.ScaleFixed, Decay: 0}, 7),
		sample("empty", ir.F32, ops.FakeQuantAttrs{Bits: 8, Axes: nil, STE: ops.STEIdentity, Scale: ops.ScaleBatch, Decay: 0}, 0),
	}
}

func lsqSamples() []ir.Sample {
	sample := func(name string, d ir.DType, a ops.LSQAttrs, dims ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, NoGrad: estimator, In: []*ir.Array{draw(1, d, -2, 2, dims...), draw(4, d, 0.25, 0.5, sizesAlong(dims, a.Axes)...)}}
	}
	return []ir.Sample{
		sample("tensor", ir.F32, ops.LSQAttrs{Bits: 3, Axes: nil, Factor: 1}, 3, 5), sample("rows", ir.F32, ops.LSQAttrs{Bits: 4, Axes: []int{0}, Factor: 0.5}, 2, 3),
		sample("half", ir.F16, ops.LSQAttrs{Bits: 3, Axes: nil, Factor: 1}, 7), sample("empty", ir.F32, ops.LSQAttrs{Bits: 8, Axes: nil, Factor: 1}, 0),
	}
}

func init() {
	add(ops.OpDequantize, dequantizeSamples)
	add(ops.OpQuantizedMatMul, quantizedMatMulSamples)
}

// blockBytes holds the size of a block of each packed format.
var blockBytes = map[string]int{
	"q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24, "q8_0": 34, "q2_k": 84, "q3_k": 110, "q4_k": 144, "q5_k": 176, "q6_k": 210,
	"q8_k": 292, "iq4_nl": 18, "iq4_xs": 136, "mxfp4": 17, "nvfp4": 36, "f8_e4m3": 1, "f8_e5m2": 1,
}

func dequantizeSamples() []ir.Sample {
	var out []ir.Sample
	for _, name := range slices.Sorted(maps.Keys(blockBytes)) {
		bytes := blockBytes[name]
		out = append(out, ir.Sample{Name: name, Attrs: &ops.PackedAttrs{Format: name, DType: ir.F32}, In: []*ir.Array{packedBytes(2, 3*bytes)}})
		if words := (2*bytes + 3) / 4; name == "q4_0" || name == "q6_k" || name == "mxfp4" {
			out = append(out, ir.Sample{Name: name + " in words", Attrs: &ops.PackedAttrs{Format: name, DType: ir.F32}, In: []*ir.Array{wordsOf(packedBytes(2, 4*words))}})
		}
	}
	return append(out,
		ir.Sample{Name: "to f16", Attrs: &ops.PackedAttrs{Format: "f8_e5m2", DType: ir.F16}, In: []*ir.Array{packedBytes(1, 7)}},
		ir.Sample{Name: "no rows", Attrs: &ops.PackedAttrs{Format: "q8_0", DType: ir.F32}, In: []*ir.Array{ir.NewArray(ir.U8, 0, 34)}},
		ir.Sample{Name: "no blocks", Attrs: &ops.PackedAttrs{Format: "q4_k", DType: ir.F32}, In: []*ir.Array{ir.NewArray(ir.U32, 2, 0)}})
}

// packedBytes returns bytes below 59, which no format takes for a scale above 1.
func packedBytes(rows, n int) *ir.Array {
	a := ir.NewArray(ir.U8, rows, n)
	for i := range a.I {
		a.I[i] = int64(17+i*73) % 59
	}
	return a
}

// wordsOf packs bytes into u32 words.
func wordsOf(bytes *ir.Array) *ir.Array {
	a := ir.NewArray(ir.U32, bytes.Dims[0], bytes.Dims[1]/4)
	for i, x := range bytes.I {
		a.I[i/4] |= x << (8 * (i % 4))
	}
	return a
}

func quantizedMatMulSamples() []ir.Sample {
	sample := func(name, format string, d ir.DType, w *ir.Array, x ...int) ir.Sample {
		attrs := &ops.PackedProductAttrs{PackedAttrs: ops.PackedAttrs{Format: format, DType: ir.F32}}
		return ir.Sample{Name: name, Attrs: attrs, In: []*ir.Array{draw(1, d, -1, 1, x...), w}}
	}
	rounded := func(name, format string, w *ir.Array, x ...int) ir.Sample {
		s := sample(name, format, ir.F32, w, x...)
		s.Attrs.(*ops.PackedProductAttrs).ActivationBits = 8
		return s
	}
	return []ir.Sample{
		sample("q8_0", "q8_0", ir.F32, packedBytes(3, 2*34), 5, 64), sample("words", "q4_0", ir.F32, wordsOf(packedBytes(3, 36)), 2, 64),
		sample("vector", "q4_1", ir.F32, packedBytes(2, 20), 32), sample("half", "f8_e4m3", ir.F16, packedBytes(2, 4), 3, 4),
		sample("no rows", "q8_0", ir.F32, packedBytes(3, 34), 0, 32),
		sample("long row", "q4_0", ir.F32, packedBytes(6, 8*18), 1, 256), sample("long row of q6_k", "q6_k", ir.F32, packedBytes(3, 2*210), 1, 512),
		sample("long row of q4_k", "q4_k", ir.F32, packedBytes(4, 144), 1, 256),
		rounded("activations of 8 bits", "q4_1", packedBytes(3, 6*20), 2, 6*32), rounded("a row of 8 bits", "q8_0", packedBytes(3, 9*34), 1, 9*32),
	}
}
