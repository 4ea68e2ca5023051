package families

import (
	"fmt"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/ops"
)

// Unusual are models whose structure [All], [Models] and [Further] lack.
var Unusual = []Family{
	{"glow", glow},
	{"fourier operator", fourierOperator},
	{"wgan gp", wganGP},
	{"raft", raft},
	{"unet 3d", uNet3D},
	{"deeplab", deepLab},
	{"pixel cnn", pixelCNN},
	{"inception", inception},
	{"maml", maml},
	{"hash grid", hashGrid},
	{"forces", forces},
	{"sinkhorn", sinkhorn},
	{"arcface", arcFace},
	{"vicreg", vicReg},
	{"ppo", ppo},
	{"lru", lru},
	{"rwkv", rwkv},
	{"xlstm", xLSTM},
	{"triangle", triangle},
	{"t5", t5},
	{"performer", performer},
	{"longformer", longformer},
	{"rnnt", rnnt},
	{"kalman", kalman},
}

// glow is a flow with invertible 1×1 convolutions and affine couplings (Kingma and Dhariwal).
func glow(n *net, times int) ir.Value {
	b := n.Builder
	batch := 8 * times
	x := n.floats("x", batch, 32, 32, 3)
	logs := n.number(0)
	for level := range 2 {
		x = ops.PixelUnshuffle(b, x, 2)
		side, c := size(x, 1), size(x, 3)
		pixels := n.number(float64(side * side))
		for i := range 3 {
			name := fmt.Sprint("level", level, "/step", i)
			scale := n.param(name+"/scale", c)
			x = ops.Mul(b, ops.Add(b, x, n.param(name+"/shift/b", c)), scale)
			logs = ops.Add(b, logs, ops.Mul(b, pixels, ops.ReduceSum(b, ops.Log(b, ops.Abs(b, scale)), 0)))
			w := n.param(name+"/mix", c, c)
			_, volume := ops.Slogdet(b, w)
			x = ops.MatMul(b, x, w)
			logs = ops.Add(b, logs, ops.Mul(b, pixels, volume))
			parts := ops.SplitEvenly(b, x, 3, 2)
			h := ops.Relu(b, n.conv(name+"/in", parts[0], 3, 64, 1, 1))
			h = ops.Relu(b, n.conv(name+"/mid", h, 1, 64, 1, 1))
			by := ops.SplitEvenly(b, n.conv(name+"/out", h, 3, c, 1, 1), 3, 2)
			gate := ops.Sigmoid(b, ops.Add(b, by[1], n.number(2)))
			x = ops.Concatenate(b, 3, parts[0], ops.Mul(b, ops.Add(b, parts[1], by[0]), gate))
			logs = ops.Add(b, logs, ops.Div(b, ops.ReduceSum(b, ops.Log(b, gate), 0, 1, 2, 3), n.number(float64(batch))))
		}
	}
	prior := ops.Mul(b, n.mean(ops.Square(b, x)), n.number(0.5))
	return ops.Sub(b, prior, ops.Div(b, logs, n.number(32*32*3)))
}

