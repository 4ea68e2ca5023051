package ops_test

import (
	"maps"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() { maps.Copy(golden, goldenLayers) }

// ctc is the loss of fixed labels: only the first of the given numbers of steps and labels count.
func ctc(steps []int64, a ops.CTCAttrs) func(b *ir.Builder, in values) ir.Value {
	return func(b *ir.Builder, in values) ir.Value {
		logs := ops.LogSoftmax(b, in[0], -1)
		return ops.CTCLoss(b, logs, indices(b, []int64{1, 1, 2, 3, 2, 0}, 2, 3), indices(b, steps, 2), indices(b, []int64{3, 2}, 2), a)
	}
}

func reducedBy(reduction string) ops.LossAttrs { return ops.LossAttrs{Reduction: reduction} }

func adaNorm(rms bool) func(b *ir.Builder, in values) ir.Value {
	return func(b *ir.Builder, in values) ir.Value {
		return ops.AdaNorm(b, in[0], in[1], in[2], ops.AdaNormAttrs{RMS: rms, EpsilonAttrs: ops.EpsilonAttrs{Epsilon: 1e-3}})
	}
}

// goldenLayers are more cases of golden, by PyTorch 2.15 with channels moved.
var goldenLayers = map[string]goldenCase{
	"ctc_loss of each": {shapes{{6, 2, 4}}, ctc([]int64{6, 4}, ops.CTCAttrs{LossAttrs: reducedBy(ops.LossNone)}), []int{2}, -8.726928342626453},
	"ctc_loss, mean":   {shapes{{6, 2, 4}}, ctc([]int64{6, 4}, ops.CTCAttrs{LossAttrs: reducedBy(ops.LossMean)}), nil, -1.1882688643749595},
	"ctc_loss, sum":    {shapes{{6, 2, 4}}, ctc([]int64{6, 4}, ops.CTCAttrs{LossAttrs: reducedBy(ops.LossSum)}), nil, -6.445049547802601},
	"ctc_loss of too few steps": {
		shapes{{6, 2, 4}}, ctc([]int64{3, 4}, ops.CTCAttrs{LossAttrs: reducedBy(ops.LossNone), ZeroInfinity: true}), []int{2}, -3.651006071718163,
	},
	"adaptive_avg_pool": {
		shapes{{2, 5, 7, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.AdaptiveAvgPool(b, in[0], 2, 3) },
		[]int{2, 2, 3, 3},
		1.0625,
	},
	"adaptive_max_pool": {
		shapes{{2, 5, 7, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.AdaptiveMaxPool(b, in[0], 2, 3) },
		[]int{2, 2, 3, 3},
		-2.03125,
	},
	"pixel_shuffle": {
		shapes{{2, 3, 2, 8}},
		func(b *ir.Builder, in values) ir.Value { return ops.PixelShuffle(b, in[0], 2) },
		[]int{2, 6, 4, 2},
		-28.40625,
	},
	"pixel_unshuffle": {
		shapes{{2, 4, 6, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.PixelUnshuffle(b, in[0], 2) },
		[]int{2, 2, 3, 12},
		-4.875,
	},
	"ada_norm":        {shapes{{2, 3, 5}, {2, 1, 5}, {2, 1, 5}}, adaNorm(false), []int{2, 3, 5}, 8.742862611098948},
	"ada_norm by rms": {shapes{{2, 3, 5}, {2, 1, 5}, {2, 1, 5}}, adaNorm(true), []int{2, 3, 5}, 11.409448931212095},
	"weight_norm": {
		shapes{{3, 4}, {4}},
		func(b *ir.Builder, in values) ir.Value { return ops.WeightNorm(b, in[0], in[1], 1) },
		[]int{3, 4},
		0.7587142752616891,
	},
}
