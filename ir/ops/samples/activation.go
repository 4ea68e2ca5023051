package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addActivation(ops.OpRelu, 0)
	addActivation(ops.OpGelu)
	addActivation(ops.OpGeluTanh)
	addActivation(ops.OpQuickGelu)
	addActivation(ops.OpSilu)
	addActivation(ops.OpSoftplus)
	addActivation(ops.OpLogSigmoid)
	addActivation(ops.OpMish)
	addActivation(ops.OpSoftsign, 0)
	addActivation(ops.OpSquareplus)
	addActivation(ops.OpTanhShrink)
	addActivation(ops.OpLeakyRelu, 0)
	addActivation(ops.OpThresholdedRelu, 1)
	addActivation(ops.OpRelu6, 0, 6)
	addActivation(ops.OpElu, 0)
	addActivation(ops.OpCelu, 0)
	addActivation(ops.OpSelu, 0)
	addActivation(ops.OpHardTanh, -1, 1)
	addActivation(ops.OpHardSigmoid, -3, 3)
	addActivation(ops.OpHardSwish, -3, 3)
	addActivation(ops.OpHardShrink, -0.5, 0.5)
	addActivation(ops.OpSoftShrink, -0.5, 0.5)
	add(ops.OpPRelu, func() []ir.Sample {
		return []ir.Sample{
			{Name: "a slope for each channel", In: []*ir.Array{drawn(ir.F32, 5, 3), draw(9, ir.F32, 0, 1, 3)}},
			{Name: "one slope", In: []*ir.Array{drawn(ir.F32, 4), ir.Float(ir.F32, 0.25)}},
			{Name: "empty", In: []*ir.Array{ir.NewArray(ir.F32, 0, 3), ir.Float(ir.F32, 0.25)}},
		}
	})
	addAll(gatedSamples, ops.OpGlu, ops.OpSwiGlu, ops.OpGeGlu, ops.OpSoftmin)
}

func addActivation(op ir.Op, kinks ...float64) {
	add(op, func() []ir.Sample { return activationSamples(defaultsOf(op), kinks) })
}

// activationSamples returns samples with an alpha other than the default too, if there is one.
func activationSamples(attrs ir.Attrs, kinks []float64) []ir.Sample {
	sample := func(name string, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: attrs, In: []*ir.Array{x}}
	}
	out := []ir.Sample{
		sample("matrix", drawn(ir.F32, 7, 33)),
		sample("scalar", ir.Float(ir.F32, -1.5)),
		sample("empty", ir.NewArray(ir.F32, 0, 3)),
		sample("far", ir.Floats(ir.F32, []float64{-40, -9, 9, 40})),
		sample("half", drawn(ir.F16, 5)),
	}
	if attrs != nil {
		other := sample("another alpha", drawn(ir.F32, 5))
		other.Attrs = &ops.AlphaAttrs{Alpha: 0.75}
		out = append(out, other)
	}
	if kinks != nil {
		kink := sample("kink", ir.Floats(ir.F32, kinks, len(kinks)))
		kink.NoGrad = "a kink"
		out = append(out, kink)
	}
	return out
}

func gatedSamples() []ir.Sample {
	return []ir.Sample{
		{Name: "rows", Attrs: &ops.AxisAttrs{Axis: 1}, In: []*ir.Array{drawn(ir.F32, 5, 6)}},
		{Name: "first axis", Attrs: &ops.AxisAttrs{Axis: 0}, In: []*ir.Array{drawn(ir.F32, 2, 35)}},
		{Name: "no rows", Attrs: &ops.AxisAttrs{Axis: 1}, In: []*ir.Array{ir.NewArray(ir.F32, 0, 4)}},
	}
}

func init() {
	add(ops.OpSoftmax, softmaxSamples)
	add(ops.OpLogSoftmax, softmaxSamples)
	add(ops.OpLogSumExp, softmaxSamples)
}

func softmaxSamples() []ir.Sample {
	sample := func(name string, axis int, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.AxisAttrs{Axis: axis}, In: []*ir.Array{x}}
	}
	none := math.Inf(-1)
	masked := sample("masked", 1, ir.Floats(ir.F32, []float64{1, none, 3, none, none, none, 0, 0, none}, 3, 3))
	masked.NoGrad = "finite differences fail at infinity"
	return []ir.Sample{
		sample("rows", 1, drawn(ir.F32, 3, 5)),
		sample("beyond a tile", 1, drawn(ir.F32, 5, 300)),
		sample("first axis", 0, drawn(ir.F32, 7, 3)),
		sample("inner axis", 1, drawn(ir.F32, 2, 9, 4)),
		sample("one element", 0, drawn(ir.F32, 1)),
		sample("no rows", 1, ir.NewArray(ir.F32, 0, 4)),
		sample("large", 0, ir.Floats(ir.F32, []float64{1000, 999, -1000})),
		sample("half", 1, drawn(ir.F16, 2, 6)),
		masked,
	}
}

func init() {
	add(ops.OpDropout, dropoutSamples)
}

func dropoutSamples() []ir.Sample {
	key := ir.Ints(ir.U32, []int64{6, 28})
	sample := func(name string, rate float64, dims ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.DropoutAttrs{Rate: rate}, In: []*ir.Array{drawn(ir.F32, dims...), key}}
	}
	return []ir.Sample{
		sample("a quarter", 0.25, 7, 33), sample("a hundred-thousandth", 1e-5, 3, 5), sample("none", 0, 5), sample("all", 1, 5), sample("empty", 0.5, 0, 2), sample("scalar", 0.5),
	}
}