// fourierOperator multiplies the low frequencies of fields by matrices (Li et al., Fourier Neural Operator).
func fourierOperator(n *net, times int) ir.Value {
	b := n.Builder
	const side, width, modes = 64, 32, 12
	batch := 2 * times
	x := n.linear("lift", n.floats("x", batch, side, side, 3), width)
	mixed := func(name string, f ir.Value) ir.Value {
		w := ops.Complex(b, n.param(name+"/re", modes, modes, width, width), n.param(name+"/im", modes, modes, width, width))
		return ops.Einsum(b, "bxyi,xyio->bxyo", f, w)
	}
	for i := range 4 {
		name := fmt.Sprint("layer", i)
		f := ops.FFT(b, ops.RFFT(b, x, 2, ""), ops.FFTAttrs{Axes: []int{1}})
		f = ops.SliceAxis(b, f, 2, ir.N(0), ir.N(modes))
		low := mixed(name+"/low", ops.SliceAxis(b, f, 1, ir.N(0), ir.N(modes)))
		high := mixed(name+"/high", ops.SliceAxis(b, f, 1, ir.N(side-modes), ir.N(modes)))
		none := ops.Zeros(b, ir.C64, ir.Dims(batch, side-2*modes, modes, width)...)
		f = ops.Concatenate(b, 1, low, none, high)
		f = ops.Pad(b, f, ops.Zeros(b, ir.C64), []int{0, 0, 0, 0}, []int{0, 0, side/2 + 1 - modes, 0}, []int{0, 0, 0, 0})
		y := ops.IRFFT(b, ops.FFT(b, f, ops.FFTAttrs{Axes: []int{1}, Inverse: true}), 2, side, "")
		x = ops.Gelu(b, ops.Add(b, y, n.linear(name+"/w", x, width)))
	}
	y := n.mlp("out", x, ops.Gelu, 64, 1)
	return ops.MSE(b, y, n.floats("y", batch, side, side, 1), "mean")
}

// wganGP is a critic whose gradient by its images is kept near length one (Gulrajani et al.).
func wganGP(n *net, times int) ir.Value {
	b := n.Builder
	batch := 8 * times
	critic := func(b *ir.Builder, x ir.Value) ir.Value {
		inside := &net{b, n.below, n.params}
		for i, c := range []int{32, 64, 128} {
			name := fmt.Sprint("conv", i)
			w := inside.param(name+"/w", 4, 4, size(x, 3), c)
			x = ops.Conv2D(b, x, w, inside.param(name+"/b", c), ops.Conv2DAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
			x = ops.LeakyRelu(b, x, 0.2)
		}
		return inside.linear("head", ops.Flatten(b, x, 1), 1)
	}
	real, fake, part := n.floats("real", batch, 32, 32, 3), n.floats("fake", batch, 32, 32, 3), n.floats("part", batch, 1, 1, 1)
	loss := ops.Sub(b, n.mean(critic(b, fake)), n.mean(critic(b, real)))
	between := ops.Lerp(b, real, fake, part)
	slope := autodiff.GradOf(b, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.ReduceSum(b, critic(b, in[0]), 0, 1)}
	}, []ir.Value{between})[0]
	long := ops.Sqrt(b, ops.Add(b, ops.ReduceSum(b, ops.Square(b, slope), 1, 2, 3), n.number(1e-12)))
	penalty := n.mean(ops.Square(b, ops.Sub(b, long, n.number(1))))
	return ops.Add(b, loss, ops.Mul(b, penalty, n.number(10)))
}

