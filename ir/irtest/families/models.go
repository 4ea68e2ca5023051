package families

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Models are networks at the sizes at which they are trained on a GPU, in batches that one device
// holds. Families with as many kinds of layers are smaller: a schedule may suit those alone.
var Models = []Family{
	{"vgg16", many(64, vgg16)},
	{"densenet121", many(64, denseNet121)},
	{"efficientnet b0", many(64, efficientNetB0)},
	{"convnext tiny", many(64, convNeXtTiny)},
	{"vit b16", many(64, viTB16(12))},
	{"swin tiny", many(64, swinTiny)},
	{"segmenter", many(16, segmenter)},
	{"latent diffusion", many(4, latentDiffusion(320, 640, 1280))},
	{"dit b2", many(32, diTB2(12))},
	{"bert base", many(16, bertBase(12))},
	{"llama 1b", many(2, llama1B(16, 2048, 32000))},
	{"whisper small", many(8, whisperSmall(12))},
	{"wave encoder", many(8, waveEncoder(12))},
	{"lstm large", many(64, lstmLarge)},
	{"video 3d", many(8, video3D)},
	{"super resolution", many(16, superResolution)},
}

// ModelsOfCPU are those of [Models] for a few cores: one or a few examples, and fewer layers where
// all are equal, so that a step takes seconds. Widths and heads are the same.
var ModelsOfCPU = []Family{
	{"vgg16", vgg16},
	{"densenet121", many(2, denseNet121)},
	{"efficientnet b0", many(2, efficientNetB0)},
	{"convnext tiny", many(2, convNeXtTiny)},
	{"vit b16", many(2, viTB16(3))},
	{"swin tiny", many(2, swinTiny)},
	{"segmenter", segmenter},
	{"latent diffusion", latentDiffusion(320, 640)},
	{"dit b2", many(2, diTB2(3))},
	{"bert base", bertBase(3)},
	{"llama 1b", llama1B(2, 512, 8192)},
	{"whisper small", whisperSmall(2)},
	{"wave encoder", waveEncoder(2)},
	{"lstm large", many(16, lstmLarge)},
	{"video 3d", video3D},
	{"super resolution", many(2, superResolution)},
}

// many is a model with times the batch.
func many(times int, model func(n *net, batch int) ir.Value) func(n *net, times int) ir.Value {
	return func(n *net, more int) ir.Value { return model(n, times*more) }
}

// convAct is a convolution, a batch norm and an activation.
func (n *net) convAct(name string, x ir.Value, window, out, stride, groups int, act func(*ir.Builder, ir.Value) ir.Value) ir.Value {
	return act(n.Builder, n.batchNorm(name+"/norm", n.conv(name, x, window, out, stride, groups)))
}

// halve is the max pool of windows of two pixels.
func (n *net) halve(x ir.Value) ir.Value {
	return ops.MaxPool(n.Builder, x, ops.PoolAttrs{Sizes: []int{2, 2}, Strides: []int{2, 2}})
}

// vgg16 is a network of 3×3 convolutions and large linear layers (Simonyan and Zisserman).
func vgg16(n *net, batch int) ir.Value {
	b := n.Builder
	x := n.floats("x", batch, 224, 224, 3)
	for stage, c := range []struct{ layers, channels int }{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}} {
		for i := range c.layers {
			x = n.convAct(fmt.Sprint("conv", stage, i), x, 3, c.channels, 1, 1, ops.Relu)
		}
		x = n.halve(x)
	}
	x = n.mlp("mlp", n.reshape(x, batch, 7*7*512), ops.Relu, 4096, 4096)
	return n.classify(ops.Relu(b, x), 1000)
}

