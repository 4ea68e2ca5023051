package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Composite reductions.
const (
	OpVar          ir.Op = "var"
	OpStd          ir.Op = "std"
	OpNorm         ir.Op = "norm"
	OpAll          ir.Op = "all"
	OpAny          ir.Op = "any"
	OpCountNonzero ir.Op = "count_nonzero"
	OpBincount     ir.Op = "bincount"
	OpHistogram    ir.Op = "histogram"
)

// VarAttrs hold the axes and the correction: the divisor is the number of elements minus
// Correction, 1 for the unbiased estimate.
type VarAttrs struct {
	AxesAttrs
	Correction int
}

// Visit shows the attributes.
func (a *VarAttrs) Visit(v ir.AttrVisitor) {
	a.AxesAttrs.Visit(v)
	v.Int("correction", &a.Correction)
}

// NormOrderAttrs hold the axes and the order of a norm.
type NormOrderAttrs struct {
	AxesAttrs
	Order float64
}

// Visit shows the attributes.
func (a *NormOrderAttrs) Visit(v ir.AttrVisitor) {
	a.AxesAttrs.Visit(v)
	v.Float("order", &a.Order)
}

func init() {
	axesDoc := "the axes are distinct axes of x; the result has the others, in order"
	newVar := func() ir.Attrs { return &VarAttrs{} }
	defineComposite(composite{
		op: OpVar, doc: "The variance along some axes: the sum of squared deviations from the mean divided by n − correction. It is computed " +
			"in two passes, and in f32 for narrower types.",
		types: floats, newAttrs: newVar, constraints: []string{axesDoc}, check: checkReduced, reduces: namedAxes,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value { return inWide(b, in[0], variance(n)) },
	})
	defineComposite(composite{
		op: OpStd, doc: "The standard deviation, the square root of var. The derivative where all elements are equal is 0.",
		types: floats, newAttrs: newVar, constraints: []string{axesDoc}, check: checkReduced, reduces: namedAxes,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return Convert(b, Sqrt(b, variance(n)(b, wide(b, in[0]))), in[0].DType())
		},
	})
	defineComposite(composite{
		op: OpNorm, doc: "The norm (Σ|x|^order)^(1/order) along some axes: for order 2 the Euclidean norm, for ±∞ the largest and smallest " +
			"|x|, for 0 the number of nonzero elements. Its derivative where all are 0 is 0.",
		reduces: namedAxes,
		types:   floats, newAttrs: func() ir.Attrs { return &NormOrderAttrs{Order: 2} }, constraints: []string{axesDoc, "order is a number"},
		check: func(n *ir.Node) error {
			if math.IsNaN(n.Attrs().(*NormOrderAttrs).Order) {
				return ir.Attrf("order is NaN, not a number")
			}
			return checkReduced(n)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value { return inWide(b, in[0], norm(n)) },
	})
	for _, l := range []struct {
		op   ir.Op
		doc  string
		body func(b *ir.Builder, nonzero ir.Value, axes []int) ir.Value
	}{
		{OpAll, "Whether all elements along some axes are true, or nonzero; true for no elements.", func(b *ir.Builder, x ir.Value, axes []int) ir.Value {
			smallest := b.Add1(OpReduceMin, &AxesAttrs{axes}, x) // the largest integer for no elements
			return Gt(b, smallest, ZerosLike(b, smallest))
		}},
		{OpAny, "Whether any element along some axes is true, or nonzero; false for no elements.", func(b *ir.Builder, x ir.Value, axes []int) ir.Value {
			largest := b.Add1(OpReduceMax, &AxesAttrs{axes}, x)
			return Gt(b, largest, ZerosLike(b, largest))
		}},
		{OpCountNonzero, "The number of elements along some axes that are true, or nonzero, i32.", sumOver},
	} {
		defineComposite(composite{
			op: l.op, doc: l.doc, types: plain, newAttrs: func() ir.Attrs { return &AxesAttrs{} },
			constraints: []string{axesDoc}, check: checkReduced, reduces: namedAxes, noGrad: "boolean or integer result",
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				nonzero := Convert(b, Ne(b, in[0], ZerosLike(b, in[0])), ir.I32)
				return l.body(b, nonzero, axesOf(n))
			},
		})
	}
	defineBins()
}