// raft refines optical flow by looking up correlations of all pairs of pixels (Teed and Deng).
func raft(n *net, times int) ir.Value {
	b := n.Builder
	const rows, columns, width, radius = 24, 32, 64, 3
	batch := times
	encode := func(x ir.Value) ir.Value {
		x = ops.Relu(b, n.conv("encode0", x, 7, 32, 2, 1))
		x = ops.Relu(b, n.conv("encode1", x, 3, 64, 2, 1))
		return n.conv("encode2", x, 3, width, 2, 1)
	}
	first := n.floats("first", batch, 8*rows, 8*columns, 3)
	f1, f2 := encode(first), encode(n.floats("second", batch, 8*rows, 8*columns, 3))
	pixels := batch * rows * columns
	all := ops.MatMul(b, n.reshape(f1, batch, rows*columns, width), ops.Transpose(b, n.reshape(f2, batch, rows*columns, width), 0, 2, 1))
	levels := []ir.Value{n.reshape(ops.Mul(b, all, n.number(1./8)), pixels, rows, columns, 1)}
	for range 2 {
		levels = append(levels, ops.AvgPool(b, levels[len(levels)-1], ops.AvgPoolAttrs{PoolAttrs: ops.PoolAttrs{Sizes: []int{2, 2}, Strides: []int{2, 2}}}))
	}
	context := n.conv("context1", ops.Relu(b, n.conv("context0", first, 7, 32, 4, 1)), 3, 2*width, 2, 1)
	parts := ops.SplitEvenly(b, context, 3, 2)
	h, inp := ops.Tanh(b, parts[0]), ops.Relu(b, parts[1])
	axis := func(along int) ir.Value { return ops.Iota(b, ir.F32, along, ir.Dims(1, rows, columns)...) }
	start := ops.BroadcastTo(b, ops.Stack(b, 3, axis(2), axis(1)), ir.Dims(batch, rows, columns, 2))
	at := start
	target := n.floats("flow", batch, rows, columns, 2)
	loss := n.number(0)
	side := 2*radius + 1
	dx := ops.Sub(b, ops.Iota(b, ir.F32, 1, ir.Dims(side, side)...), n.number(radius))
	dy := ops.Sub(b, ops.Iota(b, ir.F32, 0, ir.Dims(side, side)...), n.number(radius))
	near := n.reshape(ops.Stack(b, 2, dx, dy), 1, side, side, 2)
	for range 4 {
		at = ops.StopGradient(b, at)
		var seen []ir.Value
		for k, level := range levels {
			centre := ops.Mul(b, n.reshape(at, pixels, 1, 1, 2), n.number(1/float64(int(1)<<k)))
			place := ops.Add(b, centre, near)
			// The grid has -1 and 1 at the centres of the corner pixels.
			scale := ops.Literal(b, ir.Floats(ir.F32, []float64{2 / float64(size(level, 2)-1), 2 / float64(size(level, 1)-1)}, 2))
			grid := ops.Sub(b, ops.Mul(b, place, scale), n.number(1))
			y := image.GridSample(b, level, grid, image.GridOptions{AlignCorners: true})
			seen = append(seen, n.reshape(y, batch, rows, columns, side*side))
		}
		flow := ops.Sub(b, at, start)
		c := ops.Relu(b, n.conv("motion0", ops.Concatenate(b, 3, seen...), 1, 64, 1, 1))
		c = ops.Relu(b, n.conv("motion1", ops.Concatenate(b, 3, c, flow), 3, 62, 1, 1))
		x := ops.Concatenate(b, 3, inp, c, flow)
		hx := ops.Concatenate(b, 3, h, x)
		z, r := ops.Sigmoid(b, n.conv("gru/z", hx, 3, width, 1, 1)), ops.Sigmoid(b, n.conv("gru/r", hx, 3, width, 1, 1))
		q := ops.Tanh(b, n.conv("gru/q", ops.Concatenate(b, 3, ops.Mul(b, r, h), x), 3, width, 1, 1))
		h = ops.Lerp(b, h, q, z)
		at = ops.Add(b, at, n.conv("flow1", ops.Relu(b, n.conv("flow0", h, 3, 64, 1, 1)), 3, 2, 1, 1))
		off := n.mean(ops.Abs(b, ops.Sub(b, ops.Sub(b, at, start), target)))
		loss = ops.Add(b, ops.Mul(b, loss, n.number(0.8)), off)
	}
	return loss
}

// conv3D is a convolution of volumes with a bias that keeps their size divided by the stride.
func (n *net) conv3D(name string, x ir.Value, window, out, stride int) ir.Value {
	k := window / 2
	w := n.param(name+"/w", window, window, window, size(x, 4), out)
	y := convVolumes(n.Builder, x, w, []int{stride, stride, stride}, []int{k, k, k})
	return ops.Add(n.Builder, y, n.param(name+"/b", out))
}

