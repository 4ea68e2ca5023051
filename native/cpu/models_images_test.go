package cpu_test

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

type activation = func(b *ir.Builder, x ir.Value) ir.Value

// convNorm is a convolution that keeps the size divided by the stride, batch norm and an activation.
func (z *zoo) convNorm(x ir.Value, out, window, stride, groups int, act activation) ir.Value {
	o := nn.ConvOptions{Stride: []int{stride}, Pad: []int{window / 2}, Groups: groups, NoBias: true}
	return act(z.Builder, nn.BatchNorm(z.Builder, nn.Conv2d(z.Builder, x, out, window, o)))
}

// squeeze multiplies the channels by a function of their means (Hu, Shen and Sun).
func (z *zoo) squeeze(x ir.Value, width int, act, gate activation) ir.Value {
	s := nn.Conv2d(z.Builder, ops.KeepDims(z.Builder, ops.Mean, x, 1, 2), width, 1)
	return ops.Mul(z.Builder, x, gate(z.Builder, nn.Conv2d(z.Builder, act(z.Builder, s), size(x, 3), 1)))
}

// inverted is the block of MobileNetV2 (Sandler et al.): wide, depthwise, narrow; squeeze is the width of
// squeeze and excitation, 0 for none.
func (z *zoo) inverted(x ir.Value, window, wide, out, stride, squeeze int, act, gate activation) ir.Value {
	y := x
	if wide != size(x, 3) {
		y = z.convNorm(y, wide, 1, 1, 1, act)
	}
	y = z.convNorm(y, wide, window, stride, wide, act)
	if squeeze > 0 {
		squeezed := act
		if window == 3 || window == 5 {
			squeezed = ops.Relu
		}
		y = z.squeeze(y, squeeze, squeezed, gate)
	}
	y = z.convNorm(y, out, 1, 1, 1, same)
	if stride == 1 && out == size(x, 3) {
		y = ops.Add(z.Builder, x, y)
	}
	return y
}

// mobileNetV3 is MobileNetV3-Small (Howard et al.) of 100 classes.
func mobileNetV3(z *zoo, batch int) ir.Value {
	b := z.Builder
	x := z.convNorm(z.floats("x", batch, 128, 128, 3), 16, 3, 2, 1, ops.HardSwish)
	for _, c := range []struct {
		window, wide, out, squeeze, stride int
		act                                activation
	}{
		{3, 16, 16, 8, 2, ops.Relu},
		{3, 72, 24, 0, 2, ops.Relu},
		{3, 88, 24, 0, 1, ops.Relu},
		{5, 96, 40, 24, 2, ops.HardSwish},
		{5, 240, 40, 64, 1, ops.HardSwish},
		{5, 240, 40, 64, 1, ops.HardSwish},
		{5, 120, 48, 32, 1, ops.HardSwish},
		{5, 144, 48, 40, 1, ops.HardSwish},
		{5, 288, 96, 72, 2, ops.HardSwish},
		{5, 576, 96, 144, 1, ops.HardSwish},
		{5, 576, 96, 144, 1, ops.HardSwish},
	} {
		x = z.inverted(x, c.window, c.wide, c.out, c.stride, c.squeeze, c.act, ops.HardSigmoid)
	}
	x = ops.Mean(b, z.convNorm(x, 576, 1, 1, 1, ops.HardSwish), 1, 2)
	return z.mlp(x, ops.HardSwish, 1024, 100)
}

// efficientNet is EfficientNet-B0 (Tan and Le) with at most two blocks in a stage.
func efficientNet(z *zoo, batch int) ir.Value {
	b := z.Builder
	x := z.convNorm(z.floats("x", batch, 96, 96, 3), 32, 3, 2, 1, ops.Silu)
	for _, c := range []struct{ window, times, out, blocks, stride int }{
		{3, 1, 16, 1, 1}, {3, 6, 24, 2, 2}, {5, 6, 40, 2, 2}, {3, 6, 80, 2, 2}, {5, 6, 112, 2, 1}, {5, 6, 192, 2, 2}, {3, 6, 320, 1, 1},
	} {
		for i := range c.blocks {
			in, stride := size(x, 3), c.stride
			if i > 0 {
				stride = 1
			}
			x = z.inverted(x, c.window, c.times*in, c.out, stride, in/4, ops.Silu, ops.Sigmoid)
		}
	}
	return nn.Linear(b, ops.Mean(b, z.convNorm(x, 1280, 1, 1, 1, ops.Silu), 1, 2), 100)
}

