package nn

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Regression adds the elements of a batch to the errors of a regression, which the device keeps in the state
// "metric/regression/name", f32[5]: the sum of weights, the mean of the targets, the sum of their squared
// distances to it, and the sums of absolute and squared errors. rlx.Fit reports "name mae", the mean absolute error, "name rmse",
// the root of the mean squared error, and "name r2", the coefficient of determination: those of scikit-learn
// over all elements. predictions and targets are floats of one shape. weights, of the targets' shape, count an element as
// that many; 0 leaves it out. Errors are recorded in b: of kind [ir.ErrShape], [ir.ErrDType], [ir.ErrName], and
// [ir.ErrAttr] for a second value of weights.
func Regression(b *ir.Builder, name string, predictions, targets ir.Value, weights ...ir.Value) {
	in := append([]ir.Value{predictions, targets}, weights...)
	if !checkRegression(b, name, in) {
		return
	}
	f32 := func(x ir.Value) ir.Value { return ops.Convert(b, ops.StopGradient(b, x), ir.F32) }
	y := f32(targets)
	e := ops.Sub(b, f32(predictions), y)
	w := ops.Const(b, ir.F32, 1)
	if len(weights) > 0 {
		w = f32(weights[0])
	}
	w = ops.BroadcastTo(b, w, y.Shape())
	sum := func(x ir.Value) ir.Value { return ops.ReduceSum(b, ops.Mul(b, w, x)) }
	n := ops.ReduceSum(b, w)
	mean := ratio(b, sum(y), n)
	spread := sum(ops.Square(b, ops.Sub(b, y, mean)))
	absolute, squared := sum(ops.Abs(b, e)), sum(ops.Square(b, e))
	b.Unscoped(func() {
		state := MetricRegressionPrefix + name
		old := b.State(state, ir.F32, ir.N(5))
		part := func(i int) ir.Value {
			return ops.Reshape(b, ops.SliceAxis(b, old, 0, ir.N(i), ir.N(1)))
		}
		// The mean and the squared distances of both together (Chan, Golub and LeVeque, 1979).
		total, difference := ops.Add(b, part(0), n), ops.Sub(b, mean, part(1))
		share := ratio(b, n, total)
		between := ops.Mul(b, ops.Square(b, difference), ops.Mul(b, part(0), share))
		b.SetState(state, ops.Stack(b, 0, total, ops.Add(b, part(1), ops.Mul(b, difference, share)),
			ops.Add(b, part(2), ops.Add(b, spread, between)), ops.Add(b, part(3), absolute), ops.Add(b, part(4), squared)))
	})
}

// ratio returns x/y, and 0 where y is 0.
func ratio(b *ir.Builder, x, y ir.Value) ir.Value {
	zero := ops.Const(b, ir.F32, 0)
	none := ops.Eq(b, y, zero)
	return ops.Select(b, none, zero, ops.Div(b, x, ops.Select(b, none, ops.Const(b, ir.F32, 1), y)))
}

// checkRegression reports whether predictions, targets and at most one value of weights are floats of one shape. If
// not, it records an error.
func checkRegression(b *ir.Builder, name string, in []ir.Value) bool {
	const op ir.Op = "nn.regression"
	for i, x := range in {
		what := []string{"predictions", "targets", "weights"}[min(i, 2)]
		if !b.Require(op, what, x.Valid()) {
			return false
		}
		switch {
		case !x.DType().IsFloat():
			b.Failf(op, in, ir.DTypef("the %s of metric %q are %s: they must be floats", what, name, x.Type()))
		case !x.Shape().Equal(in[0].Shape()):
			b.Failf(op, in, ir.Shapef("the %s of metric %q are %s, its predictions %s: they must have one shape", what, name, x.Type(), in[0].Type()))
		}
	}
	switch {
	case name == "":
		b.Failf(op, in, ir.Errorf(ir.ErrName, "the name is empty: it must not be"))
	case len(in) > 3:
		b.Failf(op, in, ir.Attrf("metric %q has %d values of weights: it may have one", name, len(in)-2))
	}
	return b.Err() == nil
}
