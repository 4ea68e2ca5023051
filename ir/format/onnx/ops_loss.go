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

// trainingRule returns the next value of a tensor and its next states.
type trainingRule func(x, grad ir.Value, states []ir.Value) []ir.Value

// update computes a training op. Its operands are a rate, the number of the step, then for n tensors their values, gradients
// and states, n of each; its results the next values and states, n of each. made returns the rule for tensors of type d.
func update(c *call, states int, made func(rate, step ir.Value, d ir.DType) trainingRule) []ir.Value {
	n := (len(c.in) - 2) / (2 + states)
	if n < 1 || len(c.in) != 2+n*(2+states) {
		c.fail(damaged("there are %d operands: there must be a rate, a count, and for each tensor its value, gradient and %d states", len(c.in), states))
		return nil
	}
	next := made(ops.Reshape(c.b, c.x(0)), ops.Reshape(c.b, c.x(1)), c.x(2).DType())
	out := make([]ir.Value, n*(1+states))
	for i := range n {
		x, own := c.x(2+i), make([]ir.Value, states)
		for k := range own {
			own[k] = c.x(2 + (2+k)*n + i)
		}
		grad := ops.Add(c.b, c.x(2+n+i), scaled(c, x, c.float("norm_coefficient", 0)))
		for k, v := range next(x, grad, own) {
			out[k*n+i] = v
		}
	}
	return out
}

func adam(c *call) []ir.Value {
	return update(c, 2, func(rate, step ir.Value, d ir.DType) trainingRule {
		b, alpha, beta := c.b, c.float("alpha", 0.9), c.float("beta", 0.999)
		t := ops.Convert(b, step, d)
		correction := func(base float64) ir.Value {
			return ops.Sub(b, ops.Const(b, d, 1), ops.Pow(b, ops.Const(b, d, base), t))
		}
		adjusted := ops.Div(b, ops.Mul(b, rate, ops.Sqrt(b, correction(beta))), correction(alpha))
		rate = ops.Select(b, ops.Gt(b, step, ops.ConstLike(b, step, 0)), adjusted, rate)
		return func(x, grad ir.Value, states []ir.Value) []ir.Value {
			v := ops.Add(b, scaled(c, states[0], alpha), scaled(c, grad, 1-alpha))
			h := ops.Add(b, scaled(c, states[1], beta), scaled(c, ops.Mul(b, grad, grad), 1-beta))
			x = ops.Sub(b, x, ops.Div(b, ops.Mul(b, rate, v), offset(c, ops.Sqrt(b, h), c.float("epsilon", 1e-6))))
			return []ir.Value{scaled(c, x, 1-c.float("norm_coefficient_post", 0)), v, h}
		}
	})
}

func adagrad(c *call) []ir.Value {
	return update(c, 1, func(rate, step ir.Value, d ir.DType) trainingRule {
		b := c.b
		rate = ops.Div(b, rate, offset(c, scaled(c, ops.Convert(b, step, d), c.float("decay_factor", 0)), 1))
		return func(x, grad ir.Value, states []ir.Value) []ir.Value {
			h := ops.Add(b, states[0], ops.Mul(b, grad, grad))
			x = ops.Sub(b, x, ops.Div(b, ops.Mul(b, rate, grad), offset(c, ops.Sqrt(b, h), c.float("epsilon", 0))))
			return []ir.Value{x, h}
		}
	})
}

func momentum(c *call) []ir.Value {
	return update(c, 1, func(rate, step ir.Value, d ir.DType) trainingRule {
		b, alpha := c.b, c.float("alpha", 0)
		first := ops.Eq(b, step, ops.ConstLike(b, step, 0))
		beta := ops.Select(b, first, ops.Const(b, d, 1), ops.Const(b, d, c.float("beta", 1)))
		return func(x, grad ir.Value, states []ir.Value) []ir.Value {
			v := ops.Add(b, scaled(c, states[0], alpha), ops.Mul(b, beta, grad))
			change := v
			if c.text("mode", "standard") == "nesterov" {
				change = ops.Add(b, grad, scaled(c, v, alpha))
			}
			return []ir.Value{ops.Sub(b, x, ops.Mul(b, rate, change)), v}
		}
	})
}
