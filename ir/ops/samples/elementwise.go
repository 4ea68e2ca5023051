package samples

import "github.com/rlx-go/rlx/ir"

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
