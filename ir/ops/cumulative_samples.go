package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

func cumulativeSamples(op ir.Op) []ir.Sample {
	if !withSamples {
		return nil
	}
	values := func(dims ...int) *ir.Array {
		if op == OpCumProd { // products of many stay near 1
			return draw(5, ir.F32, 0.9, 1.1, dims...)
		}
		return distinct(-1, 1.3, dims...)
	}
	sample := func(name string, a CumSumAttrs, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}}
	}
	out := []ir.Sample{
		sample("rows", CumSumAttrs{Axis: 1}, values(3, 5)),
		sample("columns from the end", CumSumAttrs{Axis: 0, Reverse: true}, values(7, 3)),
		sample("exclusive", CumSumAttrs{Axis: 0, Exclusive: true}, values(9)),
		sample("exclusive from the end", CumSumAttrs{Axis: 1, Reverse: true, Exclusive: true}, values(2, 4, 3)),
		sample("many columns", CumSumAttrs{Axis: 0}, values(11, 13)),
		sample("beyond a block", CumSumAttrs{Axis: 1}, values(2, 1031)),
		sample("one element", CumSumAttrs{}, values(1)),
		sample("empty", CumSumAttrs{Axis: 1}, ir.NewArray(ir.F32, 2, 0)),
	}
	if op != OpCumSum && op != OpCumProd {
		for i := range out {
			if out[i].Attrs.(*CumSumAttrs).Exclusive {
				out[i].NoGrad = "infinite where nothing is before"
			}
		}
	}
	types := map[ir.Op]domain{OpCumSum: numbers, OpCumProd: numbers, OpCumLogSumExp: floats}[op]
	if types == 0 {
		types = reals
	}
	for _, d := range typesIn(types)[1:] {
		out = append(out, sample(d.String(), CumSumAttrs{}, draw(6, d, -2, 2, 6)))
	}
	row := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	inf := math.Inf(1)
	special := []ir.Sample{
		sample("zeros", CumSumAttrs{}, row(2, 0, 3, 0, 1)),
		sample("ties", CumSumAttrs{}, row(1, 3, 3, -1, 3)),
		sample("infinities", CumSumAttrs{}, row(-inf, 1, -inf, inf, 2)),
		sample("nan", CumSumAttrs{}, row(1, math.NaN(), 2)),
	}
	for i := range special {
		if i > 0 && op != OpCumProd || op == OpCumMax || op == OpCumMin {
			special[i].NoGrad = special[i].Name
		}
	}
	if op == OpCumProd {
		special = special[:2]
	}
	return append(out, special...)
}
