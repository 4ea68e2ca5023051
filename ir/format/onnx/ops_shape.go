package onnx

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addTo("", "Constant", opInfo{since: 1, values: constantNode})
	add("ConstantOfShape", single(constantOfShape))
	add("Shape", func(c *call) []ir.Value { return one(ir.Value{}) }) // folded: see dims.go
	add("Size", func(c *call) []ir.Value { return one(ir.Value{}) })
	add("Range", single(rangeValues))
	add("Reshape", single(reshape))
	add("Flatten", single(flatten))
	add("Transpose", func(c *call) []ir.Value {
		x, perm := c.x(0), c.ints("perm")
		if perm == nil {
			perm = all(x.Rank())
			slices.Reverse(perm)
		}
		return one(ops.Transpose(c.b, x, perm...))
	})
	add("Concat", single(concat))
	addSince("Squeeze", 1, func(c *call) []ir.Value { return one(squeeze(c, c.ints("axes"), c.hasAttr("axes"))) })
	addSince("Squeeze", 13, func(c *call) []ir.Value {
		if !c.has(1) {
			return one(squeeze(c, nil, false))
		}
		return one(squeeze(c, c.knownInts(1), true))
	})
	addSince("Unsqueeze", 1, func(c *call) []ir.Value { return one(unsqueeze(c, c.ints("axes"))) })
	addSince("Unsqueeze", 13, func(c *call) []ir.Value { return one(unsqueeze(c, c.knownInts(1))) })
	add("Expand", single(expand))
	add("Tile", func(c *call) []ir.Value { return one(ops.Tile(c.b, c.x(0), c.knownInts(1)...)) })
	add("Split", split)
	addSince("Slice", 1, func(c *call) []ir.Value {
		return one(slice(c, attrDims(c, "starts"), attrDims(c, "ends"), c.ints("axes"), nil))
	})
	addSince("Slice", 10, single(sliceByOperands))
	addSince("Pad", 1, func(c *call) []ir.Value {
		x := c.x(0)
		return one(pad(c, x, ops.Const(c.b, x.DType(), c.float("value", 0)), c.ints("pads"), all(x.Rank())))
	})
	addSince("Pad", 11, single(padByOperands))
	add("DepthToSpace", single(depthToSpace))
	add("SpaceToDepth", single(spaceToDepth))
	add("Trilu", func(c *call) []ir.Value {
		x, k := c.x(0), c.knownInt(1, 0)
		if n := x.Rank(); n >= 2 {
			rows, _ := x.Dim(-2).Const()
			cols, _ := x.Dim(-1).Const()
			k = min(max(k, -rows-1), cols+1)
		}
		if c.int("upper", 1) != 0 {
			return one(ops.Triu(c.b, x, k))
		}
		return one(ops.Tril(c.b, x, k))
	})
	add("EyeLike", single(eyeLike))
	add("CenterCropPad", single(centerCropPad))
	add("ReverseSequence", single(reverseSequence))
}

// constantNode imports a large tensor of floats as a weight, as Paddle's exporter has no initializers but constants. Up to
// maxRank elements it may be scales or sizes of axes, with which the importer computes.
func constantNode(c *call) {
	a := c.attr("value")
	if a != nil && a.tensor != nil && a.tensor.elem.DType().IsFloat() && a.tensor.len() > maxRank {
		c.out = []*value{c.im.constant(a.tensor)}
		return
	}
	op := &opInfo{build: single(constantValue)}
	if done, err := c.fold(op); done || err != nil {
		c.fail(err)
		return
	}
	c.b.Label(c.n.title())
	c.results(op.build(c))
	c.b.Label("")
}

// constant returns the value of a node's tensor, which all calls of a function share.
func (im *importer) constant(t *tensor) *value {
	if im.constants[t] == nil {
		im.constants[t] = &value{elem: t.elem, typ: t.typ(), tensor: t, constant: true}
	}
	return im.constants[t]
}

