package onnx

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// reduced reduces the axes of a node, which the result lacks.
func (e *exporter) reduced(kind string, n *ir.Node, in exported) tensorRef {
	axes, t, out := n.Attrs().(*ops.AxesAttrs).Axes, e.whole(in), n.Types()[0].Shape
	if len(axes) == 0 {
		return t
	}
	if l, ok := n.Def().Lower.(*ir.ReduceLowering); ok && productDims(pickDims(in.shape, axes)).Is(0) {
		return e.loweredReduce(n, l, []exported{in})[0].tensorRef
	}
	of := n.Input(0).DType()
	turn := of == ir.U64 && (kind == "ReduceMax" || kind == "ReduceMin")
	switch {
	case turn:
		t = e.flipSign(t)
	case of == ir.Bool:
		t = e.cast(t, ir.I32)
	}
	r := e.op(kind, t.dtype, out, []tensorRef{t, e.ints(axes...)}, attrInt("keepdims", 0))
	if turn {
		r = e.flipSign(r)
	}
	return e.narrowed(e.cast(r, held(n.Types()[0].DType)), n)
}

// exportArgMax finds the first extreme element; NaN is the largest, or the smallest, of all.
func exportArgMax(e *exporter, n *ir.Node, in []exported) tensorRef {
	a, kind, t := n.Attrs().(*ops.ArgAttrs), "ArgMax", e.whole(in[0])
	if n.Op() == ops.OpArgMin {
		kind = "ArgMin"
	}
	dims := slices.Delete(t.dims.Clone(), a.Axis, a.Axis+1)
	find := func(kind string, x tensorRef) tensorRef {
		return e.op(kind, ir.I64, dims, []tensorRef{x}, attrInt("axis", a.Axis), attrInt("keepdims", 0))
	}
	switch of := n.Input(0).DType(); {
	case of == ir.U64:
		t = e.flipSign(t)
	case of == ir.Bool:
		t = e.cast(t, ir.I32)
	}
	r := find(kind, t)
	if t.dtype.IsFloat() {
		nan := e.cast(e.isNaN(t), ir.I32)
		any := e.op("ReduceMax", ir.I32, dims, []tensorRef{nan, e.ints(a.Axis)}, attrInt("keepdims", 0))
		r = e.choose(e.cast(any, ir.Bool), find("ArgMax", nan), r)
	}
	return e.narrowed(e.cast(r, held(a.DType)), n)
}

// exportArgSort sorts by TopK, which keeps the order of equal elements. NaN comes after the infinities:
// its places are moved by a second sort, of whole numbers.
func exportArgSort(e *exporter, n *ir.Node, in []exported) tensorRef {
	a, t := n.Attrs().(*ops.SortAttrs), e.whole(in[0])
	first := n.Types()[0].Shape
	order := func(x tensorRef, dims ir.Shape) tensorRef {
		names := []string{x.name, e.dimVector(dims[a.Axis]).name}
		if e.err != nil {
			return tensorRef{"", ir.I64, dims}
		}
		out := e.node("TopK", 2, names, attrInt("axis", a.Axis), attrBool("largest", a.Descending), attrInt("sorted", 1))
		return tensorRef{out[1], ir.I64, dims}
	}
	switch of := n.Input(0).DType(); {
	case of == ir.U64:
		t = e.flipSign(t)
	case of == ir.Bool:
		t = e.cast(t, ir.I32)
	case of == ir.F16:
		t = e.cast(t, ir.F32)
	}
	if !t.dtype.IsFloat() {
		return e.cast(order(t, first), ir.I32)
	}
	nan := e.isNaN(t)
	numbers := order(e.choose(nan, e.number(t.dtype, 0), t), t.dims)
	last := e.op("GatherElements", ir.I32, t.dims, []tensorRef{e.cast(nan, ir.I32), numbers}, attrInt("axis", a.Axis))
	places := order(last, first)
	return e.cast(e.op("GatherElements", ir.I64, first, []tensorRef{numbers, places}, attrInt("axis", a.Axis)), ir.I32)
}

func exportCumSum(e *exporter, n *ir.Node, in []exported) tensorRef {
	a, t := n.Attrs().(*ops.CumSumAttrs), e.whole(in[0])
	r := e.op("CumSum", t.dtype, t.dims, []tensorRef{t, e.number(ir.I64, float64(a.Axis))}, attrBool("exclusive", a.Exclusive), attrBool("reverse", a.Reverse))
	return e.narrowed(r, n)
}

