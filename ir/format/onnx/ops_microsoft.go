package onnx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// microsoft is the domain of the ops that ONNX Runtime's optimisers put in place of several others.
const microsoft = "com.microsoft"

func init() {
	addMicrosoft("SkipLayerNormalization", func(c *call) []ir.Value {
		sum := skipped(c, 4)
		y, mean, inverse := normalise(c, sum, []int{sum.Rank() - 1}, c.float("epsilon", 1e-12), ir.F32)
		return []ir.Value{plus(c, ops.Mul(c.b, y, c.x(2)), 3), mean, inverse, sum}
	})
	addMicrosoft("SkipSimplifiedLayerNormalization", func(c *call) []ir.Value {
		sum := skipped(c, 3)
		y, inverse := rootMeanSquare(c, sum, c.x(2), []int{sum.Rank() - 1}, c.float("epsilon", 1e-12), ir.F32)
		return []ir.Value{y, {}, inverse, sum}
	})
	// Models name the default domain for it, though ONNX does not have it.
	add("SimplifiedLayerNormalization", func(c *call) []ir.Value {
		x := c.x(0)
		y, inverse := rootMeanSquare(c, x, c.x(1), all(x.Rank())[c.axis("axis", -1, x.Rank()):], c.float("epsilon", 1e-5), stash(c, x))
		return []ir.Value{y, inverse}
	})
	addMicrosoft("Gelu", func(c *call) []ir.Value { return one(ops.Gelu(c.b, c.x(0))) })
	addMicrosoft("BiasGelu", func(c *call) []ir.Value { return one(ops.Gelu(c.b, ops.Add(c.b, c.x(0), c.x(1)))) })
	addMicrosoft("FastGelu", func(c *call) []ir.Value { return one(ops.GeluTanh(c.b, plus(c, c.x(0), 1))) })
	addMicrosoft("QuickGelu", func(c *call) []ir.Value {
		x := c.x(0)
		return one(ops.Mul(c.b, x, ops.Sigmoid(c.b, scaled(c, x, c.float("alpha", 1.702)))))
	})
	addMicrosoft("FusedMatMul", single(fusedMatMul))
}

func addMicrosoft(name string, build func(c *call) []ir.Value) {
	addTo(microsoft, name, opInfo{since: 1, build: build})
}

// plus returns x plus an operand, if that is given.
func plus(c *call, x ir.Value, i int) ir.Value {
	if !c.has(i) {
		return x
	}
	return ops.Add(c.b, x, c.x(i))
}

// skipped returns the sum of the first two operands and of a bias, which may be left out.
func skipped(c *call, bias int) ir.Value {
	return plus(c, ops.Add(c.b, c.x(0), c.x(1)), bias)
}

// fusedMatMul returns alpha·x·y, each transposed if so asked.
func fusedMatMul(c *call) ir.Value {
	if c.bool("transBatchA") || c.bool("transBatchB") {
		c.failf("transBatchA or transBatchB is 1: they must be 0: transpose the operands by nodes of their own")
		return ir.Value{}
	}
	side := func(i int, flag string) ir.Value {
		x := c.x(i)
		if c.bool(flag) && x.Rank() > 1 {
			return ops.SwapAxes(c.b, x, -2, -1)
		}
		return x
	}
	return scaled(c, ops.MatMul(c.b, side(0, "transA"), side(1, "transB")), c.float("alpha", 1))
}
