package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addUnary(ops.OpErfc, unary{from: -3, to: 3, at: []float64{0, 5}, rounded: true})
	addUnary(ops.OpErfinv, unary{from: -0.95, to: 0.95, at: []float64{0, 0.9, -0.96}, kinks: []float64{0.999, -0.99999, 1, -1, 2}, rounded: true})
	addUnary(ops.OpLgamma, unary{from: 0.3, to: 6, at: []float64{1, 2, 100, -0.4, -2.25}, kinks: []float64{0, -1, 1e10, math.Inf(1)}})
	add(ops.OpDigamma, func() []ir.Sample {
		return []ir.Sample{
			{Name: "positive", In: []*ir.Array{draw(1, ir.F32, 0.3, 6, 7, 33)}},
			{Name: "negative", In: []*ir.Array{ir.Floats(ir.F32, []float64{-0.4, -2.25, -7.6, 0.25})}},
			{Name: "whole numbers", In: []*ir.Array{ir.Floats(ir.F32, []float64{1, 2, 3, 100})}},
			{Name: "scalar", In: []*ir.Array{ir.Float(ir.F32, 1.5)}},
			{Name: "empty", In: []*ir.Array{ir.NewArray(ir.F32, 0, 3)}},
			{Name: "half", In: []*ir.Array{draw(2, ir.F16, 0.5, 6, 5)}},
			{Name: "f64", In: []*ir.Array{draw(2, ir.F64, 0.5, 6, 5)}},
		}
	})
	addNamed(ops.OpI0e, unary{from: 0.3, to: 12, at: []float64{-0.5, -3, 7.5, 8.5, 40}, kinks: []float64{0, 8, math.Inf(1), math.Inf(-1), math.NaN()}})
	addNamed(ops.OpI1e, unary{from: 0.3, to: 12, at: []float64{-0.5, -3, 7.5, 8.5, 40}, kinks: []float64{0, 8, math.Inf(1), math.Inf(-1), math.NaN()}})
	add(ops.OpPolygamma, func() []ir.Sample {
		sample := func(name string, order int, x *ir.Array, noGrad string) ir.Sample {
			return ir.Sample{Name: name, Attrs: &ops.PolygammaAttrs{Order: order}, In: []*ir.Array{x}, NoGrad: noGrad}
		}
		return []ir.Sample{
			sample("first", 1, draw(1, ir.F32, 0.5, 6, 7, 3), ""), sample("third", 3, draw(2, ir.F32, 1, 6, 5), ""),
			sample("large", 2, ir.Floats(ir.F32, []float64{13, 40}), ""), sample("f64", 2, draw(2, ir.F64, 0.5, 6, 5), ""),
			sample("not positive", 1, ir.Floats(ir.F32, []float64{0, -1, -0.5, math.NaN()}), "outside the domain"),
			sample("empty", 1, ir.NewArray(ir.F32, 0), ""), sample("half", 1, draw(2, ir.F16, 1, 6, 5), "its slope is steep for f16"),
		}
	})
}
