package onnx

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("Conv", func(c *call) []ir.Value { return one(conv(c, c.x(0), c.x(1), c.opt(2))) })
	add("ConvTranspose", single(convTranspose))
	add("ConvInteger", func(c *call) []ir.Value {
		return one(conv(c, centred(c, 0, 2), centred(c, 1, 3), ir.Value{}))
	})
	add("Col2Im", func(c *call) []ir.Value { return one(col2im(c)) })
	add("CausalConvWithState", causalConv)
}

// window describes the motion of a kernel over the spatial axes, those after the first two.
type window struct {
	sizes, strides, dilations []int
	lo, hi                    []int // padding
	explicit                  []int // padding that the model states; the rest is for ceil_mode
}

// extent returns the number of elements that a window spans along an axis.
func (w window) extent(i int) int { return w.dilations[i]*(w.sizes[i]-1) + 1 }

// windowOf reads the attributes of a convolution or pool with a kernel of the given sizes.
func windowOf(c *call, x ir.Value, kernel []int) window {
	n := len(kernel)
	w := window{sizes: kernel, strides: c.intsOr("strides", 1, n), dilations: c.intsOr("dilations", 1, n), lo: make([]int, n), hi: make([]int, n)}
	pads := c.ints("pads")
	bad := func(list []int) bool { return slices.ContainsFunc(list, func(x int) bool { return x < 1 }) }
	if n == 0 || x.Rank() != n+2 || len(w.strides) != n || len(w.dilations) != n || pads != nil && len(pads) != 2*n ||
		bad(kernel) || bad(w.strides) || bad(w.dilations) {
		c.fail(ir.Shapef("the kernel is %v, strides %v, dilations %v and pads %v: they must fit the operand, %s", kernel, w.strides, w.dilations, pads, x.Shape()))
		return window{sizes: kernel, strides: spread(1, n), dilations: spread(1, n), lo: w.lo, hi: w.hi, explicit: w.hi}
	}
	switch mode := c.text("auto_pad", "NOTSET"); mode {
	case "NOTSET":
		if pads != nil {
			w.lo, w.hi = slices.Clone(pads[:n]), slices.Clone(pads[n:])
		}
	case "VALID":
	case "SAME_UPPER", "SAME_LOWER":
		padSame(c, x, &w, mode == "SAME_UPPER")
	default:
		c.failf("auto_pad is %q: it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode)
	}
	w.explicit = slices.Clone(w.hi)
	return w
}

// padSame pads so that there is one window for each stride of the operand.
func padSame(c *call, x ir.Value, w *window, upper bool) {
	for i := range w.sizes {
		total := w.extent(i) - w.strides[i]
		if w.strides[i] != 1 {
			size := c.size(x, i+2)
			total = (size+w.strides[i]-1)/w.strides[i]*w.strides[i] - w.strides[i] + w.extent(i) - size
		}
		total = max(total, 0)
		w.lo[i] = total / 2
		if !upper {
			w.lo[i] = total - total/2
		}
		w.hi[i] = total - w.lo[i]
	}
}

// kernel returns the sizes of a kernel: those of the weights after the first two axes.
func kernel(c *call, weight ir.Value) []int {
	s := c.shape(weight)
	return s[min(2, len(s)):]
}

func conv(c *call, x, weight, bias ir.Value) ir.Value {
	w := windowOf(c, x, kernel(c, weight))
	y := ops.ConvGeneral(c.b, x, weight, ops.ConvAttrs{
		Strides: w.strides, PadLo: w.lo, PadHi: w.hi, RhsDilation: w.dilations, FeatureGroups: ir.N(c.int("group", 1)),
	})
	return addBias(c, y, bias)
}

// addBias adds a number for each channel, the second axis.
func addBias(c *call, y, bias ir.Value) ir.Value {
	if !bias.Valid() {
		return y
	}
	return ops.Add(c.b, y, perChannel(c, bias, y.Rank()))
}

// perChannel returns a vector along the second of some axes.
func perChannel(c *call, x ir.Value, rank int) ir.Value {
	shape := ir.Shape{x.Shape().Size()}
	for range rank - 2 {
		shape = append(shape, ir.N(1))
	}
	return ops.Reshape(c.b, x, shape...)
}

// centred returns integers minus their zero point, as i32.
func centred(c *call, i, zero int) ir.Value {
	x := ops.Convert(c.b, c.x(i), ir.I32)
	if !c.has(zero) {
		return x
	}
	z := ops.Convert(c.b, c.x(zero), ir.I32)
	if z.Rank() == 1 && !z.Dim(0).Is(1) {
		shape := ir.Shape{z.Dim(0)}
		after := 1 // along rows of a matrix
		if c.n.op == "ConvInteger" {
			after = x.Rank() - 1
		}
		if c.n.op == "MatMulInteger" && i == 1 {
			after = 0
		}
		for range after {
			shape = append(shape, ir.N(1))
		}
		z = ops.Reshape(c.b, z, shape...)
	} else if z.Rank() == 1 {
		z = ops.Reshape(c.b, z)
	}
	return ops.Sub(c.b, x, z)
}

// convTranspose is a convolution of the operand with zeros between its elements.
func convTranspose(c *call) ir.Value {
	x, weight := c.x(0), c.x(1)
	groups := c.int("group", 1)
	kernel := kernel(c, weight)
	n := len(kernel)
	w := transposedWindow(c, x, kernel)
	ws := weight.Shape()
	if len(ws) != n+2 || n == 0 {
		return ir.Value{}
	}
	in, err := ws[0].Div(ir.N(groups))
	c.fail(err)
	// [groups, in, out, kernel] → [groups·out, in, kernel], mirrored
	grouped := ops.Reshape(c.b, weight, append(ir.Shape{ir.N(groups), in}, ws[1:]...)...)
	swapped := ops.SwapAxes(c.b, grouped, 1, 2)
	weight = ops.Reshape(c.b, swapped, append(ir.Shape{ir.N(groups).Mul(ws[1]), in}, ws[2:]...)...)
	weight = ops.Reverse(c.b, weight, all(n + 2)[2:]...)
	y := ops.ConvGeneral(c.b, x, weight, ops.ConvAttrs{
		LhsDilation: w.strides, RhsDilation: w.dilations, PadLo: w.lo, PadHi: w.hi, FeatureGroups: ir.N(groups),
	})
	return addBias(c, y, c.opt(2))
}

// transposedWindow reads the attributes of ConvTranspose. The padding is that of the convolution
// which computes it.
func transposedWindow(c *call, x ir.Value, kernel []int) window {
	n := len(kernel)
	mode := c.text("auto_pad", "NOTSET")
	same := mode == "SAME_UPPER" || mode == "SAME_LOWER"
	w := window{sizes: kernel, strides: c.intsOr("strides", 1, n), dilations: c.intsOr("dilations", 1, n), lo: make([]int, n), hi: make([]int, n)}
	more, pads, shape := c.intsOr("output_padding", 0, n), c.intsOr("pads", 0, 2*n), c.ints("output_shape")
	if len(shape) == n+2 {
		shape = shape[2:]
	}
	if x.Rank() != n+2 || len(w.strides) != n || len(w.dilations) != n || len(more) != n || len(pads) != 2*n || shape != nil && len(shape) != n {
		c.fail(ir.Shapef("the kernel is %v: it and its attributes must fit the operand, %s", kernel, x.Shape()))
		return w
	}
	for i := range n {
		lo, hi := pads[i], pads[n+i]
		if shape != nil || same {
			size := c.size(x, i+2)
			want := size * w.strides[i]
			if shape != nil {
				want = shape[i]
			}
			total := w.strides[i]*(size-1) + more[i] + w.extent(i) - want
			lo, hi = total/2, total-total/2
			if mode == "SAME_LOWER" || shape != nil && mode != "SAME_UPPER" {
				lo, hi = hi, lo
			}
			if total < 0 {
				lo, hi = 0, total
			}
		}
		w.lo[i], w.hi[i] = w.extent(i)-1-lo, w.extent(i)-1-hi+more[i]
	}
	return w
}

// col2im adds blocks, the columns of the operand, at their places in an image.
func col2im(c *call) ir.Value {
	x, image, block := c.x(0), c.knownInts(1), c.knownInts(2)
	n := len(block)
	if x.Rank() != 3 || len(image) != n || n == 0 || slices.ContainsFunc(block, func(k int) bool { return k < 1 }) {
		c.fail(ir.Shapef("blocks are %v and the image %v: they must fit the operand, %s", block, image, x.Shape()))
		return ir.Value{}
	}
	strides, dilations, pads := c.intsOr("strides", 1, n), c.intsOr("dilations", 1, n), c.intsOr("pads", 0, 2*n)
	if len(strides) != n || len(dilations) != n || len(pads) != 2*n {
		c.fail(ir.Shapef("strides are %v, dilations %v and pads %v: they must fit %d axes", strides, dilations, pads, n))
		return ir.Value{}
	}
	size := 1
	for _, k := range block {
		size *= k
	}
	channels, err := x.Dim(1).Div(ir.N(size))
	c.fail(err)
	shape := ir.Shape{x.Dim(0), channels}
	shape = append(shape, ir.Dims(block...)...)
	a := ops.OverlapAddAttrs{Strides: strides, Dilations: dilations}
	lo, hi := make([]int, n+2), make([]int, n+2)
	for i := range n {
		total := image[i] + pads[i] + pads[n+i]
		shape = append(shape, ir.N((total-dilations[i]*(block[i]-1)-1)/strides[i]+1))
		a.Axes = append(a.Axes, i+2)
		a.Dims = append(a.Dims, ir.N(total))
		lo[i+2], hi[i+2] = -pads[i], -pads[n+i]
	}
	perm := append([]int{0, 1}, all(2*n + 2)[n+2:]...)
	perm = append(perm, all(n + 2)[2:]...)
	y := ops.OverlapAdd(c.b, ops.Transpose(c.b, ops.Reshape(c.b, x, shape...), perm...), a)
	return ops.Pad(c.b, y, ops.Const(c.b, y.DType(), 0), lo, hi, nil)
}

// causalConv is a depthwise convolution along time that begins with the last inputs of before.
func causalConv(c *call) []ir.Value {
	x, weight := c.x(0), c.x(1)
	kernel := kernel(c, weight)
	if x.Rank() < 3 || len(kernel) != 1 {
		c.failf("the weight is %s: it must have one axis of positions", weight.Shape())
		return nil
	}
	past := kernel[0] - 1
	state := c.opt(3)
	if !state.Valid() {
		state = ops.Zeros(c.b, x.DType(), x.Dim(0), x.Dim(1), ir.N(past))
	}
	padded := ops.Concatenate(c.b, 2, state, x)
	y := ops.ConvGeneral(c.b, padded, weight, ops.ConvAttrs{FeatureGroups: x.Dim(1)})
	y = addBias(c, y, c.opt(2))
	switch f := c.text("activation", "none"); f {
	case "none", "":
	case "silu", "swish":
		y = ops.Silu(c.b, y)
	default:
		c.failf("activation is %q: it must be none, silu or swish", f)
	}
	next := ops.SliceAxis(c.b, padded, 2, padded.Dim(2).Sub(ir.N(past)), ir.N(past))
	return []ir.Value{y, next}
}
