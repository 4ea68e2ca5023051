package onnx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("NegativeLogLikelihoodLoss", func(c *call) []ir.Value { return one(nll(c, c.x(0))) })
	add("SoftmaxCrossEntropyLoss", func(c *call) []ir.Value {
		logs := ops.LogSoftmax(c.b, c.x(0), 1)
		return []ir.Value{nll(c, logs), logs}
	})
	addTo(training, "Adam", opInfo{since: 1, build: adam})
	addTo(training, "Adagrad", opInfo{since: 1, build: adagrad})
	addTo(training, "Momentum", opInfo{since: 1, build: momentum})
}

// nll is the negative of the logarithm at each label, weighted by the label's class.
func nll(c *call, logs ir.Value) ir.Value {
	b, labels := c.b, ops.Convert(c.b, c.x(1), ir.I64)
	if logs.Rank() < 2 {
		c.fail(ir.Shapef("scores are %s: they must have two axes or more, the second of classes", logs.Shape()))
		return ir.Value{}
	}
	weight := ops.Const(b, logs.DType(), 1, labels.Shape()...)
	if c.has(2) {
		weight = ops.Take(b, c.x(2), labels, 0, ops.OutsideClip)
	}
	at := labels
	if c.hasAttr("ignore_index") {
		ignored := ops.Eq(b, labels, ops.Const(b, ir.I64, float64(c.int("ignore_index", 0))))
		weight = ops.Select(b, ignored, ops.ConstLike(b, weight, 0), weight)
		at = ops.Select(b, ignored, ops.ConstLike(b, labels, 0), labels)
	}
	picked := ops.Squeeze(b, ops.TakeAlongAxis(b, logs, ops.ExpandDims(b, at, 1), 1, ops.OutsideClip), 1)
	loss := ops.Neg(b, ops.Mul(b, picked, weight))
	axes := all(loss.Rank())
	switch mode := c.text("reduction", "mean"); mode {
	case "none":
		return loss
	case "sum":
		return ops.ReduceSum(b, loss, axes...)
	case "mean":
		return ops.Div(b, ops.ReduceSum(b, loss, axes...), ops.ReduceSum(b, weight, axes...))
	default:
		c.failf("reduction is %q: it must be none, sum or mean", mode)
		return ir.Value{}
	}
}

// groups divides the operands of training ops: a rate, the number of the step, then for n tensors their values, gradients and
// states, n of each.
func groups(c *call, states int) (groups [][]ir.Value, rate, step ir.Value) {
	n := (len(c.in) - 2) / (2 + states)
	if n < 1 || len(c.in) != 2+n*(2+states) {
		c.fail(damaged("there are %d operands: there must be a rate, a count, and for each tensor its value, gradient and %d states", len(c.in), states))
		return nil, rate, step
	}
	rate, step = ops.Reshape(c.b, c.x(0)), ops.Reshape(c.b, c.x(1))
	for i := range n {
		var g []ir.Value
		for k := range 2 + states {
			g = append(g, c.x(2+k*n+i))
		}
		groups = append(groups, g)
	}
	return groups, rate, step
}

// ungroup orders results of groups: all first ones, then all second ones.
func ungroup(groups [][]ir.Value) []ir.Value {
	var out []ir.Value
	for k := range groups[0] {
		for _, g := range groups {
			out = append(out, g[k])
		}
	}
	return out
}

func adam(c *call) []ir.Value {
	groups, rate, step := groups(c, 2)
	if groups == nil {
		return nil
	}
	b := c.b
	alpha, beta := c.float("alpha", 0.9), c.float("beta", 0.999)
	d := groups[0][0].DType()
	t := ops.Convert(b, step, d)
	correction := func(base float64) ir.Value {
		return ops.Sub(b, ops.Const(b, d, 1), ops.Pow(b, ops.Const(b, d, base), t))
	}
	adjusted := ops.Div(b, ops.Mul(b, rate, ops.Sqrt(b, correction(beta))), correction(alpha))
	rate = ops.Select(b, ops.Gt(b, step, ops.ConstLike(b, step, 0)), adjusted, rate)
	for i, g := range groups {
		x, grad := g[0], ops.Add(b, g[1], scaled(c, g[0], c.float("norm_coefficient", 0)))
		v := ops.Add(b, scaled(c, g[2], alpha), scaled(c, grad, 1-alpha))
		h := ops.Add(b, scaled(c, g[3], beta), scaled(c, ops.Mul(b, grad, grad), 1-beta))
		x = ops.Sub(b, x, ops.Div(b, ops.Mul(b, rate, v), offset(c, ops.Sqrt(b, h), c.float("epsilon", 1e-6))))
		groups[i] = []ir.Value{scaled(c, x, 1-c.float("norm_coefficient_post", 0)), v, h}
	}
	return ungroup(groups)
}

func adagrad(c *call) []ir.Value {
	groups, rate, step := groups(c, 1)
	if groups == nil {
		return nil
	}
	b := c.b
	d := groups[0][0].DType()
	rate = ops.Div(b, rate, offset(c, scaled(c, ops.Convert(b, step, d), c.float("decay_factor", 0)), 1))
	for i, g := range groups {
		grad := ops.Add(b, g[1], scaled(c, g[0], c.float("norm_coefficient", 0)))
		h := ops.Add(b, g[2], ops.Mul(b, grad, grad))
		x := ops.Sub(b, g[0], ops.Div(b, ops.Mul(b, rate, grad), offset(c, ops.Sqrt(b, h), c.float("epsilon", 0))))
		groups[i] = []ir.Value{x, h}
	}
	return ungroup(groups)
}

func momentum(c *call) []ir.Value {
	groups, rate, step := groups(c, 1)
	if groups == nil {
		return nil
	}
	b := c.b
	alpha := c.float("alpha", 0)
	d := groups[0][0].DType()
	first := ops.Eq(b, step, ops.ConstLike(b, step, 0))
	beta := ops.Select(b, first, ops.Const(b, d, 1), ops.Const(b, d, c.float("beta", 1)))
	for i, g := range groups {
		grad := ops.Add(b, g[1], scaled(c, g[0], c.float("norm_coefficient", 0)))
		v := ops.Add(b, scaled(c, g[2], alpha), ops.Mul(b, beta, grad))
		change := v
		if c.text("mode", "standard") == "nesterov" {
			change = ops.Add(b, grad, scaled(c, v, alpha))
		}
		groups[i] = []ir.Value{ops.Sub(b, g[0], ops.Mul(b, rate, change)), v}
	}
	return ungroup(groups)
}
