package nn

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// MetricPrefix is the prefix of the states of [Metric].
const MetricPrefix = "metric/"

// Metric adds v, of rank 0 and a float or integer type, to the mean of the metric name, which the
// device keeps in the state "metric/name", f32[2]: the sum and the number of runs. rlx.Fit reads
// the mean at each report and begins a new one. Errors are recorded in b: of kind [ir.ErrShape] or
// [ir.ErrDType] for another type, [ir.ErrName] for an empty name or one that is taken.
func Metric(b *ir.Builder, name string, v ir.Value) {
	const op ir.Op = "nn.metric"
	if !b.Require(op, "value", v.Valid()) {
		return
	}
	in := []ir.Value{v}
	switch d := v.DType(); {
	case name == "":
		b.Failf(op, in, ir.Errorf(ir.ErrName, "the name is empty: it must not be"))
	case v.Rank() != 0:
		b.Failf(op, in, ir.Shapef("metric %q is %s: it must be of rank 0", name, v.Type()))
	case !d.IsFloat() && !d.IsInteger():
		b.Failf(op, in, ir.DTypef("metric %q is %s: it must be a number", name, v.Type()))
	}
	if b.Err() != nil {
		return
	}
	b.Unscoped(func() {
		sums := b.State(MetricPrefix+name, ir.F32, ir.N(2))
		now := ops.Stack(b, 0, ops.StopGradient(b, ops.Convert(b, v, ir.F32)), ops.Const(b, ir.F32, 1))
		b.SetState(MetricPrefix+name, ops.Add(b, sums, now))
	})
}

// Accuracy returns the fraction of examples whose label, an integer [...], is the class of the
// highest score of logits [..., classes]: f32 of rank 0.
func Accuracy(b *ir.Builder, logits, labels ir.Value) ir.Value {
	hit := ops.Eq(b, ops.ArgMax(b, logits, -1), ops.Convert(b, labels, ir.I32))
	return ops.Mean(b, ops.Convert(b, hit, ir.F32))
}
