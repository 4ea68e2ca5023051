package ops

import "github.com/rlx-go/rlx/ir"

func elementLossSamples(l elementLoss) []ir.Sample {
	if !withSamples {
		return nil
	}
	sample := func(name, reduction string, d ir.DType, dims ...int) ir.Sample {
		a := l.newAttrs()
		switch a := a.(type) {
		case *LossAttrs:
			a.Reduction = reduction
		case *DeltaLossAttrs:
			a.Reduction = reduction
		case *FocalAttrs:
			a.Reduction = reduction
		}
		return ir.Sample{Name: name, Attrs: a, In: []*ir.Array{
			draw(1, d, l.x[0], l.x[1], dims...), draw(2, d, l.target[0], l.target[1], dims...),
		}}
	}
	empty := sample("none", LossMean, ir.F32, 0, 3)
	empty.NoGrad = "NaN result"
	return []ir.Sample{
		sample("mean", LossMean, ir.F32, 5, 7), sample("sum", LossSum, ir.F32, 9), sample("each", LossNone, ir.F32, 3, 4),
		sample("one", LossMean, ir.F32), sample("half", LossSum, ir.F16, 5), sample("empty", LossNone, ir.F32, 0, 3), empty,
	}
}
