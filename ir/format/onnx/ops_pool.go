package onnx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("MaxPool", maxPool)
	add("AveragePool", single(averagePool))
	add("LpPool", single(lpPool))
	add("MaxUnpool", single(maxUnpool))
}

// poolWindow reads the attributes of a pool. With ceil_mode it pads more at the end, but for windows
// that would begin there.
func poolWindow(c *call, x ir.Value) window {
	kernel := c.ints("kernel_shape")
	w := windowOf(c, x, kernel)
	if !c.bool("ceil_mode") || c.err != nil {
		return w
	}
	for i := range kernel {
		size := c.size(x, i+2)
		span := size + w.lo[i] + w.hi[i] - w.extent(i)
		n := (span+w.strides[i]-1)/w.strides[i] + 1
		if (n-1)*w.strides[i] >= size+w.lo[i] {
			n--
		}
		w.hi[i] = max((n-1)*w.strides[i]+w.extent(i)-size-w.lo[i], 0)
	}
	return w
}

// padded pads the spatial axes.
func padded(c *call, x ir.Value, w window, value ir.Value) ir.Value {
	lo, hi := append([]int{0, 0}, w.lo...), append([]int{0, 0}, w.hi...)
	return ops.Pad(c.b, x, value, lo, hi, nil)
}

// windows returns the windows of padded x: [n, c, positions..., elements of a window].
func windows(c *call, x ir.Value, w window) ir.Value {
	n := len(w.sizes)
	y := ops.Windows(c.b, x, ops.WindowsAttrs{Axes: all(n + 2)[2:], Sizes: w.sizes, Strides: w.strides, Dilations: w.dilations})
	if y.Rank() != 2*n+2 {
		return y
	}
	elements := 1
	for _, k := range w.sizes {
		elements *= k
	}
	return ops.Reshape(c.b, y, append(y.Shape()[:n+2].Clone(), ir.N(elements))...)
}

func maxPool(c *call) []ir.Value {
	x := c.x(0)
	w := poolWindow(c, x)
	if c.err != nil {
		return nil
	}
	low := ops.Const(c.b, x.DType(), lowest(x.DType()))
	y := windows(c, padded(c, x, w, low), w)
	last := len(w.sizes) + 2
	if !c.wants(1) {
		return one(ops.ReduceMax(c.b, y, last))
	}
	// Indices count the elements of x, in row-major order or with storage_order columns first.
	number := ops.Reshape(c.b, ops.Iota(c.b, ir.I64, 0, x.Shape().Size()), x.Shape()...)
	if c.bool("storage_order") {
		s := x.Shape()
		perm := append([]int{0, 1}, all(x.Rank())[2:]...)
		swapped := append(ir.Shape{}, s[:2]...)
		for i := x.Rank() - 1; i >= 2; i-- {
			swapped = append(swapped, s[i])
			perm[x.Rank()+1-i] = i
		}
		number = ops.Transpose(c.b, ops.Reshape(c.b, number, swapped...), perm...)
	}
	at := ops.ExpandDims(c.b, ops.ArgMax(c.b, y, last), last)
	numbers := windows(c, padded(c, number, w, ops.Const(c.b, ir.I64, 0)), w)
	indices := ops.Squeeze(c.b, ops.TakeAlongAxis(c.b, numbers, at, last, ops.OutsideClip), last)
	return []ir.Value{ops.ReduceMax(c.b, y, last), indices}
}

func averagePool(c *call) ir.Value {
	x := c.x(0)
	w := poolWindow(c, x)
	if c.err != nil {
		return ir.Value{}
	}
	y := ops.ReduceSum(c.b, windows(c, padded(c, x, w, ops.Const(c.b, x.DType(), 0)), w), len(w.sizes)+2)
	return ops.Div(c.b, y, counts(c, x, y, w))
}