// denseNet has three blocks of six layers, each on the results of all layers before it in the block (Huang et al.).
func denseNet(z *zoo, batch int) ir.Value {
	b := z.Builder
	const growth = 16
	normed := func(x ir.Value) ir.Value { return ops.Relu(b, nn.BatchNorm(b, x)) }
	x := nn.Conv2d(b, z.floats("x", batch, 32, 32, 3), 2*growth, 3, nn.ConvOptions{Pad: []int{1}, NoBias: true})
	for stage := range 3 {
		if stage > 0 {
			x = nn.AvgPool(b, nn.Conv2d(b, normed(x), size(x, 3)/2, 1, nn.ConvOptions{NoBias: true}), 2)
		}
		for range 6 {
			y := nn.Conv2d(b, normed(x), 4*growth, 1, nn.ConvOptions{NoBias: true})
			y = nn.Conv2d(b, normed(y), growth, 3, nn.ConvOptions{Pad: []int{1}, NoBias: true})
			x = ops.Concatenate(b, 3, x, y)
		}
	}
	return nn.Linear(b, ops.Mean(b, normed(x), 1, 2), 100)
}

// shuffleNet has units whose halves of channels are shuffled (Ma et al., ShuffleNet V2).
func shuffleNet(z *zoo, batch int) ir.Value {
	b := z.Builder
	x := z.convNorm(z.floats("x", batch, 96, 96, 3), 24, 3, 2, 1, ops.Relu)
	x = nn.MaxPool(b, x, 3, nn.PoolOptions{Stride: []int{2}, Pad: []int{1}})
	for _, out := range []int{48, 96, 192} {
		for i := range 3 {
			stride, left, right := 1, x, x
			if i == 0 {
				stride = 2
				left = z.convNorm(z.convNorm(x, size(x, 3), 3, 2, size(x, 3), same), out/2, 1, 1, 1, ops.Relu)
			} else {
				halves := ops.SplitEvenly(b, x, 3, 2)
				left, right = halves[0], halves[1]
			}
			right = z.convNorm(z.convNorm(right, out/2, 1, 1, 1, ops.Relu), out/2, 3, stride, out/2, same)
			right = z.convNorm(right, out/2, 1, 1, 1, ops.Relu)
			x = ops.Concatenate(b, 3, left, right)
			h, w := size(x, 1), size(x, 2)
			x = z.reshape(ops.Transpose(b, z.reshape(x, batch, h, w, 2, out/2), 0, 1, 2, 4, 3), batch, h, w, out)
		}
	}
	return nn.Linear(b, ops.Mean(b, z.convNorm(x, 512, 1, 1, 1, ops.Relu), 1, 2), 100)
}

// resNeXt has bottlenecks of 16 groups (Xie et al.).
func resNeXt(z *zoo, batch int) ir.Value {
	b := z.Builder
	x := z.convNorm(z.floats("x", batch, 64, 64, 3), 32, 3, 2, 1, ops.Relu)
	for i := range 4 {
		out, stride := 128<<(i/2), 1+i%2
		y := z.convNorm(z.convNorm(x, out/2, 1, 1, 1, ops.Relu), out/2, 3, stride, 16, ops.Relu)
		y = z.convNorm(y, out, 1, 1, 1, same)
		if stride > 1 || size(x, 3) != out {
			x = z.convNorm(x, out, 1, stride, 1, same)
		}
		x = ops.Relu(b, ops.Add(b, x, y))
	}
	return nn.Linear(b, ops.Mean(b, x, 1, 2), 100)
}

// segmentation is a U-Net with transposed convolutions (Ronneberger, Fischer and Brox).
func segmentation(z *zoo, batch int) ir.Value {
	b := z.Builder
	double := func(x ir.Value, out int) ir.Value {
		return z.convNorm(z.convNorm(x, out, 3, 1, 1, ops.Relu), out, 3, 1, 1, ops.Relu)
	}
	var skips []ir.Value
	x := double(z.floats("x", batch, 64, 64, 3), 16)
	for _, out := range []int{32, 64} {
		skips = append(skips, x)
		x = double(nn.MaxPool(b, x, 2), out)
	}
	for i, out := range []int{32, 16} {
		x = nn.ConvTranspose2d(b, x, out, 2, nn.ConvOptions{Stride: []int{2}})
		x = double(ops.Concatenate(b, 3, skips[1-i], x), out)
	}
	return nn.Conv2d(b, x, 5, 1)
}

// diffusion predicts noise with channels first (Ho, Jain and Abbeel).
func diffusion(z *zoo, batch int) ir.Value {
	b := z.Builder
	first := nn.NormOptions{ChannelsFirst: true}
	conv := func(x ir.Value, out, window, stride int) ir.Value {
		return nn.Conv2d(b, x, out, window, nn.ConvOptions{Stride: []int{stride}, Pad: []int{window / 2}, ChannelsFirst: true})
	}
	t := ops.Silu(b, nn.Linear(b, z.floats("t", batch, 32), 64))
	block := func(x ir.Value, out int) ir.Value {
		y := conv(ops.Silu(b, nn.GroupNorm(b, x, 8, first)), out, 3, 1)
		y = ops.Add(b, y, z.reshape(nn.Linear(b, t, out), batch, out, 1, 1))
		y = conv(ops.Silu(b, nn.GroupNorm(b, y, 8, first)), out, 3, 1)
		if size(x, 1) != out {
			x = conv(x, out, 1, 1)
		}
		return ops.Add(b, x, y)
	}
	one := block(conv(z.floats("x", batch, 3, 32, 32), 32, 3, 1), 32)
	two := block(conv(one, 64, 3, 2), 64)
	h := nn.GroupNorm(b, two, 8, first)
	h = nn.Attention(b, ops.Transpose(b, z.reshape(h, batch, 64, 256), 0, 2, 1), 4)
	h = ops.Add(b, two, z.reshape(ops.Transpose(b, h, 0, 2, 1), batch, 64, 16, 16))
	h = block(ops.Concatenate(b, 1, h, two), 64)
	h = conv(ops.Repeat(b, ops.Repeat(b, h, 2, 2), 3, 2), 32, 3, 1)
	h = block(ops.Concatenate(b, 1, h, one), 32)
	return conv(ops.Silu(b, nn.GroupNorm(b, h, 8, first)), 3, 3, 1)
}

