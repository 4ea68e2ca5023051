package nn

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Prefixes of the states of metrics.
const (
	// MetricPrefix is the prefix of the states of [Metric], [Confusion] and [AUC].
	MetricPrefix = "metric/"
	// MetricExpPrefix is the prefix of the states of means whose exponential is reported, as of
	// [Perplexity].
	MetricExpPrefix = MetricPrefix + "exp/"
	// MetricRegressionPrefix is the prefix of the states of [Regression].
	MetricRegressionPrefix = MetricPrefix + "regression/"
	// MetricCalibrationPrefix is the prefix of the states of [Calibration].
	MetricCalibrationPrefix = MetricPrefix + "calibration/"
)

// Metric adds v, of rank 0 and a float or integer type, to the mean of the metric name, which the
// device keeps in the state "metric/name", f32[2]: the sum and the number of runs. rlx.Fit reads
// the mean at each report and begins a new one. A weight, a number of rank 0 such as the number of rows of the batch,
// makes the mean one of all examples where batches, or those of the ranks of a training, differ in size: the state, f32[1,2], is then the
// sum of v times its weight and that of the weights. A batch of weight 0 counts for nothing, also if v is NaN. Errors are recorded in b: of kind [ir.ErrShape] or
// [ir.ErrDType] for another type, [ir.ErrName] for an empty name or one that is taken, [ir.ErrAttr] for a second weight.
func Metric(b *ir.Builder, name string, v ir.Value, weight ...ir.Value) {
	addMean(b, "nn.metric", MetricPrefix, name, v, weight...)
}

// Perplexity adds the loss, the mean cross-entropy of a batch as f32 of rank 0, to the metric
// "perplexity": the exponential of the mean loss. The errors are those of [Metric].
func Perplexity(b *ir.Builder, loss ir.Value) {
	addMean(b, "nn.perplexity", MetricExpPrefix, "perplexity", loss)
}

func addMean(b *ir.Builder, op ir.Op, prefix, name string, v ir.Value, weight ...ir.Value) {
	in := append([]ir.Value{v}, weight...)
	for _, x := range in {
		if !b.Require(op, "value", x.Valid()) {
			return
		}
	}
	if name == "" {
		b.Failf(op, in, ir.Errorf(ir.ErrName, "the name is empty: it must not be"))
	}
	if len(weight) > 1 {
		b.Failf(op, in, ir.Attrf("metric %q has %d weights: it may have one", name, len(weight)))
	}
	for i, x := range in {
		what := []string{"", "the weight of "}[min(i, 1)]
		switch d := x.DType(); {
		case x.Rank() != 0:
			b.Failf(op, in, ir.Shapef("%smetric %q is %s: it must be of rank 0", what, name, x.Type()))
		case !d.IsFloat() && !d.IsInteger():
			b.Failf(op, in, ir.DTypef("%smetric %q is %s: it must be a number", what, name, x.Type()))
		}
	}
	if b.Err() != nil {
		return
	}
	sum, n := ops.Convert(b, v, ir.F32), ops.Const(b, ir.F32, 1)
	if len(weight) > 0 {
		n = ops.Convert(b, weight[0], ir.F32)
		zero := ops.Const(b, ir.F32, 0)
		sum = ops.Select(b, ops.Ne(b, n, zero), ops.Mul(b, sum, n), zero)
	}
	sums := ops.Stack(b, 0, sum, n)
	if len(weight) > 0 { // a state of rank 2 is one of sums over all examples: see autodiff/parallel
		sums = ops.ExpandDims(b, sums, 0)
	}
	addSums(b, prefix+name, sums)
}

// addSums adds now, f32, to a state outside of all scopes. It has no derivative.
func addSums(b *ir.Builder, state string, now ir.Value) {
	b.Unscoped(func() {
		sums := b.State(state, ir.F32, now.Shape()...)
		b.SetState(state, ops.Add(b, sums, ops.StopGradient(b, now)))
	})
}

// Confusion adds the examples of a batch to the confusion matrix name, which the device keeps in
// the state "metric/name", f32[classes, classes]: a row for each label and a column for each
// prediction. predictions and labels are integers of one shape, for example
// ops.ArgMax(b, logits, -1) and the labels; examples with a class outside [0, classes) are ignored.
// rlx.Fit reports the matrix, and the metrics "name accuracy", and "name precision", "name recall" and
// "name f1", their means over the classes, "name balanced accuracy", the mean recall over the classes that labels have, and
// "name mcc", Matthews' correlation coefficient (Gorodkin, 2004). Errors are recorded in b: of kind [ir.ErrAttr] for fewer than two classes,
// [ir.ErrShape], [ir.ErrDType], [ir.ErrName].
func Confusion(b *ir.Builder, name string, predictions, labels ir.Value, classes int) {
	const op ir.Op = "nn.confusion"
	if !checkLabelled(b, op, name, predictions, labels, predictions.Rank(), integerKind) {
		return
	}
	if classes < 2 {
		b.Failf(op, []ir.Value{predictions, labels}, ir.Attrf("classes is %d: it must be 2 or more", classes))
		return
	}
	n := ops.Const(b, ir.I32, float64(classes))
	p, l := ops.Convert(b, predictions, ir.I32), ops.Convert(b, labels, ir.I32)
	zero := ops.Const(b, ir.I32, 0)
	valid := ops.And(b, ops.And(b, ops.Ge(b, p, zero), ops.Lt(b, p, n)), ops.And(b, ops.Ge(b, l, zero), ops.Lt(b, l, n)))
	cell := ops.Select(b, valid, ops.Add(b, ops.Mul(b, l, n), p), ops.Const(b, ir.I32, -1))
	counts := ops.Convert(b, ops.Bincount(b, cell, classes*classes), ir.F32)
	addSums(b, MetricPrefix+name, ops.Reshape(b, counts, ir.Dims(classes, classes)...))
}

