package nn

import (
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// AUCBins is the number of bins of the scores of [AUC].
const AUCBins = 200

// CalibrationBins is the number of bins of the scores of [Calibration].
const CalibrationBins = 10

const opAUC ir.Op = "nn.auc"

// AUC adds the examples of a batch to histograms of the scores, in [0, 1], of examples with label 0
// and with another label, an integer. The device keeps them in the state "metric/name",
// f32[2, AUCBins]; rlx.Fit reports the area under the curve of true against false positives. Two
// scores in one bin count as equal, and scores outside [0, 1] are ignored. scores and labels have one shape.
//
// If scores are [..., classes] and labels [...], each class is held against all others, in a state
// f32[classes, 2, AUCBins], and the metric is the mean of the areas over the classes with both kinds of
// examples: that of scikit-learn with multi_class="ovr" and average="macro". Errors are recorded in b: of
// kind [ir.ErrShape], [ir.ErrDType], [ir.ErrName].
func AUC(b *ir.Builder, name string, scores, labels ir.Value) {
	if !checkScores(b, opAUC, name, scores, labels) {
		return
	}
	x := ops.Convert(b, ops.StopGradient(b, scores), ir.F32)
	if scores.Rank() > labels.Rank() {
		addAreas(b, name, x, labels)
		return
	}
	negative, outside := ops.Eq(b, labels, ops.Const(b, labels.DType(), 0)), ops.Const(b, ir.F32, -1)
	count := func(which ir.Value) ir.Value {
		return ops.Convert(b, ops.Histogram(b, ops.Select(b, which, x, outside), AUCBins, 0, 1), ir.F32)
	}
	addSums(b, MetricPrefix+name, ops.Stack(b, 0, count(negative), count(ops.Not(b, negative))))
}

// addAreas adds histograms of the scores x, [..., classes], of the examples of other classes and of each class.
func addAreas(b *ir.Builder, name string, x, labels ir.Value) {
	classes, ok := x.Dim(-1).Const()
	if !ok {
		b.Failf(opAUC, []ir.Value{x, labels}, ir.Errorf(ir.ErrSymbol, "the classes of metric %q are %s: they must be a number", name, x.Dim(-1)))
		return
	}
	i32 := func(n int) ir.Value { return ops.Const(b, ir.I32, float64(n)) }
	isOf := ops.Convert(b, ops.OneHot(b, ops.Convert(b, labels, ir.I32), ir.N(classes), ir.I32), ir.I32)
	inside := ops.And(b, ops.Ge(b, x, ops.Const(b, ir.F32, 0)), ops.Le(b, x, ops.Const(b, ir.F32, 1)))
	bin := ops.Min(b, ops.Convert(b, ops.Mul(b, ops.Select(b, inside, x, ops.Const(b, ir.F32, 0)), ops.Const(b, ir.F32, AUCBins)), ir.I32), i32(AUCBins-1))
	class := ops.Iota(b, ir.I32, -1, x.Shape()...)
	cell := ops.Add(b, ops.Mul(b, ops.Add(b, ops.Mul(b, class, i32(2)), isOf), i32(AUCBins)), bin)
	counts := ops.Bincount(b, ops.Select(b, inside, cell, i32(-1)), classes*2*AUCBins)
	addSums(b, MetricPrefix+name, ops.Reshape(b, ops.Convert(b, counts, ir.F32), ir.Dims(classes, 2, AUCBins)...))
}

// Calibration adds the examples of a batch to bins of the probability that the model gives its prediction, for
// scores [..., classes] that are probabilities, such as a softmax, and labels [...], or that it gives to a label other than 0, if scores
// and labels have one shape. The device keeps the number of examples of each bin, their sum of probabilities and the number whose prediction is
// right in the state "metric/calibration/name", f32[3, CalibrationBins]. rlx.Fit reports "name ece", the expected calibration
// error: the mean over the examples of the distance between probability and frequency of their bin (Guo et al., On
// Calibration of Modern Neural Networks). Bins are of one width, each with its upper end, and probabilities outside [0, 1] are
// ignored. The errors are those of [AUC].
func Calibration(b *ir.Builder, name string, scores, labels ir.Value) {
	if !checkScores(b, "nn.calibration", name, scores, labels) {
		return
	}
	p, of := ops.Convert(b, ops.StopGradient(b, scores), ir.F32), ops.Convert(b, labels, ir.I32)
	isRight := ops.Ne(b, of, ops.Const(b, ir.I32, 0))
	if scores.Rank() > labels.Rank() {
		isRight = ops.Eq(b, ops.ArgMax(b, p, -1), of)
		p = ops.ReduceMax(b, p, -1)
	}
	if p.Rank() == 0 { // a single example
		p, isRight = ops.ExpandDims(b, p, 0), ops.ExpandDims(b, isRight, 0)
	}
	f32 := func(x float64) ir.Value { return ops.Const(b, ir.F32, x) }
	inside := ops.And(b, ops.Ge(b, p, f32(0)), ops.Le(b, p, f32(1)))
	p = ops.Select(b, inside, p, f32(0))
	bin := ops.Max(b, ops.Sub(b, ops.Ceil(b, ops.Mul(b, p, f32(CalibrationBins))), f32(1)), f32(0))
	bin = ops.Select(b, inside, ops.Convert(b, bin, ir.I32), ops.Const(b, ir.I32, -1))
	hot := ops.OneHot(b, bin, ir.N(CalibrationBins), ir.F32)
	axes := permute.Counting(0, p.Rank())
	sum := func(x ir.Value) ir.Value {
		return ops.ReduceSum(b, ops.Mul(b, hot, ops.ExpandDims(b, x, -1)), axes...)
	}
	one := ops.BroadcastTo(b, f32(1), p.Shape())
	addSums(b, MetricCalibrationPrefix+name, ops.Stack(b, 0, sum(one), sum(p), sum(ops.Convert(b, isRight, ir.F32))))
}

// checkScores is [checkLabelled] for scores that are floats, and may have an axis of classes more than the labels.
func checkScores(b *ir.Builder, op ir.Op, name string, scores, labels ir.Value) bool {
	if !b.Require(op, "value", scores.Valid() && labels.Valid()) {
		return false
	}
	rank := scores.Rank()
	if rank == labels.Rank()+1 {
		if rank--; scores.Dim(-1).Is(1) {
			b.Failf(op, []ir.Value{scores, labels}, ir.Shapef("the scores of metric %q are %s, of one class: they must be of two or more, or have the shape of the labels", name, scores.Type()))
			return false
		}
	}
	return checkLabelled(b, op, name, scores, labels, rank, floatKind)
}
