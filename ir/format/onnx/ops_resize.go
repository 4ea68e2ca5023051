package onnx

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addSince("Resize", 10, func(c *call) []ir.Value { return one(resize(c, scalesOf(c, 1), nil)) })
	addSince("Resize", 11, single(resizeByOperands))
	addSince("Upsample", 1, func(c *call) []ir.Value { return one(resize(c, floatsAttr(c, "scales"), nil)) })
	addSince("Upsample", 9, func(c *call) []ir.Value { return one(resize(c, scalesOf(c, 1), nil)) })
}

func floatsAttr(c *call, name string) []float64 {
	if a := c.attr(name); a != nil {
		return a.floats
	}
	return nil
}

// scalesOf returns an operand of numbers, nil if it is left out or empty.
func scalesOf(c *call, i int) []float64 {
	if !c.has(i) || c.in[i].typ.Shape.Size().Is(0) {
		return nil
	}
	return c.knownFloats(i)
}

func resizeByOperands(c *call) ir.Value {
	var want []ir.Dim
	if c.has(3) && !c.in[3].typ.Shape.Size().Is(0) {
		want = c.sizes(3)
	}
	return resize(c, scalesOf(c, 2), want)
}

// line is how one axis is resized: to out elements, scale times the size.
type line struct {
	kept       bool // an open axis, such as the batch, that keeps its size
	in, out    int
	scale      float64
	start, end float64 // of the region of interest, as parts of the axis
}

// resize resizes one axis after the other: interpolation is separable.
func resize(c *call, scales []float64, want []ir.Dim) ir.Value {
	x := c.x(0)
	axes := all(x.Rank())
	if c.hasAttr("axes") {
		axes = c.axesOf(c.ints("axes"), x.Rank())
	}
	if c.err != nil || scales == nil && want == nil || scales != nil && len(scales) != len(axes) || want != nil && len(want) != len(axes) {
		c.fail(ir.Shapef("scales are %v and sizes %v: one must be given for each of the axes %v", scales, want, axes))
		return ir.Value{}
	}
	var roi []float64
	if c.opset >= 11 && c.has(1) {
		roi = scalesOf(c, 1)
	}
	lines := lines(c, x, axes, scales, want)
	d := x.DType()
	for i, axis := range axes {
		l := lines[i]
		l.start, l.end = 0, 1
		if len(roi) == 2*len(axes) {
			l.start, l.end = roi[i], roi[i+len(axes)]
		}
		if l.in == l.out && l.scale == 1 && l.start == 0 && l.end == 1 {
			continue
		}
		if l.kept {
			l.in = c.size(x, axis) // an error
		}
		if c.err != nil || l.out < 0 || l.out > maxResized || l.in < 1 {
			c.fail(ir.Shapef("axis %d of %d elements to %d", axis, l.in, l.out))
			return ir.Value{}
		}
		x = resizeAxis(c, x, axis, l)
	}
	return ops.Convert(c.b, x, d)
}

// maxResized bounds an axis of a resized tensor: its matrix is a constant of the graph.
const maxResized = 1 << 16

// maxMatrix bounds a matrix that the importer computes.
const maxMatrix = 1 << 24

// lines returns how each axis is resized.
func lines(c *call, x ir.Value, axes []int, scales []float64, want []ir.Dim) []line {
	out := make([]line, len(axes))
	policy := c.text("keep_aspect_ratio_policy", "stretch")
	for i, axis := range axes {
		_, known := x.Dim(axis).Const()
		if !known && (want == nil && scales[i] == 1 || want != nil && want[i] == x.Dim(axis) && policy == "stretch") {
			out[i] = line{kept: true, in: 1, out: 1, scale: 1}
			continue
		}
		in := c.size(x, axis)
		out[i].in = in
		if want == nil {
			out[i].scale, out[i].out = scales[i], int(math.Floor(scales[i]*float64(in)))
			continue
		}
		size, ok := want[i].Const()
		if !ok {
			c.failf("axis %d of %s is resized to %s: it must be a number", axis, x.Shape(), want[i])
		}
		out[i].scale, out[i].out = float64(size)/float64(max(in, 1)), size
	}
	if want == nil || policy == "stretch" || len(out) == 0 {
		return out
	}
	scale := out[0].scale
	for _, l := range out {
		if policy == "not_larger" {
			scale = min(scale, l.scale)
		} else {
			scale = max(scale, l.scale)
		}
	}
	for i := range out {
		out[i].scale, out[i].out = scale, int(math.Floor(scale*float64(out[i].in)+0.5))
	}
	return out
}

