package image

import (
	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// GridOptions are the options of [GridSample].
type GridOptions struct {
	// Mode is [Linear], also for "", [Nearest] or [Cubic] with a = −3/4.
	Mode string
	// Padding are the elements beyond the edge: [Zeros], also for "", [Edge], or the image reflected: at the
	// centres of the edge elements with AlignCorners, else at the edges. It is [Reflect] in both cases.
	Padding string
	// AlignCorners makes −1 and 1 the centres of the first and last element of an axis; otherwise they
	// are the edges of the image.
	AlignCorners bool
}

// GridSample returns the elements of x, [batch, spatial axes..., channels], at positions grid, [batch,
// positions..., axes]: [batch, positions..., channels], as torch.nn.functional.grid_sample, which has
// two or three spatial axes, and for two of them Cubic. The last axis of grid has a coordinate for each spatial axis, from
// −1 to 1, that of the last axis first: (x, y) of an image. A NaN coordinate gives NaN, with [Nearest] an element or zero.
//
// It is differentiable by x and by grid. The derivative by a coordinate is 0 with [Nearest] and, unless interpolation is
// [Cubic], where [Edge] or [Reflect] clamps it, at the edge elements too, as PyTorch's. At other whole positions it is that of
// the piece on the right.
func GridSample(b *ir.Builder, x, grid ir.Value, o ...GridOptions) ir.Value {
	c, ok := argument.Of(b, "image.grid_sample", x, grid)
	if !ok {
		return ir.Value{}
	}
	s := &sampler{Check: c, o: argument.Option(c, o), sizes: spatial(c, x)}
	axes := len(s.sizes)
	s.o.Mode = c.Word("Mode", s.o.Mode, Linear, Nearest, Cubic)
	s.o.Padding = c.Word("Padding", s.o.Padding, Zeros, Edge, Reflect)
	c.Shape(grid.Rank() >= 2 && grid.Dim(-1).Is(axes) && grid.Dim(0) == x.Dim(0),
		"grid is %s: it must be [%s, positions..., %d]", grid.Type(), x.Dim(0), axes)
	if b.Err() != nil {
		return ir.Value{}
	}
	d := argument.Wide(x.DType())
	s.x = ops.Convert(b, x, d)
	grid = ops.Convert(b, grid, d)
	for i := range axes { // the last coordinate is that of the first spatial axis
		at := ops.Squeeze(b, ops.SliceAxis(b, grid, -1, ir.N(axes-1-i), ir.N(1)), -1)
		s.at = append(s.at, s.position(at, s.sizes[i]))
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.Convert(b, s.sample(), x.DType())
}

// sampler builds one GridSample.
type sampler struct {
	argument.Check
	o     GridOptions
	x     ir.Value
	sizes []int
	at    []ir.Value // for each spatial axis the positions, in elements
}

// position returns coordinates in elements along an axis of size n. They are padded here, except for
// cubic interpolation, which pads each element that it reads.
func (s *sampler) position(at ir.Value, n int) ir.Value {
	b, number := s.Builder, func(x float64) ir.Value { return ops.ConstLike(s.Builder, at, x) }
	scale, shift := float64(n)/2, float64(n-1)/2
	if s.o.AlignCorners {
		scale = float64(n-1) / 2
	}
	at = ops.Add(b, ops.Mul(b, at, number(scale)), number(shift))
	if s.o.Mode == Cubic {
		return at
	}
	return s.padded(at, n)
}

// padded moves positions into [0, n − 1], or next to it for zeros.
func (s *sampler) padded(at ir.Value, n int) ir.Value {
	b, number := s.Builder, func(x float64) ir.Value { return ops.ConstLike(s.Builder, at, x) }
	low, high := 0., float64(n-1)
	switch s.o.Padding {
	case Zeros:
		low, high = -3, float64(n+2) // all elements that it reads are then outside
	case Reflect:
		first, span := -0.5, float64(n)
		if s.o.AlignCorners {
			first, span = 0, float64(n-1)
		}
		if span == 0 {
			return ops.MulZero(b, at, number(0))
		}
		from := ops.Abs(b, ops.Sub(b, at, number(first)))
		extra := ops.Mod(b, from, number(2*span))
		folded := ops.Select(b, ops.Le(b, extra, number(span)), extra, ops.Sub(b, number(2*span), extra))
		at = ops.Add(b, folded, number(first))
	}
	// Not ops.Clamp, whose derivative at an end is 1/2.
	at = ops.Select(b, ops.Le(b, at, number(low)), number(low), at)
	return ops.Select(b, ops.Ge(b, at, number(high)), number(high), at)
}

// piece is an element that is read along an axis: its index, and its weight unless that is 1.
type piece struct{ index, weight ir.Value }

// sample adds up the elements around each position, by their weights.
func (s *sampler) sample() ir.Value {
	pieces := make([][]piece, len(s.at))
	for i, at := range s.at {
		pieces[i] = s.pieces(at, s.sizes[i])
	}
	var sum ir.Value
	s.corners(pieces, nil, func(corner []piece) {
		if y := s.term(corner); sum.Valid() {
			sum = ops.Add(s.Builder, sum, y)
		} else {
			sum = y
		}
	})
	return sum
}

// corners calls f with each combination of pieces of all axes.
func (s *sampler) corners(pieces [][]piece, chosen []piece, f func([]piece)) {
	if len(pieces) == 0 {
		f(chosen)
		return
	}
	for _, p := range pieces[0] {
		s.corners(pieces[1:], append(chosen[:len(chosen):len(chosen)], p), f)
	}
}

// term returns one element of each position, times its weights.
func (s *sampler) term(corner []piece) ir.Value {
	b := s.Builder
	indices := make([]ir.Value, len(corner))
	axes := make([]int, len(corner))
	var weight ir.Value
	for i, p := range corner {
		indices[i], axes[i] = p.index, i+1
		switch {
		case !p.weight.Valid():
		case !weight.Valid():
			weight = p.weight
		default:
			weight = ops.Mul(b, weight, p.weight)
		}
	}
	y := ops.Gather(b, s.x, ops.Stack(b, -1, indices...), ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{
		Axes: axes, OperandBatch: []int{0}, IndexBatch: []int{0}, Outside: ops.OutsideFill,
	}})
	if !weight.Valid() {
		return y
	}
	return ops.Mul(b, y, ops.ExpandDims(b, weight, -1))
}

// pieces returns the elements that positions along an axis of size n read. Their indices are i32; one
// outside the axis reads zero.
func (s *sampler) pieces(at ir.Value, n int) []piece {
	b, number := s.Builder, func(x float64) ir.Value { return ops.ConstLike(s.Builder, at, x) }
	index := func(x ir.Value) ir.Value { return ops.Convert(b, ops.StopGradient(b, x), ir.I32) }
	if s.o.Mode == Nearest {
		return []piece{{index: index(ops.Round(b, at))}} // halves to even, as in PyTorch
	}
	base := ops.StopGradient(b, ops.Floor(b, at))
	part := ops.Sub(b, at, base)
	if s.o.Mode == Linear {
		left := index(base)
		right := ops.Add(b, left, ops.ConstLike(b, left, 1))
		return []piece{{left, ops.Sub(b, number(1), part)}, {right, part}}
	}
	list := make([]piece, 4)
	for k := range list {
		distance := ops.Sub(b, part, number(float64(k-1))) // not its abs, whose derivative at 0 is 0
		if k > 1 {
			distance = ops.Neg(b, distance)
		}
		element := ops.Add(b, base, number(float64(k-1)))
		list[k] = piece{index(s.padded(element, n)), cubicOf(b, distance, -0.75, k == 0 || k == 3)}
	}
	return list
}

// cubicOf returns Keys' cubic weight of elements at a distance: of those nearer than 1, or those further.
func cubicOf(b *ir.Builder, d ir.Value, a float64, far bool) ir.Value {
	polynomial := []float64{a + 2, -(a + 3), 0, 1}
	if far {
		polynomial = []float64{a, -5 * a, 8 * a, -4 * a}
	}
	y := ops.ConstLike(b, d, polynomial[0])
	for _, k := range polynomial[1:] {
		y = ops.Add(b, ops.Mul(b, y, d), ops.ConstLike(b, d, k))
	}
	return y
}

// AffineGrid returns the grid of positions of [GridSample] for images of the given sizes, [batch,
// sizes..., axes]: those of a regular grid, transformed by theta, [batch, axes, axes + 1], as
// torch.nn.functional.affine_grid, in the type of theta. There are two or three sizes. With alignCorners, −1 and 1 are the
// centres of the first and last element of an axis, else the edges of the image.
func AffineGrid(b *ir.Builder, theta ir.Value, sizes []int, alignCorners bool) ir.Value {
	c, ok := argument.Of(b, "image.affine_grid", theta)
	axes := len(sizes)
	if !ok || !c.Floats() {
		return ir.Value{}
	}
	c.Attr(axes >= 1, "sizes is %v: there must be one or more", sizes)
	c.Shape(theta.Rank() == 3 && theta.Dim(1).Is(axes) && theta.Dim(2).Is(axes+1), "theta is %s: it must be [batch, %d, %d]", theta.Type(), axes, axes+1)
	shape, points := make([]ir.Dim, axes), 1
	for i, n := range sizes {
		c.Attr(n >= 1 && n <= maxSize, "sizes is %v: each must be in [1, %d]", sizes, maxSize)
		shape[i], points = ir.N(n), points*n
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	narrow, d := theta.DType(), argument.Wide(theta.DType())
	theta = ops.Convert(b, theta, d)
	var sum ir.Value
	for i := range axes + 1 { // the last column of theta is the translation
		column := ops.SliceAxis(b, theta, 2, ir.N(i), ir.N(1)) // [batch, axes, 1]
		column = ops.Reshape(b, column, append(append([]ir.Dim{theta.Dim(0)}, ones(axes)...), ir.N(axes))...)
		if i < axes {
			axis := axes - 1 - i
			line := ops.Literal(b, ir.Floats(d, coordinates(sizes[axis], alignCorners)))
			along := ones(axes + 2)
			along[axis+1] = shape[axis]
			column = ops.Mul(b, column, ops.Reshape(b, line, along...))
		}
		if sum.Valid() {
			column = ops.Add(b, sum, column)
		}
		sum = column
	}
	return ops.Convert(b, sum, narrow)
}

func ones(n int) []ir.Dim {
	list := make([]ir.Dim, n)
	for i := range list {
		list[i] = ir.N(1)
	}
	return list
}

// coordinates returns the centres of n elements between −1 and 1.
func coordinates(n int, alignCorners bool) []float64 {
	x := make([]float64, n)
	for i := range x {
		switch {
		case !alignCorners:
			x[i] = (2*float64(i)+1)/float64(n) - 1
		case n > 1:
			x[i] = 2*float64(i)/float64(n-1) - 1
		}
	}
	return x
}
