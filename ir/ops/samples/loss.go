package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	any2, unit := [2]float64{-2, 2}, [2]float64{0.1, 0.9}
	add(ops.OpCrossEntropy, crossEntropySamples)
	addElementLoss(ops.OpMSE, any2, any2)
	addElementLoss(ops.OpMAE, any2, any2)
	addElementLoss(ops.OpHuber, any2, any2)
	addElementLoss(ops.OpSmoothL1, any2, any2)
	addElementLoss(ops.OpBCE, unit, unit)
	addElementLoss(ops.OpBCELogits, any2, unit)
	addElementLoss(ops.OpHinge, any2, any2)
	addElementLoss(ops.OpKLDiv, any2, unit)
	addElementLoss(ops.OpFocal, any2, unit)
}

func crossEntropySamples() []ir.Sample {
	sample := func(name string, axis int, logits, labels *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.AxisAttrs{Axis: axis}, In: []*ir.Array{logits, labels}}
	}
	return []ir.Sample{
		sample("batch", 1, drawn(ir.F32, 4, 3), ir.Ints(ir.I32, []int64{2, 0, 1, 1})),
		sample("many classes", 1, drawn(ir.F32, 3, 300), ir.Ints(ir.I32, []int64{299, 0, 17})),
		sample("one example", 0, drawn(ir.F32, 5), ir.Int(ir.U8, 3)),
		sample("class axis in the middle", 1, drawn(ir.F32, 2, 3, 2), ir.Ints(ir.I32, []int64{2, 0, 1, 1}, 2, 2)),
		sample("no examples", 1, ir.NewArray(ir.F32, 0, 3), ir.NewArray(ir.I32, 0)),
	}
}

// addElementLoss adds samples of a loss of elements in the ranges x and target.
func addElementLoss(op ir.Op, x, target [2]float64) {
	add(op, func() []ir.Sample { return elementLossSamples(op, x, target) })
}

func elementLossSamples(op ir.Op, x, target [2]float64) []ir.Sample {
	sample := func(name, reduction string, d ir.DType, dims ...int) ir.Sample {
		a := defaultsOf(op)
		switch a := a.(type) {
		case *ops.LossAttrs:
			a.Reduction = reduction
		case *ops.DeltaLossAttrs:
			a.Reduction = reduction
		case *ops.FocalAttrs:
			a.Reduction = reduction
		}
		return ir.Sample{Name: name, Attrs: a, In: []*ir.Array{
			draw(1, d, x[0], x[1], dims...), draw(2, d, target[0], target[1], dims...),
		}}
	}
	empty := sample("none", ops.LossMean, ir.F32, 0, 3)
	empty.NoGrad = "NaN result"
	return []ir.Sample{
		sample("mean", ops.LossMean, ir.F32, 5, 7), sample("sum", ops.LossSum, ir.F32, 9), sample("each", ops.LossNone, ir.F32, 3, 4),
		sample("one", ops.LossMean, ir.F32), sample("half", ops.LossSum, ir.F16, 5), sample("empty", ops.LossNone, ir.F32, 0, 3), empty,
	}
}
