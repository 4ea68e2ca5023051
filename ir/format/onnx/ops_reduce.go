package onnx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

type reduceOp = func(b *ir.Builder, x ir.Value, axes ...int) ir.Value

func init() {
	for name, f := range map[string]reduceOp{
		"ReduceSum": ops.ReduceSum, "ReduceMax": reduceMax, "ReduceMin": reduceMin, "ReduceProd": ops.ReduceProd, "ReduceMean": ops.Mean,
		"ReduceL1": func(b *ir.Builder, x ir.Value, axes ...int) ir.Value { return ops.ReduceSum(b, ops.Abs(b, x), axes...) },
		"ReduceL2": reduceL2,
		"ReduceSumSquare": func(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
			return ops.ReduceSum(b, ops.Mul(b, x, x), axes...)
		},
		"ReduceLogSum":    func(b *ir.Builder, x ir.Value, axes ...int) ir.Value { return ops.Log(b, ops.ReduceSum(b, x, axes...)) },
		"ReduceLogSumExp": reduceLogSumExp,
	} {
		add(name, func(c *call) []ir.Value {
			return one(reduce(c, f, c.opset < 18 && (name != "ReduceSum" || c.opset < 13)))
		})
	}
	for name, f := range map[string]func(b *ir.Builder, x ir.Value, axis int) ir.Value{"ArgMax": ops.ArgMax, "ArgMin": ops.ArgMin} {
		add(name, func(c *call) []ir.Value { return one(argReduce(c, f)) })
	}
	for name, f := range map[string]func(b *ir.Builder, x ir.Value, a ops.CumSumAttrs) ir.Value{"CumSum": ops.CumSum, "CumProd": ops.CumProd} {
		add(name, func(c *call) []ir.Value {
			x := c.x(0)
			axis := c.axisOf(c.knownInt(1, 0), x.Rank())
			return one(f(c.b, x, ops.CumSumAttrs{Axis: axis, Reverse: c.bool("reverse"), Exclusive: c.bool("exclusive")}))
		})
	}
	for name, f := range map[string]func(b *ir.Builder, x ir.Value, axis int) ir.Value{
		"Softmax": ops.Softmax, "LogSoftmax": ops.LogSoftmax, "Hardmax": hardmax,
	} {
		addSince(name, 1, func(c *call) []ir.Value { return one(overRows(c, f)) })
		addSince(name, 13, func(c *call) []ir.Value { return one(f(c.b, c.x(0), c.axis("axis", -1, c.x(0).Rank()))) })
	}
	add("TopK", topK)
	for name, order := range map[string]float64{"GlobalAveragePool": 0, "GlobalMaxPool": 0, "GlobalLpPool": 2} {
		add(name, func(c *call) []ir.Value { return one(globalPool(c, order)) })
	}
}

// reduceMax is ReduceMax, which for booleans is whether any is true.
func reduceMax(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	if x.DType() == ir.Bool {
		return ops.Any(b, x, axes...)
	}
	return ops.ReduceMax(b, x, axes...)
}

// reduceMin is ReduceMin, which for booleans is whether all are true.
func reduceMin(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	if x.DType() == ir.Bool {
		return ops.All(b, x, axes...)
	}
	return ops.ReduceMin(b, x, axes...)
}

func reduceL2(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	d := x.DType()
	if !d.IsFloat() {
		x = ops.Convert(b, x, ir.F64)
	}
	return ops.Convert(b, ops.Sqrt(b, ops.ReduceSum(b, ops.Mul(b, x, x), axes...)), d)
}

func reduceLogSumExp(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	if size, ok := x.Shape().Size().Const(); ok && size == 0 {
		return ops.Log(b, ops.ReduceSum(b, ops.Exp(b, x), axes...))
	}
	high := ops.StopGradient(b, ops.KeepDims(b, ops.ReduceMax, x, axes...))
	high = ops.Select(b, ops.IsFinite(b, high), high, ops.ConstLike(b, high, 0))
	sum := ops.ReduceSum(b, ops.Exp(b, ops.Sub(b, x, high)), axes...)
	return ops.Add(b, ops.Log(b, sum), ops.Reshape(b, high, sum.Shape()...))
}

