package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

func reduceSamples(r reduction) []ir.Sample {
	if !withSamples {
		return nil
	}
	var out []ir.Sample
	add := func(x *ir.Array, axes ...int) {
		a := &AxesAttrs{axes}
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
	for _, d := range typesIn(r.types)[1:] {
		add(draw(12, d, -2, 3, 4, 3), 0)
		add(draw(13, d, -2, 3, 0, 3), 0)
	}
	if r.samples != nil {
		out = append(out, r.samples()...)
	}
	return out
}

func productSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	x := ir.Floats(ir.F32, []float64{2, 0, 3, 0, 0, 5, 1, 2, 3, 0, 0, 0}, 4, 3)
	return []ir.Sample{{Name: "zeros", Attrs: &AxesAttrs{[]int{1}}, In: []*ir.Array{x}}}
}

func extremumSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	row := func(name, noGrad string, x ...float64) ir.Sample {
		return ir.Sample{Name: name, NoGrad: noGrad, Attrs: &AxesAttrs{[]int{0}}, In: []*ir.Array{ir.Floats(ir.F32, x, len(x))}}
	}
	return []ir.Sample{
		row("ties", "ties share the gradient", 1, 3, 3, -1, 3, -1),
		row("all alike", "ties share the gradient", 2, 2, 2),
		row("infinities", "infinite elements", math.Inf(1), 0, math.Inf(-1)),
		row("nan", "NaN element", 1, math.NaN(), 3),
		row("nan and infinities", "NaN element", math.Inf(1), math.NaN(), math.Inf(-1)),
	}
}
