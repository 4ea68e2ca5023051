package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// unary describes the samples of an elementwise op of one operand.
type unary struct {
	// from and to bound the elements.
	from, to float64
	// at are differentiable points of special interest, kinks points without a derivative.
	at, kinks []float64
	// rounded marks a derivative with constants that are inexact in 16-bit types, which gradient
	// checks skip.
	rounded bool
	// noGrad is the reason to skip gradient checks of all samples, if any.
	noGrad string
}

// addUnary adds samples of every element type that op accepts.
func addUnary(op ir.Op, u unary) {
	add(op, func() []ir.Sample { return unarySamples(op, u) })
}

func unarySamples(op ir.Op, u unary) []ir.Sample {
	types := typesIn(accepts(op, nil, 1))
	var out []ir.Sample
	for _, dims := range sampleShapes {
		x := draw(1, types[0], u.from, u.to, dims...)
		out = append(out, ir.Sample{Name: x.Type().String(), In: []*ir.Array{x}})
	}
	for _, d := range types[1:] {
		sample := ir.Sample{Name: d.String(), In: []*ir.Array{draw(2, d, u.from, u.to, 5)}}
		if u.rounded && d.Size() == 2 {
			sample.NoGrad = "constants of the derivative are rounded to 16 bits"
		}
		out = append(out, sample)
		if d.IsInteger() {
			out = append(out, ir.Sample{Name: d.String() + " edges", In: []*ir.Array{edges(d)}})
		}
	}
	for _, p := range []pair{{name: "points", x: u.at}, {name: "kinks", x: u.kinks, noGrad: "no derivative here"}} {
		if len(p.x) > 0 {
			out = append(out, ir.Sample{Name: p.name, NoGrad: p.noGrad, In: []*ir.Array{numbersOf(types[0], p.x)}})
		}
	}
	for i := range out {
		if u.noGrad != "" {
			out[i].NoGrad = u.noGrad
		}
	}
	return out
}

// binary describes the samples of an elementwise op of two operands.
type binary struct {
	// from and to bound the elements of each operand: -2 and 2 if zero.
	from, to [2]float64
	// cases are further samples.
	cases []pair
}

// pair is a sample of two operands: points (x[i], y[i]), and the reason to skip gradient checks,
// if any.
type pair struct {
	name   string
	x, y   []float64
	noGrad string
}

func (b *binary) defaults() {
	if b.to == [2]float64{} {
		b.from, b.to = [2]float64{-2, -2}, [2]float64{2, 2}
	}
}

// addBinary adds samples of every element type that op accepts.
func addBinary(op ir.Op, b binary) {
	b.defaults()
	add(op, func() []ir.Sample { return binarySamples(op, b) })
}

func binarySamples(op ir.Op, b binary) []ir.Sample {
	types := typesIn(accepts(op, nil, 2))
	two := func(seed uint64, t ir.DType, dims ...int) []*ir.Array {
		return []*ir.Array{draw(seed, t, b.from[0], b.to[0], dims...), draw(seed+1, t, b.from[1], b.to[1], dims...)}
	}
	var out []ir.Sample
	for _, dims := range sampleShapes {
		in := two(3, types[0], dims...)
		out = append(out, ir.Sample{Name: in[0].Type().String(), In: in})
	}
	for _, t := range types[1:] {
		if isFloat(t) || !isFloat(types[0]) {
			out = append(out, ir.Sample{Name: t.String(), In: two(5, t, 9)})
		} else {
			out = append(out, ir.Sample{Name: t.String(), In: []*ir.Array{draw(5, t, -9, 9, 11), draw(6, t, -4, 4, 11)}})
		}
		if t.IsInteger() {
			out = append(out, ir.Sample{Name: t.String() + " edges", In: []*ir.Array{edges(t), ir.Ints(t, []int64{1, 2, 0, 3, 7})}})
		}
	}
	for _, c := range b.cases {
		out = append(out, ir.Sample{Name: c.name, NoGrad: c.noGrad, In: []*ir.Array{numbersOf(types[0], c.x), numbersOf(types[0], c.y)}})
	}
	return out
}