// counts returns how many elements of each window count: those of the operand, and with
// count_include_pad those of the model's padding.
func counts(c *call, x, y ir.Value, w window) ir.Value {
	elements, plain := 1, true
	for i, k := range w.sizes {
		elements *= k
		plain = plain && w.lo[i] == 0 && w.hi[i] == 0
	}
	if plain {
		return ops.Const(c.b, x.DType(), float64(elements))
	}
	counts := ops.Const(c.b, x.DType(), 1)
	for i := range w.sizes {
		from, to := 0, c.size(x, i+2)
		if c.bool("count_include_pad") {
			from, to = -w.lo[i], to+w.explicit[i]
		}
		out := c.size(y, i+2)
		if c.err != nil {
			return counts
		}
		if out > maxResized || w.sizes[i] > maxMatrix/max(out, 1) {
			c.failf("an axis has %d windows of %d elements: their product must be at most %d where padding is not counted", out, w.sizes[i], maxMatrix)
			return counts
		}
		list := make([]float64, out)
		for p := range list {
			for k := range w.sizes[i] {
				if at := p*w.strides[i] - w.lo[i] + k*w.dilations[i]; at >= from && at < to {
					list[p]++
				}
			}
		}
		shape := spread(1, len(w.sizes)+2)
		shape[i+2] = len(list)
		counts = ops.Mul(c.b, counts, ops.Literal(c.b, ir.Floats(x.DType(), list, shape...)))
	}
	return counts
}

func lpPool(c *call) ir.Value {
	x, p := c.x(0), float64(c.int("p", 2))
	w := poolWindow(c, x)
	if c.err != nil {
		return ir.Value{}
	}
	order := ops.Const(c.b, x.DType(), p)
	powers := ops.Pow(c.b, ops.Abs(c.b, padded(c, x, w, ops.Const(c.b, x.DType(), 0))), order)
	sum := ops.ReduceSum(c.b, windows(c, powers, w), len(w.sizes)+2)
	return ops.Pow(c.b, sum, ops.Const(c.b, x.DType(), 1/p))
}

// maxUnpool puts elements where MaxPool has found them.
func maxUnpool(c *call) ir.Value {
	x, index := c.x(0), c.x(1)
	kernel := c.ints("kernel_shape")
	n := len(kernel)
	strides, pads := c.intsOr("strides", 1, n), c.intsOr("pads", 0, 2*n)
	if x.Rank() != n+2 || len(strides) != n || len(pads) != 2*n {
		c.fail(ir.Shapef("the kernel is %v, strides %v and pads %v: they must fit the operand, %s", kernel, strides, pads, x.Shape()))
		return ir.Value{}
	}
	s := c.shape(x)
	shape := ir.Dims(s[:2]...)
	inner := ir.Dims(s[:2]...)
	for i, k := range kernel {
		size := (s[i+2]-1)*strides[i] + k - pads[i] - pads[n+i]
		inner = append(inner, ir.N(size))
		if !c.has(2) {
			shape = append(shape, ir.N(size))
		}
	}
	if c.has(2) {
		shape = ir.Shape(c.sizes(2))
	}
	// Indices count the elements of the result whose shape the attributes give.
	flat := ops.Zeros(c.b, x.DType(), inner.Size())
	at := ops.Reshape(c.b, index, x.Shape().Size(), ir.N(1))
	y := ops.Scatter(c.b, flat, at, ops.Reshape(c.b, x, x.Shape().Size()), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
	if !c.has(2) {
		return ops.Reshape(c.b, y, shape...)
	}
	// A larger result that the model asks for has it at its beginning.
	low, high := make([]int, n+2), make([]int, n+2)
	sizes := spread(0, n+2)
	if s, ok := shape.Ints(); ok && len(s) == n+2 {
		sizes = s
	}
	y = ops.Reshape(c.b, y, inner...)
	for i := range inner {
		from, _ := inner[i].Const()
		high[i] = sizes[i] - from
	}
	return ops.Pad(c.b, y, ops.Const(c.b, y.DType(), 0), low, high, nil)
}
