package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// sampleShapes are the shapes of every op's samples: rank 0, empty, size 1, and odd sizes
// larger than a tile.
var sampleShapes = [][]int{{}, {0}, {2, 0, 3}, {1, 1}, {7}, {67, 131}}

// shapeName names a sample by a shape, as in "f32[67,131]".
func shapeName(dims []int) string { return "f32" + ir.Dims(dims...).String() }

// draw returns an array of numbers that look random but are always the same
// for one seed: from lo to hi, in whole numbers for integers (none below 0 for
// unsigned types), with even odds for booleans. Floats keep a distance of 1/128
// from all multiples of 1/32, where many ops have their kinks, and from those
// of a seed of the other parity, so that comparisons do not tie; none occurs
// twice before all in the range have occurred.
func draw(seed uint64, d ir.DType, lo, hi float64, dims ...int) *ir.Array {
	a := ir.NewArray(d, dims...)
	next := uniform(seed)
	grid := shuffled(int(math.Ceil((hi-lo)*32)), next)
	at := func(i int) float64 {
		return math.Floor(lo*32)/32 + float64(grid[i%len(grid)])/32 + 1/(64*float64(2-seed%2))
	}
	for i := range a.F {
		a.F[i] = at(i)
	}
	for i := range a.C {
		a.C[i] = complex(at(2*i), at(2*i+1))
	}
	if d.IsUnsigned() {
		lo, hi = max(lo, 0), max(hi, 1)
	}
	for i := range a.I {
		a.I[i] = int64(math.Floor(lo + (hi-lo+1)*next()))
		if d.IsBool() {
			a.I[i] = int64(2 * next())
		}
	}
	a.Round()
	return a
}

// uniform returns a source of numbers in [0, 1): SplitMix64 (Steele, Lea and
// Flood, 2014).
func uniform(seed uint64) func() float64 {
	return func() float64 {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return float64((z^z>>31)>>11) / (1 << 53)
	}
}

// shuffled returns 0, 1, … n-1 in an order that next makes; n counts as 1 at
// least.
func shuffled(n int, next func() float64) []int {
	out := counting(0, max(n, 1))
	for i := range out {
		j := i + int(next()*float64(len(out)-i))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// distinct returns an array of floats no two of which are equal or nearly so:
// equally spaced numbers from lo to hi, out of order.
func distinct(lo, hi float64, dims ...int) *ir.Array {
	const stride = 7919 // a prime
	a := ir.NewArray(ir.F32, dims...)
	for i := range a.F {
		a.F[i] = lo + (hi-lo)*float64(i*stride%len(a.F))/float64(len(a.F))
	}
	a.Round()
	return a
}

// numbersOf returns numbers as an array of any element type that holds them.
func numbersOf(d ir.DType, x []float64) *ir.Array {
	a := ir.NewArray(d, len(x))
	for i, v := range x {
		switch {
		case d.IsFloat():
			a.F[i] = v
		case d.IsComplex():
			a.C[i] = complex(v, 0)
		default:
			a.I[i] = int64(v)
		}
	}
	a.Round()
	return a
}

// typesIn returns the element types of a domain, f32 first.
func typesIn(d domain) []ir.DType {
	out := make([]ir.DType, 0, 16)
	if d&floats != 0 {
		out = append(out, ir.F32)
	}
	for _, t := range dtype.All() {
		if t != ir.F32 && classOf(t)&d != 0 {
			out = append(out, t)
		}
	}
	return out
}

// edges are the ends of an integer type's range.
func edges(d ir.DType) *ir.Array {
	lo, hi, ok := d.IntRange()
	if !ok {
		lo, hi = 0, -1 // u64
	}
	return ir.Ints(d, []int64{lo, hi, lo + 1, hi - 1, 0})
}

// unarySamples are the samples of an op of one operand.
func unarySamples(u unary) []ir.Sample {
	if !withSamples {
		return nil
	}
	types := typesIn(u.types)
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
	return out
}

// binarySamples are the samples of an op of two operands.
func binarySamples(d binary) []ir.Sample {
	if !withSamples {
		return nil
	}
	if d.to == [2]float64{} {
		d.from, d.to = [2]float64{-2, -2}, [2]float64{2, 2}
	}
	types := typesIn(d.types)
	two := func(seed uint64, t ir.DType, dims ...int) []*ir.Array {
		return []*ir.Array{draw(seed, t, d.from[0], d.to[0], dims...), draw(seed+1, t, d.from[1], d.to[1], dims...)}
	}
	var out []ir.Sample
	for _, dims := range sampleShapes {
		in := two(3, types[0], dims...)
		out = append(out, ir.Sample{Name: in[0].Type().String(), In: in})
	}
	for _, t := range types[1:] {
		if classOf(t) == floats || d.types&floats == 0 {
			out = append(out, ir.Sample{Name: t.String(), In: two(5, t, 9)})
		} else {
			out = append(out, ir.Sample{Name: t.String(), In: []*ir.Array{draw(5, t, -9, 9, 11), draw(6, t, -4, 4, 11)}})
		}
		if t.IsInteger() {
			out = append(out, ir.Sample{Name: t.String() + " edges", In: []*ir.Array{edges(t), ir.Ints(t, []int64{1, 2, 0, 3, 7})}})
		}
	}
	for _, c := range d.cases {
		out = append(out, ir.Sample{Name: c.name, NoGrad: c.noGrad, In: []*ir.Array{numbersOf(types[0], c.x), numbersOf(types[0], c.y)}})
	}
	return out
}