// exportDot transposes factors to [batch..., m, k] and [batch..., k, n] for ONNX's MatMul, which
// multiplies the last two axes.
func exportDot(e *exporter, n *ir.Node, in []exported) tensorRef {
	a := n.Attrs().(*ops.DotAttrs)
	x, y, out := e.whole(in[0]), e.whole(in[1]), n.Types()[0].Shape
	rows, columns := permute.Others(len(x.dims), a.LhsBatch, a.LhsContract), permute.Others(len(y.dims), a.RhsBatch, a.RhsContract)
	k := productDims(pickDims(x.dims, a.LhsContract))
	batch := pickDims(x.dims, a.LhsBatch)
	if last := len(x.dims) - 1; len(batch) == 0 && len(y.dims) == 2 && len(columns) == 1 && slices.Equal(a.LhsContract, []int{last}) {
		// A linear layer. Between DequantizeLinear and MatMul onnxruntime 1.32 refuses a Reshape of int8.
		y = e.transpose(y, []int{a.RhsContract[0], columns[0]})
		return e.narrowed(e.op("MatMul", x.dtype, out, []tensorRef{x, y}), n)
	}
	m, c := productDims(pickDims(x.dims, rows)), productDims(pickDims(y.dims, columns))
	x = e.reshape(e.transpose(x, slices.Concat(a.LhsBatch, rows, a.LhsContract)), slices.Concat(batch, ir.Shape{m, k}))
	y = e.reshape(e.transpose(y, slices.Concat(a.RhsBatch, a.RhsContract, columns)), slices.Concat(batch, ir.Shape{k, c}))
	r := e.op("MatMul", x.dtype, slices.Concat(batch, ir.Shape{m, c}), []tensorRef{x, y})
	return e.narrowed(e.reshape(r, out), n)
}

// convolution is a convolution of images [batch, features, space] with kernels [out, in, space], as ONNX has them.
type convolution struct {
	x, w               tensorRef
	kernel             []int
	strides, dilations []int
	pads               []int // before all axes, then after all
	groups             int
	out                ir.Shape // [batch, out, space]
}

// exportConv brings images and kernels to the order of axes that ONNX has, and the result back.
func exportConv(e *exporter, n *ir.Node, in []exported) tensorRef {
	a := n.Attrs().(*ops.ConvAttrs)
	c := e.convolution(n, a, e.transpose(e.whole(in[0]), a.Lhs), e.transpose(e.whole(in[1]), a.Rhs))
	if e.err != nil {
		return tensorRef{}
	}
	var r tensorRef
	if c.x.dtype == ir.F32 || c.x.dtype == ir.F16 {
		r = e.op("Conv", c.x.dtype, c.out, []tensorRef{c.x, c.w}, attrList("strides", c.strides), attrList("pads", c.pads),
			attrList("dilations", c.dilations), attrInt("group", c.groups), attrList("kernel_shape", c.kernel))
	} else {
		r = e.convByProduct(c)
	}
	r = e.reshape(r, pickDims(n.Types()[0].Shape, a.Out))
	return e.narrowed(e.transpose(r, permute.Inverse(a.Out)), n)
}

// convolution returns the convolution of a node. A dilated image is spread with zeros; groups of the batch
// become groups of features; one without space gets an axis of it.
func (e *exporter) convolution(n *ir.Node, a *ops.ConvAttrs, x, w tensorRef) convolution {
	c := convolution{x: x, w: w, strides: a.Strides, dilations: a.RhsDilation, out: pickDims(n.Types()[0].Shape, a.Out)}
	groups, ok := a.FeatureGroups.Const()
	batches, ok2 := a.BatchGroups.Const()
	if c.groups = groups; !ok || !ok2 {
		e.fail(ir.Errorf(ir.ErrSymbol, "the number of groups is symbolic: %s and %s", a.FeatureGroups, a.BatchGroups))
		return c
	}
	zero, space := e.number(x.dtype, 0), len(a.Strides)
	c.pads = make([]int, 2*space)
	for i := range space {
		c.x = e.spread(c.x, i+2, a.LhsDilation[i]-1, zero)
		c.x = e.padAxis(c.x, i+2, dimOf(int64(min(a.PadLo[i], 0))), dimOf(int64(min(a.PadHi[i], 0))), zero)
		c.pads[i], c.pads[space+i] = max(a.PadLo[i], 0), max(a.PadHi[i], 0)
	}
	if batches > 1 { // [g·b, c, ...] → [b, g·c, ...]
		b, err := c.x.dims[0].Div(ir.N(batches))
		if err != nil {
			e.fail(err)
		}
		split := slices.Concat(ir.Shape{ir.N(batches), b}, c.x.dims[1:])
		order := append([]int{1, 0}, permute.Others(len(split), []int{0, 1})...)
		joined := slices.Concat(ir.Shape{b, c.x.dims[1].Mul(ir.N(batches))}, c.x.dims[2:])
		c.x, c.groups = e.reshape(e.transpose(e.reshape(c.x, split), order), joined), batches
	}
	if space == 0 {
		one := func(t tensorRef) tensorRef { return e.reshape(t, append(t.dims.Clone(), ir.N(1))) }
		c.x, c.w, c.out = one(c.x), one(w), append(c.out, ir.N(1))
		c.strides, c.dilations, c.pads = []int{1}, []int{1}, []int{0, 0}
	}
	if c.kernel, ok = c.w.dims[2:].Ints(); !ok {
		e.fail(ir.Errorf(ir.ErrSymbol, "the kernel has a symbolic size: %s", c.w.dims))
	}
	return c
}

