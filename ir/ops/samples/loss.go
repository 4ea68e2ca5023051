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

func init() {
	addAll(classLossSamples, ops.OpCrossEntropyLoss, ops.OpNLL)
	add(ops.OpCosineSimilarity, cosineSamples)
	add(ops.OpCTC, ctcSamples)
}

func classLossSamples() []ir.Sample {
	sample := func(name string, a ops.ClassLossAttrs, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: in}
	}
	mean, each := ops.LossAttrs{Reduction: ops.LossMean}, ops.LossAttrs{Reduction: ops.LossNone}
	x, labels := drawn(ir.F32, 4, 3), ir.Ints(ir.I32, []int64{2, 0, 1, 1})
	some := ir.Ints(ir.I32, []int64{2, -100, 1, -1})
	weight := ir.Floats(ir.F32, []float64{0.5, 1, 2})
	return []ir.Sample{
		sample("mean", ops.ClassLossAttrs{LossAttrs: mean, Axis: 1, Ignored: nil, LabelSmoothing: 0}, x, labels),
		sample("each, class axis first", ops.ClassLossAttrs{LossAttrs: each, Axis: 0, Ignored: nil, LabelSmoothing: 0}, drawn(ir.F32, 5, 3), ir.Ints(ir.I32, []int64{4, 0, 1})),
		sample("smoothed and weighted", ops.ClassLossAttrs{LossAttrs: mean, Axis: 1, Ignored: []int{-100, -1}, LabelSmoothing: 0.1}, x, some, weight),
		sample("sum, another label ignored", ops.ClassLossAttrs{LossAttrs: ops.LossAttrs{Reduction: ops.LossSum}, Axis: 1, Ignored: []int{0}, LabelSmoothing: 0.3}, x, labels),
		sample("half", ops.ClassLossAttrs{LossAttrs: each, Axis: 1, Ignored: nil, LabelSmoothing: 0}, drawn(ir.F16, 4, 3), labels),
		sample("no examples", ops.ClassLossAttrs{LossAttrs: each, Axis: 1, Ignored: nil, LabelSmoothing: 0}, ir.NewArray(ir.F32, 0, 3), ir.NewArray(ir.I32, 0)),
	}
}

func cosineSamples() []ir.Sample {
	a := &ops.CosineAttrs{Axis: 1, Epsilon: 1e-8}
	return []ir.Sample{
		{Name: "rows", Attrs: a, In: []*ir.Array{drawn(ir.F32, 4, 9), draw(8, ir.F32, -1, 1, 4, 9)}},
		{Name: "one against all", Attrs: a, In: []*ir.Array{drawn(ir.F32, 4, 5), draw(8, ir.F32, -1, 1, 5)}},
		{Name: "zero vector", Attrs: a, In: []*ir.Array{ir.NewArray(ir.F32, 1, 3), draw(8, ir.F32, -1, 1, 1, 3)}, NoGrad: "steep near zero"},
		{Name: "empty", Attrs: a, In: []*ir.Array{ir.NewArray(ir.F32, 0, 3), ir.NewArray(ir.F32, 0, 3)}},
	}
}

func ctcSamples() []ir.Sample {
	sample := func(name, reduction string, d ir.DType, time int, labels *ir.Array, times, lengths []int64) ir.Sample {
		logs := draw(1, d, -3, -0.5, time, labels.Dims[0], 4)
		return ir.Sample{Name: name, Attrs: &ops.CTCAttrs{LossAttrs: ops.LossAttrs{Reduction: reduction}}, In: []*ir.Array{
			logs, labels, ir.Ints(ir.I32, times, len(times)), ir.Ints(ir.I32, lengths, len(lengths)),
		}}
	}
	labels := ir.Ints(ir.I32, []int64{1, 1, 2, 3, 2, 0}, 2, 3)
	return []ir.Sample{
		sample("mean", ops.LossMean, ir.F32, 5, labels, []int64{5, 4}, []int64{3, 2}),
		sample("each", ops.LossNone, ir.F32, 4, labels, []int64{4, 4}, []int64{2, 0}),
		sample("sum", ops.LossSum, ir.F16, 3, labels, []int64{3, 2}, []int64{1, 2}),
		sample("no labels", ops.LossNone, ir.F32, 2, ir.NewArray(ir.I32, 2, 0), []int64{2, 1}, []int64{0, 0}),
	}
}