func constantValue(c *call) ir.Value {
	d, list := ir.F32, []float64(nil)
	a := &ir.Array{}
	switch {
	case c.hasAttr("value"):
		t := c.attr("value").tensor
		if t == nil {
			c.fail(damaged("attribute value has no tensor"))
			return ir.Value{}
		}
		var err error
		if a, err = t.array(c.im.o.Files); err != nil {
			c.fail(err)
			return ir.Value{}
		}
		c.elems = []Element{t.elem}
	case c.hasAttr("sparse_value"):
		s := c.attr("sparse_value").sparse
		if s == nil {
			c.fail(damaged("attribute sparse_value has no tensor"))
			return ir.Value{}
		}
		t, err := s.dense()
		if err != nil {
			c.fail(err)
			return ir.Value{}
		}
		a = t.decoded
	case c.hasAttr("value_int"):
		a = ir.Int(ir.I64, int64(c.int("value_int", 0)))
	case c.hasAttr("value_ints"):
		a = ir.Ints(ir.I64, c.attr("value_ints").ints, len(c.attr("value_ints").ints))
	case c.hasAttr("value_float"):
		a = ir.Float(d, c.float("value_float", 0))
	case c.hasAttr("value_floats"):
		list = c.attr("value_floats").floats
		a = ir.Floats(d, list, len(list))
	default:
		c.failf("the constant is of strings: it must be of numbers")
		return ir.Value{}
	}
	return ops.Literal(c.b, a)
}

func constantOfShape(c *call) ir.Value {
	a := ir.Float(ir.F32, 0)
	if v := c.attr("value"); v != nil && v.tensor != nil {
		var err error
		if a, err = v.tensor.array(c.im.o.Files); err != nil {
			c.fail(err)
			return ir.Value{}
		}
		c.elems = []Element{v.tensor.elem}
	}
	if a.Len() != 1 {
		c.fail(damaged("the value must have one element"))
		return ir.Value{}
	}
	return ops.BroadcastTo(c.b, ops.Reshape(c.b, ops.Literal(c.b, a)), ir.Shape(c.sizes(0)))
}

// rangeValues is Range: its length must be known, the start need not be.
func rangeValues(c *call) ir.Value {
	if !c.needs(3) {
		return ir.Value{}
	}
	start, limit, delta := c.in[0].array(c.im), c.in[1].array(c.im), c.in[2].array(c.im)
	d := c.in[0].typ.DType
	if start == nil || limit == nil || delta == nil {
		if lo, ok := c.in[0].sizes(c.im); ok && len(lo) == 1 && delta != nil && delta.Len() == 1 && delta.Float(0) == 1 {
			if hi := c.sizes(1); len(hi) == 1 {
				return ops.Add(c.b, ops.Iota(c.b, d, 0, hi[0].Sub(lo[0])), ops.Reshape(c.b, c.x(0)))
			}
		}
		for i := range 3 {
			c.known(i)
		}
		return ir.Value{}
	}
	if start.Len() != 1 || limit.Len() != 1 || delta.Len() != 1 || delta.Float(0) == 0 {
		c.fail(ir.Shapef("start, limit and delta must be single numbers, and delta not 0"))
		return ir.Value{}
	}
	n := rangeLength(start.Float(0), limit.Float(0), delta.Float(0))
	if n < 0 {
		c.fail(ir.Shapef("the range has more than %d elements, the limit", maxRange))
		return ir.Value{}
	}
	scalarOf := func(a *ir.Array) ir.Value { return ops.Reshape(c.b, ops.Literal(c.b, a)) }
	return ops.Add(c.b, ops.Mul(c.b, ops.Iota(c.b, d, 0, ir.N(n)), scalarOf(delta)), scalarOf(start))
}

// maxRange bounds the elements of a range.
const maxRange = 1<<31 - 1

// rangeLength returns the number of elements from start to limit, -1 if there are more than maxRange.
func rangeLength(start, limit, delta float64) int {
	n := (limit - start) / delta
	if !(n > 0) {
		return 0
	}
	if n > maxRange {
		return -1
	}
	whole := int(n)
	if float64(whole) < n && whole < maxRange {
		whole++
	}
	return whole
}

func reshape(c *call) ir.Value {
	x := c.x(0)
	dims := c.sizes(1)
	if c.opset < 5 {
		dims = attrDims(c, "shape")
	}
	shape := slices.Clone(dims)
	for i, d := range shape {
		n, number := constant(d)
		if number && n == 0 && !c.bool("allowzero") {
			shape[i] = x.Dim(i)
		}
		if number && n < 0 {
			shape[i] = ir.N(-1)
		}
	}
	return reshapeTo(c, x, shape)
}

// reshapeTo reshapes with at most one size of -1, also where x has no elements.
func reshapeTo(c *call, x ir.Value, shape []ir.Dim) ir.Value {
	i := slices.IndexFunc(shape, func(d ir.Dim) bool { return d == ir.N(-1) })
	if i >= 0 {
		rest := ir.N(1)
		for k, d := range shape {
			if k != i {
				rest = rest.Mul(d)
			}
		}
		if rest.Is(0) {
			shape[i] = ir.N(0)
		} else if q, err := x.Shape().Size().Div(rest); err == nil {
			shape[i] = q
		} else {
			c.fail(err)
		}
	}
	return ops.Reshape(c.b, x, shape...)
}

