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
		samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			return []ir.Sample{
				{Name: "some", Attrs: &BinsAttrs{4}, In: []*ir.Array{ir.Ints(ir.I32, []int64{3, 1, 1, -1, 4, 0, 3, 3}, 2, 4)}},
				{Name: "many", Attrs: &BinsAttrs{70}, In: []*ir.Array{draw(1, ir.U8, 0, 80, 131)}},
				{Name: "none", Attrs: &BinsAttrs{3}, In: []*ir.Array{ir.NewArray(ir.I32, 0)}},
			}
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
		samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			return []ir.Sample{
				{Name: "ends", Attrs: &HistogramAttrs{BinsAttrs{4}, -1, 1}, In: []*ir.Array{
					ir.Floats(ir.F32, []float64{-1, 1, 0, 0.5, -0.2, 2, -3, math.NaN(), math.Inf(1)}),
				}},
				{Name: "matrix", Attrs: &HistogramAttrs{BinsAttrs{7}, -2, 2}, In: []*ir.Array{draw(1, ir.F32, -3, 3, 13, 11)}},
				{Name: "none", Attrs: &HistogramAttrs{BinsAttrs{3}, 0, 1}, In: []*ir.Array{ir.NewArray(ir.F32, 0)}},
			}
		},
	})
}

func countBins(b *ir.Builder, x ir.Value, bins int) ir.Value {
	flat := Reshape(b, x, x.Shape().Size())
	return ReduceSum(b, Convert(b, OneHot(b, flat, ir.N(bins), ir.Bool), ir.I32), 0)
}

func countSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	sample := func(name string, x *ir.Array, axes ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &AxesAttrs{axes}, In: []*ir.Array{x}}
	}
	return []ir.Sample{
		sample("bool", draw(1, ir.Bool, 0, 1, 67, 3), 1), sample("numbers", ir.Floats(ir.F32, []float64{0, 1, 0, 0, 2, math.NaN()}, 3, 2), 1),
		sample("all axes", draw(1, ir.I32, 0, 3, 5, 7), 0, 1), sample("no elements", ir.NewArray(ir.Bool, 2, 0), 1),
		sample("no rows", ir.NewArray(ir.Bool, 0, 3), 1), sample("scalar", ir.Int(ir.Bool, 1)),
	}
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
