package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addReduction(ops.OpReduceSum, reduction{})
	addReduction(ops.OpReduceProd, reduction{samples: productSamples})
	addReduction(ops.OpReduceMax, reduction{noEmptyGrad: "infinite result", samples: extremumSamples})
	addReduction(ops.OpReduceMin, reduction{noEmptyGrad: "infinite result", samples: extremumSamples})
	addReduction(ops.OpMean, reduction{noEmptyGrad: "NaN result"})
	add(ops.OpSumAll, sumAllSamples)
}

// reduction describes the samples of a reduction.
type reduction struct {
	// noEmptyGrad is the reason to skip gradient checks of empty samples, if any.
	noEmptyGrad string
	samples     func() []ir.Sample // further samples
}

func addReduction(op ir.Op, r reduction) {
	add(op, func() []ir.Sample { return reduceSamples(op, r) })
}

func reduceSamples(op ir.Op, r reduction) []ir.Sample {
	var out []ir.Sample
	add := func(x *ir.Array, axes ...int) {
		a := &ops.AxesAttrs{Axes: axes}
		s := ir.Sample{Name: x.Type().String() + ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{x}}
		if x.Len() == 0 {
			s.NoGrad = r.noEmptyGrad
		}
		out = append(out, s)
	}
	add(draw(1, ir.F32, -2, 2))
	add(draw(2, ir.F32, -2, 2, 7), 0)
	add(draw(3, ir.F32, -2, 2, 0), 0)
	add(draw(4, ir.F32, -2, 2, 3, 0), 1)
	add(draw(5, ir.F32, -2, 2, 3, 0), 0)
	add(draw(6, ir.F32, -2, 2, 1, 1), 0, 1)
	add(distinct(-4, 4, 67, 131), 1)
	add(distinct(-4, 4, 67, 131), 0)
	add(distinct(-1.5, 1.5, 13, 5), 1, 0)
	add(distinct(-1.5, 1.5, 2, 3, 4, 2), 2, 0)
	add(draw(11, ir.F32, -2, 2, 2, 3))
	for _, d := range typesIn(accepts(op, &ops.AxesAttrs{}, 1))[1:] {
		add(draw(12, d, -2, 3, 4, 3), 0)
		add(draw(13, d, -2, 3, 0, 3), 0)
	}
	if r.samples != nil {
		out = append(out, r.samples()...)
	}
	return out
}

func productSamples() []ir.Sample {
	x := ir.Floats(ir.F32, []float64{2, 0, 3, 0, 0, 5, 1, 2, 3, 0, 0, 0}, 4, 3)
	return []ir.Sample{{Name: "zeros", Attrs: &ops.AxesAttrs{Axes: []int{1}}, In: []*ir.Array{x}}}
}

func extremumSamples() []ir.Sample {
	row := func(name, noGrad string, x ...float64) ir.Sample {
		return ir.Sample{Name: name, NoGrad: noGrad, Attrs: &ops.AxesAttrs{Axes: []int{0}}, In: []*ir.Array{ir.Floats(ir.F32, x, len(x))}}
	}
	return []ir.Sample{
		row("ties", "ties share the gradient", 1, 3, 3, -1, 3, -1),
		row("all alike", "ties share the gradient", 2, 2, 2),
		row("infinities", "infinite elements", math.Inf(1), 0, math.Inf(-1)),
		row("nan", "NaN element", 1, math.NaN(), 3),
		row("nan and infinities", "NaN element", math.Inf(1), math.NaN(), math.Inf(-1)),
	}
}

func sumAllSamples() []ir.Sample {
	var out []ir.Sample
	for _, shapes := range [][][]int{
		{{}},
		{{0}},
		{{7}},
		{{67, 3}, {0, 2}, {1, 1}, {5}},
		{{8192}, {8193}, {3, 5461}},
	} {
		s := ir.Sample{Name: shapeName(shapes[0])}
		for i, dims := range shapes {
			s.In = append(s.In, draw(uint64(i), ir.F32, -2, 2, dims...))
		}
		out = append(out, s)
	}
	many := ir.Sample{Name: "more than a kernel binds"}
	for i := range 11 {
		many.In = append(many.In, draw(uint64(i), ir.F32, -2, 2, i, 3))
	}
	out = append(out, many)
	for _, d := range []ir.DType{ir.F16, ir.F64} {
		out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{draw(1, d, -2, 2, 3), draw(2, d, -2, 2, 2, 4)}})
	}
	return out
}
