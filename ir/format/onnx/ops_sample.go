package onnx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("GridSample", single(gridSample))
	add("AffineGrid", single(affineGrid))
	add("RoiAlign", single(roiAlign))
	add("DeformConv", single(deformConv))
}

// sampler reads elements of x [n, channels, sizes...] at coordinates.
type sampler struct {
	*call
	x     ir.Value
	sizes []int
	// prepare maps coordinates into the axis by the padding mode; those left outside read 0.
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

// interpolate returns the sum of the elements around coordinates, with the product of the weights
// along the axes. taps are offsets from the floor and weights of the fraction.
func (s *sampler) interpolate(at []ir.Value, taps []int, weights func(c *call, fraction ir.Value) []ir.Value) ir.Value {
	b := s.b
	floors, lists := make([]ir.Value, len(at)), make([][]ir.Value, len(at))
	for i, v := range at {
		floors[i] = ops.Floor(b, v)
		lists[i] = weights(s.call, ops.Sub(b, v, floors[i]))
	}
	var sum ir.Value
	var visit func(axis int, place []ir.Value, weight ir.Value)
	visit = func(axis int, place []ir.Value, weight ir.Value) {
		if axis == len(at) {
			part := ops.Mul(b, s.read(place), s.like(ops.ExpandDims(b, weight, weight.Rank()), s.x))
			if sum.Valid() {
				part = ops.Add(b, sum, part)
			}
			sum = part
			return
		}
		for k, tap := range taps {
			w := lists[axis][k]
			if weight.Valid() {
				w = ops.Mul(b, weight, w)
			}
			visit(axis+1, append(append([]ir.Value{}, place...), offset(s.call, floors[axis], float64(tap))), w)
		}
	}
	visit(0, nil, ir.Value{})
	return sum
}

func linearWeights(c *call, f ir.Value) []ir.Value {
	return []ir.Value{ops.Sub(c.b, ops.ConstLike(c.b, f, 1), f), f}
}

// cubicWeights are those of cubic convolution with a = −0.75.
func cubicWeights(c *call, f ir.Value) []ir.Value {
	const a = -0.75
	polynomial := func(x ir.Value, k3, k2, k1, k0 float64) ir.Value {
		y := offset(c, scaled(c, x, k3), k2)
		y = offset(c, ops.Mul(c.b, y, x), k1)
		return offset(c, ops.Mul(c.b, y, x), k0)
	}
	outer := func(d ir.Value) ir.Value { return polynomial(d, a, -5*a, 8*a, -4*a) }
	inner := func(d ir.Value) ir.Value { return polynomial(d, a+2, -(a + 3), 0, 1) }
	rest := ops.Sub(c.b, ops.ConstLike(c.b, f, 1), f)
	return []ir.Value{outer(offset(c, f, 1)), inner(f), inner(rest), outer(offset(c, rest, 1))}
}

func gridSample(c *call) ir.Value {
	x, grid := c.x(0), c.x(1)
	n := x.Rank() - 2
	if n < 1 || grid.Rank() != n+2 || !grid.Dim(-1).Is(n) {
		c.fail(ir.Shapef("a grid %s for %s", grid.Shape(), x.Shape()))
		return ir.Value{}
	}
	grid = ops.Convert(c.b, grid, ir.F32)
	s := &sampler{call: c, x: x, sizes: c.sizesFrom(x, 2)}
	align := c.bool("align_corners")
	s.prepare = func(at ir.Value, _ int) ir.Value { return at }
	clip := func(at ir.Value, axis int) ir.Value {
		return ops.Clamp(c.b, at, ops.Const(c.b, ir.F32, 0), ops.Const(c.b, ir.F32, float64(s.sizes[axis]-1)))
	}
	switch mode := c.text("padding_mode", "zeros"); mode {
	case "zeros":
	case "border":
		s.prepare = clip
	case "reflection":
		s.prepare = func(at ir.Value, axis int) ir.Value { return clip(reflect(c, at, s.sizes[axis], align), axis) }
	default:
		c.failf("padding_mode %q", mode)
	}
	parts := ops.Unstack(c.b, grid, n+1)
	if len(parts) != n {
		return ir.Value{}
	}
	at := make([]ir.Value, n)
	for axis := range n {
		size := float64(s.sizes[axis])
		v := offset(c, parts[n-1-axis], 1) // the last axis is the first coordinate
		if align {
			at[axis] = scaled(c, v, (size-1)/2)
		} else {
			at[axis] = scaled(c, offset(c, scaled(c, v, size), -1), 0.5)
		}
	}
	y := sampled(c, s, at)
	return ops.MoveAxis(c.b, y, y.Rank()-1, 1)
}

// sampled reads by the attribute mode: the nearest element or the interpolated ones.
func sampled(c *call, s *sampler, at []ir.Value) ir.Value {
	switch mode := c.text("mode", "linear"); mode {
	case "nearest":
		near := make([]ir.Value, len(at))
		for i, v := range at {
			near[i] = ops.Round(c.b, v)
		}
		return s.read(near)
	case "linear", "bilinear":
		for axis, v := range at {
			if c.text("padding_mode", "zeros") != "zeros" {
				at[axis] = s.prepare(v, axis)
			}
		}
		return s.interpolate(at, []int{0, 1}, linearWeights)
	case "cubic", "bicubic":
		return s.interpolate(at, []int{-1, 0, 1, 2}, cubicWeights)
	default:
		c.failf("mode %q", mode)
		return ir.Value{}
	}
}

// reflect folds coordinates at the borders: the centres of the corner elements with align, otherwise
// their edges.
func reflect(c *call, at ir.Value, size int, align bool) ir.Value {
	low, span := -0.5, float64(size)
	if align {
		low, span = 0, float64(size-1)
	}
	if span <= 0 {
		return ops.ConstLike(c.b, at, 0)
	}
	period := ops.ConstLike(c.b, at, 2*span)
	d := ops.Mod(c.b, offset(c, at, -low), period)
	folded := ops.Min(c.b, d, ops.Sub(c.b, period, d))
	return offset(c, folded, low)
}

func affineGrid(c *call) ir.Value {
	theta, size := c.x(0), c.knownInts(1)
	n := len(size) - 2
	if n < 1 || theta.Rank() != 3 || !theta.Dim(1).Is(n) || !theta.Dim(2).Is(n+1) {
		c.fail(ir.Shapef("a transform %s for sizes %v", theta.Shape(), size))
		return ir.Value{}
	}
	var parts []ir.Value
	shape := ir.Dims(size[2:]...)
	for k := range n {
		axis := n - 1 - k // the last axis is the first coordinate
		m := size[axis+2]
		if m < 0 || m > maxResized {
			c.fail(ir.Shapef("an axis of %d elements", m))
			return ir.Value{}
		}
		list := make([]float64, m)
		for i := range list {
			list[i] = (2*float64(i)+1)/float64(m) - 1
			if c.bool("align_corners") {
				list[i] = 2*float64(i)/max(float64(m-1), 1) - 1
			}
		}
		line := ops.Literal(c.b, ir.Floats(theta.DType(), list))
		parts = append(parts, ops.BroadcastInDim(c.b, line, shape, []int{axis}))
	}
	parts = append(parts, ops.Const(c.b, theta.DType(), 1, shape...))
	places := ops.Stack(c.b, n, parts...)
	product := ops.DotGeneral(c.b, theta, places, ops.DotAttrs{LhsContract: []int{2}, RhsContract: []int{n}})
	return ops.MoveAxis(c.b, product, 1, product.Rank()-1)
}

// roiAlign samples points of a grid in each bin of a region and takes their mean or maximum.
func roiAlign(c *call) ir.Value {
	x, rois := c.x(0), ops.Convert(c.b, c.x(1), ir.F32)
	b, ratio := c.b, c.int("sampling_ratio", 0)
	h, w := c.int("output_height", 1), c.int("output_width", 1)
	if x.Rank() != 4 || rois.Rank() != 2 || !rois.Dim(1).Is(4) || h < 1 || w < 1 || max(h, w, ratio) > maxTransform || max(h, w)*ratio > maxResized {
		c.fail(ir.Shapef("regions %s of %s", rois.Shape(), x.Shape()))
		return ir.Value{}
	}
	half := c.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"
	if c.opset < 16 {
		half = false
	}
	if ratio <= 0 {
		c.failf("a sampling_ratio that depends on the regions")
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
		return binned(s.interpolate(at, []int{0, 1}, linearWeights), ops.Mean)
	}
	return roiMax(c, s, at, binned)
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

// roiMax takes the largest of the four weighted elements around each point of a bin.
func roiMax(c *call, s *sampler, at []ir.Value, binned func(y ir.Value, reduce reduceOp) ir.Value) ir.Value {
	var high ir.Value
	for corner := range 4 {
		taps := []int{corner & 1, corner >> 1}
		place, weight := make([]ir.Value, 2), ir.Value{}
		for i, v := range at {
			floor := ops.Floor(c.b, v)
			w := linearWeights(c, ops.Sub(c.b, v, floor))[taps[i]]
			place[i] = offset(c, floor, float64(taps[i]))
			if weight.Valid() {
				w = ops.Mul(c.b, weight, w)
			}
			weight = w
		}
		part := ops.Mul(c.b, s.read(place), c.like(ops.ExpandDims(c.b, weight, 3), s.x))
		if high.Valid() {
			part = ops.Max(c.b, high, part)
		}
		high = part
	}
	return binned(high, ops.ReduceMax)
}

// deformConv imports a convolution that reads elements at offsets from their positions and
// multiplies them by a mask.
func deformConv(c *call) ir.Value {
	x, weight, offset := c.x(0), c.x(1), c.x(2)
	kernel := kernel(c, weight)
	w := windowOf(c, x, kernel)
	groups, shared := c.int("group", 1), c.int("offset_group", 1)
	if len(kernel) != 2 || kernel[0] > maxTransform || kernel[1] > maxTransform || x.Rank() != 4 || offset.Rank() != 4 || groups < 1 || shared < 1 || c.err != nil {
		c.failf("a convolution over %d axes, in %d groups, with offsets %s", len(kernel), groups, offset.Shape())
		return ir.Value{}
	}
	b, xs, os, ws := c.b, c.shape(x), c.shape(offset), c.shape(weight)
	n, taps, oh, ow := xs[0], kernel[0]*kernel[1], os[2], os[3]
	if xs[1]%shared != 0 || xs[1]%groups != 0 || ws[0]%groups != 0 || os[1] != shared*taps*2 {
		c.fail(ir.Shapef("offsets %s in %d groups for %s", offset.Shape(), shared, x.Shape()))
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
	read := s.interpolate(at, []int{0, 1}, linearWeights) // [n·shared, taps, oh, ow, channels]
	if c.has(4) {
		read = ops.Mul(b, read, ops.Reshape(b, c.x(4), dims(n*shared, taps, oh, ow, 1)...))
	}
	columns := ops.MoveAxis(b, read, 4, 1) // [n·shared, channels, taps, oh, ow]
	columns = ops.Reshape(b, columns, dims(n, groups, xs[1]/groups, taps, oh, ow)...)
	filters := ops.Reshape(b, weight, dims(groups, ws[0]/groups, ws[1], taps)...)
	y := ops.Einsum(b, "ngcthw,goct->ngohw", columns, filters)
	return addBias(c, ops.Reshape(b, y, dims(n, ws[0], oh, ow)...), c.opt(3))
}