// convByProduct is a convolution of integers or f64, which runtimes lack, by a product of matrices for each
// group: windows [g, batch·places, in·kernel] times kernels [g, in·kernel, out].
func (e *exporter) convByProduct(c convolution) tensorRef {
	space, x := len(c.kernel), c.x
	zero := e.number(x.dtype, 0)
	inner := c.w.dims[1]
	x = e.reshape(x, slices.Concat(x.dims[:1], ir.Shape{ir.N(c.groups), inner}, x.dims[2:]))
	var places, elements []int
	for i := range space {
		at := 3 + 2*i
		x = e.extend(x, at, ir.N(c.pads[i]), ir.N(c.pads[space+i]), zero)
		x = e.windows(x, at, c.out[2+i], c.kernel[i], c.strides[i], c.dilations[i])
		places, elements = append(places, at), append(elements, at+1)
	}
	x = e.transpose(x, slices.Concat([]int{1, 0}, places, []int{2}, elements))
	rows := productDims(slices.Concat(c.out[:1], c.out[2:]))
	k := productDims(c.w.dims[1:])
	x = e.reshape(x, ir.Shape{ir.N(c.groups), rows, k})
	features, err := c.w.dims[0].Div(ir.N(c.groups))
	if err != nil {
		e.fail(err)
	}
	w := e.transpose(e.reshape(c.w, ir.Shape{ir.N(c.groups), features, k}), []int{0, 2, 1})
	r := e.op("MatMul", x.dtype, ir.Shape{ir.N(c.groups), rows, features}, []tensorRef{x, w})
	r = e.reshape(r, slices.Concat(ir.Shape{ir.N(c.groups)}, c.out[:1], c.out[2:], ir.Shape{features}))
	r = e.transpose(r, slices.Concat([]int{1, 0, len(r.dims) - 1}, all(space + 2)[2:]))
	return e.reshape(r, c.out)
}

// exportSoftmax returns 0 where all elements along the axis are −Inf, as the op does; ONNX's
// Softmax returns NaN.
func exportSoftmax(e *exporter, n *ir.Node, in []exported) tensorRef {
	axis, t := n.Attrs().(*ops.AxisAttrs).Axis, e.whole(in[0])
	return e.softmax(t, axis)
}

func (e *exporter) softmax(t tensorRef, axis int) tensorRef {
	hidden := e.compare("Equal", t, e.number(t.dtype, math.Inf(-1)))
	r := e.op("Softmax", t.dtype, t.dims, []tensorRef{t}, attrInt("axis", axis))
	return e.choose(hidden, e.number(t.dtype, 0), r)
}

func exportActivation(op string, attrs ...*attribute) form {
	return func(e *exporter, n *ir.Node, in []exported) []exported {
		return []exported{{e.op(op, in[0].dtype, in[0].dims, []tensorRef{in[0].tensorRef}, attrs...), in[0].shape}}
	}
}

// exportLayerNorm uses LayerNormalization, which requires a scale.
func exportLayerNorm(e *exporter, n *ir.Node, in []exported) tensorRef {
	a := n.Attrs().(*ops.NormAttrs)
	args := []tensorRef{e.whole(in[0])}
	for _, v := range in[1:] {
		args = append(args, e.whole(v))
	}
	if len(args) == 1 {
		shape := in[0].shape[len(in[0].shape)-a.Axes:]
		args = append(args, e.whole(exported{e.number(ir.F32, 1), shape}))
	}
	return e.op("LayerNormalization", ir.F32, in[0].shape, args, attrInt("axis", -a.Axes), attrFloat("epsilon", a.Epsilon))
}

// isPlainPool reports whether ONNX Runtime has the pool: of f32, over one to three axes.
func isPlainPool(n *ir.Node) bool {
	rank := n.Input(0).Rank()
	return isF32(n) && rank >= 3 && rank <= 5
}

// pool moves the channels, which come last, before the spatial axes and back.
func (e *exporter) pool(op string, n *ir.Node, in exported, a *ops.PoolAttrs, attrs ...*attribute) tensorRef {
	t := e.whole(in)
	rank := len(t.dims)
	front := append([]int{0, rank - 1}, permute.Others(rank, []int{0, rank - 1})...)
	attrs = append(attrs, attrList("kernel_shape", a.Sizes), attrList("strides", a.Strides), attrList("dilations", a.Dilations),
		attrList("pads", slices.Concat(a.PadLo, a.PadHi)))
	r := e.op(op, t.dtype, pickDims(n.Types()[0].Shape, front), []tensorRef{e.transpose(t, front)}, attrs...)
	return e.transpose(r, permute.Inverse(front))
}

func exportMaxPool(e *exporter, n *ir.Node, in []exported) tensorRef {
	return e.pool("MaxPool", n, in[0], n.Attrs().(*ops.PoolAttrs))
}

func exportAvgPool(e *exporter, n *ir.Node, in []exported) tensorRef {
	a := n.Attrs().(*ops.AvgPoolAttrs)
	return e.pool("AveragePool", n, in[0], &a.PoolAttrs, attrBool("count_include_pad", a.CountIncludePad))
}