// uNet3D labels the voxels of volumes (Çiçek et al.), with the loss of overlaps (Milletari, Navab and Ahmadi).
func uNet3D(n *net, times int) ir.Value {
	b := n.Builder
	const side, classes = 24, 3
	batch := times
	block := func(name string, x ir.Value, c int) ir.Value {
		for i := range 2 {
			layer := fmt.Sprint(name, "/", i)
			y := n.conv3D(layer, x, 3, c, 1)
			x = ops.LeakyRelu(b, ops.InstanceNorm(b, y, n.param(layer+"/scale", c), n.param(layer+"/shift/b", c), 1e-5), 0.01)
		}
		return x
	}
	x := n.floats("x", batch, side, side, side, 2)
	var skips []ir.Value
	for i, c := range []int{16, 32, 64} {
		if i > 0 {
			x = n.conv3D(fmt.Sprint("half", i), x, 3, c, 2)
		}
		x = block(fmt.Sprint("down", i), x, c)
		skips = append(skips, x)
	}
	two := []int{2, 2, 2}
	for i, c := range []int{32, 16} {
		name := fmt.Sprint("up", i)
		x = ops.ConvTranspose(b, x, n.param(name+"/w", 2, 2, 2, size(x, 4), c), n.param(name+"/b", c), ops.ConvTransposeAttrs{Strides: two})
		x = block(name, ops.Concatenate(b, 4, x, skips[1-i]), c)
	}
	logits := n.conv3D("head", x, 1, classes, 1)
	labels := n.ids("labels", classes, batch, side, side, side)
	p, hot := ops.Softmax(b, logits, 4), ops.OneHot(b, labels, ir.N(classes), ir.F32)
	both := ops.ReduceSum(b, ops.Mul(b, p, hot), 1, 2, 3)
	sum := ops.Add(b, ops.ReduceSum(b, p, 1, 2, 3), ops.ReduceSum(b, hot, 1, 2, 3))
	dice := n.mean(ops.Div(b, ops.Mul(b, both, n.number(2)), ops.Add(b, sum, n.number(1e-5))))
	return ops.Sub(b, ops.CrossEntropyMean(b, logits, labels), dice)
}

// dilated is conv with holes in its window.
func (n *net) dilated(name string, x ir.Value, out, dilation int) ir.Value {
	pad := []int{dilation, dilation}
	w := n.param(name+"/w", 3, 3, size(x, 3), out)
	return ops.Conv2D(n.Builder, x, w, n.param(name+"/b", out), ops.Conv2DAttrs{PadLo: pad, PadHi: pad, Dilations: pad})
}

// deepLab labels pixels by convolutions with several dilations (Chen et al.).
func deepLab(n *net, times int) ir.Value {
	b := n.Builder
	const classes = 21
	batch := 2 * times
	x := n.convAct("stem", n.floats("x", batch, 128, 128, 3), 3, 32, 2, 1, ops.Relu)
	low := n.convAct("low", x, 3, 64, 2, 1, ops.Relu)
	x = n.convAct("deep", low, 3, 128, 2, 1, ops.Relu)
	for i, d := range []int{2, 4} {
		name := fmt.Sprint("block", i)
		y := ops.Relu(b, n.batchNorm(name+"/norm", n.dilated(name, x, 128, d)))
		x = ops.Add(b, x, y)
	}
	side := size(x, 1)
	parts := []ir.Value{n.convAct("aspp", x, 1, 64, 1, 1, ops.Relu)}
	for i, d := range []int{6, 12, 18} {
		name := fmt.Sprint("aspp", i)
		parts = append(parts, ops.Relu(b, n.batchNorm(name+"/norm", n.dilated(name, x, 64, d))))
	}
	whole := ops.Relu(b, n.linear("whole", ops.KeepDims(b, ops.Mean, x, 1, 2), 64))
	parts = append(parts, ops.BroadcastTo(b, whole, ir.Dims(batch, side, side, 64)))
	x = n.convAct("join", ops.Concatenate(b, 3, parts...), 1, 64, 1, 1, ops.Relu)
	up := func(x ir.Value, side int) ir.Value {
		return ops.Resize(b, x, ops.ResizeAttrs{Sizes: []int{side, side}, Mode: ops.ResizeLinear})
	}
	x = ops.Concatenate(b, 3, up(x, size(low, 1)), n.convAct("lateral", low, 1, 16, 1, 1, ops.Relu))
	x = n.convAct("mix", x, 3, 64, 1, 1, ops.Relu)
	logits := up(n.conv("head", x, 1, classes, 1, 1), 128)
	return ops.CrossEntropyMean(b, logits, n.ids("labels", classes, batch, 128, 128))
}

