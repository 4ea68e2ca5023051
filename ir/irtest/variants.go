package irtest

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Variant is a modified sample: another element type, an edge-case shape, or special
// values. The op may refuse it.
type Variant struct {
	Kind string
	// Special marks special values.
	Special bool
	ir.Sample
}

// shapeKinds are the edge cases of shapes, with their predicates.
var shapeKinds = []struct {
	name string
	has  func(dims []int) bool
	// attempts changes the shapes of all operands.
	attempts func(in []*ir.Array) [][]*ir.Array
}{
	{"empty", func(dims []int) bool { return slices.Contains(dims, 0) }, resizedTo(0)},
	{"size 1", func(dims []int) bool { return slices.Contains(dims, 1) }, resizedTo(1)},
	{"size 37", func(dims []int) bool { return slices.Contains(dims, 37) }, resizedTo(37)},
	{"rank 0", func(dims []int) bool { return len(dims) == 0 }, func(in []*ir.Array) [][]*ir.Array {
		return [][]*ir.Array{reshaped(in, func(int, []int) []int { return []int{} })}
	}},
	{"rank 5", func(dims []int) bool { return len(dims) == 5 }, withFiveAxes},
}

// valueKinds are special values, and the functions that write them into the floats of an
// operand.
var valueKinds = []struct {
	name   string
	change func(x []float64)
}{
	{"zeros", func(x []float64) {
		for i := range x {
			x[i] = math.Copysign(0, float64(1-i%2*2))
		}
	}},
	{"ties", func(x []float64) {
		for i := range x {
			x[i] = x[0]
		}
	}},
	{"NaN", func(x []float64) { x[len(x)/2] = math.NaN() }},
	{"infinities", func(x []float64) { x[len(x)/2], x[0] = math.Inf(-1), math.Inf(1) }},
	{"subnormals", func(x []float64) {
		for i := range x {
			x[i] = math.Copysign(float64(i%7+1)*0x1p-149, x[i])
		}
	}},
}

// ShapeKinds returns the names of the edge cases that a shape is one of.
func ShapeKinds(dims []int) []string {
	var out []string
	for _, k := range shapeKinds {
		if k.has(dims) {
			out = append(out, k.name)
		}
	}
	return out
}

// Variants returns the variants of a sample of the wanted kinds, including the sample itself for each
// kind that it is.
func Variants(s ir.Sample, wanted func(kind string) bool) []Variant {
	var out []Variant
	add := func(kind string, special bool, in []*ir.Array) {
		v := Variant{kind, special, s}
		v.In = in
		out = append(out, v)
	}
	for _, k := range shapeKinds {
		if !wanted(k.name) {
			continue
		}
		attempts := [][]*ir.Array{s.In}
		if !slices.ContainsFunc(s.In, func(a *ir.Array) bool { return a.Len() == 0 }) {
			attempts = append(attempts, k.attempts(s.In)...)
		}
		for _, in := range attempts {
			if slices.ContainsFunc(in, func(a *ir.Array) bool { return k.has(a.Dims) }) {
				add(k.name, false, in)
			}
		}
	}
	for _, k := range valueKinds {
		if !wanted(k.name) {
			continue
		}
		if in, changed := withValues(s.In, k.change); changed {
			add(k.name, true, in)
		}
	}
	for _, d := range []ir.DType{ir.F16, ir.BF16, ir.F32, ir.F64} {
		if !wanted(d.String()) {
			continue
		}
		if in, changed := withType(s.In, d); changed {
			add(d.String(), false, in)
		}
	}
	return out
}

// resizedTo changes all axes of one size at a time, wherever they are.
func resizedTo(to int) func(in []*ir.Array) [][]*ir.Array {
	return func(in []*ir.Array) [][]*ir.Array {
		var sizes []int
		for _, a := range in {
			for _, d := range a.Dims {
				if !slices.Contains(sizes, d) && d != to {
					sizes = append(sizes, d)
				}
			}
		}
		var out [][]*ir.Array
		for _, from := range sizes {
			out = append(out, reshaped(in, func(_ int, dims []int) []int {
				dims = slices.Clone(dims)
				for i, d := range dims {
					if d == from {
						dims[i] = to
					}
				}
				return dims
			}))
		}
		return out
	}
}

// withFiveAxes prepends axes to those of all operands, of the first, or of those that have axes.
func withFiveAxes(in []*ir.Array) [][]*ir.Array {
	most := 0
	for _, a := range in {
		most = max(most, len(a.Dims))
	}
	if most >= 5 {
		return nil
	}
	more := []int{2, 1, 1, 2, 1}[:5-most]
	some := func(which func(i int, dims []int) bool) []*ir.Array {
		return reshaped(in, func(i int, dims []int) []int {
			if which(i, dims) {
				return slices.Concat(more, dims)
			}
			return dims
		})
	}
	return [][]*ir.Array{
		some(func(int, []int) bool { return true }),
		some(func(i int, _ []int) bool { return i == 0 }),
		some(func(_ int, dims []int) bool { return len(dims) > 0 }),
		some(func(_ int, dims []int) bool { return len(dims) == most }),
	}
}

// reshaped returns arrays of other shapes, filled with the elements over and over: floats
// a little smaller each time, so that no two tie.
func reshaped(in []*ir.Array, shape func(i int, dims []int) []int) []*ir.Array {
	out := make([]*ir.Array, len(in))
	for i, a := range in {
		out[i] = ir.NewArray(a.DType, shape(i, a.Dims)...)
		for k := range out[i].Len() {
			if a.Len() > 0 {
				out[i].SetElement(k, a.Element(k%a.Len()))
			}
		}
		for k := a.Len(); k < len(out[i].F) && a.Len() > 0; k++ {
			out[i].F[k] *= 1 - float64(k/a.Len())/128
		}
		out[i].Round()
	}
	return out
}

// withValues changes the floats of all operands.
func withValues(in []*ir.Array, change func(x []float64)) (out []*ir.Array, changed bool) {
	out = slices.Clone(in)
	for i, a := range in {
		if a.DType == ir.F32 && a.Len() > 0 {
			out[i], changed = a.Clone(), true
			change(out[i].F)
			out[i].Round()
		}
	}
	return out, changed
}

// withType changes the element type of all float operands.
func withType(in []*ir.Array, d ir.DType) (out []*ir.Array, changed bool) {
	out = slices.Clone(in)
	for i, a := range in {
		if a.F != nil && !a.DType.IsFloat8() {
			out[i], changed = ir.NewArray(d, a.Dims...), true
			copy(out[i].F, a.F)
			out[i].Round()
		}
	}
	return out, changed
}
