package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	inf := math.Inf(1)
	signCases := []pair{
		{name: "signs", x: []float64{5, -5, 5, -5}, y: []float64{3, 3, -3, -3}},
		{name: "multiples", x: []float64{6, -6, 6, -6, 0}, y: []float64{3, 3, -3, -3, 2}, noGrad: "jumps at multiples"},
	}
	addNamed(ops.OpSquare, unary{from: -3, to: 3, at: []float64{0}})
	addNamed(ops.OpReciprocal, unary{from: 0.3, to: 3, at: []float64{-2, 1}, kinks: []float64{0}})
	addNamed(ops.OpLogit, unary{from: 0.1, to: 0.9, at: []float64{0.02, 0.5}, kinks: []float64{1e-6, 0, 1, 2}})
	addNamed(ops.OpSinc, unary{from: -3, to: 3, at: []float64{0, 0.3, 0.33, 0.9}})
	addNamed(ops.OpDegrees, unary{from: -4, to: 4})
	addNamed(ops.OpRadians, unary{from: -100, to: 100})
	addNamed(ops.OpRoundSTE, unary{from: -3, to: 3, at: []float64{0.5, 1.5}, noGrad: "the derivative is 1 by definition"})
	addNamed(ops.OpIsInf, unary{from: -3, to: 3, kinks: []float64{math.Inf(1), math.Inf(-1), math.NaN()}, noGrad: "boolean result"})
	addNamed(ops.OpNanToNum, unary{from: -3, to: 3, kinks: []float64{math.Inf(1), math.Inf(-1), math.NaN()}})
	addPaired(ops.OpHypot, binary{cases: []pair{
		{name: "large and small", x: []float64{3e30, -3e-30, 0}, y: []float64{4e30, 4e-30, 2}, noGrad: "beyond finite differences"},
		{name: "origin and infinities", x: []float64{0, inf, 1}, y: []float64{0, 1, -inf}, noGrad: "no derivative here"},
	}})
	addPaired(ops.OpLogAddExp, binary{cases: []pair{
		{name: "equal", x: []float64{1, -2, 0}, y: []float64{1, -2, 0}},
		{name: "far apart", x: []float64{100, -100, 3}, y: []float64{-100, 100, -40}},
		{name: "infinities", x: []float64{-inf, inf, -inf, inf}, y: []float64{-inf, inf, 1, -inf}, noGrad: "infinite operands"},
	}})
	addPaired(ops.OpXLogY, binary{from: [2]float64{-2, 0.2}, to: [2]float64{2, 3}, cases: []pair{
		{name: "zeros", x: []float64{0, 0, 2}, y: []float64{0, 3, 1}, noGrad: "the edge of the domain"},
		{name: "x of 0", x: []float64{0, 0}, y: []float64{0.5, 3}},
	}})
	addPaired(ops.OpXLog1pY, binary{from: [2]float64{-2, -0.7}, to: [2]float64{2, 3}, cases: []pair{{name: "zeros", x: []float64{0, 0, 2}, y: []float64{-1, 3, 0}, noGrad: "the edge of the domain"}}})
	addPaired(ops.OpCopySign, binary{cases: []pair{{name: "zeros", x: []float64{1, -2, 3, -4, 0}, y: []float64{0, math.Copysign(0, -1), -inf, inf, -1}, noGrad: "kinks"}}})
	addPaired(ops.OpMod, binary{from: [2]float64{2.1, 1.5}, to: [2]float64{2.9, 1.95}, cases: signCases})
	addPaired(ops.OpFloorDivide, binary{from: [2]float64{2.1, 1.5}, to: [2]float64{2.9, 1.95}, cases: signCases})
	add(ops.OpFma, func() []ir.Sample {
		var out []ir.Sample
		for _, dims := range sampleShapes {
			out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{
				draw(1, ir.F32, -2, 2, dims...), draw(2, ir.F32, -2, 2, dims...), draw(3, ir.F32, -2, 2, dims...),
			}})
		}
		for _, d := range typesIn(isFloat)[1:] {
			out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{draw(1, d, -2, 2, 5), draw(2, d, -2, 2, 5), draw(3, d, -2, 2, 5)}})
		}
		return out
	})
	add(ops.OpNextAfter, func() []ir.Sample {
		var out []ir.Sample
		for _, dims := range sampleShapes {
			out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{draw(1, ir.F32, -2, 2, dims...), draw(2, ir.F32, -2, 2, dims...)}})
		}
		x, y := []float64{1, 1, -1, -1, 2, 3, math.NaN(), 1}, []float64{2, 0, 0, -2, 2, math.Inf(1), 1, math.NaN()}
		return append(out,
			ir.Sample{Name: "directions", In: []*ir.Array{ir.Floats(ir.F32, x), ir.Floats(ir.F32, y)}},
			ir.Sample{Name: "f64", In: []*ir.Array{ir.Floats(ir.F64, x), ir.Floats(ir.F64, y)}})
	})
}

