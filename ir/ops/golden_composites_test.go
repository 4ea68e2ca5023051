package ops_test

import (
	"maps"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() { maps.Copy(golden, goldenComposites) }

// batchNorm is batch_norm_training with a variance that is positive.
func batchNorm(b *ir.Builder, in values) values {
	y, mean, variance := ops.BatchNormTraining(b, in[0], ops.BatchNormVectors{Scale: in[1], Bias: in[2], Mean: in[3], Variance: ops.Exp(b, in[4])}, ops.BatchNormAttrs{EpsilonAttrs: ops.EpsilonAttrs{Epsilon: 1e-3}, Momentum: 0.2})
	return values{y, mean, variance}
}

// goldenComposites are more cases of golden, by PyTorch 2.15 with channels
// moved (pads by NumPy 2.4.6; focal as torchvision defines it).
var goldenComposites = map[string]goldenCase{
	"mse": {
		shapes{{3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.MSE(b, in[0], in[1], "") },
		nil, -1.1689453125,
	},
	"mae of each": {
		shapes{{3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.MAE(b, in[0], in[1], ops.LossNone) },
		[]int{3, 4},
		-2.21875,
	},
	"huber": {
		shapes{{3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.Huber(b, in[0], in[1], 0.75, ops.LossSum) },
		nil, -4.482421875,
	},
	"smooth_l1": {
		shapes{{3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.SmoothL1(b, in[0], in[1], 0.75, ops.LossMean) },
		nil, -0.4980468749999999,
	},
	"bce of sigmoids": {
		shapes{{3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.BCE(b, ops.Sigmoid(b, in[0]), ops.Sigmoid(b, in[1]), ops.LossNone)
		},
		[]int{3, 4},
		-2.136604304523219,
	},
	"bce_with_logits": {
		shapes{{3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.BCEWithLogits(b, in[0], ops.Sigmoid(b, in[1]), ops.LossNone)
		},
		[]int{3, 4},
		-2.1366043045232175,
	},
	"kl_div": {
		shapes{{3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.KLDiv(b, ops.LogSoftmax(b, in[0], 1), ops.Softmax(b, in[1], 1), ops.LossNone)
		},
		[]int{3, 4},
		0.5795388426061058,
	},
	"focal": {
		shapes{{3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Focal(b, in[0], ops.Sigmoid(b, in[1]), ops.FocalAttrs{LossAttrs: ops.LossAttrs{Reduction: ops.LossNone}, Alpha: 0.25, Gamma: 2})
		},
		[]int{3, 4},
		-0.3818874560096277,
	},
	"cross_entropy_loss, mean": {
		shapes{{4, 5}, {5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.CrossEntropyLoss(b, in[0], indices(b, []int64{4, 0, -100, 2}, 4), ops.Exp(b, in[1]), ops.ClassLossAttrs{LossAttrs: ops.LossAttrs{Reduction: ops.LossMean}, Axis: -1, Ignored: []int{-100}, LabelSmoothing: 0.2})
		},
		nil, -1.3142969273902243,
	},
	"cross_entropy_loss, none": {
		shapes{{4, 5}, {5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.CrossEntropyLoss(b, in[0], indices(b, []int64{4, 0, -100, 2}, 4), ops.Exp(b, in[1]), ops.ClassLossAttrs{LossAttrs: ops.LossAttrs{Reduction: ops.LossNone}, Axis: -1, Ignored: []int{-100}, LabelSmoothing: 0.2})
		},
		[]int{4},
		-10.850426308928604,
	},
	"cross_entropy_loss, sum": {
		shapes{{4, 5}, {5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.CrossEntropyLoss(b, in[0], indices(b, []int64{4, 0, -100, 2}, 4), ops.Exp(b, in[1]), ops.ClassLossAttrs{LossAttrs: ops.LossAttrs{Reduction: ops.LossSum}, Axis: -1, Ignored: []int{-100}, LabelSmoothing: 0.2})
		},
		nil, -5.974152031055085,
	},
	"nll": {
		shapes{{4, 5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.NLL(b, in[0], indices(b, []int64{4, 0, -100, 2}, 4), ir.Value{}, ops.ClassLossAttrs{Axis: 1, Ignored: []int{-100}})
		},
		nil, -0.375,
	},
	"cosine_similarity": {
		shapes{{3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.CosineSimilarity(b, in[0], in[1], -1, 1e-8) },
		[]int{3},
		-0.3388355660028314,
	},
	"glu": {
		shapes{{3, 6}},
		func(b *ir.Builder, in values) ir.Value { return ops.Glu(b, in[0], -1) },
		[]int{3, 3},
		-1.1561528321623102,
	},
	"swiglu": {
		shapes{{3, 6}},
		func(b *ir.Builder, in values) ir.Value { return ops.SwiGlu(b, in[0], -1) },
		[]int{3, 3},
		-0.6536352976639528,
	},
	"geglu": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.GeGlu(b, in[0], 0) },
		[]int{2, 3},
		0.8385054109254776,
	},
	"prelu": {
		shapes{{3, 4}, {4}},
		func(b *ir.Builder, in values) ir.Value { return ops.PRelu(b, in[0], in[1]) },
		[]int{3, 4},
		2.90234375,
	},
	"softmin": {
		shapes{{3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.Softmin(b, in[0], 1) },
		[]int{3, 4},
		-1.5638684631627287,
	},
	"stack": {
		shapes{{2, 3}, {2, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.Stack(b, 1, in...) },
		[]int{2, 2, 3},
		0.65625,
	},
	"tile": {
		shapes{{2, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.Tile(b, in[0], 2, 3) },
		[]int{4, 9},
		5.4375,
	},
	"repeat": {
		shapes{{2, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.Repeat(b, in[0], -1, 3) },
		[]int{2, 9},
		1.53125,
	},
	"roll": {
		shapes{{2, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Roll(b, in[0], 1, 7) },
		[]int{2, 5},
		0.46875,
	},
	"pad by reflection": {
		shapes{{2, 3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.PadMode(b, in[0], []int{0, 1, 3}, []int{0, 2, 1}, ops.PadReflect)
		},
		[]int{2, 6, 8},
		-1.875,
	},
	"pad by edges": {
		shapes{{2, 3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.PadMode(b, in[0], []int{0, 1, 3}, []int{0, 2, 1}, ops.PadEdge)
		},
		[]int{2, 6, 8},
		-4.6875,
	},
	"pad by wrapping": {
		shapes{{2, 3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.PadMode(b, in[0], []int{0, 1, 3}, []int{0, 2, 1}, ops.PadWrap)
		},
		[]int{2, 6, 8},
		-18.625,
	},
	"tril": {
		shapes{{2, 3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.Tril(b, in[0], 1) },
		[]int{2, 3, 4},
		-0.75,
	},
	"triu": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.Triu(b, in[0], -1) },
		[]int{4, 3},
		3.9375,
	},
	"diag": {
		shapes{{2, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.Diag(b, in[0], -1) },
		[]int{2, 4, 4},
		-4.90625,
	},
	"diagonal": {
		shapes{{2, 3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Diagonal(b, in[0], 1) },
		[]int{2, 3},
		0.84375,
	},
	"diagonal below": {
		shapes{{5, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.Diagonal(b, in[0], -1) },
		[]int{3},
		-3.09375,
	},
	"trace": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.Trace(b, in[0], 0) },
		nil, 0.09375,
	},
	"var": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Var(b, in[0], 1, -1) },
		[]int{3},
		-1.3863281250000001,
	},
	"std": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Std(b, in[0], 0) },
		nil, -0.6137741848595458,
	},
	"norm of order 2": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Norm(b, in[0], 2, 1) },
		[]int{3},
		-3.1953967072192793,
	},
	"norm of order 1": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Norm(b, in[0], 1, 1) },
		[]int{3},
		-6.25,
	},
	"norm of order 3.5": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Norm(b, in[0], 3.5, 1) },
		[]int{3},
		-2.5642369236995686,
	},
	"norm of order 0": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Norm(b, in[0], 0, 1) },
		[]int{3},
		-8.75,
	},
	"norm of order math.Inf(1)": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Norm(b, in[0], math.Inf(1), 1) },
		[]int{3},
		-2.3125,
	},
	"norm of order math.Inf(-1)": {
		shapes{{3, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Norm(b, in[0], math.Inf(-1), 1) },
		[]int{3},
		-0.34375,
	},
	"einsum ij,jk": {
		shapes{{2, 3}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.Einsum(b, "ij,jk", in...) },
		[]int{2, 4},
		-8.21875,
	},
	"einsum b...ij,...jk->b...ik": {
		shapes{{2, 3, 2, 4}, {4, 3}},
		func(b *ir.Builder, in values) ir.Value { return ops.Einsum(b, "b...ij,...jk->b...ik", in...) },
		[]int{2, 3, 2, 3},
		13.171875,
	},
	"einsum iij->ji": {
		shapes{{3, 3, 2}},
		func(b *ir.Builder, in values) ir.Value { return ops.Einsum(b, "iij->ji", in...) },
		[]int{2, 3},
		-1.53125,
	},
	"einsum ij,ij,jk->k": {
		shapes{{2, 3}, {2, 3}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.Einsum(b, "ij,ij,jk->k", in...) },
		[]int{4},
		-0.3466796875,
	},
	"einsum ba,cb": {
		shapes{{2, 3}, {4, 2}},
		func(b *ir.Builder, in values) ir.Value { return ops.Einsum(b, "ba,cb", in...) },
		[]int{3, 4},
		3.2109375,
	},
	"einsum ...a,...a->...": {
		shapes{{2, 3, 4}, {3, 4}},
		func(b *ir.Builder, in values) ir.Value { return ops.Einsum(b, "...a,...a->...", in...) },
		[]int{2, 3},
		4.94140625,
	},
	"kron": {
		shapes{{2, 3}, {3, 2}},
		func(b *ir.Builder, in values) ir.Value { return ops.Kron(b, in[0], in[1]) },
		[]int{6, 6},
		-4.6484375,
	},
	"kron of ranks that differ": {
		shapes{{3}, {2, 2}},
		func(b *ir.Builder, in values) ir.Value { return ops.Kron(b, in[0], in[1]) },
		[]int{2, 6},
		-4.3828125,
	},
	"outer": {
		shapes{{3}, {4}},
		func(b *ir.Builder, in values) ir.Value { return ops.Outer(b, in[0], in[1]) },
		[]int{3, 4},
		2.0859375,
	},
	"vdot": {
		shapes{{5}, {5}},
		func(b *ir.Builder, in values) ir.Value { return ops.Vdot(b, in[0], in[1]) },
		nil, 0.046875,
	},
	"tensordot": {
		shapes{{2, 3, 4}, {3, 4, 5}},
		func(b *ir.Builder, in values) ir.Value { return ops.TensorDot(b, in[0], in[1], 2) },
		[]int{2, 5},
		-12.46875,
	},
	"group_norm": {
		shapes{{2, 3, 4, 6}, {6}, {6}},
		func(b *ir.Builder, in values) ir.Value { return ops.GroupNorm(b, in[0], in[1], in[2], 3, 1e-3) },
		[]int{2, 3, 4, 6},
		8.141301220964836,
	},
	"instance_norm": {
		shapes{{2, 5, 3}, {3}, {3}},
		func(b *ir.Builder, in values) ir.Value { return ops.InstanceNorm(b, in[0], in[1], in[2], 1e-3) },
		[]int{2, 5, 3},
		-7.521822190198107,
	},
	"batch_norm_inference": {
		shapes{{2, 5, 3}, {3}, {3}, {3}, {3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.BatchNormInference(b, in[0], ops.BatchNormVectors{Scale: in[1], Bias: in[2], Mean: in[3], Variance: ops.Exp(b, in[4])}, 1e-3)
		},
		[]int{2, 5, 3},
		-4.728115154820786,
	},
	"batch_norm_training, result": {
		shapes{{2, 5, 3}, {3}, {3}, {3}, {3}},
		func(b *ir.Builder, in values) ir.Value { return batchNorm(b, in)[0] },
		[]int{2, 5, 3},
		-8.636237623344549,
	},
	"batch_norm_training, mean": {
		shapes{{2, 5, 3}, {3}, {3}, {3}, {3}},
		func(b *ir.Builder, in values) ir.Value { return batchNorm(b, in)[1] },
		[]int{3},
		-1.766875,
	},
	"batch_norm_training, variance": {
		shapes{{2, 5, 3}, {3}, {3}, {3}, {3}},
		func(b *ir.Builder, in values) ir.Value { return batchNorm(b, in)[2] },
		[]int{3},
		0.18334637867541992,
	},
	"conv_transpose": {
		shapes{{2, 3, 4, 2}, {3, 2, 2, 5}, {5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.ConvTranspose(b, in[0], in[1], in[2], ops.ConvTransposeAttrs{Strides: []int{2, 3}, PadLo: []int{1, 0}, PadHi: []int{1, 0}, OutputPadding: []int{1, 2}, Dilations: []int{2, 1}})
		},
		[]int{2, 8, 13, 5},
		-13.171875,
	},
	"conv_transpose in groups": {
		shapes{{2, 5, 4}, {3, 4, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.ConvTranspose(b, in[0], in[1], ir.Value{}, ops.ConvTransposeAttrs{Strides: []int{2}, Groups: 2})
		},
		[]int{2, 11, 6},
		20.171875,
	},
	"conv_transpose of three axes": {
		shapes{{1, 2, 3, 2, 2}, {2, 2, 2, 2, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.ConvTranspose(b, in[0], in[1], ir.Value{}, ops.ConvTransposeAttrs{Strides: []int{1, 2, 1}})
		},
		[]int{1, 3, 6, 3, 3},
		48.71875,
	},
	"resize nearest, align_corners false": {
		shapes{{2, 3, 4, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Resize(b, in[0], ops.ResizeAttrs{Sizes: []int{7, 3}, Mode: ops.ResizeNearest, AlignCorners: false})
		},
		[]int{2, 7, 3, 2},
		0.40625,
	},
	"resize linear, align_corners false": {
		shapes{{2, 3, 4, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Resize(b, in[0], ops.ResizeAttrs{Sizes: []int{7, 3}, Mode: ops.ResizeLinear, AlignCorners: false})
		},
		[]int{2, 7, 3, 2},
		0.14360119047618802,
	},
	"resize linear, align_corners true": {
		shapes{{2, 3, 4, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Resize(b, in[0], ops.ResizeAttrs{Sizes: []int{7, 3}, Mode: ops.ResizeLinear, AlignCorners: true})
		},
		[]int{2, 7, 3, 2},
		1.1979166666666674,
	},
	"resize cubic, align_corners false": {
		shapes{{2, 3, 4, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Resize(b, in[0], ops.ResizeAttrs{Sizes: []int{7, 3}, Mode: ops.ResizeCubic, AlignCorners: false})
		},
		[]int{2, 7, 3, 2},
		0.7781035622334271,
	},
	"resize cubic, align_corners true": {
		shapes{{2, 3, 4, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Resize(b, in[0], ops.ResizeAttrs{Sizes: []int{7, 3}, Mode: ops.ResizeCubic, AlignCorners: true})
		},
		[]int{2, 7, 3, 2},
		2.0459165219907387,
	},
}
