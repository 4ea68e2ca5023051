// Package samples has the samples of the ops of package ops: operands and attributes on which
// the generated tests try every op ([ir.Def.Samples]). Programs do not import it; tests, the
// conformance suite and generators do, by themselves or through ir/irtest.
//
// Its init functions enter the samples in the definitions of package ops, a file for each group of
// families of ops. Start reading at samples.go, which has the parts of samples: shapes, drawn
// numbers, and attributes.
package samples

import (
	"math"
	"strconv"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// add sets the samples of an op. It panics on an op that is not defined or has samples, a bug
// in this package.
func add(op ir.Op, samples func() []ir.Sample) {
	if err := ir.AddSamples(op, samples); err != nil {
		panic(err)
	}
}

// addAll sets the same samples for several ops.
func addAll(samples func() []ir.Sample, all ...ir.Op) {
	for _, op := range all {
		add(op, samples)
	}
}

// defaultsOf returns the default attributes of an op, nil if it has none.
func defaultsOf(op ir.Op) ir.Attrs {
	if d, ok := ir.Lookup(op); ok && d.NewAttrs != nil {
		return d.NewAttrs()
	}
	return nil
}

// byAttrs returns a sample without operands for each of the attributes.
func byAttrs(list ...ir.Attrs) func() []ir.Sample {
	return func() []ir.Sample {
		var out []ir.Sample
		for _, a := range list {
			out = append(out, ir.Sample{Name: ir.FormatAttrs(a), Attrs: a})
		}
		return out
	}
}

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
	out := permute.Counting(0, max(n, 1))
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

// edges are the ends of an integer type's range.
func edges(d ir.DType) *ir.Array {
	lo, hi, ok := d.IntRange()
	if !ok {
		lo, hi = 0, -1 // u64
	}
	return ir.Ints(d, []int64{lo, hi, lo + 1, hi - 1, 0})
}

// A class is a set of element types.
type class = func(d ir.DType) bool

func isInteger(d ir.DType) bool { return d.IsInteger() }
func isFloat(d ir.DType) bool   { return d.IsFloat() && !d.IsFloat8() }
func isReal(d ir.DType) bool    { return isInteger(d) || isFloat(d) }
func isNumber(d ir.DType) bool  { return isReal(d) || d.IsComplex() }
func isBits(d ir.DType) bool    { return d.IsBool() || isInteger(d) }
func isPlain(d ir.DType) bool   { return !d.IsPacked() }

// typesIn returns the element types of a class, f32 first.
func typesIn(c class) []ir.DType {
	var out []ir.DType
	if c(ir.F32) {
		out = append(out, ir.F32)
	}
	for _, d := range dtype.All() {
		if d != ir.F32 && c(d) {
			out = append(out, d)
		}
	}
	return out
}

// accepts returns the class of element types that op takes as operands.
func accepts(op ir.Op, attrs ir.Attrs, operands int) class {
	return func(d ir.DType) bool {
		_, err := ir.Build("accepts", func(b *ir.Builder) {
			in := make([]ir.Value, operands)
			for i := range in {
				in[i] = b.Input(string(rune('a'+i)), d)
			}
			b.Output("y", b.Add1(op, attrs, in...))
		})
		return err == nil
	}
}

// drawn returns an operand of the given shape: numbers in [-1, 1), or small integers, seeded by
// the shape.
func drawn(d ir.DType, dims ...int) *ir.Array {
	limit := 1.0
	if !d.IsFloat() && !d.IsComplex() {
		limit = 5
	}
	seed := uint64(0)
	for i, n := range dims {
		seed = seed*uint64(7+i) + uint64(n)
	}
	return draw(11+seed, d, -limit, limit, dims...)
}

// movement is a sample of an op that moves elements: attributes and the shape of
// x.
type movement struct {
	attrs ir.Attrs
	dims  []int
}

// moved returns samples for a list of movements; the last but one is repeated for other
// element types.
func moved(list ...movement) []ir.Sample {
	var out []ir.Sample
	for _, m := range list {
		out = append(out, ir.Sample{
			Name: shapeName(m.dims) + ir.FormatAttrs(m.attrs), Attrs: m.attrs, In: []*ir.Array{draw(1, ir.F32, -2, 2, m.dims...)},
		})
	}
	m := list[len(list)-2]
	for _, d := range []ir.DType{ir.Bool, ir.I32, ir.F16} {
		out = append(out, ir.Sample{Name: d.String(), Attrs: m.attrs, In: []*ir.Array{draw(1, d, -9, 9, m.dims...)}})
	}
	return out
}

// sampleGraph builds a graph for a sample's node to own. An error gives nil, which the
// node refuses.
func sampleGraph(types []ir.Type, f func(b *ir.Builder, in []ir.Value) []ir.Value) *ir.Graph {
	g, err := ir.Build("step", func(b *ir.Builder) {
		for i, v := range f(b, declare(b, "in", types)) {
			b.Output("out"+strconv.Itoa(i), v)
		}
	})
	if err != nil {
		return nil
	}
	return g
}

// declare adds an input port of each type.
func declare(b *ir.Builder, prefix string, types []ir.Type) []ir.Value {
	in := make([]ir.Value, len(types))
	for i, t := range types {
		in[i] = b.Port(ir.InputPort, prefix+strconv.Itoa(i), t)
	}
	return in
}
