package onnx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addTo(preview, "FlexAttention", opInfo{since: 1, values: func(c *call) { c.results(one(flexAttention(c))) }})
	addTo("ai.onnx.ml", "Binarizer", opInfo{since: 1, build: func(c *call) []ir.Value {
		x := c.x(0)
		return one(ops.Convert(c.b, ops.Gt(c.b, x, ops.ConstLike(c.b, x, c.float("threshold", 0))), x.DType()))
	}})
	addTo("ai.onnx.ml", "ArrayFeatureExtractor", opInfo{since: 1, build: func(c *call) []ir.Value {
		x, at := c.x(0), c.x(1)
		y := ops.Take(c.b, x, ops.Reshape(c.b, at, at.Shape().Size()), x.Rank()-1, ops.OutsideClip)
		if y.Rank() == 1 {
			y = ops.ExpandDims(c.b, y, 0)
		}
		return one(y)
	}})
}

// flexAttention imports attention whose scores and weights pass through subgraphs of the node.
func flexAttention(c *call) ir.Value {
	q, k, v := c.x(0), c.x(1), c.x(2)
	if q.Rank() != 4 || k.Rank() != 4 || v.Rank() != 4 {
		c.fail(ir.Shapef("queries are %s, keys %s and values %s: they must have four axes", q.Shape(), k.Shape(), v.Shape()))
		return ir.Value{}
	}
	n, _ := q.Dim(3).Const()
	scale := math.Sqrt(c.float("scale", 1/math.Sqrt(float64(max(n, 1)))))
	k, shared := shareHeads(c, k, q.Dim(1)), shareHeads(c, v, q.Dim(1))
	scores := ops.MatMul(c.b, scaled(c, q, scale), ops.SwapAxes(c.b, scaled(c, k, scale), 2, 3))
	d := c.element("softmax_precision", Float).DType()
	if q.DType() == ir.F64 && !c.hasAttr("softmax_precision") {
		d = ir.F64
	}
	scores = modified(c, ops.Convert(c.b, scores, d), "score_mod")
	weights := modified(c, ops.Softmax(c.b, scores, 3), "prob_mod")
	return c.like(ops.MatMul(c.b, weights, ops.Convert(c.b, shared, d)), v)
}

// modified runs a graph of one input and one output on x, if the node has it.
func modified(c *call, x ir.Value, name string) ir.Value {
	if !c.hasAttr(name) {
		return x
	}
	y := bodyOf(c, name)
	if y == nil {
		return x
	}
	out := y.run(c.b, nil, []*value{placed(c.b, x, elementOf(x.DType()))})
	if len(out) != 1 || out[0].isList() {
		c.fail(damaged("graph %q has %d outputs: it must have one, a tensor", name, len(out)))
		return x
	}
	return c.emit(out[0])
}
