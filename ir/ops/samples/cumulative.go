package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	for _, op := range []ir.Op{ops.OpCumSum, ops.OpCumProd, ops.OpCumMax, ops.OpCumMin, ops.OpCumLogSumExp} {
		add(op, func() []ir.Sample { return cumulativeSamples(op) })
	}
}

func cumulativeSamples(op ir.Op) []ir.Sample {
	values := func(dims ...int) *ir.Array {
		if op == ops.OpCumProd { // products of many stay near 1
			return draw(5, ir.F32, 0.9, 1.1, dims...)
		}
		return distinct(-1, 1.3, dims...)
	}
	sample := func(name string, a ops.CumSumAttrs, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}}
	}
	out := []ir.Sample{
		sample("rows", ops.CumSumAttrs{Axis: 1}, values(3, 5)),
		sample("columns from the end", ops.CumSumAttrs{Axis: 0, Reverse: true}, values(7, 3)),
		sample("exclusive", ops.CumSumAttrs{Axis: 0, Exclusive: true}, values(9)),
		sample("exclusive from the end", ops.CumSumAttrs{Axis: 1, Reverse: true, Exclusive: true}, values(2, 4, 3)),
		sample("many columns", ops.CumSumAttrs{Axis: 0}, values(11, 13)),
		sample("beyond a block", ops.CumSumAttrs{Axis: 1}, values(2, 1031)),
		sample("one element", ops.CumSumAttrs{}, values(1)),
		sample("empty", ops.CumSumAttrs{Axis: 1}, ir.NewArray(ir.F32, 2, 0)),
	}
	if op != ops.OpCumSum && op != ops.OpCumProd {
		for i := range out {
			if out[i].Attrs.(*ops.CumSumAttrs).Exclusive {
				out[i].NoGrad = "infinite where nothing is before"
			}
		}
	}
	class := isReal
	switch op {
	case ops.OpCumSum, ops.OpCumProd:
		class = isNumber
	case ops.OpCumLogSumExp:
		class = isFloat
	}
	for _, d := range typesIn(class)[1:] {
		out = append(out, sample(d.String(), ops.CumSumAttrs{}, draw(6, d, -2, 2, 6)))
	}
	row := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	inf := math.Inf(1)
	special := []ir.Sample{
		sample("zeros", ops.CumSumAttrs{}, row(2, 0, 3, 0, 1)),
		sample("ties", ops.CumSumAttrs{}, row(1, 3, 3, -1, 3)),
		sample("infinities", ops.CumSumAttrs{}, row(-inf, 1, -inf, inf, 2)),
		sample("nan", ops.CumSumAttrs{}, row(1, math.NaN(), 2)),
	}
	for i := range special {
		if i > 0 && op != ops.OpCumProd || op == ops.OpCumMax || op == ops.OpCumMin {
			special[i].NoGrad = special[i].Name
		}
	}
	if op == ops.OpCumProd {
		special = special[:2]
	}
	return append(out, special...)
}
