package onnx

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("GridSample", single(gridSample))
	add("AffineGrid", single(affineGrid))
	add("RoiAlign", single(roiAlign))
	add("DeformConv", single(deformConv))
}

// gridSample samples x [n, channels, sizes...]; integers in f32.
func gridSample(c *call) ir.Value {
	x := c.x(0)
	modes := map[string]string{"nearest": image.Nearest, "linear": image.Linear, "bilinear": image.Linear, "cubic": image.Cubic, "bicubic": image.Cubic}
	paddings := map[string]string{"zeros": image.Zeros, "border": image.Edge, "reflection": image.Reflect}
	mode, padding := c.text("mode", "linear"), c.text("padding_mode", "zeros")
	if modes[mode] == "" || paddings[padding] == "" || x.Rank() < 3 {
		c.failf("mode is %q and padding_mode %q: they must be nearest, linear or cubic, and zeros, border or reflection, and the operand, %s, have three axes or more", mode, padding, x.Shape())
		return ir.Value{}
	}
	d := x.DType()
	if !d.IsFloat() {
		d = ir.F32
	}
	y := image.GridSample(c.b, ops.MoveAxis(c.b, ops.Convert(c.b, x, d), 1, x.Rank()-1), ops.Convert(c.b, c.x(1), d),
		image.GridOptions{Mode: modes[mode], Padding: paddings[padding], AlignCorners: c.bool("align_corners")})
	return c.like(ops.MoveAxis(c.b, y, x.Rank()-1, 1), x)
}

func affineGrid(c *call) ir.Value {
	theta, size := c.x(0), c.knownInts(1)
	if len(size) < 3 || slices.Max(size) > maxResized {
		c.fail(ir.Shapef("sizes are %v: there must be three or more, of at most %d", size, maxResized))
		return ir.Value{}
	}
	return c.like(image.AffineGrid(c.b, theta, size[2:], c.bool("align_corners")), theta)
}

// sampler reads elements of x [n, channels, sizes...] at coordinates.
type sampler struct {
	*call
	x     ir.Value
	sizes []int
	// prepare maps coordinates into the axis; those left outside read 0.
	prepare func(at ir.Value, axis int) ir.Value
}

// read returns the elements at whole coordinates, each [n, positions...] in f32: [n, positions...,
// channels]. Outside it is 0.
func (s *sampler) read(at []ir.Value) ir.Value {
	b := s.b
	n := len(at)
	var parts []ir.Value
	for axis, v := range at {
		parts = append(parts, ops.Convert(b, s.prepare(v, axis), ir.I32))
	}
	tuples := ops.Stack(b, at[0].Rank(), parts...)
	a := ops.IndexedAxes{OperandBatch: []int{0}, IndexBatch: []int{0}, Outside: ops.OutsideFill}
	for i := range n {
		a.Axes = append(a.Axes, i+2)
	}
	return ops.Gather(b, s.x, tuples, ops.GatherAttrs{IndexedAxes: a})
}

// interpolate combines the four elements around coordinates along two axes, each times its weight of bilinear
// interpolation.
func (s *sampler) interpolate(at []ir.Value, combine binaryOp) ir.Value {
	b := s.b
	var y ir.Value
	for corner := range 4 {
		place, weight := make([]ir.Value, 2), ir.Value{}
		for i, v := range at {
			floor := ops.Floor(b, v)
			w := ops.Sub(b, v, floor)
			if place[i] = offset(s.call, floor, 1); corner>>(1-i)&1 == 0 {
				place[i], w = floor, ops.Sub(b, ops.ConstLike(b, w, 1), w)
			}
			if weight.Valid() {
				w = ops.Mul(b, weight, w)
			}
			weight = w
		}
		x := ops.Mul(b, s.read(place), s.like(ops.ExpandDims(b, weight, weight.Rank()), s.x))
		if y.Valid() {
			x = combine(b, y, x)
		}
		y = x
	}
	return y
}

// roiAlign samples points of a grid in each bin of a region and takes their mean or maximum.
func roiAlign(c *call) ir.Value {
	x, rois := c.x(0), ops.Convert(c.b, c.x(1), ir.F32)
	b, ratio := c.b, c.int("sampling_ratio", 0)
	h, w := c.int("output_height", 1), c.int("output_width", 1)
	if x.Rank() != 4 || rois.Rank() != 2 || !rois.Dim(1).Is(4) || h < 1 || w < 1 || max(h, w, ratio) > maxTransform || max(h, w)*ratio > maxResized {
		c.fail(ir.Shapef("regions are %s and images %s: they must be [regions, 4] and [batch, channels, height, width], with bins and samples within their limits", rois.Shape(), x.Shape()))
		return ir.Value{}
	}
	half := c.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"
	if c.opset < 16 {
		half = false
	}
	if ratio <= 0 {
		c.failf("sampling_ratio is 0, by which it depends on the regions: it must be positive")
		return ir.Value{}
	}
	sides := ops.Unstack(b, scaled(c, rois, c.float("spatial_scale", 1)), 1)
	if len(sides) != 4 {
		return ir.Value{}
	}
	images := ops.Take(b, x, c.x(2), 0, ops.OutsideClip)
	s := &sampler{call: c, x: images, sizes: c.sizesFrom(images, 2)}
	var at, inside []ir.Value
	for axis, bins := range []int{h, w} {
		v := roiPoints(c, sides[1-axis], sides[3-axis], bins*ratio, half)
		size := float64(s.sizes[axis])
		inside = append(inside, ops.And(b, ops.Ge(b, v, ops.ConstLike(b, v, -1)), ops.Le(b, v, ops.ConstLike(b, v, size))))
		at = append(at, ops.Clamp(b, v, ops.Const(b, ir.F32, 0), ops.Const(b, ir.F32, size-1)))
	}
	grid := ir.Shape{rois.Dim(0), ir.N(h * ratio), ir.N(w * ratio)}
	spreadOut := func(v ir.Value, axis int) ir.Value { return ops.BroadcastInDim(b, v, grid, []int{0, axis}) }
	at = []ir.Value{spreadOut(at[0], 1), spreadOut(at[1], 2)}
	counts := ops.And(b, spreadOut(inside[0], 1), spreadOut(inside[1], 2))
	s.prepare = func(v ir.Value, axis int) ir.Value {
		return ops.Min(b, v, ops.Const(b, ir.F32, float64(s.sizes[axis]-1)))
	}
	binned := func(y ir.Value, reduce reduceOp) ir.Value { // [regions, h·ratio, w·ratio, channels]
		y = ops.Select(b, ops.ExpandDims(b, counts, 3), y, ops.ConstLike(b, y, 0))
		y = ops.Reshape(b, y, rois.Dim(0), ir.N(h), ir.N(ratio), ir.N(w), ir.N(ratio), x.Dim(1))
		return ops.MoveAxis(b, reduce(b, y, 2, 4), 3, 1)
	}
	if c.text("mode", "avg") != "max" {
		return binned(s.interpolate(at, ops.Add), ops.Mean)
	}
	return binned(s.interpolate(at, ops.Max), ops.ReduceMax)
}