// denseNet121 concatenates the results of all layers of a block (Huang et al.).
func denseNet121(n *net, batch int) ir.Value {
	b := n.Builder
	const growth = 32
	norm := func(name string, x ir.Value) ir.Value { return ops.Relu(b, n.batchNorm(name, x)) }
	x := n.convAct("stem", n.floats("x", batch, 224, 224, 3), 7, 64, 2, 1, ops.Relu)
	x = ops.MaxPool(b, x, ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
	for stage, layers := range []int{6, 12, 24, 16} {
		if stage > 0 {
			name := fmt.Sprint("transition", stage)
			x = n.conv(name, norm(name+"/norm", x), 1, size(x, 3)/2, 1, 1)
			x = ops.AvgPool(b, x, ops.AvgPoolAttrs{PoolAttrs: ops.PoolAttrs{Sizes: []int{2, 2}, Strides: []int{2, 2}}})
		}
		for i := range layers {
			name := fmt.Sprint("layer", stage, "_", i)
			y := n.conv(name+"/narrow", norm(name+"/norm1", x), 1, 4*growth, 1, 1)
			y = n.conv(name+"/conv", norm(name+"/norm2", y), 3, growth, 1, 1)
			x = ops.Concatenate(b, 3, x, y)
		}
	}
	return n.classify(ops.Mean(b, norm("norm", x), 1, 2), 1000)
}

// efficientNetB0 has depthwise convolutions of 3×3 and 5×5 pixels and gates of channels (Tan and Le).
func efficientNetB0(n *net, batch int) ir.Value {
	b := n.Builder
	x := n.convAct("stem", n.floats("x", batch, 224, 224, 3), 3, 32, 2, 1, ops.Silu)
	for stage, c := range []struct{ expand, channels, layers, stride, window int }{
		{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3}, {6, 40, 2, 2, 5}, {6, 80, 3, 2, 3}, {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5}, {6, 320, 1, 1, 3},
	} {
		for i := range c.layers {
			name, in, stride := fmt.Sprint("block", stage, "_", i), size(x, 3), c.stride
			if i > 0 {
				stride = 1
			}
			y := x
			if c.expand > 1 {
				y = n.convAct(name+"/expand", y, 1, in*c.expand, 1, 1, ops.Silu)
			}
			y = n.convAct(name+"/deep", y, c.window, size(y, 3), stride, size(y, 3), ops.Silu)
			gate := n.mlp(name+"/gate", ops.KeepDims(b, ops.Mean, y, 1, 2), ops.Silu, in/4, size(y, 3))
			y = n.batchNorm(name+"/norm", n.conv(name+"/project", ops.Mul(b, y, ops.Sigmoid(b, gate)), 1, c.channels, 1, 1))
			if stride == 1 && in == c.channels {
				y = ops.Add(b, x, y)
			}
			x = y
		}
	}
	return n.classify(ops.Mean(b, n.convAct("last", x, 1, 1280, 1, 1, ops.Silu), 1, 2), 1000)
}

// convNeXtTiny is the network of [convNeXt] with four stages.
func convNeXtTiny(n *net, batch int) ir.Value {
	b := n.Builder
	x := n.layerNorm("stem/norm", n.conv("stem", n.floats("x", batch, 224, 224, 3), 4, 96, 4, 1))
	for stage, layers := range []int{3, 3, 9, 3} {
		if stage > 0 {
			name := fmt.Sprint("down", stage)
			x = n.conv(name, n.layerNorm(name+"/norm", x), 2, 96<<stage, 2, 1)
		}
		for i := range layers {
			name, channels := fmt.Sprint("block", stage, "_", i), size(x, 3)
			y := n.layerNorm(name+"/norm", n.conv(name+"/deep", x, 7, channels, 1, channels))
			y = n.mlp(name+"/mlp", y, ops.Gelu, 4*channels, channels)
			x = ops.Add(b, x, ops.Mul(b, y, n.param(name+"/scale", channels)))
		}
	}
	return n.classify(n.layerNorm("norm", ops.Mean(b, x, 1, 2)), 1000)
}

// preNorm is a block of a transformer whose layer norms come first.
func (n *net) preNorm(name string, x ir.Value, heads int, causal bool) ir.Value {
	h := n.layerNorm(name+"/norm1", x)
	return n.feed(name, ops.Add(n.Builder, x, n.attendTo(name, h, h, heads, causal)))
}

// feed is the rest of [net.preNorm] behind attention.
func (n *net) feed(name string, x ir.Value) ir.Value {
	width := size(x, -1)
	return ops.Add(n.Builder, x, n.mlp(name+"/mlp", n.layerNorm(name+"/norm2", x), ops.Gelu, 4*width, width))
}

// attendTo is attention of x to y, [batch, time, width] both.
func (n *net) attendTo(name string, x, y ir.Value, heads int, causal bool) ir.Value {
	width := size(x, 2)
	q, k, v := n.linear(name+"/q", x, width), n.linear(name+"/k", y, width), n.linear(name+"/v", y, width)
	z := ops.Attention(n.Builder, n.heads(q, heads), n.heads(k, heads), n.heads(v, heads), ir.Value{}, ops.AttentionAttrs{Causal: causal})
	return n.linear(name+"/out", n.joinHeads(z), width)
}

// viTB16 is the transformer of [viT] at the width of its base size, with a token for the class.
func viTB16(layers int) func(n *net, batch int) ir.Value {
	return func(n *net, batch int) ir.Value {
		b := n.Builder
		const width = 768
		x := n.reshape(n.conv("patches", n.floats("x", batch, 224, 224, 3), 16, width, 16, 1), batch, 196, width)
		class := ops.BroadcastTo(b, n.param("class", 1, 1, width), ir.Dims(batch, 1, width))
		x = ops.Add(b, ops.Concatenate(b, 1, class, x), n.param("positions", 197, width))
		for i := range layers {
			x = n.preNorm(fmt.Sprint("block", i), x, 12, false)
		}
		first := ops.SliceAxis(b, x, 1, ir.N(0), ir.N(1))
		return n.classify(n.layerNorm("norm", n.reshape(first, batch, width)), 1000)
	}
}

// swinTiny attends within windows that are shifted in each second block (Liu et al., Swin Transformer).
func swinTiny(n *net, batch int) ir.Value {
	b := n.Builder
	x := n.layerNorm("stem/norm", n.conv("stem", n.floats("x", batch, 224, 224, 3), 4, 96, 4, 1))
	for stage, layers := range []int{2, 2, 6, 2} {
		if side := size(x, 1); stage > 0 { // four neighbours become one position
			x = n.reshape(x, batch, side/2, 2, side/2, 2, size(x, 3))
			x = n.reshape(ops.Transpose(b, x, 0, 1, 3, 2, 4, 5), batch, side/2, side/2, 4*size(x, 5))
			name := fmt.Sprint("merge", stage)
			x = n.linear(name, n.layerNorm(name+"/norm", x), 96<<stage)
		}
		for i := range layers {
			name := fmt.Sprint("block", stage, "_", i)
			x = n.feed(name, ops.Add(b, x, n.windows(name, n.layerNorm(name+"/norm1", x), 3<<stage, i%2*3)))
		}
	}
	return n.classify(ops.Mean(b, n.layerNorm("norm", x), 1, 2), 1000)
}

// windows is attention within windows of 7×7 pixels, which begin shift pixels later, with a bias
// by relative positions. Shifted windows at the edge see both sides of the image.
func (n *net) windows(name string, x ir.Value, heads, shift int) ir.Value {
	b := n.Builder
	const w = 7
	batch, side, width := size(x, 0), size(x, 1), size(x, 3)
	roll := func(x ir.Value, by int) ir.Value {
		if shift == 0 {
			return x
		}
		return ops.Roll(b, ops.Roll(b, x, 1, by), 2, by)
	}
	x = n.reshape(roll(x, -shift), batch, side/w, w, side/w, w, width)
	x = n.reshape(ops.Transpose(b, x, 0, 1, 3, 2, 4, 5), batch*side*side/w/w, w*w, width)
	places := make([]int64, 0, w*w*w*w)
	for i := range w * w {
		for j := range w * w {
			places = append(places, int64((i/w-j/w+w-1)*(2*w-1)+i%w-j%w+w-1))
		}
	}
	bias := ops.Embedding(b, n.param(name+"/bias", (2*w-1)*(2*w-1), heads), ops.Literal(b, ir.Ints(ir.I32, places, w*w, w*w)))
	mask := n.reshape(ops.Transpose(b, bias, 2, 0, 1), 1, heads, w*w, w*w)
	y := n.reshape(n.attend(name, x, heads, mask), batch, side/w, side/w, w, w, width)
	return roll(n.reshape(ops.Transpose(b, y, 0, 1, 3, 2, 4, 5), batch, side, side, width), shift)
}

// segmenter is a U-Net of images (Ronneberger, Fischer and Brox) with transposed convolutions.
func segmenter(n *net, batch int) ir.Value {
	b := n.Builder
	pair := func(name string, x ir.Value, channels int) ir.Value {
		x = n.convAct(name+"/first", x, 3, channels, 1, 1, ops.Relu)
		return n.convAct(name+"/second", x, 3, channels, 1, 1, ops.Relu)
	}
	var skips []ir.Value
	x := n.floats("x", batch, 256, 256, 3)
	for i := range 4 {
		x = pair(fmt.Sprint("down", i), x, 64<<i)
		skips = append(skips, x)
		x = n.halve(x)
	}
	x = pair("middle", x, 1024)
	for i := 3; i >= 0; i-- {
		name, channels := fmt.Sprint("up", i), 64<<i
		w := n.param(name+"/w", 2, 2, size(x, 3), channels)
		x = ops.ConvTranspose(b, x, w, n.param(name+"/b", channels), ops.ConvTransposeAttrs{Strides: []int{2, 2}})
		x = pair(name, ops.Concatenate(b, 3, skips[i], x), channels)
	}
	return n.classify(x, 21)
}

// latentDiffusion predicts the noise of latent images with a text (Rombach et al.): group norms,
// attention among pixels and to the text, and skips over as many resolutions as there are widths.
func latentDiffusion(widths ...int) func(n *net, batch int) ir.Value {
	return func(n *net, batch int) ir.Value {
		b := n.Builder
		x, noise := n.floats("x", batch, 64, 64, 4), n.floats("noise", batch, 64, 64, 4)
		text, t := n.floats("text", batch, 77, 768), n.mlp("time", n.floats("t", batch, 320), ops.Silu, 1280, 1280)
		norm := func(name string, x ir.Value) ir.Value {
			k := size(x, 3)
			return ops.GroupNorm(b, x, n.param(name+"/scale", k), n.param(name+"/b", k), 32, 1e-5)
		}
		block := func(name string, x ir.Value, channels int) ir.Value {
			y := n.conv(name+"/conv1", ops.Silu(b, norm(name+"/norm1", x)), 3, channels, 1, 1)
			y = ops.Add(b, y, n.reshape(n.linear(name+"/time", ops.Silu(b, t), channels), batch, 1, 1, channels))
			y = n.conv(name+"/conv2", ops.Silu(b, norm(name+"/norm2", y)), 3, channels, 1, 1)
			if size(x, 3) != channels {
				x = n.conv(name+"/skip", x, 1, channels, 1, 1)
			}
			return n.crossAttend(name, ops.Add(b, x, y), norm(name+"/norm3", ops.Add(b, x, y)), text)
		}
		h := n.conv("in", x, 3, 320, 1, 1)
		skips := []ir.Value{h}
		for i, channels := range widths {
			if i > 0 {
				h = n.conv(fmt.Sprint("half", i), h, 3, channels, 2, 1)
				skips = append(skips, h)
			}
			h = block(fmt.Sprint("down", i), h, channels)
			skips = append(skips, h)
		}
		h = block("middle", h, widths[len(widths)-1])
		for i := len(widths) - 1; i >= 0; i-- {
			for j := range 2 {
				last := len(skips) - 1
				h = block(fmt.Sprint("up", i, j), ops.Concatenate(b, 3, h, skips[last]), widths[i])
				skips = skips[:last]
			}
			if side := 2 * size(h, 1); i > 0 {
				h = n.conv(fmt.Sprint("double", i), ops.Resize(b, h, ops.ResizeAttrs{Sizes: []int{side, side}}), 3, widths[i], 1, 1)
			}
		}
		return ops.MSE(b, n.conv("out", ops.Silu(b, norm("out/norm", h)), 3, 4, 1, 1), noise, "mean")
	}
}

// crossAttend adds a block of a transformer over the pixels of x to it, which attends to a text.
func (n *net) crossAttend(name string, x, normed, text ir.Value) ir.Value {
	b := n.Builder
	batch, side, width := size(x, 0), size(x, 1), size(x, 3)
	h := n.linear(name+"/proj_in", n.reshape(normed, batch, side*side, width), width)
	y := n.layerNorm(name+"/norm4", h)
	h = ops.Add(b, h, n.attendTo(name+"/self", y, y, 8, false))
	h = ops.Add(b, h, n.attendTo(name+"/text", n.layerNorm(name+"/norm5", h), text, 8, false))
	y = n.linear(name+"/up", n.layerNorm(name+"/norm6", h), 8*width)
	parts := ops.SplitEvenly(b, y, 2, 2)
	h = ops.Add(b, h, n.linear(name+"/down", ops.Mul(b, parts[0], ops.Gelu(b, parts[1])), width))
	return ops.Add(b, x, n.reshape(n.linear(name+"/proj_out", h, width), batch, side, side, width))
}

// diTB2 is a diffusion transformer whose norms are scaled and shifted by the time (Peebles and Xie).
func diTB2(layers int) func(n *net, batch int) ir.Value {
	return func(n *net, batch int) ir.Value {
		b := n.Builder
		const width, length = 768, 256
		x, noise := n.floats("x", batch, 32, 32, 4), n.floats("noise", batch, length, 16)
		c := ops.Silu(b, n.mlp("time", n.floats("t", batch, 256), ops.Silu, width, width))
		x = ops.Add(b, n.reshape(n.conv("patches", x, 2, width, 2, 1), batch, length, width), n.param("positions", length, width))
		one := n.number(1)
		plain := func(x ir.Value) ir.Value {
			return ops.LayerNorm(b, x, ops.BroadcastTo(b, one, ir.Dims(width)), ops.BroadcastTo(b, n.number(0), ir.Dims(width)), 1e-6)
		}
		for i := range layers {
			name := fmt.Sprint("block", i)
			m := ops.SplitEvenly(b, n.reshape(n.linear(name+"/modulate", c, 6*width), batch, 1, 6*width), 2, 6)
			shifted := func(x, shift, scale ir.Value) ir.Value {
				return ops.Add(b, ops.Mul(b, plain(x), ops.Add(b, scale, one)), shift)
			}
			h := shifted(x, m[0], m[1])
			x = ops.Add(b, x, ops.Mul(b, m[2], n.attendTo(name, h, h, 12, false)))
			x = ops.Add(b, x, ops.Mul(b, m[5], n.mlp(name+"/mlp", shifted(x, m[3], m[4]), ops.Gelu, 4*width, width)))
		}
		return ops.MSE(b, n.linear("out", plain(x), 16), noise, "mean")
	}
}

// bertBase is the encoder of [bert] at its base size, without dropout.
func bertBase(layers int) func(n *net, batch int) ir.Value {
	return func(n *net, batch int) ir.Value {
		b := n.Builder
		const length, width, words = 512, 768, 30522
		ids, lengths := n.ids("ids", words, batch, length), n.ids("lengths", length, batch)
		mask := ops.Le(b, ops.Iota(b, ir.I32, 3, ir.Dims(1, 1, 1, length)...), n.reshape(lengths, batch, 1, 1, 1))
		x := ops.Add(b, ops.Embedding(b, n.param("tokens", words, width), ids), n.param("positions", length, width))
		x = n.layerNorm("norm", x)
		for i := range layers {
			name := fmt.Sprint("block", i)
			x = n.layerNorm(name+"/norm1", ops.Add(b, x, n.attend(name, x, 12, mask)))
			x = n.layerNorm(name+"/norm2", ops.Add(b, x, n.mlp(name+"/mlp", x, ops.Gelu, 4*width, width)))
		}
		return n.classify(x, words)
	}
}

// llama1B is the language model of [llama] with a billion weights.
func llama1B(layers, length, vocabulary int) func(n *net, batch int) ir.Value {
	return func(n *net, batch int) ir.Value {
		return n.llama(batch, llamaSizes{vocabulary: vocabulary, length: length, width: 2048, inner: 5632, layers: layers, heads: 32, shared: 8})
	}
}

// conv1D is a convolution over time, [batch, time, channels].
func (n *net) conv1D(name string, x ir.Value, window, out, stride, pad, groups int) ir.Value {
	w := n.param(name+"/w", window, size(x, 2)/groups, out)
	y := ops.ConvGeneral(n.Builder, x, w, ops.ConvAttrs{
		Strides: []int{stride}, PadLo: []int{pad}, PadHi: []int{pad}, FeatureGroups: ir.N(groups),
		Lhs: []int{0, 2, 1}, Rhs: []int{2, 1, 0}, Out: []int{0, 2, 1},
	})
	return ops.Add(n.Builder, y, n.param(name+"/b", out))
}

// whisperSmall transcribes spectrograms of half a minute (Radford et al.).
func whisperSmall(layers int) func(n *net, batch int) ir.Value {
	return func(n *net, batch int) ir.Value {
		b := n.Builder
		const width, words, length = 768, 51865, 448
		x := ops.Gelu(b, n.conv1D("conv1", n.floats("x", batch, 3000, 80), 3, width, 1, 1, 1))
		x = ops.Gelu(b, n.conv1D("conv2", x, 3, width, 2, 1, 1))
		x = ops.Add(b, x, n.param("sounds", 1500, width))
		for i := range layers {
			x = n.preNorm(fmt.Sprint("encoder", i), x, 12, false)
		}
		sound := n.layerNorm("encoder/norm", x)
		y := ops.Add(b, ops.Embedding(b, n.param("tokens", words, width), n.ids("ids", words, batch, length)), n.param("positions", length, width))
		for i := range layers {
			name := fmt.Sprint("decoder", i)
			h := n.layerNorm(name+"/norm1", y)
			y = ops.Add(b, y, n.attendTo(name+"/self", h, h, 12, true))
			y = ops.Add(b, y, n.attendTo(name+"/sound", n.layerNorm(name+"/norm2", y), sound, 12, false))
			y = ops.Add(b, y, n.mlp(name+"/mlp", n.layerNorm(name+"/norm3", y), ops.Gelu, 4*width, width))
		}
		return n.classify(n.layerNorm("norm", y), words)
	}
}

// waveEncoder classifies frames of ten seconds of sound by convolutions over its samples and a
// transformer with a grouped convolution for positions (Baevski et al., wav2vec 2.0).
func waveEncoder(layers int) func(n *net, batch int) ir.Value {
	return func(n *net, batch int) ir.Value {
		b := n.Builder
		const width = 768
		x := n.floats("x", batch, 160000, 1)
		for i, c := range []struct{ window, stride int }{{10, 5}, {3, 2}, {3, 2}, {3, 2}, {3, 2}, {2, 2}, {2, 2}} {
			name := fmt.Sprint("conv", i)
			x = ops.Gelu(b, n.layerNorm(name+"/norm", n.conv1D(name, x, c.window, 512, c.stride, 0, 1)))
		}
		x = n.linear("project", n.layerNorm("norm", x), width)
		place := n.conv1D("place", x, 127, width, 1, 63, 16)
		x = ops.Add(b, x, ops.Gelu(b, place))
		for i := range layers {
			x = n.preNorm(fmt.Sprint("block", i), x, 12, false)
		}
		return n.classify(x, 320)
	}
}

// lstmLarge is a language model of two recurrent layers (Zaremba, Sutskever and Vinyals).
func lstmLarge(n *net, batch int) ir.Value {
	b := n.Builder
	const words, length, hidden = 10000, 70, 1024
	x := ops.Embedding(b, n.param("tokens", words, hidden), n.ids("ids", words, length, batch))
	var weights []ir.Value
	for i := range 2 {
		for j, dims := range [][]int{{hidden, 4 * hidden}, {hidden, 4 * hidden}, {4 * hidden}, {4 * hidden}} {
			weights = append(weights, n.param(fmt.Sprint("weight", i, "_", j), dims...))
		}
	}
	zero := ops.Zeros(b, ir.F32, ir.Dims(2, batch, hidden)...)
	x, _, _ = ops.LSTM(b, x, zero, zero, weights, ops.RecurrentAttrs{})
	return n.classify(x, words)
}

// video3D classifies short films by residual blocks of 3-D convolutions (Tran et al., R3D).
func video3D(n *net, batch int) ir.Value {
	b := n.Builder
	conv := func(name string, x ir.Value, window []int, out, stride int) ir.Value {
		pad := []int{window[0] / 2, window[1] / 2, window[2] / 2}
		steps := []int{stride, stride, stride}
		if name == "stem" {
			steps[0] = 1
		}
		w := n.param(name+"/w", window[0], window[1], window[2], size(x, 4), out)
		return n.batchNorm(name+"/norm", convVolumes(b, x, w, steps, pad))
	}
	x := ops.Relu(b, conv("stem", n.floats("x", batch, 16, 112, 112, 3), []int{3, 7, 7}, 64, 2))
	cube := []int{3, 3, 3}
	for i := range 8 {
		name, channels, stride := fmt.Sprint("block", i), 64<<(i/2), 1
		if i%2 == 0 && i > 0 {
			stride = 2
		}
		y := conv(name+"/conv2", ops.Relu(b, conv(name+"/conv1", x, cube, channels, stride)), cube, channels, 1)
		if stride > 1 {
			x = conv(name+"/skip", x, []int{1, 1, 1}, channels, stride)
		}
		x = ops.Relu(b, ops.Add(b, x, y))
	}
	return n.classify(ops.Mean(b, x, 1, 2, 3), 400)
}

// convVolumes convolves volumes, [batch, depth, height, width, channels], with w, [depth, height, width, channels, results].
func convVolumes(b *ir.Builder, x, w ir.Value, strides, pad []int) ir.Value {
	return ops.ConvGeneral(b, x, w, ops.ConvAttrs{
		Strides: strides, PadLo: pad, PadHi: pad, Lhs: []int{0, 4, 1, 2, 3}, Rhs: []int{4, 3, 0, 1, 2}, Out: []int{0, 4, 1, 2, 3},
	})
}

// superResolution doubles the size of images by residual blocks without norms (Lim et al., EDSR).
func superResolution(n *net, batch int) ir.Value {
	b := n.Builder
	x := n.conv("in", n.floats("x", batch, 96, 96, 3), 3, 64, 1, 1)
	h := x
	for i := range 16 {
		name := fmt.Sprint("block", i)
		h = ops.Add(b, h, n.conv(name+"/conv2", ops.Relu(b, n.conv(name+"/conv1", h, 3, 64, 1, 1)), 3, 64, 1, 1))
	}
	h = ops.PixelShuffle(b, n.conv("up", ops.Add(b, x, h), 3, 256, 1, 1), 2)
	return n.mean(ops.Abs(b, ops.Sub(b, n.conv("out", h, 3, 3, 1, 1), n.floats("y", batch, 192, 192, 3))))
}