// numberKind is a set of element types, with its name in errors.
type numberKind struct {
	holds func(ir.DType) bool
	name  string
}

var (
	integerKind = numberKind{ir.DType.IsInteger, "an integer"}
	floatKind   = numberKind{ir.DType.IsFloat, "a float"}
)

// checkLabelled reports whether the labels are integers in the shape of the first axes of x, rank of them, and
// the element type of x is of a kind. If not, it records an error.
func checkLabelled(b *ir.Builder, op ir.Op, name string, x, labels ir.Value, rank int, kind numberKind) bool {
	if !b.Require(op, "value", x.Valid() && labels.Valid()) {
		return false
	}
	in := []ir.Value{x, labels}
	switch shape := x.Shape()[:rank]; {
	case name == "":
		b.Failf(op, in, ir.Errorf(ir.ErrName, "the name is empty: it must not be"))
	case !kind.holds(x.DType()):
		b.Failf(op, in, ir.DTypef("metric %q is of %s: it must be of %s type", name, x.Type(), kind.name))
	case !labels.DType().IsInteger():
		b.Failf(op, in, ir.DTypef("the labels of metric %q are %s: they must be integers", name, labels.Type()))
	case !shape.Equal(labels.Shape()):
		b.Failf(op, in, ir.Shapef("metric %q is of %s, its labels are %s: they must have the shape %s", name, x.Type(), labels.Type(), shape))
	}
	return b.Err() == nil
}

// checkClasses reports whether the labels are integers in the shape of logits without the last axis, the classes. If not, it
// records an error.
func checkClasses(b *ir.Builder, op ir.Op, logits, labels ir.Value) bool {
	if !b.Require(op, "value", logits.Valid() && labels.Valid()) {
		return false
	}
	in := []ir.Value{logits, labels}
	switch {
	case logits.Rank() == 0:
		b.Failf(op, in, ir.Shapef("logits are %s: they must have an axis of classes", logits.Type()))
	case !labels.DType().IsInteger():
		b.Failf(op, in, ir.DTypef("labels are %s: they must be integers", labels.Type()))
	case !logits.Shape()[:logits.Rank()-1].Equal(labels.Shape()):
		b.Failf(op, in, ir.Shapef("labels are %s and logits %s: labels must have the shape of logits without the last axis", labels.Type(), logits.Type()))
	}
	return b.Err() == nil
}

// Accuracy returns the fraction of examples whose label, an integer [...], is the class of the
// highest score of logits [..., classes]: f32 of rank 0. Errors are recorded in b: of kind [ir.ErrShape] for labels of another
// shape and [ir.ErrDType] for labels that are no integers.
func Accuracy(b *ir.Builder, logits, labels ir.Value) ir.Value {
	if !checkClasses(b, "nn.accuracy", logits, labels) {
		return ir.Value{}
	}
	hit := ops.Eq(b, ops.ArgMax(b, logits, -1), ops.Convert(b, labels, ir.I32))
	return ops.Mean(b, ops.Convert(b, hit, ir.F32))
}

// TopKAccuracy returns the fraction of examples whose label, an integer [...], is among the classes
// of the k highest scores of logits [..., classes]: f32 of rank 0. Classes with the score of the
// label count as lower, those with a score of NaN as higher; a label that is none of the classes is not among them. Errors are recorded in b: those of [Accuracy], and of kind [ir.ErrAttr] for k below 1 or above the
// number of classes.
func TopKAccuracy(b *ir.Builder, logits, labels ir.Value, k int) ir.Value {
	const op ir.Op = "nn.top_k_accuracy"
	if !checkClasses(b, op, logits, labels) {
		return ir.Value{}
	}
	if n, ok := logits.Dim(-1).Const(); k < 1 || ok && k > n {
		b.Failf(op, []ir.Value{logits, labels}, ir.Attrf("k is %d: it must be from 1 to the number of classes, %s", k, logits.Dim(-1)))
		return ir.Value{}
	}
	of := ops.Convert(b, labels, ir.I32)
	score := ops.TakeAlongAxis(b, logits, ops.ExpandDims(b, of, -1), -1, ops.OutsideFill)
	higher := ops.ReduceSum(b, ops.Convert(b, ops.Not(b, ops.Le(b, logits, score)), ir.I32), -1)
	isClass := ops.And(b, ops.Ge(b, of, ops.ZerosLike(b, of)), ops.Lt(b, of, ops.DimSize(b, ir.I32, logits.Dim(-1))))
	return ops.Mean(b, ops.Convert(b, ops.And(b, isClass, ops.Lt(b, higher, ops.Const(b, ir.I32, float64(k)))), ir.F32))
}