// attrDims returns an attribute of integers as sizes.
func attrDims(c *call, name string) []ir.Dim {
	var out []ir.Dim
	for _, x := range c.ints(name) {
		out = append(out, dimOf(int64(x)))
	}
	return out
}

func flatten(c *call) ir.Value {
	x := c.x(0)
	axis := c.int("axis", 1)
	if axis < 0 {
		axis += x.Rank()
	}
	if axis < 0 || axis > x.Rank() {
		c.fail(ir.Errorf(ir.ErrIndex, "the axis is %d: it must be in [0, %d]", axis, x.Rank()))
		return ir.Value{}
	}
	return ops.Reshape(c.b, x, x.Shape()[:axis].Size(), x.Shape()[axis:].Size())
}

func concat(c *call) ir.Value {
	xs := c.xs()
	if len(xs) == 0 {
		c.fail(damaged("there are no operands: there must be one or more"))
		return ir.Value{}
	}
	return ops.Concatenate(c.b, c.axis("axis", 0, xs[0].Rank()), xs...)
}

func squeeze(c *call, axes []int, given bool) ir.Value {
	x := c.x(0)
	if !given {
		for i, d := range x.Shape() {
			if d.Is(1) {
				axes = append(axes, i)
			}
		}
	}
	drop := c.axesOf(axes, x.Rank())
	shape := ir.Shape{}
	for i, d := range x.Shape() {
		if !slices.Contains(drop, i) {
			shape = append(shape, d)
		} else if n, ok := d.Const(); ok && n != 1 {
			c.fail(ir.Shapef("axis %d of %s is squeezed: it must have size 1", i, x.Shape()))
		}
	}
	return ops.Reshape(c.b, x, shape...)
}

func unsqueeze(c *call, axes []int) ir.Value {
	x := c.x(0)
	n := x.Rank() + len(axes)
	added := c.axesOf(axes, n)
	rest := x.Shape().Clone()
	shape := ir.Shape{}
	for i := range n {
		switch {
		case slices.Contains(added, i):
			shape = append(shape, ir.N(1))
		case len(rest) > 0:
			shape = append(shape, rest[0])
			rest = rest[1:]
		}
	}
	return ops.Reshape(c.b, x, shape...)
}

func expand(c *call) ir.Value {
	x := c.x(0)
	shape, err := ops.BroadcastShapes(x.Shape(), ir.Shape(c.sizes(1)))
	if err != nil {
		c.fail(err)
		return ir.Value{}
	}
	return ops.BroadcastTo(c.b, x, shape)
}

func split(c *call) []ir.Value {
	x := c.x(0)
	axis := c.axis("axis", 0, x.Rank())
	var parts []ir.Dim
	switch {
	case c.opset >= 13 && c.has(1):
		parts = c.sizes(1)
	case c.opset < 13 && c.hasAttr("split"):
		parts = attrDims(c, "split")
	default:
		n := c.int("num_outputs", len(c.n.outputs))
		size, ok := x.Dim(axis).Const()
		if n < 1 || n > 1<<16 {
			c.fail(damaged("num_outputs is %d: it must be from 1 to %d", n, 1<<16))
			return nil
		}
		if !ok {
			return ops.SplitEvenly(c.b, x, axis, n)
		}
		each := (size + n - 1) / n
		for range n {
			parts = append(parts, ir.N(min(each, size)))
			size -= min(each, size)
		}
	}
	return ops.Split(c.b, x, axis, parts...)
}

func sliceByOperands(c *call) ir.Value {
	var axes, steps []int
	if c.has(3) {
		axes = c.knownInts(3)
	}
	if c.has(4) {
		steps = c.knownInts(4)
	}
	return slice(c, c.sizes(1), c.sizes(2), axes, steps)
}

