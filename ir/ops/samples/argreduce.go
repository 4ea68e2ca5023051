package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addAll(argSamples, ops.OpArgMax, ops.OpArgMin)
}

func argSamples() []ir.Sample {
	var out []ir.Sample
	add := func(name string, axis int, d ir.DType, x *ir.Array) {
		out = append(out, ir.Sample{Name: name, Attrs: &ops.ArgAttrs{Axis: axis, DType: d}, In: []*ir.Array{x}})
	}
	for _, c := range []struct {
		axis int
		dims []int
	}{{0, []int{1}}, {0, []int{7}}, {1, []int{0, 3}}, {1, []int{67, 131}}, {0, []int{67, 131}}, {1, []int{2, 3, 4}}} {
		add(shapeName(c.dims), c.axis, ir.I32, draw(1, ir.F32, -2, 2, c.dims...))
	}
	for _, d := range typesIn(isReal)[1:] {
		add(d.String(), 1, ir.I32, draw(2, d, -3, 3, 4, 5))
	}
	for _, d := range typesIn(isInteger) {
		add("as "+d.String(), 0, d, draw(3, ir.F32, -3, 3, 5, 4))
	}
	row := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	inf := math.Inf(1)
	add("ties", 0, ir.I32, row(1, 3, -1, 3, -1))
	add("infinities", 0, ir.I32, row(-inf, -inf, inf, inf))
	add("worst only", 0, ir.I32, row(-inf, -inf))
	add("best only", 0, ir.I32, row(inf, inf))
	add("nan", 0, ir.I32, row(1, math.NaN(), 3, math.NaN(), -1))
	add("nan only", 0, ir.I32, row(math.NaN(), math.NaN()))
	return out
}
