package onnx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("BatchNormalization", batchNorm)
	add("LayerNormalization", layerNorm)
	add("RMSNormalization", single(rmsNorm))
	add("InstanceNormalization", func(c *call) []ir.Value {
		x := c.x(0)
		y, _, _ := normalise(c, x, all(x.Rank())[min(2, x.Rank()):], c.float("epsilon", 1e-5), x.DType())
		return one(ops.Add(c.b, ops.Mul(c.b, y, perChannel(c, c.x(1), x.Rank())), perChannel(c, c.x(2), x.Rank())))
	})
	add("GroupNormalization", single(groupNorm))
	add("LRN", single(lrn))
	add("MeanVarianceNormalization", func(c *call) []ir.Value {
		axes := c.ints("axes")
		if axes == nil {
			axes = []int{0, 2, 3}
		}
		x := c.x(0)
		y, _, _ := normalise(c, x, c.axesOf(axes, x.Rank()), 1e-9, x.DType())
		return one(y)
	})
	add("LpNormalization", single(lpNorm))
}

// normalise returns (x − mean)·r along axes and the mean and r = 1/√(variance + epsilon), computed
// in type d.
func normalise(c *call, x ir.Value, axes []int, epsilon float64, d ir.DType) (y, mean, inverse ir.Value) {
	in := x.DType()
	x = ops.Convert(c.b, x, d)
	mean = ops.KeepDims(c.b, ops.Mean, x, axes...)
	centred := ops.Sub(c.b, x, mean)
	variance := ops.KeepDims(c.b, ops.Mean, ops.Mul(c.b, centred, centred), axes...)
	inverse = ops.Rsqrt(c.b, offset(c, variance, epsilon))
	return ops.Convert(c.b, ops.Mul(c.b, centred, inverse), in), mean, inverse
}

// stash returns the type in which a norm is computed.
func stash(c *call, x ir.Value) ir.DType {
	if x.DType() == ir.F64 {
		return ir.F64
	}
	return c.element("stash_type", Float).DType()
}

func batchNorm(c *call) []ir.Value {
	x := c.x(0)
	scale, bias, mean, variance := c.x(1), c.x(2), c.x(3), c.x(4)
	n, epsilon := x.Rank(), c.float("epsilon", 1e-5)
	along := func(v ir.Value) ir.Value { return perChannel(c, ops.Convert(c.b, v, x.DType()), n) }
	train := c.opset >= 14 && c.bool("training_mode")
	usedMean, usedVariance := mean, variance
	if train {
		axes := append([]int{0}, all(n)[min(2, n):]...)
		usedMean = ops.Mean(c.b, x, axes...)
		usedVariance = ops.Var(c.b, x, 0, axes...)
	}
	y := ops.Mul(c.b, ops.Sub(c.b, x, along(usedMean)), ops.Rsqrt(c.b, offset(c, along(usedVariance), epsilon)))
	y = ops.Add(c.b, ops.Mul(c.b, y, along(scale)), along(bias))
	if !train {
		return one(y)
	}
	momentum := c.float("momentum", 0.9)
	running := func(old, batch ir.Value) ir.Value {
		return ops.Add(c.b, scaled(c, old, momentum), scaled(c, c.like(batch, old), 1-momentum))
	}
	return []ir.Value{y, running(mean, usedMean), running(variance, usedVariance)}
}

func layerNorm(c *call) []ir.Value {
	x := c.x(0)
	axis := c.axis("axis", -1, x.Rank())
	y, mean, inverse := normalise(c, x, all(x.Rank())[axis:], c.float("epsilon", 1e-5), stash(c, x))
	return []ir.Value{plus(c, ops.Mul(c.b, y, c.x(1)), 2), mean, inverse}
}

func rmsNorm(c *call) ir.Value {
	x := c.x(0)
	y, _ := rootMeanSquare(c, x, c.x(1), all(x.Rank())[c.axis("axis", -1, x.Rank()):], c.float("epsilon", 1e-5), stash(c, x))
	return y
}

