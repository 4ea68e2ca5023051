package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// OpCrossEntropy is the loss of a classifier.
const OpCrossEntropy ir.Op = "cross_entropy"

func init() {
	define(&ir.Def{
		Op: OpCrossEntropy,
		Doc: "logsumexp(logits) - logits[label] along the class axis: the negative logarithm of the probability " +
			"that softmax gives to the label. A label outside the classes is an error when the graph runs.",
		Constraints: numbered(
			"logits are of a float type, axis is one of their axes",
			"labels are integers; their shape is that of logits without the axis, and so is that of the result",
		),
		Operands:    []string{"logits", "labels"},
		NewAttrs:    func() ir.Attrs { return &AxisAttrs{} },
		Infer:       inferCrossEntropy,
		NoTranspose: notLinear,
		Body:        crossEntropyBody,
	})
}

// CrossEntropy returns −log softmax(logits)[label] of each example, for logits [...,
// classes] of a float type and integer labels [...]. A label outside [0, classes) is an
// error of kind [ir.ErrIndex] when the graph runs.
func CrossEntropy(b *ir.Builder, logits, labels ir.Value) ir.Value {
	return b.Add1(OpCrossEntropy, axisAttrs(logits, -1), logits, labels)
}

// CrossEntropyMean returns the mean of [CrossEntropy] over all examples, of rank 0.
func CrossEntropyMean(b *ir.Builder, logits, labels ir.Value) ir.Value {
	return Mean(b, CrossEntropy(b, logits, labels))
}

func inferCrossEntropy(n *ir.Node) ([]ir.Type, error) {
	t, err := inferAlongAxis(n)
	if err != nil {
		return nil, err
	}
	labels, shape := n.Input(1).Type(), withoutDim(t[0].Shape, n.Attrs().(*AxisAttrs).Axis)
	if err := integers.check(labels.DType); err != nil {
		return nil, err
	}
	if !labels.Shape.Equal(shape) {
		return nil, ir.Shapef("labels are %s, logits without the class axis %s", labels.Shape, shape)
	}
	return []ir.Type{{DType: t[0].DType, Shape: shape}}, nil
}

// crossEntropyBody selects the label's logit by comparing class numbers instead of a
// gather: so the loss and its gradient take one pass over the rows.
func crossEntropyBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	axis, logits := n.Attrs().(*AxisAttrs).Axis, wide(b, in[0])
	labels := CheckIndex(b, in[1], logits.Dim(axis), "label")
	wide := BroadcastInDim(b, Convert(b, labels, ir.I32), slices.Clone(logits.Shape()), otherAxes(logits.Rank(), []int{axis}))
	hit := Eq(b, Iota(b, ir.I32, axis, logits.Shape()...), wide)
	picked := ReduceSum(b, Select(b, hit, logits, ZerosLike(b, logits)), axis)
	return []ir.Value{Convert(b, Sub(b, LogSumExp(b, logits, axis), picked), in[0].DType())}
}