// roiPoints returns the coordinates [regions, n] of the middles of n equal parts of regions along an axis. With
// half, the coordinate of an element is that of its middle; otherwise regions have a length of 1 or more.
func roiPoints(c *call, start, end ir.Value, n int, half bool) ir.Value {
	length := ops.Sub(c.b, end, start)
	if half {
		start = offset(c, start, -0.5)
	} else {
		length = ops.Max(c.b, length, ops.ConstLike(c.b, length, 1))
	}
	list := make([]float64, n) // as parts of the region
	for i := range list {
		list[i] = (float64(i) + 0.5) / float64(n)
	}
	points := ops.Literal(c.b, ir.Floats(ir.F32, list))
	return ops.Add(c.b, ops.ExpandDims(c.b, start, 1), ops.Outer(c.b, length, points))
}

// deformConv imports a convolution that reads elements at offsets from their positions and
// multiplies them by a mask.
func deformConv(c *call) ir.Value {
	x, weight, offset := c.x(0), c.x(1), c.x(2)
	kernel := kernel(c, weight)
	w := windowOf(c, x, kernel)
	groups, shared := c.int("group", 1), c.int("offset_group", 1)
	if len(kernel) != 2 || kernel[0] > maxTransform || kernel[1] > maxTransform || x.Rank() != 4 || offset.Rank() != 4 || groups < 1 || shared < 1 || c.err != nil {
		c.failf("the kernel is %v, group %d and offsets %s: there must be two axes of positions, groups, and offsets of four axes", kernel, groups, offset.Shape())
		return ir.Value{}
	}
	b, xs, os, ws := c.b, c.shape(x), c.shape(offset), c.shape(weight)
	n, taps, oh, ow := xs[0], kernel[0]*kernel[1], os[2], os[3]
	if xs[1]%shared != 0 || xs[1]%groups != 0 || ws[0]%groups != 0 || os[1] != shared*taps*2 {
		c.fail(ir.Shapef("offsets are %s and offset_group %d: they must fit the operand, %s", offset.Shape(), shared, x.Shape()))
		return ir.Value{}
	}
	dims := ir.Dims
	moved := ops.Reshape(b, ops.Convert(b, offset, ir.F32), dims(n*shared, taps, 2, oh, ow)...)
	parts := ops.Unstack(b, moved, 2)
	if len(parts) != 2 {
		return ir.Value{}
	}
	shape := dims(n*shared, taps, oh, ow)
	at := make([]ir.Value, 2)
	for axis := range 2 {
		tap := make([]float64, taps)
		for k := range tap {
			i := k / kernel[1]
			if axis == 1 {
				i = k % kernel[1]
			}
			tap[k] = float64(i*w.dilations[axis] - w.lo[axis])
		}
		base := ops.BroadcastInDim(b, ops.Literal(b, ir.Floats(ir.F32, tap)), shape, []int{1})
		step := scaled(c, ops.Iota(b, ir.F32, axis+2, shape...), float64(w.strides[axis]))
		at[axis] = ops.Add(b, parts[axis], ops.Add(b, base, step))
	}
	s := &sampler{call: c, x: ops.Reshape(b, x, dims(n*shared, xs[1]/shared, xs[2], xs[3])...), sizes: xs[2:]}
	s.prepare = func(v ir.Value, _ int) ir.Value { return v }
	read := s.interpolate(at, ops.Add) // [n·shared, taps, oh, ow, channels]
	if c.has(4) {
		read = ops.Mul(b, read, ops.Reshape(b, c.x(4), dims(n*shared, taps, oh, ow, 1)...))
	}
	columns := ops.MoveAxis(b, read, 4, 1) // [n·shared, channels, taps, oh, ow]
	columns = ops.Reshape(b, columns, dims(n, groups, xs[1]/groups, taps, oh, ow)...)
	filters := ops.Reshape(b, weight, dims(groups, ws[0]/groups, ws[1], taps)...)
	y := ops.Einsum(b, "ngcthw,goct->ngohw", columns, filters)
	return addBias(c, ops.Reshape(b, y, dims(n, ws[0], oh, ow)...), c.opt(3))
}