// rootMeanSquare returns x·r·scale and r = 1/√(mean of x² along axes + epsilon), computed in type d.
func rootMeanSquare(c *call, x, scale ir.Value, axes []int, epsilon float64, d ir.DType) (y, inverse ir.Value) {
	v := ops.Convert(c.b, x, d)
	square := ops.KeepDims(c.b, ops.Mean, ops.Mul(c.b, v, v), axes...)
	inverse = ops.Rsqrt(c.b, offset(c, square, epsilon))
	return ops.Mul(c.b, c.like(ops.Mul(c.b, v, inverse), scale), scale), inverse
}

// groupNorm normalises groups of channels; scale and bias are per channel, and before operator set
// 21 per group.
func groupNorm(c *call) ir.Value {
	x, scale, bias := c.x(0), c.x(1), c.x(2)
	groups := c.int("num_groups", 1)
	if x.Rank() < 2 || groups < 1 {
		c.fail(ir.Shapef("num_groups is %d: it must be 1 or more, and the operand, %s, have an axis of channels", groups, x.Shape()))
		return ir.Value{}
	}
	each, err := x.Dim(1).Div(ir.N(groups))
	c.fail(err)
	shape := append(ir.Shape{x.Dim(0), ir.N(groups), each}, x.Shape()[2:]...)
	y := ops.Reshape(c.b, x, shape...)
	y, _, _ = normalise(c, y, all(y.Rank())[min(2, y.Rank()):], c.float("epsilon", 1e-5), stash(c, x))
	if c.opset < 21 {
		y = ops.Add(c.b, ops.Mul(c.b, y, perChannel(c, scale, y.Rank())), perChannel(c, bias, y.Rank()))
		return ops.Reshape(c.b, y, x.Shape()...)
	}
	y = ops.Reshape(c.b, y, x.Shape()...)
	return ops.Add(c.b, ops.Mul(c.b, y, perChannel(c, scale, x.Rank())), perChannel(c, bias, x.Rank()))
}

// lrn divides by a power of the mean of squares over neighbouring channels.
func lrn(c *call) ir.Value {
	x, size := c.x(0), c.int("size", 1)
	if x.Rank() < 2 || size < 1 {
		c.fail(ir.Shapef("size is %d: it must be 1 or more, and the operand, %s, have an axis of channels", size, x.Shape()))
		return ir.Value{}
	}
	lo, hi := spread(0, x.Rank()), spread(0, x.Rank())
	lo[1], hi[1] = (size-1)/2, size-1-(size-1)/2
	square := ops.Pad(c.b, ops.Mul(c.b, x, x), ops.Const(c.b, x.DType(), 0), lo, hi, nil)
	sum := ops.ReduceSum(c.b, ops.Windows(c.b, square, ops.WindowsAttrs{Axes: []int{1}, Sizes: []int{size}}), x.Rank())
	base := offset(c, scaled(c, sum, c.float("alpha", 1e-4)/float64(size)), c.float("bias", 1))
	return ops.Div(c.b, x, ops.Pow(c.b, base, ops.Const(c.b, x.DType(), c.float("beta", 0.75))))
}

func lpNorm(c *call) ir.Value {
	x := c.x(0)
	axis := c.axis("axis", -1, x.Rank())
	norm := ops.KeepDims(c.b, func(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
		return ops.Norm(b, x, float64(c.int("p", 2)), axes...)
	}, x, axis)
	zero := ops.ConstLike(c.b, norm, 0)
	safe := ops.Select(c.b, ops.Eq(c.b, norm, zero), ops.ConstLike(c.b, norm, 1), norm)
	return ops.Div(c.b, x, safe)
}

// lowest returns the number below all of a type.
func lowest(d ir.DType) float64 {
	if d.IsFloat() {
		return math.Inf(-1)
	}
	lo, _, _ := d.IntRange()
	return float64(lo)
}