func init() {
	ties := []pair{
		{name: "ties", x: []float64{1, -2, 0}, y: []float64{1, -2, 0}, noGrad: "ties share the gradient"},
		{name: "infinities", x: []float64{math.Inf(1), math.Inf(-1), 1}, y: []float64{0, 0, math.Inf(-1)}, noGrad: "infinite operands"},
		{name: "nan", x: []float64{math.NaN(), 1}, y: []float64{1, math.NaN()}, noGrad: "NaN operands"},
	}
	addBinary(ops.OpAdd, binary{})
	addBinary(ops.OpSub, binary{})
	addBinary(ops.OpMul, binary{})
	addBinary(ops.OpMulZero, binary{cases: []pair{{
		name: "zero times anything", noGrad: "infinite and NaN factors",
		x: []float64{0, 0, 0, 2, math.Inf(1), math.NaN()}, y: []float64{math.Inf(1), math.NaN(), 3, 0, 0, 2},
	}}})
	addBinary(ops.OpDiv, binary{from: [2]float64{-2, 0.5}, to: [2]float64{2, 2}, cases: []pair{{name: "by zero", x: []float64{1, -1, 0}, y: []float64{0, 0, 0}, noGrad: "division by zero"}}})
	// quotients from 1 to 2
	addBinary(ops.OpRem, binary{from: [2]float64{2.1, 1.5}, to: [2]float64{2.9, 1.95}, cases: []pair{
		{name: "multiples", x: []float64{4, -4, 0}, y: []float64{2, 2, 3}, noGrad: "jumps at multiples"},
		{name: "signs", x: []float64{5, -5, 5, -5}, y: []float64{3, 3, -3, -3}},
	}})
	addUnary(ops.OpNeg, unary{from: -3, to: 3, at: []float64{0}})
	addUnary(ops.OpAbs, unary{from: -3, to: 3, kinks: []float64{0}})
	addUnary(ops.OpSign, unary{from: -3, to: 3, kinks: []float64{0}})
	addBinary(ops.OpMax, binary{cases: ties})
	addBinary(ops.OpMin, binary{cases: ties})
	for _, op := range []ir.Op{ops.OpFloor, ops.OpCeil, ops.OpRound, ops.OpTrunc} {
		addUnary(op, unary{from: -3, to: 3, at: []float64{0.25, -0.75}, kinks: []float64{-1.5, -0.5, 0, 0.5, 1.5, 2.5, 1}})
	}
}

func init() {
	addBinary(ops.OpPow, binary{from: [2]float64{0.3, -2}, to: [2]float64{3, 2}, cases: []pair{
		{name: "base zero", x: []float64{0, 0, 0, 0}, y: []float64{0, 1, 2, 0.5}, noGrad: "the edge of the domain"},
		{name: "negative base", x: []float64{-2, -2, -1.5}, y: []float64{2, 3, -1}, noGrad: "no derivative by the exponent"},
	}})
	addUnary(ops.OpSqrt, unary{from: 0.2, to: 4, at: []float64{1, 4}, kinks: []float64{0, -1}})
	addUnary(ops.OpRsqrt, unary{from: 0.2, to: 4, at: []float64{1, 4}, kinks: []float64{0}})
	addUnary(ops.OpExp, unary{from: -3, to: 3, at: []float64{0}, kinks: []float64{math.Inf(1), math.Inf(-1)}})
	addUnary(ops.OpExpm1, unary{from: -3, to: 3, at: []float64{0, 1e-7}})
	addUnary(ops.OpLog, unary{from: 0.2, to: 4, at: []float64{1}, kinks: []float64{0, -1}})
	addUnary(ops.OpLog1p, unary{from: -0.7, to: 4, at: []float64{0, 1e-7}, kinks: []float64{-1}})
	addUnary(ops.OpCbrt, unary{from: 0.2, to: 4, at: []float64{1, 8, -8, -0.001}, kinks: []float64{0}})
	addUnary(ops.OpExp2, unary{from: -3, to: 3, at: []float64{0, 10, -10}, kinks: []float64{math.Inf(1), math.Inf(-1)}, rounded: true})
	for _, op := range []ir.Op{ops.OpLog2, ops.OpLog10} {
		addUnary(op, unary{from: 0.2, to: 4, at: []float64{1, 1000}, kinks: []float64{0, -1}, rounded: true})
	}
}