// swin is two stages of attention in windows of 7×7, every other block with shifted windows (Liu et al.).
func swin(z *zoo, batch int) ir.Value {
	b := z.Builder
	const window = 7
	x := nn.LayerNorm(b, nn.Conv2d(b, z.floats("x", batch, 112, 112, 3), 64, 4, nn.ConvOptions{Stride: []int{4}}))
	for stage := range 2 {
		if stage > 0 { // four neighbours become one
			n, c := size(x, 1)/2, size(x, 3)
			x = z.reshape(ops.Transpose(b, z.reshape(x, batch, n, 2, n, 2, c), 0, 1, 3, 4, 2, 5), batch, n, n, 4*c)
			x = nn.Linear(b, nn.LayerNorm(b, x), 2*c, nn.LinearOptions{NoBias: true})
		}
		n, c := size(x, 1), size(x, 3)
		k := n / window
		for i := range 2 {
			y, shift := nn.LayerNorm(b, x), i*(window/2)
			if shift > 0 {
				y = ops.Roll(b, ops.Roll(b, y, 1, -shift), 2, -shift)
			}
			y = z.reshape(ops.Transpose(b, z.reshape(y, batch, k, window, k, window, c), 0, 1, 3, 2, 4, 5), batch*k*k, window*window, c)
			bias := b.Param("bias"+string(rune('0'+2*stage+i)), ir.F32, ir.Dims(c/32, window*window, window*window)...)
			y = nn.Attention(b, y, c/32, nn.AttentionOptions{Mask: bias})
			y = z.reshape(ops.Transpose(b, z.reshape(y, batch, k, k, window, window, c), 0, 1, 3, 2, 4, 5), batch, n, n, c)
			if shift > 0 {
				y = ops.Roll(b, ops.Roll(b, y, 1, shift), 2, shift)
			}
			x = ops.Add(b, x, y)
			x = ops.Add(b, x, z.mlp(nn.LayerNorm(b, x), ops.Gelu, 4*c, c))
		}
	}
	return nn.Linear(b, ops.Mean(b, nn.LayerNorm(b, x), 1, 2), 100)
}

// mixer mixes patches and channels by linear layers (Tolstikhin et al.).
func mixer(z *zoo, batch int) ir.Value {
	b := z.Builder
	x := z.reshape(nn.Conv2d(b, z.floats("x", batch, 64, 64, 3), 128, 8, nn.ConvOptions{Stride: []int{8}}), batch, 64, 128)
	for range 4 {
		y := z.mlp(ops.Transpose(b, nn.LayerNorm(b, x), 0, 2, 1), ops.Gelu, 64, 64)
		x = ops.Add(b, x, ops.Transpose(b, y, 0, 2, 1))
		x = ops.Add(b, x, z.mlp(nn.LayerNorm(b, x), ops.Gelu, 512, 128))
	}
	return nn.Linear(b, ops.Mean(b, nn.LayerNorm(b, x), 1), 100)
}

// convVAE codes images by convolutions with strides and decodes them by transposed ones.
func convVAE(z *zoo, batch int) ir.Value {
	b := z.Builder
	x := z.floats("x", batch, 64, 64, 3)
	for _, out := range []int{32, 64, 128} {
		x = ops.LeakyRelu(b, nn.BatchNorm(b, nn.Conv2d(b, x, out, 3, nn.ConvOptions{Stride: []int{2}, Pad: []int{1}})), 0.01)
	}
	x = ops.Flatten(b, x, 1)
	mean, spread := nn.Linear(b, x, 64), nn.Linear(b, x, 64)
	code := ops.Add(b, mean, ops.Mul(b, z.floats("noise", batch, 64), ops.Exp(b, ops.Mul(b, spread, z.number(0.5)))))
	x = z.reshape(nn.Linear(b, code, 8*8*128), batch, 8, 8, 128)
	for _, out := range []int{64, 32, 16} {
		x = nn.ConvTranspose2d(b, x, out, 3, nn.ConvOptions{Stride: []int{2}, Pad: []int{1}, OutputPad: []int{1}})
		x = ops.LeakyRelu(b, nn.BatchNorm(b, x), 0.01)
	}
	return ops.Sigmoid(b, nn.Conv2d(b, x, 3, 3, nn.ConvOptions{Pad: []int{1}}))
}
