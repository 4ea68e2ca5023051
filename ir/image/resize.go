package image

import (
	"math"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// maxSize bounds the axes of results: their source elements are literals in the graph.
const maxSize = 1 << 20

// ResizeOptions are the options of [Resize].
type ResizeOptions struct {
	// Mode is [Linear], also for "", [Nearest], [Cubic] or [Lanczos].
	Mode string
	// Antialias widens the filter of Linear, Cubic and Lanczos by the ratio of the old to the new size, as
	// PyTorch's antialias and Pillow do. Elements beyond the edge are then left out, otherwise the edge
	// elements repeat. Nearest has no filter.
	Antialias bool
	// A is the parameter of Cubic, from −1 to 0; 0 means −1/2 with Antialias and −3/4 without, as in
	// PyTorch.
	A float64
	// AlignCorners aligns the centres of the corner elements; by default their outer edges are aligned. Not
	// with Antialias.
	AlignCorners bool
	// Floor makes Nearest take element ⌊i·from/to⌋ (PyTorch's nearest); by default it is the one whose
	// centre is nearest (nearest-exact). Not with AlignCorners.
	Floor bool
}

// Resize returns x, [batch, spatial axes..., channels], with spatial axes of the given sizes, up to 2²⁰
// each, as torch.nn.functional.interpolate, and with [Lanczos] as Pillow and jax.image.resize. Axes
// that keep their size are not filtered. See also [ops.Resize], which some devices compute
// by a form of their own.
func Resize(b *ir.Builder, x ir.Value, sizes []int, o ...ResizeOptions) ir.Value {
	c, ok := argument.Of(b, "image.resize", x)
	if !ok {
		return ir.Value{}
	}
	opts, from := argument.Option(c, o), spatial(c, x)
	opts.Mode = c.Word("Mode", opts.Mode, Linear, Nearest, Cubic, Lanczos)
	c.Attr(len(sizes) == len(from), "sizes is %v: there must be one for each of %d spatial axes", sizes, len(from))
	for _, n := range sizes {
		c.Attr(n >= 0 && n <= maxSize, "sizes is %v: each must be in [0, %d]", sizes, maxSize)
	}
	c.Attr(opts.A >= -1 && opts.A <= 0, "A is %v: it must be in [-1, 0]", opts.A)
	c.Attr(!opts.AlignCorners || !opts.Antialias && opts.Mode != Lanczos, "AlignCorners is set: Antialias must not be, nor Mode be %q", Lanczos)
	c.Attr(!opts.Floor || opts.Mode == Nearest && !opts.AlignCorners, "Floor is set: Mode must be %q, without AlignCorners", Nearest)
	if b.Err() != nil {
		return ir.Value{}
	}
	y := ops.Convert(b, x, argument.Wide(x.DType()))
	for i, to := range sizes {
		if to != from[i] {
			y = resizeAxis(b, y, i+1, tapsOf(from[i], to, opts))
		}
	}
	return ops.Convert(b, y, x.DType())
}

// taps are the elements that each element of a result adds up: a table of count entries per element.
type taps struct {
	to, count int
	index     []int64
	weight    []float64
}

func resizeAxis(b *ir.Builder, x ir.Value, axis int, t taps) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	if t.count == 1 {
		return ops.Take(b, x, ops.Literal(b, ir.Ints(ir.I32, t.index)), axis, ops.OutsideClip)
	}
	y := ops.Take(b, x, ops.Literal(b, ir.Ints(ir.I32, t.index, t.to, t.count)), axis, ops.OutsideClip)
	if b.Err() != nil {
		return ir.Value{}
	}
	w := ops.Literal(b, ir.Floats(x.DType(), t.weight, t.to, t.count))
	y = ops.Mul(b, y, ops.BroadcastInDim(b, w, y.Shape(), []int{axis, axis + 1}))
	return ops.ReduceSum(b, y, axis+1)
}

// tapsOf returns the table of an axis that is resized.
func tapsOf(from, to int, o ResizeOptions) taps {
	ratio := float64(from) / float64(to)
	position := func(i int) float64 {
		switch {
		case !o.AlignCorners:
			return (float64(i)+0.5)*ratio - 0.5
		case to == 1:
			return 0
		}
		return float64(i) * float64(from-1) / float64(to-1)
	}
	if o.Mode == Nearest {
		t := taps{to: to, count: 1, index: make([]int64, to)}
		for i := range to {
			at := math.Floor(position(i) + 0.5)
			if o.Floor {
				at = float64(i * from / to)
			}
			t.index[i] = int64(max(0, min(at, float64(from-1))))
		}
		return t
	}
	support, weight := filter(o)
	scale := 1.
	if o.Antialias {
		scale = max(1, ratio)
	}
	t := taps{to: to, count: min(int(2*math.Ceil(support*scale))+1, max(from, 2))}
	if !o.Antialias {
		t.count = int(2 * support)
	}
	t.index, t.weight = make([]int64, to*t.count), make([]float64, to*t.count)
	for i := range to {
		at := position(i)
		first := math.Floor(at) - support + 1
		if o.Antialias {
			first = max(0, min(math.Ceil(at-support*scale), float64(from-t.count)))
		}
		t.row(i, from, first, func(element float64) float64 {
			if o.Antialias && (element < 0 || element > float64(from-1)) {
				return 0
			}
			return weight(math.Abs(element-at) / scale)
		})
	}
	return t
}

// row fills the table for element i of the result, from an element on, with weights whose sum is 1.
func (t *taps) row(i, from int, first float64, weight func(element float64) float64) {
	index, weights, sum := t.index[i*t.count:(i+1)*t.count], t.weight[i*t.count:(i+1)*t.count], 0.
	for k := range index {
		element := first + float64(k)
		index[k], weights[k] = int64(max(0, min(element, float64(from-1)))), weight(element)
		sum += weights[k]
	}
	for k := range weights {
		weights[k] /= sum
	}
}

// filter returns the weight of an element at a distance, and the distance from which on it is 0.
func filter(o ResizeOptions) (support float64, weight func(d float64) float64) {
	switch o.Mode {
	case Lanczos:
		sinc := func(x float64) float64 {
			if x == 0 {
				return 1
			}
			return math.Sin(math.Pi*x) / (math.Pi * x)
		}
		return 3, func(d float64) float64 {
			if d >= 3 {
				return 0
			}
			return sinc(d) * sinc(d/3)
		}
	case Cubic:
		a := o.A
		if a == 0 && o.Antialias {
			a = -0.5
		} else if a == 0 {
			a = -0.75
		}
		return 2, func(d float64) float64 {
			switch {
			case d < 1:
				return ((a+2)*d-(a+3))*d*d + 1
			case d < 2:
				return ((a*d-5*a)*d+8*a)*d - 4*a
			}
			return 0
		}
	}
	return 1, func(d float64) float64 { return max(0, 1-d) }
}