// checkReduced reports an error unless the attributes name axes of x.
func checkReduced(n *ir.Node) error { return checkAxes(namedAxes(n), n.Input(0).Rank()) }

func variance(n *ir.Node) func(b *ir.Builder, x ir.Value) ir.Value {
	a := n.Attrs().(*VarAttrs)
	return func(b *ir.Builder, x ir.Value) ir.Value {
		size := DimSize(b, x.DType(), pick(x.Shape(), a.Axes)...)
		mean := func(x, count ir.Value) ir.Value { return Div(b, sumOver(b, x, a.Axes), count) }
		centred := Sub(b, x, ExpandDims(b, mean(x, size), a.Axes...))
		return mean(Square(b, centred), Sub(b, size, ConstLike(b, size, float64(a.Correction))))
	}
}

func norm(n *ir.Node) func(b *ir.Builder, x ir.Value) ir.Value {
	a := n.Attrs().(*NormOrderAttrs)
	return func(b *ir.Builder, x ir.Value) ir.Value {
		switch a.Order {
		case 0:
			return sumOver(b, Convert(b, Ne(b, x, ZerosLike(b, x)), x.DType()), a.Axes)
		case 1:
			return sumOver(b, Abs(b, x), a.Axes)
		case 2:
			return Sqrt(b, sumOver(b, Square(b, x), a.Axes))
		case math.Inf(1):
			return b.Add1(OpReduceMax, &a.AxesAttrs, Abs(b, x))
		case math.Inf(-1):
			return b.Add1(OpReduceMin, &a.AxesAttrs, Abs(b, x))
		}
		s := sumOver(b, Pow(b, Abs(b, x), ConstLike(b, x, a.Order)), a.Axes)
		return Pow(b, s, ConstLike(b, s, 1/a.Order))
	}
}

// reducedAlong returns the axes of a reduction, all if none is given.
func reducedAlong(x ir.Value, axes []int) AxesAttrs {
	if len(axes) == 0 {
		return AxesAttrs{counting(0, x.Rank())}
	}
	return AxesAttrs{fromFront(axes, x.Rank())}
}

// Var returns the variance of x along the given axes, or all if none is given: the sum of
// squared deviations divided by the number of elements minus correction.
func Var(b *ir.Builder, x ir.Value, correction int, axes ...int) ir.Value {
	return b.Add1(OpVar, &VarAttrs{reducedAlong(x, axes), correction}, x)
}

// Std returns the standard deviation, the square root of [Var].
func Std(b *ir.Builder, x ir.Value, correction int, axes ...int) ir.Value {
	return b.Add1(OpStd, &VarAttrs{reducedAlong(x, axes), correction}, x)
}

// Norm returns the norm (Σ|x|^order)^(1/order) along the given axes, or all if none is
// given; order may be infinite or 0, as in numpy.linalg.norm.
func Norm(b *ir.Builder, x ir.Value, order float64, axes ...int) ir.Value {
	return b.Add1(OpNorm, &NormOrderAttrs{reducedAlong(x, axes), order}, x)
}

// All returns whether all elements along the given axes, or all axes if none is given, are
// true, or nonzero.
func All(b *ir.Builder, x ir.Value, axes ...int) ir.Value { return reduced(b, OpAll, x, axes) }

// Any returns whether any element along the given axes, or all axes if none is given, is
// true, or nonzero.
func Any(b *ir.Builder, x ir.Value, axes ...int) ir.Value { return reduced(b, OpAny, x, axes) }

// CountNonzero returns the number of true, or nonzero, elements along the given axes, i32,
// or all axes if none is given.
func CountNonzero(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return reduced(b, OpCountNonzero, x, axes)
}

