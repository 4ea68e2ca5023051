package families

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// residual is a network like ResNet-18 (He, Zhang, Ren and Sun) of four stages of one block.
func residual(n *net, times int) ir.Value {
	b := n.Builder
	x := n.floats("x", 8*times, 64, 64, 3)
	x = ops.Relu(b, n.batchNorm("stem/norm", n.conv("stem", x, 7, 32, 2, 1)))
	x = ops.MaxPool(b, x, ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
	for i := range 4 {
		name, channels, stride := fmt.Sprint("block", i), 32<<i, min(1+i, 2)
		y := ops.Relu(b, n.batchNorm(name+"/norm1", n.conv(name+"/conv1", x, 3, channels, stride, 1)))
		y = n.batchNorm(name+"/norm2", n.conv(name+"/conv2", y, 3, channels, 1, 1))
		if stride != 1 {
			x = n.batchNorm(name+"/norm3", n.conv(name+"/skip", x, 1, channels, stride, 1))
		}
		x = ops.Relu(b, ops.Add(b, x, y))
	}
	return n.classify(ops.Mean(b, x, 1, 2), 100)
}

// depthwise is a network of depthwise and pointwise convolutions (Howard et al., MobileNets).
func depthwise(n *net, times int) ir.Value {
	b := n.Builder
	x := n.floats("x", 8*times, 64, 64, 3)
	x = ops.Relu6(b, n.batchNorm("stem/norm", n.conv("stem", x, 3, 32, 2, 1)))
	for i, c := range []struct{ channels, stride int }{{64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}} {
		name := fmt.Sprint("block", i)
		x = ops.Relu6(b, n.batchNorm(name+"/norm1", n.conv(name+"/deep", x, 3, size(x, 3), c.stride, size(x, 3))))
		x = ops.Relu6(b, n.batchNorm(name+"/norm2", n.conv(name+"/point", x, 1, c.channels, 1, 1)))
	}
	return n.classify(ops.Mean(b, x, 1, 2), 100)
}

// convNeXt is two stages of blocks of a 7×7 depthwise convolution, a layer norm and two linear
// layers (Liu et al., A ConvNet for the 2020s).
func convNeXt(n *net, times int) ir.Value {
	b := n.Builder
	x := n.layerNorm("stem/norm", n.conv("stem", n.floats("x", 8*times, 64, 64, 3), 4, 64, 4, 1))
	for i := range 4 {
		name := fmt.Sprint("block", i)
		if i == 2 {
			x = n.conv("down", n.layerNorm("down/norm", x), 2, 128, 2, 1)
		}
		channels := size(x, 3)
		y := n.layerNorm(name+"/norm", n.conv(name+"/deep", x, 7, channels, 1, channels))
		y = n.mlp(name+"/mlp", y, ops.Gelu, 4*channels, channels)
		x = ops.Add(b, x, ops.Mul(b, y, n.param(name+"/scale", channels)))
	}
	return n.classify(ops.Mean(b, x, 1, 2), 100)
}

// uNet predicts the noise of images (Ho, Jain and Abbeel, Denoising Diffusion Probabilistic
// Models): group norms, attention in the middle, and skips over two resolutions.
func uNet(n *net, times int) ir.Value {
	b := n.Builder
	x, noise := n.floats("x", 4*times, 32, 32, 3), n.floats("noise", 4*times, 32, 32, 3)
	t := n.mlp("time", n.floats("t", 4*times, 32), ops.Silu, 64, 64)
	norm := func(name string, x ir.Value) ir.Value {
		k := size(x, 3)
		return ops.GroupNorm(b, x, n.param(name+"/scale", k), n.param(name+"/b", k), 8, 1e-5)
	}
	block := func(name string, x ir.Value, channels int) ir.Value {
		y := n.conv(name+"/conv1", ops.Silu(b, norm(name+"/norm1", x)), 3, channels, 1, 1)
		y = ops.Add(b, y, n.reshape(n.linear(name+"/time", t, channels), 4*times, 1, 1, channels))
		y = n.conv(name+"/conv2", ops.Silu(b, norm(name+"/norm2", y)), 3, channels, 1, 1)
		if size(x, 3) != channels {
			x = n.conv(name+"/skip", x, 1, channels, 1, 1)
		}
		return ops.Add(b, x, y)
	}
	h := n.conv("in", x, 3, 32, 1, 1)
	first := block("down1", h, 32)
	second := block("down2", n.conv("half", first, 3, 64, 2, 1), 64)
	h = n.reshape(norm("middle/norm", second), 4*times, 256, 64)
	h = ops.Add(b, second, n.reshape(n.attend("middle", h, 4, ir.Value{}), 4*times, 16, 16, 64))
	h = block("up2", ops.Concatenate(b, 3, h, second), 64)
	h = n.conv("double", ops.Resize(b, h, ops.ResizeAttrs{Sizes: []int{32, 32}}), 3, 32, 1, 1)
	h = block("up1", ops.Concatenate(b, 3, h, first), 32)
	return ops.MSE(b, n.conv("out", ops.Silu(b, norm("out/norm", h)), 3, 3, 1, 1), noise, "mean")
}

// viT is a transformer over patches (Dosovitskiy et al., An Image is Worth 16x16 Words).
func viT(n *net, times int) ir.Value {
	b := n.Builder
	x := n.conv("patches", n.floats("x", 8*times, 64, 64, 3), 8, 192, 8, 1)
	x = ops.Add(b, n.reshape(x, 8*times, 64, 192), n.param("positions", 64, 192))
	for i := range 4 {
		name := fmt.Sprint("block", i)
		x = n.feed(name, ops.Add(b, x, n.attend(name, n.layerNorm(name+"/norm1", x), 3, ir.Value{})))
	}
	return n.classify(ops.Mean(b, n.layerNorm("norm", x), 1), 100)
}

// vae is a variational autoencoder (Kingma and Welling) of linear layers.
func vae(n *net, times int) ir.Value {
	b := n.Builder
	x := n.floats("x", 128*times, 784)
	h := ops.Relu(b, n.linear("encode", x, 400))
	mean, spread := n.linear("mean", h, 20), n.linear("spread", h, 20)
	z := ops.Add(b, mean, ops.Mul(b, n.floats("noise", 128*times, 20), ops.Exp(b, ops.Mul(b, spread, n.number(0.5)))))
	y := n.mlp("decode", z, ops.Relu, 400, 784)
	fit := ops.BCEWithLogits(b, y, ops.Sigmoid(b, x), "mean")
	kl := ops.Sub(b, ops.Add(b, ops.Square(b, mean), ops.Exp(b, spread)), ops.Add(b, spread, n.number(1)))
	return ops.Add(b, fit, ops.Mul(b, n.mean(kl), n.number(0.5)))
}

// gan is a step of both networks of a generative adversarial network (Goodfellow et al.): the
// loss of each is that of the other's constants.
func gan(n *net, times int) ir.Value {
	b := n.Builder
	leaky := func(b *ir.Builder, x ir.Value) ir.Value { return ops.LeakyRelu(b, x, 0.2) }
	sizes := []int{784, 512, 256, 1}
	judge := func(x ir.Value, fixed bool) ir.Value {
		for i, out := range sizes[1:] {
			w, c := n.param(fmt.Sprintf("judge%d/w", i), sizes[i], out), n.param(fmt.Sprintf("judge%d/b", i), out)
			if fixed {
				w, c = ops.StopGradient(b, w), ops.StopGradient(b, c)
			}
			if i > 0 {
				x = leaky(b, x)
			}
			x = ops.Linear(b, x, w, c)
		}
		return x
	}
	fake := ops.Tanh(b, n.mlp("make", n.floats("noise", 64*times, 64), leaky, 256, 512, 784))
	real := judge(n.floats("x", 64*times, 784), false)
	softplus := func(x ir.Value) ir.Value { return n.mean(ops.Softplus(b, x)) }
	loss := ops.Add(b, softplus(ops.Neg(b, real)), softplus(judge(ops.StopGradient(b, fake), false)))
	return ops.Add(b, loss, softplus(ops.Neg(b, judge(fake, true))))
}