// addNamed adds samples of a composite of one operand.
func addNamed(op ir.Op, u unary) {
	add(op, func() []ir.Sample { return namedSamples(op, u) })
}

func namedSamples(op ir.Op, e unary) []ir.Sample {
	attrs := defaultsOf(op)
	var out []ir.Sample
	add := func(name, noGrad string, x *ir.Array) {
		if e.noGrad != "" {
			noGrad = e.noGrad
		}
		out = append(out, ir.Sample{Name: name, Attrs: attrs, NoGrad: noGrad, In: []*ir.Array{x}})
	}
	for _, dims := range [][]int{{}, {2, 0, 3}, {67, 13}} {
		add(shapeName(dims), "", draw(1, ir.F32, e.from, e.to, dims...))
	}
	for _, d := range typesIn(accepts(op, attrs, 1)) {
		if d == ir.F16 || d == ir.F64 || d == ir.C64 || d == ir.I32 {
			noGrad := ""
			if d == ir.F16 {
				noGrad = "constants are rounded to 16 bits"
			}
			add(d.String(), noGrad, draw(2, d, e.from, e.to, 5))
		}
	}
	if e.at != nil {
		add("points", "", ir.Floats(ir.F32, e.at))
	}
	if e.kinks != nil {
		add("kinks", "no derivative here", ir.Floats(ir.F32, e.kinks))
	}
	return out
}

// addPaired adds samples of a composite of two operands that are broadcast.
func addPaired(op ir.Op, b binary) {
	b.defaults()
	add(op, func() []ir.Sample { return pairedSamples(op, b) })
}

func pairedSamples(op ir.Op, p binary) []ir.Sample {
	var out []ir.Sample
	add := func(name string, x, y *ir.Array, noGrad string) {
		out = append(out, ir.Sample{Name: name, NoGrad: noGrad, In: []*ir.Array{x, y}})
	}
	two := func(d ir.DType, xs, ys []int) (x, y *ir.Array) {
		return draw(3, d, p.from[0], p.to[0], xs...), draw(4, d, p.from[1], p.to[1], ys...)
	}
	for _, c := range []struct {
		name   string
		d      ir.DType
		xs, ys []int
	}{
		{"scalars", ir.F32, nil, nil},
		{"empty", ir.F32, []int{0, 3}, []int{3}},
		{"matrix", ir.F32, []int{9, 13}, []int{9, 13}},
		{"broadcast", ir.F32, []int{4, 1}, []int{3}},
		{"f16", ir.F16, []int{5}, []int{5}},
		{"f64", ir.F64, []int{5}, []int{5}},
	} {
		x, y := two(c.d, c.xs, c.ys)
		add(c.name, x, y, "")
	}
	if accepts(op, nil, 2)(ir.I32) {
		for _, d := range []ir.DType{ir.I32, ir.U32, ir.I8} {
			add(d.String(), draw(5, d, -9, 9, 11), draw(6, d, -4, 4, 11), "")
		}
	}
	for _, c := range p.cases {
		add(c.name, ir.Floats(ir.F32, c.x), ir.Floats(ir.F32, c.y), c.noGrad)
	}
	return out
}