// resizeAxis multiplies one axis with the matrix of its weights, or takes the nearest elements.
func resizeAxis(c *call, x ir.Value, axis int, l line) ir.Value {
	mode := c.text("mode", "nearest")
	if mode != "nearest" && l.in > maxMatrix/max(l.out, 1) {
		c.fail(ir.Shapef("axis %d of %d elements to %d", axis, l.in, l.out))
		return ir.Value{}
	}
	at := make([]float64, l.out)
	for i := range at {
		at[i] = coordinate(c, l, i)
	}
	var y ir.Value
	switch mode {
	case "nearest":
		index := make([]int64, l.out)
		for i := range index {
			index[i] = int64(min(max(nearest(c, at[i], l.scale), 0), l.in-1))
		}
		y = ops.Take(c.b, x, ops.Literal(c.b, ir.Ints(ir.I32, index)), axis, ops.OutsideClip)
	case "linear", "cubic", "bilinear", "trilinear":
		weights := make([]float64, l.out*l.in)
		for i := range at {
			interpolate(c, weights[i*l.in:][:l.in], at[i], l.scale, mode == "cubic")
		}
		d := x.DType()
		if !d.IsFloat() {
			d = ir.F32
		}
		matrix := ops.Literal(c.b, ir.Floats(d, weights, l.out, l.in))
		product := ops.DotGeneral(c.b, ops.Convert(c.b, x, d), matrix, ops.DotAttrs{LhsContract: []int{axis}, RhsContract: []int{1}})
		y = ops.MoveAxis(c.b, product, product.Rank()-1, axis)
	default:
		c.failf("mode is %q: it must be nearest, linear or cubic", mode)
		return ir.Value{}
	}
	return extrapolated(c, y, axis, l, at)
}

// extrapolated replaces the elements along an axis whose coordinates at are outside the operand by extrapolation_value,
// where the mode of coordinates is tf_crop_and_resize.
func extrapolated(c *call, y ir.Value, axis int, l line, at []float64) ir.Value {
	if c.text("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize" {
		return y
	}
	outside := ir.NewArray(ir.Bool, l.out)
	for i, x := range at {
		if x < 0 || x > float64(l.in-1) {
			outside.I[i] = 1
		}
	}
	if !slices.Contains(outside.I, 1) {
		return y
	}
	hidden := ops.Reshape(c.b, ops.Literal(c.b, outside), alone(ir.N(l.out), axis, y.Rank())...)
	return ops.Select(c.b, hidden, ops.Const(c.b, y.DType(), c.float("extrapolation_value", 0)), y)
}

// coordinate returns where element i of the result is in the operand. Corners are aligned over a fraction, scale times
// the length of the operand, as in the tests of ONNX; PyTorch and onnxruntime align those of the elements that there are.
func coordinate(c *call, l line, i int) float64 {
	x, in := float64(i), float64(l.in)
	length := l.scale * in
	mode := c.text("coordinate_transformation_mode", "half_pixel")
	if c.n.op == "Upsample" || c.opset < 11 {
		mode = "asymmetric"
	}
	switch mode {
	case "half_pixel":
	case "pytorch_half_pixel":
		if l.out <= 1 {
			return 0
		}
	case "align_corners":
		if c.im.m.Producer == "pytorch" {
			length = float64(l.out)
		}
		if length == 1 {
			return 0
		}
		return x * (in - 1) / (length - 1)
	case "asymmetric":
		return x / l.scale
	case "tf_crop_and_resize":
		if l.out <= 1 {
			return 0.5 * (l.start + l.end) * (in - 1)
		}
		return l.start*(in-1) + x*(l.end-l.start)*(in-1)/float64(l.out-1)
	case "half_pixel_symmetric":
		return in/2*(1-float64(l.out)/length) + (x+0.5)/l.scale - 0.5
	default:
		c.failf("coordinate_transformation_mode is %q: it must be half_pixel, pytorch_half_pixel, half_pixel_symmetric, align_corners, asymmetric or tf_crop_and_resize", mode)
	}
	return (x+0.5)/l.scale - 0.5
}

// nearest returns the element nearest to a place. Operator set 10 has no mode: it takes the one before where the axis
// grows, and the one after where it shrinks.
func nearest(c *call, at, scale float64) int {
	mode := c.text("nearest_mode", "round_prefer_floor")
	if c.n.op == "Upsample" || c.opset < 11 {
		mode = "floor"
		if scale < 1 {
			mode = "ceil"
		}
	}
	switch mode {
	case "floor":
		return int(math.Floor(at))
	case "ceil":
		return int(math.Ceil(at))
	case "round_prefer_ceil":
		return int(math.Floor(at + 0.5))
	}
	return int(math.Ceil(at - 0.5))
}

// interpolate adds the weights of the neighbours of a place to a row of the matrix.
func interpolate(c *call, row []float64, at, scale float64, cubic bool) {
	stretch, reach := 1.0, 1.0
	if cubic {
		reach = 2
	}
	if c.bool("antialias") && scale < 1 {
		stretch = 1 / scale
	}
	a := c.float("cubic_coeff_a", -0.75)
	type neighbour struct {
		i int
		w float64
	}
	var list []neighbour
	sum := 0.0
	for i := int(math.Floor(at - reach*stretch)); i <= int(math.Ceil(at+reach*stretch)); i++ {
		d := math.Abs(at-float64(i)) / stretch
		w := max(1-d, 0)
		if cubic {
			w = keys(d, a)
		}
		if w == 0 || c.bool("exclude_outside") && (i < 0 || i >= len(row)) {
			continue
		}
		list = append(list, neighbour{i, w})
		sum += w
	}
	for _, n := range list {
		row[min(max(n.i, 0), len(row)-1)] += n.w / sum
	}
}

// keys is the kernel of cubic convolution (Keys, Cubic Convolution Interpolation for Digital Image
// Processing) with parameter a.
func keys(d, a float64) float64 {
	switch {
	case d <= 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return ((a*d-5*a)*d+8*a)*d - 4*a
	}
	return 0
}