func init() {
	addUnary(ops.OpSin, unary{from: -4, to: 4, at: []float64{0, 100}})
	addUnary(ops.OpCos, unary{from: -4, to: 4, at: []float64{0, 100}})
	addUnary(ops.OpTan, unary{from: -1, to: 1, at: []float64{0}})
	addUnary(ops.OpAsin, unary{from: -0.9, to: 0.9, at: []float64{0}, kinks: []float64{-1, 1}})
	addUnary(ops.OpAcos, unary{from: -0.9, to: 0.9, at: []float64{0}, kinks: []float64{-1, 1}})
	addUnary(ops.OpAtan, unary{from: -4, to: 4, at: []float64{0}})
	addBinary(ops.OpAtan2, binary{from: [2]float64{-2, 0.2}, to: [2]float64{2, 2}, cases: []pair{
		{name: "quadrants", x: []float64{1, 1, -1, -1}, y: []float64{2, -2, 2, -2}},
		{name: "axes", x: []float64{0, 1, -1}, y: []float64{1, 0, 0}},
		{name: "origin", x: []float64{0}, y: []float64{0}, noGrad: "no derivative at the origin"},
	}})
	addUnary(ops.OpSinh, unary{from: -3, to: 3, at: []float64{0}})
	addUnary(ops.OpCosh, unary{from: -3, to: 3, at: []float64{0}})
	addUnary(ops.OpTanh, unary{from: -3, to: 3, at: []float64{0}, kinks: []float64{100, -100}})
	addUnary(ops.OpSigmoid, unary{from: -4, to: 4, at: []float64{0}, kinks: []float64{1000, -1000}})
	addUnary(ops.OpErf, unary{from: -3, to: 3, at: []float64{0}, rounded: true})
	addUnary(ops.OpAsinh, unary{from: -4, to: 4, at: []float64{0, 1e-7, -300}, kinks: []float64{1e30, -1e30, math.Inf(1)}})
	addUnary(ops.OpAcosh, unary{from: 1.3, to: 5, at: []float64{2, 300}, kinks: []float64{1, 0.5, -2, 1e30, math.Inf(1)}})
	addUnary(ops.OpAtanh, unary{from: -0.9, to: 0.9, at: []float64{0, 1e-7}, kinks: []float64{1, -1, 2, -2}})
}

func init() {
	for _, op := range []ir.Op{ops.OpEq, ops.OpNe, ops.OpLt, ops.OpLe, ops.OpGt, ops.OpGe} {
		addBinary(op, binary{cases: []pair{
			{name: "ties", x: []float64{1, -2, 0, 3}, y: []float64{1, -2, 0, 2}},
			{name: "nan and infinities", x: []float64{math.NaN(), math.NaN(), math.Inf(1), math.Inf(-1)}, y: []float64{1, math.NaN(), math.Inf(1), 0}},
		}})
	}
	for _, op := range []ir.Op{ops.OpIsFinite, ops.OpIsNaN} {
		addUnary(op, unary{from: -2, to: 2, at: []float64{math.Inf(1), math.Inf(-1), math.NaN()}})
	}
	for _, op := range []ir.Op{ops.OpAnd, ops.OpOr, ops.OpXor, ops.OpShiftLeft, ops.OpShiftRight} {
		addBinary(op, binary{from: [2]float64{-100, 0}, to: [2]float64{100, 7}, cases: []pair{
			{name: "zeros and ones", x: []float64{0, 0, 1, 1}, y: []float64{0, 1, 0, 1}},
		}})
	}
	addUnary(ops.OpNot, unary{from: -100, to: 100, at: []float64{0, 1}})
	add(ops.OpSelect, selectSamples)
	add(ops.OpClamp, clampSamples)
}

func selectSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{
			draw(1, ir.Bool, 0, 1, dims...), draw(2, ir.F32, -2, 2, dims...), draw(3, ir.F32, -2, 2, dims...),
		}})
	}
	for _, d := range []ir.DType{ir.Bool, ir.I8, ir.I64, ir.U32, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{
			draw(1, ir.Bool, 0, 1, 5), draw(2, d, -2, 2, 5), draw(3, d, -2, 2, 5),
		}})
	}
	return append(out, ir.Sample{Name: "masked poison", NoGrad: "infinite and NaN operands", In: []*ir.Array{
		ir.Ints(ir.Bool, []int64{1, 0, 1}), ir.Floats(ir.F32, []float64{1, math.NaN(), 2}), ir.Floats(ir.F32, []float64{math.Inf(1), 3, math.NaN()}),
	}})
}

func clampSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{
			draw(1, ir.F32, -3, 3, dims...), draw(2, ir.F32, -2, -1, dims...), draw(4, ir.F32, 0.5, 2, dims...),
		}})
	}
	for _, d := range []ir.DType{ir.I32, ir.U8, ir.U64, ir.F16, ir.F64} {
		out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{
			draw(1, d, 0, 9, 7), draw(2, d, 2, 3, 7), draw(4, d, 5, 6, 7),
		}})
	}
	vec := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	return append(out,
		ir.Sample{Name: "at the bounds", NoGrad: "kinks", In: []*ir.Array{vec(-1, 1, -1, 1), vec(-1, -1, -1, 1), vec(1, 1, -1, 1)}},
		ir.Sample{Name: "bounds crossed", In: []*ir.Array{vec(0, 5, -5, 2.5), vec(3, 3, 3, 3), vec(2, 2, 2, 2)}},
		ir.Sample{Name: "nan", NoGrad: "NaN operands", In: []*ir.Array{vec(math.NaN(), 0, 0, math.NaN()), vec(0, math.NaN(), 0, math.Inf(-1)), vec(1, 1, math.NaN(), math.Inf(1))}},
	)
}

func init() {
	addUnary(ops.OpConj, unary{from: -2, to: 2})
	add(ops.OpComplex, complexSamples)
	addUnary(ops.OpReal, unary{from: -2, to: 2})
	addUnary(ops.OpImag, unary{from: -2, to: 2})
}

func complexSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{draw(1, ir.F32, -2, 2, dims...), draw(2, ir.F32, -2, 2, dims...)}})
	}
	return append(out, ir.Sample{Name: "f64", In: []*ir.Array{draw(1, ir.F64, -2, 2, 5), draw(2, ir.F64, -2, 2, 5)}})
}

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

func init() {
	add(ops.OpConvert, convertSamples)
	add(ops.OpBitcast, bitcastSamples)
}

func convertSamples() []ir.Sample {
	var out []ir.Sample
	add := func(name string, x *ir.Array, to ir.DType, noGrad string) {
		out = append(out, ir.Sample{Name: name, Attrs: &ops.DTypeAttrs{DType: to}, In: []*ir.Array{x}, NoGrad: noGrad})
	}
	for _, dims := range sampleShapes {
		add(shapeName(dims), draw(1, ir.F32, -3, 3, dims...), ir.F64, "")
	}
	for _, from := range typesIn(isPlain) {
		for _, to := range typesIn(isPlain) {
			if from.IsComplex() == to.IsComplex() {
				add(from.String()+" to "+to.String(), draw(2, from, -100, 100, 6), to, "")
			}
		}
	}
	ends := []float64{0, -1.5, 1.5, 300, -300, 1e10, -1e10, 1e19, 1e30, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, to := range typesIn(isBits) {
		add("ends to "+to.String(), numbersOf(ir.F32, ends), to, "infinities and NaN")
	}
	add("ends of i64", edges(ir.I64), ir.F32, "")
	add("ends of u64", edges(ir.U64), ir.F32, "")
	add("beyond f16", ir.Floats(ir.F32, []float64{65504, 65519, 65520, 1e-8, 6e-8}), ir.F16, "overflow")
	return out
}

func bitcastSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), Attrs: &ops.DTypeAttrs{DType: ir.U32}, In: []*ir.Array{draw(1, ir.F32, -3, 3, dims...)}})
	}
	for _, from := range typesIn(isReal) {
		for _, to := range typesIn(isReal) {
			if from.Size() == to.Size() {
				x := draw(2, from, 1, 100, 5)
				out = append(out, ir.Sample{Name: from.String() + " as " + to.String(), Attrs: &ops.DTypeAttrs{DType: to}, In: []*ir.Array{x}})
			}
		}
	}
	return append(out, ir.Sample{Name: "special floats", Attrs: &ops.DTypeAttrs{DType: ir.I32}, In: []*ir.Array{
		ir.Floats(ir.F32, []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 1e-45}),
	}})
}

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

func init() {
	addUnary(ops.OpStopGradient, unary{from: -2, to: 2, noGrad: "the derivative is 0 by definition"})
	addUnary(ops.OpRematerialize, unary{from: -2, to: 2})
	add(ops.OpCheckIndex, checkIndexSamples)
}

func checkIndexSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), Attrs: &ops.CheckIndexAttrs{Bound: ir.N(10), What: "row"}, In: []*ir.Array{draw(1, ir.I32, 0, 9, dims...)}})
	}
	for _, d := range typesIn(isInteger) {
		out = append(out, ir.Sample{Name: d.String(), Attrs: &ops.CheckIndexAttrs{Bound: ir.N(1000), What: "row"}, In: []*ir.Array{draw(1, d, 0, 99, 5)}})
	}
	return out
}

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
