// Package image has functions of images over a builder: sampling at positions of a grid, resampling
// to other sizes, padding by the image's own elements, and patches. They compose ops, so derivatives
// of every order exist, and the compiler fuses their gathers into what reads them.
//
// Images are [batch, spatial axes..., channels], as package ops has them; PyTorch's have the channels
// after the batch. Values are floats unless a function says otherwise, and are computed in f32 where
// they are narrower. Errors are recorded in the builder: of kind [ir.ErrShape] for a wrong shape,
// [ir.ErrDType] for a wrong element type, [ir.ErrAttr] for options outside their domain and
// [ir.ErrSymbol] where a size must be a number and is symbolic.
//
// Start reading at image.go, which has what the others share, then resize.go, a sampling whose positions
// are known before the graph runs; those of grid.go are values of the graph.
package image

import (
	"slices"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Interpolation between elements.
const (
	// Nearest takes the nearest element.
	Nearest = "nearest"
	// Linear interpolates linearly along each axis.
	Linear = "linear"
	// Cubic interpolates by cubic polynomials along each axis (Keys, Cubic Convolution Interpolation
	// for Digital Image Processing).
	Cubic = "cubic"
	// Lanczos is the windowed sinc function of three lobes, for [Resize] alone.
	Lanczos = "lanczos"
)

// What is beyond the edge of an image.
const (
	// Zeros are zeros.
	Zeros = "zeros"
	// Edge is the nearest element; PyTorch calls it border or replicate.
	Edge = "edge"
	// Reflect is the image mirrored at the centres of its edge elements, as often as needed.
	Reflect = "reflect"
	// Symmetric is the image mirrored at its edges, so that edge elements repeat.
	Symmetric = "symmetric"
	// Wrap is the image again; PyTorch calls it circular.
	Wrap = "wrap"
)

// spatial checks an image and returns the sizes of its spatial axes.
func spatial(c argument.Check, x ir.Value) []int {
	if !c.Floats() || !c.Shape(x.Rank() >= 3, "x is %s: it must be [batch, spatial axes..., channels]", x.Type()) {
		return nil
	}
	sizes := make([]int, x.Rank()-2)
	for i := range sizes {
		sizes[i] = c.Size(x, i+1, "x")
		c.Shape(sizes[i] > 0, "axis %d of x, %s, is empty", i+1, x.Type())
	}
	return sizes
}

// Pad returns x with low[i] elements before and high[i] after axis i, by mode: [Zeros], [Edge],
// [Reflect], [Symmetric] or [Wrap], as numpy.pad has them (its reflect with reflect_type even). Unlike
// [ops.PadMode] padding may be longer than the axis. x is of any type with values; low and high have an
// entry for each axis, none negative, and padded axes are constant and not empty.
func Pad(b *ir.Builder, x ir.Value, low, high []int, mode string) ir.Value {
	c, ok := argument.Of(b, "image.pad", x)
	if !ok {
		return ir.Value{}
	}
	mode = c.Word("mode", mode, Zeros, Edge, Reflect, Symmetric, Wrap)
	if !c.Attr(len(low) == x.Rank() && len(high) == x.Rank(), "low and high have %d and %d entries: there must be one for each of %d axes", len(low), len(high), x.Rank()) {
		return ir.Value{}
	}
	if !c.Attr(slices.Min(slices.Concat([]int{0}, low, high)) == 0, "low is %v and high %v: none may be negative", low, high) {
		return ir.Value{}
	}
	if mode == Zeros {
		return ops.Pad(b, x, ops.Zeros(b, x.DType()), low, high, nil)
	}
	for axis := range low {
		if low[axis]+high[axis] == 0 || b.Err() != nil {
			continue
		}
		n := c.Size(x, axis, "x")
		if !c.Shape(n > 0, "axis %d of x, %s, is empty: it has no element to repeat", axis, x.Type()) {
			return ir.Value{}
		}
		from := make([]int64, low[axis]+n+high[axis])
		for i := range from {
			from[i] = int64(beyond(i-low[axis], n, mode))
		}
		x = ops.Take(b, x, ops.Literal(b, ir.Ints(ir.I32, from)), axis, ops.OutsideClip)
	}
	return x
}

// beyond returns the element of an axis of size n that stands at position i, by mode.
func beyond(i, n int, mode string) int {
	modulo := func(i, m int) int { return ((i % m) + m) % m }
	switch mode {
	case Wrap:
		return modulo(i, n)
	case Symmetric:
		if i = modulo(i, 2*n); i >= n {
			i = 2*n - 1 - i
		}
	case Reflect:
		if n == 1 {
			return 0
		}
		if i = modulo(i, 2*n-2); i >= n {
			i = 2*n - 2 - i
		}
	}
	return max(0, min(i, n-1))
}
