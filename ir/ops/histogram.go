package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

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
			return countBins(b, Select(b, inside, bin, ConstLike(b, bin, -1)), a.Bins)
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