// pixelCNN predicts each pixel from those before it by masked convolutions with gates (van den Oord et al.).
func pixelCNN(n *net, times int) ir.Value {
	b := n.Builder
	const width = 32
	batch := 4 * times
	// masked has no weights at and after the middle of the window, or after it.
	masked := func(name string, x ir.Value, window, out int, middle float64) ir.Value {
		k := window / 2
		mask := make([]float64, window*window)
		for i := range mask[:k*window+k] {
			mask[i] = 1
		}
		mask[k*window+k] = middle
		w := ops.Mul(b, n.param(name+"/w", window, window, size(x, 3), out), ops.Literal(b, ir.Floats(ir.F32, mask, window, window, 1, 1)))
		return ops.Conv2D(b, x, w, n.param(name+"/b", out), ops.Conv2DAttrs{PadLo: []int{k, k}, PadHi: []int{k, k}})
	}
	x := masked("in", n.floats("x", batch, 28, 28, 1), 7, width, 0)
	for i := range 5 {
		name := fmt.Sprint("block", i)
		parts := ops.SplitEvenly(b, masked(name, x, 3, 2*width, 1), 3, 2)
		y := ops.Mul(b, ops.Tanh(b, parts[0]), ops.Sigmoid(b, parts[1]))
		x = ops.Add(b, x, n.linear(name+"/out", y, width))
	}
	return n.classify(ops.Relu(b, n.linear("last", ops.Relu(b, x), 64)), 256)
}

// inception has windows of several sizes and of single rows and columns side by side (Szegedy et al.).
func inception(n *net, times int) ir.Value {
	b := n.Builder
	batch := 4 * times
	conv := func(name string, x ir.Value, h, w, out int) ir.Value {
		pad := []int{h / 2, w / 2}
		y := ops.Conv2D(b, x, n.param(name+"/w", h, w, size(x, 3), out), n.param(name+"/b", out), ops.Conv2DAttrs{PadLo: pad, PadHi: pad})
		return ops.Relu(b, n.batchNorm(name+"/norm", y))
	}
	x := n.convAct("stem", n.floats("x", batch, 96, 96, 3), 3, 32, 2, 1, ops.Relu)
	x = n.convAct("down", x, 3, 64, 2, 1, ops.Relu)
	three := ops.PoolAttrs{Sizes: []int{3, 3}, PadLo: []int{1, 1}, PadHi: []int{1, 1}, Strides: []int{1, 1}}
	for i := range 2 {
		name := fmt.Sprint("block", i)
		one := conv(name+"/one", x, 1, 1, 48)
		long := conv(name+"/long2", conv(name+"/long1", conv(name+"/long0", x, 1, 1, 32), 1, 7, 32), 7, 1, 48)
		deep := conv(name+"/deep0", x, 1, 1, 32)
		deep = conv(name+"/deep2", conv(name+"/deep1", deep, 7, 1, 32), 1, 7, 32)
		deep = conv(name+"/deep4", conv(name+"/deep3", deep, 7, 1, 32), 1, 7, 48)
		pooled := conv(name+"/pool", ops.AvgPool(b, x, ops.AvgPoolAttrs{PoolAttrs: three}), 1, 1, 48)
		x = ops.Concatenate(b, 3, one, long, deep, pooled)
	}
	x = ops.MaxPool(b, x, ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
	return n.classify(ops.Mean(b, x, 1, 2), 100)
}
