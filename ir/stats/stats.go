// Package stats has statistics over a builder: reductions that leave NaN out, covariances and
// correlations, distances, and order statistics. They compose ops, so derivatives of every order exist.
// Values are floats, and are computed in f32 where they are narrower. Negative axes count from the last.
// Errors are recorded in the builder: of kind [ir.ErrShape] for a wrong shape, [ir.ErrDType] for a wrong
// element type and [ir.ErrAttr] for numbers outside their domain. [ops.Mean], [ops.Var], [ops.Median] and
// [ops.Quantile] are in package ops.
package stats

import (
	"math"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// floats checks a float operand and returns it in the type in which it is computed.
func floats(b *ir.Builder, op ir.Op, x ir.Value) (wide ir.Value, c argument.Check, ok bool) {
	if c, ok = argument.Of(b, "stats."+op, x); !ok || !c.Floats() {
		return ir.Value{}, c, false
	}
	return ops.Convert(b, x, argument.Wide(x.DType())), c, true
}

// known returns x with other where it is NaN.
func known(b *ir.Builder, x ir.Value, other float64) ir.Value {
	return ops.Select(b, ops.IsNaN(b, x), ops.ConstLike(b, x, other), x)
}

// count returns the number of elements along axes that are not NaN, of the type of x.
func count(b *ir.Builder, x ir.Value, axes []int) ir.Value {
	return ops.ReduceSum(b, ops.Convert(b, ops.Not(b, ops.IsNaN(b, x)), x.DType()), axes...)
}

// NanSum returns the sum of the elements that are not NaN, along the given axes or all if none is given:
// 0 where all are (numpy.nansum). The derivative by a NaN is 0.
func NanSum(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	wide, _, ok := floats(b, "nan_sum", x)
	if !ok {
		return ir.Value{}
	}
	return ops.Convert(b, ops.ReduceSum(b, known(b, wide, 0), axes...), x.DType())
}

// NanMean returns the mean of the elements that are not NaN, along the given axes or all if none is
// given: NaN where all are (numpy.nanmean).
func NanMean(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	wide, _, ok := floats(b, "nan_mean", x)
	if !ok {
		return ir.Value{}
	}
	return ops.Convert(b, ops.Div(b, ops.ReduceSum(b, known(b, wide, 0), axes...), count(b, wide, axes)), x.DType())
}

// NanVar returns the variance of the elements that are not NaN, along the given axes or all if none is
// given: the sum of squared deviations divided by their number minus correction (numpy.nanvar with ddof,
// whose default is 0). It is NaN where no more elements than correction are left.
func NanVar(b *ir.Builder, x ir.Value, correction int, axes ...int) ir.Value {
	wide, _, ok := floats(b, "nan_var", x)
	if !ok {
		return ir.Value{}
	}
	return ops.Convert(b, nanVar(b, wide, correction, axes), x.DType())
}

func nanVar(b *ir.Builder, x ir.Value, correction int, axes []int) ir.Value {
	sum := func(x ir.Value) ir.Value { return ops.KeepDims(b, ops.ReduceSum, x, axes...) }
	n := ops.KeepDims(b, func(b *ir.Builder, x ir.Value, axes ...int) ir.Value { return count(b, x, axes) }, x, axes...)
	least := ops.OnesLike(b, n)
	mean := ops.Div(b, sum(known(b, x, 0)), ops.Max(b, n, least))
	squares := ops.ReduceSum(b, ops.Square(b, known(b, ops.Sub(b, x, mean), 0)), axes...)
	left := count(b, x, axes)
	freedom := ops.Sub(b, left, ops.ConstLike(b, left, float64(correction)))
	positive := ops.Gt(b, freedom, ops.ZerosLike(b, freedom))
	return ops.Div(b, squares, ops.Select(b, positive, freedom, ops.ConstLike(b, freedom, math.NaN())))
}

// NanStd returns the square root of [NanVar] (numpy.nanstd). The derivative where all elements are equal
// is 0.
func NanStd(b *ir.Builder, x ir.Value, correction int, axes ...int) ir.Value {
	wide, _, ok := floats(b, "nan_std", x)
	if !ok {
		return ir.Value{}
	}
	v := nanVar(b, wide, correction, axes)
	zero := ops.Eq(b, v, ops.ZerosLike(b, v))
	root := ops.Sqrt(b, ops.Select(b, zero, ops.OnesLike(b, v), v))
	return ops.Convert(b, ops.Select(b, zero, ops.ZerosLike(b, v), root), x.DType())
}

// NanMin returns the smallest element that is not NaN, along the given axes or all if none is given: NaN
// where all are (numpy.nanmin).
func NanMin(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return nanExtreme(b, "nan_min", x, axes, math.Inf(1), ops.ReduceMin)
}

// NanMax is [NanMin] for the largest element (numpy.nanmax).
func NanMax(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return nanExtreme(b, "nan_max", x, axes, math.Inf(-1), ops.ReduceMax)
}

func nanExtreme(b *ir.Builder, op ir.Op, x ir.Value, axes []int, none float64, reduce func(*ir.Builder, ir.Value, ...int) ir.Value) ir.Value {
	if _, _, ok := floats(b, op, x); !ok {
		return ir.Value{}
	}
	y := reduce(b, known(b, x, none), axes...)
	return ops.Select(b, ops.All(b, ops.IsNaN(b, x), axes...), ops.ConstLike(b, y, math.NaN()), y)
}

// Cov returns the covariances of variables, [..., variables, observations], each of which is a row:
// [..., variables, variables], with sums divided by observations − correction, as numpy.cov and torch.cov, whose
// correction is 1.
func Cov(b *ir.Builder, x ir.Value, correction int) ir.Value {
	wide, c, ok := floats(b, "cov", x)
	if !ok {
		return ir.Value{}
	}
	return ops.Convert(b, cov(c, wide, correction), x.DType())
}

func cov(c argument.Check, x ir.Value, correction int) ir.Value {
	b := c.Builder
	if !c.Shape(x.Rank() >= 2, "x is %s: it must be [..., variables, observations]", x.Type()) {
		return ir.Value{}
	}
	n := c.Size(x, -1, "x")
	if !c.Attr(correction >= 0 && correction < n, "correction is %d: it must be in [0, %d), the number of observations", correction, n) {
		return ir.Value{}
	}
	d := ops.Sub(b, x, ops.KeepDims(b, ops.Mean, x, -1))
	sums := ops.MatMul(b, d, ops.SwapAxes(b, d, -1, -2))
	return ops.Div(b, sums, ops.ConstLike(b, sums, float64(n-correction)))
}

// CorrCoef returns Pearson's correlations of variables, [..., variables, observations]: [Cov] divided by
// both standard deviations, and clamped to [−1, 1], as numpy.corrcoef and torch.corrcoef. It is NaN for a constant variable.
func CorrCoef(b *ir.Builder, x ir.Value) ir.Value {
	wide, c, ok := floats(b, "corr_coef", x)
	if !ok {
		return ir.Value{}
	}
	y := cov(c, wide, 0)
	if b.Err() != nil {
		return ir.Value{}
	}
	deviation := ops.Std(b, wide, 0, -1)
	y = ops.Div(b, ops.Div(b, y, ops.ExpandDims(b, deviation, -1)), ops.ExpandDims(b, deviation, -2))
	return ops.Convert(b, ops.Clamp(b, y, ops.ConstLike(b, y, -1), ops.ConstLike(b, y, 1)), x.DType())
}

// CDist returns the distances between the rows of x, [..., n, size], and those of y, [..., m, size]: [...,
// n, m], by the norm of order p (torch.cdist): 2 is Euclid's, 1 the sum of absolute differences, ∞ the
// largest one, and 0 the number of elements that differ. Batch axes are broadcast. Differences are taken
// first, so that near points keep their distance. The derivative at equal rows is 0.
func CDist(b *ir.Builder, x, y ir.Value, p float64) ir.Value {
	c, ok := argument.Of(b, "stats.cdist", x, y)
	if !ok || !c.Floats() {
		return ir.Value{}
	}
	c.Attr(p >= 0, "p is %v: it must not be negative", p)
	c.Shape(x.Rank() >= 2 && y.Rank() >= 2 && x.Dim(-1) == y.Dim(-1), "x is %s and y %s: they must be [..., n, size] and [..., m, size]", x.Type(), y.Type())
	if b.Err() != nil {
		return ir.Value{}
	}
	d := argument.Wide(x.DType())
	difference := ops.Sub(b, ops.ExpandDims(b, ops.Convert(b, x, d), -2), ops.ExpandDims(b, ops.Convert(b, y, d), -3))
	return ops.Convert(b, ops.Norm(b, difference, p, -1), x.DType())
}

// ArgPartition returns indices, i32, along axis such that element k is where a sort would put it, none
// before is larger and none after smaller (numpy.argpartition). NaN is the largest. The indices are those of a stable
// sort; where only k elements are wanted, [ops.TopK] is faster.
func ArgPartition(b *ir.Builder, x ir.Value, k, axis int) ir.Value {
	c, ok := argument.Of(b, "stats.arg_partition", x)
	if !ok {
		return ir.Value{}
	}
	axis = c.Axis(axis, x.Rank())
	if n, known := x.Dim(axis).Const(); known {
		c.Attr(k >= 0 && k < n, "k is %d: it must be in [0, %d), the size of axis %d", k, n, axis)
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.ArgSort(b, x, ops.SortAttrs{Axis: axis})
}

// KthSmallest returns the element of rank k along axis, counted from 0, and its index, i32, without the
// axis (torch.kthvalue with k + 1). NaN is the largest. Of equal elements the first comes first.
func KthSmallest(b *ir.Builder, x ir.Value, k, axis int) (value, index ir.Value) {
	c, ok := argument.Of(b, "stats.kth_smallest", x)
	if !ok {
		return value, index
	}
	axis = c.Axis(axis, x.Rank())
	if n, known := x.Dim(axis).Const(); known {
		c.Attr(k >= 0 && k < n, "k is %d: it must be in [0, %d), the size of axis %d", k, n, axis)
	}
	if b.Err() != nil {
		return value, index
	}
	value, index = ops.TopK(b, x, ops.TopKAttrs{K: k + 1, Axis: axis, Smallest: true})
	last := func(x ir.Value) ir.Value { return ops.Squeeze(b, ops.SliceAxis(b, x, axis, ir.N(k), ir.N(1)), axis) }
	return last(value), last(index)
}
