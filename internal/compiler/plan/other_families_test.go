package plan_test

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// otherFamilies are losses of models with shapes that rules may have missed: odd sides, many groups, long and
// wide axes.
var otherFamilies = []family{
	{"residual of odd sides", trained(oddResidual)},
	{"squeeze and excitation", trained(squeezing)},
	{"windows of swin", trained(windows)},
	{"convolutions in 32 groups", trained(grouped)},
	{"convolutions of large dilation", trained(farDilated)},
	{"gru in both directions", trained(bothDirections)},
	{"long attention with a mask", trained(maskedAttention)},
	{"vocabulary of 250,000", trained(wideVocabulary)},
	{"batch norm after training", lossOf(func(b *ir.Builder) ir.Value {
		nn.Infer(b)
		return ops.Relu(b, nn.BatchNorm(b, nn.Conv2d(b, input(b, "x", 32, 56, 56, 64), 64, 3, nn.ConvOptions{Same: true})))
	})},
	{"bilinear resize", trained(func(b *ir.Builder) ir.Value {
		x := nn.Conv2d(b, input(b, "x", 16, 65, 65, 64), 64, 1)
		return nn.Conv2d(b, image.Resize(b, x, []int{129, 129}), 21, 1)
	})},
	{"running sums", trained(func(b *ir.Builder) ir.Value {
		return ops.CumSum(b, nn.Linear(b, input(b, "x", 64, 4000, 48), 96), ops.CumSumAttrs{Axis: 1})
	})},
	{"convolution by spectra", trained(spectra)},
}

// oddResidual is a residual block on images whose sides are odd primes.
func oddResidual(b *ir.Builder) ir.Value {
	x := nn.Conv2d(b, input(b, "x", 17, 97, 83, 3), 72, 7, nn.ConvOptions{Stride: []int{2}, Same: true})
	h := ops.Relu(b, nn.BatchNorm(b, nn.Conv2d(b, x, 72, 3, nn.ConvOptions{Same: true})))
	x = ops.Add(b, x, nn.BatchNorm(b, nn.Conv2d(b, h, 72, 3, nn.ConvOptions{Same: true})))
	return nn.Linear(b, nn.GlobalAvgPool(b, ops.Relu(b, x)), 37)
}

// squeezing is a block of EfficientNet: an expansion, a depthwise convolution and a gate of channels (Tan and Le).
func squeezing(b *ir.Builder) ir.Value {
	x := nn.Conv2d(b, input(b, "x", 32, 56, 56, 24), 24, 1)
	h := ops.Silu(b, nn.BatchNorm(b, nn.Conv2d(b, x, 144, 1)))
	h = ops.Silu(b, nn.BatchNorm(b, nn.Conv2d(b, h, 144, 5, nn.ConvOptions{Same: true, Groups: 144})))
	gate := ops.Sigmoid(b, nn.Linear(b, ops.Silu(b, nn.Linear(b, nn.GlobalAvgPool(b, h), 6)), 144))
	h = ops.Mul(b, h, ops.Reshape(b, gate, ir.Dims(32, 1, 1, 144)...))
	return ops.Add(b, x, nn.BatchNorm(b, nn.Conv2d(b, h, 24, 1)))
}

// windows is attention in windows of 7 × 7, shifted by 3 in the second block (Liu et al.).
func windows(b *ir.Builder) ir.Value {
	const images, side, window, width, count = 16, 56, 7, 96, 8
	x := nn.Linear(b, input(b, "x", images, side, side, 48), width)
	for i := range 2 {
		h := nn.LayerNorm(b, x)
		if i == 1 {
			h = ops.Roll(b, ops.Roll(b, h, 1, -3), 2, -3)
		}
		h = ops.Transpose(b, ops.Reshape(b, h, ir.Dims(images, count, window, count, window, width)...), 0, 1, 3, 2, 4, 5)
		h = nn.Attention(b, ops.Reshape(b, h, ir.Dims(images*count*count, window*window, width)...), 3)
		h = ops.Transpose(b, ops.Reshape(b, h, ir.Dims(images, count, count, window, window, width)...), 0, 1, 3, 2, 4, 5)
		x = ops.Add(b, x, ops.Reshape(b, h, ir.Dims(images, side, side, width)...))
		x = ops.Add(b, x, nn.MLP(b, nn.LayerNorm(b, x), 4*width))
	}
	return x
}

// grouped is a block of ResNeXt (Xie et al.).
func grouped(b *ir.Builder) ir.Value {
	x := nn.Conv2d(b, input(b, "x", 32, 28, 28, 128), 256, 1)
	h := ops.Relu(b, nn.BatchNorm(b, nn.Conv2d(b, x, 128, 1)))
	h = ops.Relu(b, nn.BatchNorm(b, nn.Conv2d(b, h, 128, 3, nn.ConvOptions{Same: true, Groups: 32})))
	return ops.Relu(b, ops.Add(b, x, nn.BatchNorm(b, nn.Conv2d(b, h, 256, 1))))
}

// farDilated is a stack of convolutions along one axis with dilations up to 512.
func farDilated(b *ir.Builder) ir.Value {
	x := nn.Conv1d(b, input(b, "x", 16, 8192, 1), 64, 1)
	for _, dilation := range []int{32, 512} {
		x = ops.Add(b, x, ops.Tanh(b, nn.Conv1d(b, x, 64, 3, nn.ConvOptions{Same: true, Dilation: []int{dilation}})))
	}
	return x
}

// bothDirections is a GRU over texts from both ends.
func bothDirections(b *ir.Builder) ir.Value {
	x := input(b, "x", 32, 120, 200)
	ahead, _ := nn.GRU(b, x, 256)
	back, _ := nn.GRU(b, ops.Reverse(b, x, 1), 256)
	return nn.Linear(b, ops.Concatenate(b, 2, ahead, ops.Reverse(b, back, 1)), 50)
}

// maskedAttention is attention over 8,192 positions with a mask of its own.
func maskedAttention(b *ir.Builder) ir.Value {
	x := nn.Linear(b, input(b, "x", 1, 8192, 256), 256)
	return nn.Attention(b, x, 4, nn.AttentionOptions{Mask: b.Input("mask", ir.Bool, ir.Dims(1, 1, 8192, 8192)...)})
}

// wideVocabulary is the loss of a language model with a large vocabulary.
func wideVocabulary(b *ir.Builder) ir.Value {
	const vocabulary, width = 250_003, 256
	x := nn.Linear(b, nn.Embedding(b, b.Input("ids", ir.I32, ir.Dims(2048)...), vocabulary, width), width)
	return ops.CrossEntropy(b, nn.Linear(b, x, vocabulary), b.Input("labels", ir.I32, ir.Dims(2048)...))
}

// spectra convolves long sequences by products of their Fourier transforms.
func spectra(b *ir.Builder) ir.Value {
	const rows, channels, length = 8, 64, 8192
	x := ops.RFFT(b, nn.Linear(b, input(b, "x", rows, channels, length), length, nn.LinearOptions{NoBias: true}), 2, "")
	filter := ops.RFFT(b, b.Param("filter", ir.F32, ir.Dims(channels, length)...), 1, "")
	return ops.IRFFT(b, ops.Mul(b, x, filter), 2, length, "")
}