// KeepDims returns a reduction of x that keeps the reduced axes with size 1, for example
// KeepDims(b, ReduceMax, x, -1). No axes mean all.
func KeepDims(b *ir.Builder, reduce func(b *ir.Builder, x ir.Value, axes ...int) ir.Value, x ir.Value, axes ...int) ir.Value {
	if !b.Require("keep_dims", "reduction", reduce != nil) {
		return ir.Value{}
	}
	along := reducedAlong(x, axes).Axes
	return ExpandDims(b, reduce(b, x, along...), along...)
}

// BinsAttrs hold the number of bins.
type BinsAttrs struct{ Bins int }

// Visit shows the attributes.
func (a *BinsAttrs) Visit(v ir.AttrVisitor) { v.Int("bins", &a.Bins) }

// HistogramAttrs hold the number of bins and the interval they divide.
type HistogramAttrs struct {
	BinsAttrs
	Low, High float64
}

// Visit shows the attributes.
func (a *HistogramAttrs) Visit(v ir.AttrVisitor) {
	a.BinsAttrs.Visit(v)
	v.Float("low", &a.Low)
	v.Float("high", &a.High)
}

func defineBins() {
	positive := func(bins int) error {
		if bins < 0 {
			return ir.Attrf("bins is %d, negative", bins)
		}
		return nil
	}
	defineComposite(composite{
		op: OpBincount, doc: "The counts of 0, 1, …, bins − 1 in x, i32; other elements are ignored. Each element is compared with each bin.",
		types: integers, newAttrs: func() ir.Attrs { return &BinsAttrs{} },
		constraints: []string{"bins is not negative"}, noGrad: "integer result",
		check: func(n *ir.Node) error { return positive(n.Attrs().(*BinsAttrs).Bins) },
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return countBins(b, in[0], n.Attrs().(*BinsAttrs).Bins)
		},
	})
	defineComposite(composite{
		op: OpHistogram, doc: "The counts of elements of x in bins that divide [low, high] evenly, i32: a bin includes its lower edge, the " +
			"last one both edges; elements outside are ignored (numpy.histogram). Each element is compared with each bin.",
		types: floats, newAttrs: func() ir.Attrs { return &HistogramAttrs{BinsAttrs{10}, 0, 1} },
		constraints: []string{"bins is positive and low below high"}, noGrad: "integer result",
		check: func(n *ir.Node) error {
			a := n.Attrs().(*HistogramAttrs)
			if a.Bins < 1 || !(a.Low < a.High) || math.IsInf(a.High-a.Low, 0) {
				return ir.Attrf("bins is %d, low %v and high %v: bins must be positive, and low and high finite and low below high", a.Bins, a.Low, a.High)
			}
			return nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a, x := n.Attrs().(*HistogramAttrs), StopGradient(b, wide(b, in[0]))
			low, high := ConstLike(b, x, a.Low), ConstLike(b, x, a.High)
			place := Floor(b, Mul(b, Sub(b, x, low), ConstLike(b, x, float64(a.Bins)/(a.High-a.Low))))
			bin := Min(b, Convert(b, place, ir.I32), Const(b, ir.I32, float64(a.Bins-1), x.Shape()...))
			inside := And(b, Ge(b, x, low), Le(b, x, high))
			return Bincount(b, Select(b, inside, bin, ConstLike(b, bin, -1)), a.Bins)
		},
	})
}

func countBins(b *ir.Builder, x ir.Value, bins int) ir.Value {
	flat := Reshape(b, x, x.Shape().Size())
	return ReduceSum(b, Convert(b, OneHot(b, flat, ir.N(bins), ir.Bool), ir.I32), 0)
}

// Bincount returns the counts of 0, 1, …, bins − 1 in integers x, i32[bins]. Other
// elements are ignored.
func Bincount(b *ir.Builder, x ir.Value, bins int) ir.Value {
	return b.Add1(OpBincount, &BinsAttrs{bins}, x)
}

// Histogram returns the counts of elements of x in bins that divide [low, high] evenly,
// i32[bins], as numpy.histogram.
func Histogram(b *ir.Builder, x ir.Value, bins int, low, high float64) ir.Value {
	return b.Add1(OpHistogram, &HistogramAttrs{BinsAttrs{bins}, low, high}, x)
}