// reduce applies a reduction along the axes of an attribute or of an operand.
func reduce(c *call, f reduceOp, attribute bool) ir.Value {
	x := c.x(0)
	axes, given := c.ints("axes"), c.hasAttr("axes")
	if !attribute {
		given = c.has(1)
		if given {
			axes = c.knownInts(1)
			given = len(axes) > 0
		}
	}
	if !given {
		if c.bool("noop_with_empty_axes") {
			axes = []int{}
		} else {
			axes = all(x.Rank())
		}
	}
	axes = c.axesOf(axes, x.Rank())
	if len(axes) == 0 {
		// Each element is reduced as a set of one.
		axis := x.Rank()
		x = ops.ExpandDims(c.b, x, axis)
		return f(c.b, x, axis)
	}
	if c.int("keepdims", 1) != 0 {
		return ops.KeepDims(c.b, f, x, axes...)
	}
	return f(c.b, x, axes...)
}

func argReduce(c *call, f func(b *ir.Builder, x ir.Value, axis int) ir.Value) ir.Value {
	x := c.x(0)
	axis := c.axis("axis", 0, x.Rank())
	last := c.bool("select_last_index")
	if last {
		x = ops.Reverse(c.b, x, axis)
	}
	i := ops.Convert(c.b, f(c.b, x, axis), ir.I64)
	if last {
		i = ops.Sub(c.b, ops.DimSize(c.b, ir.I64, x.Dim(axis).Sub(ir.N(1))), i)
	}
	if c.int("keepdims", 1) != 0 {
		i = ops.ExpandDims(c.b, i, axis)
	}
	return i
}

// overRows applies an op to the rows of the matrix that the axes before and from axis make, as
// operator sets below 13 have it.
func overRows(c *call, f func(b *ir.Builder, x ir.Value, axis int) ir.Value) ir.Value {
	x := c.x(0)
	axis := c.axis("axis", 1, x.Rank())
	rows := ops.Reshape(c.b, x, x.Shape()[:axis].Size(), x.Shape()[axis:].Size())
	return ops.Reshape(c.b, f(c.b, rows, 1), x.Shape()...)
}

// hardmax is 1 at the first largest element along an axis and 0 elsewhere.
func hardmax(b *ir.Builder, x ir.Value, axis int) ir.Value {
	at := ops.ExpandDims(b, ops.ArgMax(b, x, axis), axis)
	return ops.Convert(b, ops.Eq(b, ops.Iota(b, at.DType(), axis, x.Shape()...), at), x.DType())
}

func topK(c *call) []ir.Value {
	x := c.x(0)
	axis, smallest := c.axis("axis", -1, x.Rank()), c.int("largest", 1) == 0
	if c.opset >= 10 && c.has(1) { // k may be the size of the axis, which may be open
		if k, ok := c.in[1].sizes(c.im); ok && c.err == nil && len(k) == 1 && len(k[0].Symbols()) > 0 && k[0] == x.Dim(axis) {
			return ops.Sort(c.b, ops.SortAttrs{Axis: axis, Descending: !smallest}, x, ops.Iota(c.b, ir.I64, axis, x.Shape()...))
		}
	}
	k := c.int("k", 0)
	if c.opset >= 10 {
		k = c.knownInt(1, 0)
	}
	values, indices := ops.TopK(c.b, x, ops.TopKAttrs{K: k, Axis: axis, Smallest: smallest})
	return []ir.Value{values, ops.Convert(c.b, indices, ir.I64)}
}

func globalPool(c *call, order float64) ir.Value {
	x := c.x(0)
	axes := all(x.Rank())[min(2, x.Rank()):]
	switch c.n.op {
	case "GlobalAveragePool":
		return ops.KeepDims(c.b, ops.Mean, x, axes...)
	case "GlobalMaxPool":
		return ops.KeepDims(c.b, ops.ReduceMax, x, axes...)
	}
	return ops.KeepDims(c.b, func(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
		return ops.Norm(b, x, float64(c.int("p", int(order))), axes...)
	}, x, axes...)
}