// slice is Slice from starts to ends, which count from the end where they are negative and are
// clamped to the axis, with steps, which may be negative.
func slice(c *call, starts, ends []ir.Dim, axes, steps []int) ir.Value {
	x := c.x(0)
	if axes == nil {
		axes = all(len(starts))
	}
	if steps == nil {
		steps = spread(1, len(starts))
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || len(steps) != len(starts) {
		c.fail(damaged("there are %d starts, %d ends, %d axes and %d steps: the numbers must be equal", len(starts), len(ends), len(axes), len(steps)))
		return ir.Value{}
	}
	start, size, stride := make([]ir.Dim, x.Rank()), x.Shape().Clone(), spread(1, x.Rank())
	for i := range start {
		start[i] = ir.N(0)
	}
	var reversed []int
	for i, axis := range c.axesOf(axes, x.Rank()) {
		if c.err != nil || steps[i] == 0 {
			c.fail(damaged("a step is 0: it must not be"))
			return ir.Value{}
		}
		from, n, ok := sliced(x.Dim(axis), starts[i], ends[i], steps[i])
		if !ok {
			c.failf("an axis of size %s is sliced from %s to %s by %d: the size of the result must be known", x.Dim(axis), starts[i], ends[i], steps[i])
			return ir.Value{}
		}
		start[axis], size[axis], stride[axis] = from, n, max(steps[i], -steps[i])
		if steps[i] < 0 {
			reversed = append(reversed, axis)
		}
	}
	out := ops.Slice(c.b, x, start, size, stride)
	if len(reversed) > 0 {
		out = ops.Reverse(c.b, out, reversed...)
	}
	return out
}

// sliced returns the first element and the number of elements of a slice, in ascending order.
func sliced(size, start, end ir.Dim, step int) (from, n ir.Dim, ok bool) {
	if total, known := size.Const(); known {
		lo, okLo := constant(start)
		hi, okHi := constant(end)
		if !okLo || !okHi {
			return from, n, false
		}
		first, count := slicedNumbers(int64(total), lo, hi, int64(step))
		return ir.N(int(first)), ir.N(int(count)), true
	}
	switch step {
	case 1:
		lo := position(size, start)
		return lo, position(size, end).Sub(lo), true
	case -1: // from the last element, or one before, to the one after the end
		hi, lo := size, ir.N(0)
		if k, ok := constant(start); !ok || k < 1<<31-1 {
			hi = position(size, start).Add(ir.N(1))
		}
		if k, ok := constant(end); !ok || k > -(1<<31) {
			lo = position(size, end).Add(ir.N(1))
		}
		return lo, hi.Sub(lo), true
	}
	return from, n, false
}

// position returns a start or an end within a symbolic size.
func position(size, at ir.Dim) ir.Dim {
	if n, ok := constant(at); ok {
		switch {
		case n >= 1<<31-1:
			return size
		case n < 0 && n > -(1<<31):
			return size.Sub(ir.N(int(-n)))
		case n < 0:
			return ir.N(0)
		}
	}
	return at
}

func slicedNumbers(size, start, end, step int64) (from, n int64) {
	within := func(x, lo, hi int64) int64 {
		if x < 0 {
			x += size
		}
		return min(max(x, lo), hi)
	}
	if step > 0 {
		lo, hi := within(start, 0, size), within(end, 0, size)
		if hi <= lo {
			return 0, 0
		}
		return lo, (hi-lo-1)/step + 1
	}
	lo, hi := within(start, 0, size-1), within(end, -1, size-1)
	if end < -size {
		hi = -1
	}
	if lo <= hi || size == 0 {
		return 0, 0
	}
	n = (lo-hi-1)/-step + 1
	return lo + (n-1)*step, n
}

func padByOperands(c *call) ir.Value {
	x := c.x(0)
	axes := all(x.Rank())
	if c.has(3) {
		axes = c.axesOf(c.knownInts(3), x.Rank())
	}
	value := ops.Const(c.b, x.DType(), 0)
	if c.has(2) {
		value = ops.Reshape(c.b, c.x(2))
	}
	return pad(c, x, value, c.knownInts(1), axes)
}

func pad(c *call, x, value ir.Value, pads, axes []int) ir.Value {
	if len(pads) != 2*len(axes) {
		c.fail(damaged("pads has %d numbers: it must have two for each of %d axes", len(pads), len(axes)))
		return ir.Value{}
	}
	low, high := spread(0, x.Rank()), spread(0, x.Rank())
	for i, axis := range axes {
		low[axis], high[axis] = pads[i], pads[i+len(axes)]
	}
	mode := c.text("mode", "constant")
	if mode == "constant" {
		return ops.Pad(c.b, x, value, low, high, nil)
	}
	modes := map[string]string{"edge": ops.PadEdge, "reflect": ops.PadReflect, "wrap": ops.PadWrap}
	if modes[mode] == "" {
		c.failf("mode is %q: it must be constant, edge, reflect or wrap", mode)
		return ir.Value{}
	}
	crop := func(list []int) (cropped []int) {
		for i, n := range list {
			cropped = append(cropped, min(n, 0))
			list[i] = max(n, 0)
		}
		return cropped
	}
	lo, hi := crop(low), crop(high)
	x = ops.Pad(c.b, x, value, lo, hi, nil)
	return ops.PadMode(c.b, x, low, high, modes[mode])
}

func depthToSpace(c *call) ir.Value {
	x, n := c.x(0), c.int("blocksize", 1)
	if x.Rank() != 4 || n < 1 {
		c.fail(ir.Shapef("the operand is %s and blocksize %d: they must be [n, c, h, w], and 1 or more", x.Shape(), n))
		return ir.Value{}
	}
	s := x.Shape()
	depth, err := s[1].Div(ir.N(n * n))
	c.fail(err)
	k := ir.N(n)
	perm := []int{0, 3, 4, 1, 5, 2}
	shape := ir.Shape{s[0], k, k, depth, s[2], s[3]}
	if c.text("mode", "DCR") == "CRD" {
		perm = []int{0, 1, 4, 2, 5, 3}
		shape = ir.Shape{s[0], depth, k, k, s[2], s[3]}
	}
	x = ops.Transpose(c.b, ops.Reshape(c.b, x, shape...), perm...)
	return ops.Reshape(c.b, x, s[0], depth, s[2].Mul(k), s[3].Mul(k))
}

func spaceToDepth(c *call) ir.Value {
	x, n := c.x(0), c.int("blocksize", 1)
	if x.Rank() != 4 || n < 1 {
		c.fail(ir.Shapef("the operand is %s and blocksize %d: they must be [n, c, h, w], and 1 or more", x.Shape(), n))
		return ir.Value{}
	}
	s, k := x.Shape(), ir.N(n)
	h, err := s[2].Div(k)
	c.fail(err)
	w, err := s[3].Div(k)
	c.fail(err)
	x = ops.Reshape(c.b, x, s[0], s[1], h, k, w, k)
	perm := []int{0, 3, 5, 1, 2, 4}
	if c.text("mode", "DCR") == "CRD" {
		perm = []int{0, 1, 3, 5, 2, 4}
	}
	return ops.Reshape(c.b, ops.Transpose(c.b, x, perm...), s[0], s[1].Mul(ir.N(n*n)), h, w)
}

func eyeLike(c *call) ir.Value {
	x := c.x(0)
	if x.Rank() != 2 {
		c.fail(ir.Shapef("the operand is %s: it must be a matrix", x.Shape()))
		return ir.Value{}
	}
	d := c.element("dtype", elementOf(x.DType())).DType()
	rows, cols := ops.Iota(c.b, ir.I32, 0, x.Shape()...), ops.Iota(c.b, ir.I32, 1, x.Shape()...)
	return ops.Convert(c.b, ops.Eq(c.b, cols, offset(c, rows, float64(c.int("k", 0)))), d)
}

func centerCropPad(c *call) ir.Value {
	x, want := c.x(0), c.knownInts(1)
	axes := all(x.Rank())
	if c.hasAttr("axes") {
		axes = c.axesOf(c.ints("axes"), x.Rank())
	}
	if len(want) != len(axes) {
		c.fail(damaged("there are %d sizes: there must be one for each of %d axes", len(want), len(axes)))
		return ir.Value{}
	}
	sizes := c.shape(x)
	low, high := spread(0, x.Rank()), spread(0, x.Rank())
	for i, axis := range axes {
		more := want[i] - sizes[axis]
		if more >= 0 {
			low[axis] = more / 2
		} else {
			low[axis] = -(-more / 2)
		}
		high[axis] = more - low[axis]
	}
	return ops.Pad(c.b, x, ops.Const(c.b, x.DType(), 0), low, high, nil)
}

// reverseSequence reverses the first elements of each sequence.
func reverseSequence(c *call) ir.Value {
	x := c.x(0)
	time, batch := c.axis("time_axis", 0, x.Rank()), c.axis("batch_axis", 1, x.Rank())
	n := ops.Reshape(c.b, c.x(1), alone(x.Dim(batch), batch, x.Rank())...)
	at := ops.Iota(c.b, n.DType(), time, x.Shape()...)
	mirrored := ops.Sub(c.b, offset(c, n, -1), at)
	index := ops.Select(c.b, ops.Lt(c.b, at, n), mirrored, at)
	return ops.TakeAlongAxis(c.b, x, index, time, ops.OutsideClip)
}
