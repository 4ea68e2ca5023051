package families

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/ops"
)

// Further are models of kinds that [All] and [Models] lack.
var Further = []Family{
	{"mixer", mixer},
	{"gat", gat},
	{"point net", pointNet},
	{"shuffle net", shuffleNet},
	{"resnext", resNeXt},
	{"style", style},
	{"vqvae", vqvae},
	{"crf", crf},
	{"fnet", fnet},
	{"contrastive", contrastive},
	{"detector", detector},
	{"conv lstm", convLSTM},
	{"spatial transformer", spatialTransformer},
	{"word2vec", word2vec},
	{"cycle gan", cycleGAN},
	{"hyena", hyena},
	{"kan", kan},
	{"capsules", capsules},
	{"ode", ode},
	{"tabular", tabular},
}

// mixer multiplies along patches, then along channels (Tolstikhin et al., MLP-Mixer).
func mixer(n *net, times int) ir.Value {
	b := n.Builder
	const width = 256
	batch := 4 * times
	x := n.reshape(n.conv("patches", n.floats("x", batch, 112, 112, 3), 8, width, 8, 1), batch, 196, width)
	for i := range 4 {
		name := fmt.Sprint("block", i)
		y := ops.Transpose(b, n.layerNorm(name+"/norm1", x), 0, 2, 1)
		x = ops.Add(b, x, ops.Transpose(b, n.mlp(name+"/tokens", y, ops.Gelu, 128, 196), 0, 2, 1))
		x = ops.Add(b, x, n.mlp(name+"/channels", n.layerNorm(name+"/norm2", x), ops.Gelu, 1024, width))
	}
	return n.classify(ops.Mean(b, n.layerNorm("norm", x), 1), 100)
}

// gat attends over the edges of a graph (Veličković et al., Graph Attention Networks).
func gat(n *net, times int) ir.Value {
	b := n.Builder
	const heads, width = 4, 16
	nodes, edges := 2000*times, 30_000*times
	x := n.floats("x", nodes, 64)
	from, to := n.ids("from", nodes, edges), n.ids("to", nodes, edges)
	for i := range 2 {
		name := fmt.Sprint("layer", i)
		h := n.reshape(n.linear(name, x, heads*width), nodes, heads, width)
		score := func(which string) ir.Value {
			return ops.ReduceSum(b, ops.Mul(b, h, n.param(name+which, heads, width)), 2)
		}
		e := ops.LeakyRelu(b, ops.Add(b, ops.Embedding(b, score("/from/w"), from), ops.Embedding(b, score("/to/w"), to)), 0.2)
		top := ops.StopGradient(b, ops.SegmentReduce(b, e, to, ops.SegmentAttrs{Segments: ir.N(nodes), Reduction: "max"}))
		p := ops.Exp(b, ops.Sub(b, e, ops.Embedding(b, top, to)))
		total := ops.SegmentReduce(b, p, to, ops.SegmentAttrs{Segments: ir.N(nodes)})
		p = ops.Div(b, p, ops.Add(b, ops.Embedding(b, total, to), n.number(1e-9)))
		sent := ops.Mul(b, ops.Take(b, h, from, 0, ops.OutsideClip), ops.ExpandDims(b, p, 2))
		x = ops.Elu(b, n.reshape(ops.SegmentReduce(b, sent, to, ops.SegmentAttrs{Segments: ir.N(nodes)}), nodes, heads*width), 1)
	}
	return n.classify(x, 16)
}

// pointNet takes the maximum of each feature over the points of a cloud (Qi et al.).
func pointNet(n *net, times int) ir.Value {
	b := n.Builder
	batch := 4 * times
	x := n.floats("x", batch, 1024, 3)
	for i, c := range []int{64, 128, 1024} {
		name := fmt.Sprint("layer", i)
		x = ops.Relu(b, n.batchNorm(name+"/norm", n.linear(name, x, c)))
	}
	y := ops.ReduceMax(b, x, 1)
	for i, c := range []int{512, 256} {
		name := fmt.Sprint("top", i)
		y = ops.Relu(b, n.batchNorm(name+"/norm", n.linear(name, y, c)))
	}
	return n.classify(y, 40)
}

// shuffleNet has 1×1 convolutions in groups and shuffles their channels (Zhang et al.).
func shuffleNet(n *net, times int) ir.Value {
	b := n.Builder
	batch := 8 * times
	x := n.convAct("stem", n.floats("x", batch, 112, 112, 3), 3, 24, 2, 1, ops.Relu)
	x = n.conv("wide", x, 1, 240, 1, 1)
	for i, c := range []int{240, 240, 240, 480, 480} {
		name, stride := fmt.Sprint("block", i), 1
		if i%3 == 0 {
			stride = 2
		}
		y := n.convAct(name+"/in", x, 1, c/4, 1, 3, ops.Relu)
		h, w := size(y, 1), size(y, 2)
		y = n.reshape(y, batch, h, w, 3, c/12)
		y = n.reshape(ops.Transpose(b, y, 0, 1, 2, 4, 3), batch, h, w, c/4)
		y = n.batchNorm(name+"/deep/norm", n.conv(name+"/deep", y, 3, c/4, stride, c/4))
		y = n.batchNorm(name+"/out/norm", n.conv(name+"/out", y, 1, c, 1, 3))
		if stride == 1 && size(x, 3) == c {
			y = ops.Add(b, x, y)
		}
		x = ops.Relu(b, y)
	}
	return n.classify(ops.Mean(b, x, 1, 2), 100)
}

// resNeXt has convolutions in 32 groups (Xie et al.).
func resNeXt(n *net, times int) ir.Value {
	b := n.Builder
	x := n.convAct("stem", n.floats("x", 8*times, 112, 112, 3), 7, 64, 4, 1, ops.Relu)
	for i, c := range []int{256, 256, 512, 512} {
		name, stride := fmt.Sprint("block", i), 1
		if i == 2 {
			stride = 2
		}
		y := n.convAct(name+"/in", x, 1, c/2, 1, 1, ops.Relu)
		y = n.convAct(name+"/mid", y, 3, c/2, stride, 32, ops.Relu)
		y = n.batchNorm(name+"/norm", n.conv(name+"/out", y, 1, c, 1, 1))
		if size(x, 3) != c {
			x = n.batchNorm(name+"/skip/norm", n.conv(name+"/skip", x, 1, c, stride, 1))
		}
		x = ops.Relu(b, ops.Add(b, x, y))
	}
	return n.classify(ops.Mean(b, x, 1, 2), 100)
}

// style modulates and normalises the weights of convolutions for each image (Karras et al., StyleGAN2).
func style(n *net, times int) ir.Value {
	b := n.Builder
	batch := 2 * times
	z := n.mlp("map", n.floats("z", batch, 128), ops.Silu, 128, 128)
	x := ops.BroadcastTo(b, n.param("first", 1, 8, 8, 128), ir.Dims(batch, 8, 8, 128))
	for i, c := range []int{128, 64, 32} {
		name, in := fmt.Sprint("layer", i), size(x, 3)
		side := 2 * size(x, 1)
		x = ops.Resize(b, x, ops.ResizeAttrs{Sizes: []int{side, side}, Mode: ops.ResizeLinear})
		w := ops.Mul(b, n.param(name+"/w", 1, 3, 3, in, c), n.reshape(ops.Add(b, n.linear(name+"/style", z, in), n.number(1)), batch, 1, 1, in, 1))
		w = ops.Mul(b, w, ops.Rsqrt(b, ops.Add(b, ops.KeepDims(b, ops.ReduceSum, ops.Square(b, w), 1, 2, 3), n.number(1e-8))))
		folded := n.reshape(ops.Transpose(b, x, 1, 2, 0, 3), 1, side, side, batch*in)
		kernel := n.reshape(ops.Transpose(b, w, 1, 2, 3, 0, 4), 3, 3, in, batch*c)
		y := ops.Conv2D(b, folded, kernel, ir.Value{}, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}, Groups: batch})
		x = ops.Transpose(b, n.reshape(y, side, side, batch, c), 2, 0, 1, 3)
		x = ops.LeakyRelu(b, ops.Add(b, ops.Add(b, x, n.param(name+"/b", c)), ops.Mul(b, n.floats(name+"/noise", batch, side, side, 1), n.param(name+"/scale", 1))), 0.2)
	}
	return ops.MSE(b, n.conv("rgb", x, 1, 3, 1, 1), n.floats("image", batch, 64, 64, 3), "mean")
}

// vqvae quantises an encoder's results to the nearest of 512 codes (van den Oord et al.).
func vqvae(n *net, times int) ir.Value {
	b := n.Builder
	batch := 4 * times
	image := n.floats("x", batch, 64, 64, 3)
	x := ops.Relu(b, n.conv("in", image, 3, 64, 2, 1))
	x = ops.Relu(b, n.conv("down", x, 3, 128, 2, 1))
	x = n.conv("code", x, 1, 64, 1, 1)
	side := size(x, 1)
	flat := n.reshape(x, batch*side*side, 64)
	book := n.param("book", 512, 64)
	far := ops.Sub(b, n.reshape(ops.ReduceSum(b, ops.Square(b, book), 1), 1, 512), ops.Mul(b, n.number(2), ops.MatMul(b, flat, ops.Transpose(b, book, 1, 0))))
	q := ops.Embedding(b, book, ops.ArgMin(b, ops.StopGradient(b, far), 1))
	loss := ops.Add(b, ops.MSE(b, q, ops.StopGradient(b, flat), "mean"), ops.Mul(b, n.number(0.25), ops.MSE(b, flat, ops.StopGradient(b, q), "mean")))
	y := n.reshape(ops.Add(b, flat, ops.StopGradient(b, ops.Sub(b, q, flat))), batch, side, side, 64)
	for i, c := range []int{64, 3} {
		name := fmt.Sprint("up", i)
		y = ops.ConvTranspose(b, ops.Relu(b, y), n.param(name+"/w", 4, 4, size(y, 3), c), n.param(name+"/b", c), ops.ConvTransposeAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
	}
	return ops.Add(b, loss, ops.MSE(b, y, image, "mean"))
}

// crf is the likelihood of a chain of tags, a conditional random field (Lafferty et al.).
func crf(n *net, times int) ir.Value {
	b := n.Builder
	const length, tags, width = 64, 24, 128
	batch := 8 * times
	ids := n.ids("ids", 5000, batch, length)
	x := ops.Embedding(b, n.param("words", 5000, width), ids)
	scores := ops.Transpose(b, n.linear("head", ops.Relu(b, n.linear("hidden", x, width)), tags), 1, 0, 2)
	moves := n.param("moves", tags, tags)
	first := n.reshape(ops.SliceAxis(b, scores, 0, ir.N(0), ir.N(1)), batch, tags)
	rest := ops.SliceAxis(b, scores, 0, ir.N(1), ir.N(length-1))
	carries, _ := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{moves}, Carries: []ir.Value{first}, Xs: []ir.Value{rest},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			all := ops.Add(b, ops.ExpandDims(b, carries[0], 2), consts[0])
			return []ir.Value{ops.Add(b, ops.LogSumExp(b, all, 1), xs[0])}, nil
		},
	})
	total := ops.LogSumExp(b, carries[0], 1)
	gold := n.ids("tags", tags, length, batch)
	hit := ops.ReduceSum(b, ops.Mul(b, scores, ops.OneHot(b, gold, ir.N(tags), ir.F32)), 0, 2)
	before, after := ops.SliceAxis(b, gold, 0, ir.N(0), ir.N(length-1)), ops.SliceAxis(b, gold, 0, ir.N(1), ir.N(length-1))
	pair := ops.Add(b, ops.Mul(b, before, ops.Const(b, ir.I32, tags)), after)
	hit = ops.Add(b, hit, ops.ReduceSum(b, ops.Take(b, n.reshape(moves, tags*tags), pair, 0, ops.OutsideClip), 0))
	return n.mean(ops.Sub(b, total, hit))
}

// fnet mixes positions and channels by Fourier transforms (Lee-Thorp et al.).
func fnet(n *net, times int) ir.Value {
	b := n.Builder
	const length, width = 256, 256
	x := ops.Embedding(b, n.param("words", 5000, width), n.ids("ids", 5000, 4*times, length))
	for i := range 4 {
		name := fmt.Sprint("block", i)
		mixed := ops.Real(b, ops.FFT(b, ops.Complex(b, x, ops.ZerosLike(b, x)), ops.FFTAttrs{Axes: []int{1, 2}}))
		x = n.layerNorm(name+"/norm1", ops.Add(b, x, mixed))
		x = n.layerNorm(name+"/norm2", ops.Add(b, x, n.mlp(name+"/mlp", x, ops.Gelu, 1024, width)))
	}
	return n.classify(x, 100)
}

// contrastive compares each of two views with those of all examples (Radford et al., CLIP).
func contrastive(n *net, times int) ir.Value {
	b := n.Builder
	batch := 256 * times
	view := func(name string) ir.Value {
		x := n.mlp("tower"+name, n.floats(name, batch, 512), ops.Relu, 512, 128)
		return ops.Mul(b, x, ops.Rsqrt(b, ops.Add(b, ops.KeepDims(b, ops.ReduceSum, ops.Square(b, x), 1), n.number(1e-6))))
	}
	logits := ops.Mul(b, ops.MatMul(b, view("a"), ops.Transpose(b, view("b"), 1, 0)), ops.Exp(b, n.param("heat", 1)))
	labels := ops.Iota(b, ir.I32, 0, ir.N(batch))
	return ops.Add(b, ops.CrossEntropyMean(b, logits, labels), ops.CrossEntropyMean(b, ops.Transpose(b, logits, 1, 0), labels))
}

// detector has pools of stride 1, upsampling and heads at two resolutions, as YOLO (Redmon et al.) of later versions.
func detector(n *net, times int) ir.Value {
	b := n.Builder
	batch := 2 * times
	x := n.convAct("stem", n.floats("x", batch, 160, 160, 3), 3, 32, 2, 1, ops.Silu)
	x = n.convAct("down1", x, 3, 64, 2, 1, ops.Silu)
	csp := func(name string, x ir.Value, c int) ir.Value {
		y := n.convAct(name+"/in", x, 1, c, 1, 1, ops.Silu)
		parts := ops.SplitEvenly(b, y, 3, 2)
		z := n.convAct(name+"/b", n.convAct(name+"/a", parts[1], 3, c/2, 1, 1, ops.Silu), 3, c/2, 1, 1, ops.Silu)
		return n.convAct(name+"/out", ops.Concatenate(b, 3, parts[0], parts[1], ops.Add(b, parts[1], z)), 1, c, 1, 1, ops.Silu)
	}
	x = csp("c1", x, 64)
	fine := csp("c2", n.convAct("down2", x, 3, 128, 2, 1, ops.Silu), 128)
	deep := csp("c3", n.convAct("down3", fine, 3, 256, 2, 1, ops.Silu), 256)
	p := n.convAct("spp/in", deep, 1, 128, 1, 1, ops.Silu)
	pools := []ir.Value{p}
	for range 3 {
		p = ops.MaxPool(b, p, ops.PoolAttrs{Sizes: []int{5, 5}, Strides: []int{1, 1}, PadLo: []int{2, 2}, PadHi: []int{2, 2}})
		pools = append(pools, p)
	}
	deep = n.convAct("spp/out", ops.Concatenate(b, 3, pools...), 1, 256, 1, 1, ops.Silu)
	up := ops.Resize(b, deep, ops.ResizeAttrs{Sizes: []int{20, 20}, Mode: ops.ResizeNearest})
	fine = csp("c4", ops.Concatenate(b, 3, up, fine), 128)
	loss := ir.Value{}
	for i, f := range []ir.Value{fine, deep} {
		y := n.conv(fmt.Sprint("head", i), f, 1, 85, 1, 1)
		one := ops.BCEWithLogits(b, y, ops.Sigmoid(b, n.floats(fmt.Sprint("target", i), batch, size(y, 1), size(y, 2), 85)), "mean")
		if i == 0 {
			loss = one
		} else {
			loss = ops.Add(b, loss, one)
		}
	}
	return loss
}

// convLSTM has convolutions in its time steps (Shi et al.).
func convLSTM(n *net, times int) ir.Value {
	b := n.Builder
	const steps, side, width = 8, 32, 32
	batch := times
	x := n.floats("x", steps, batch, side, side, 4)
	w, bias := n.param("gates/w", 3, 3, 4+width, 4*width), n.param("gates/b", 4*width)
	zero := ops.Const(b, ir.F32, 0, ir.Dims(batch, side, side, width)...)
	_, ys := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{w, bias}, Carries: []ir.Value{zero, zero}, Xs: []ir.Value{x},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			g := ops.Conv2D(b, ops.Concatenate(b, 3, xs[0], carries[0]), consts[0], consts[1], ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}})
			gates := ops.SplitEvenly(b, g, 3, 4)
			c := ops.Add(b, ops.Mul(b, ops.Sigmoid(b, gates[1]), carries[1]), ops.Mul(b, ops.Sigmoid(b, gates[0]), ops.Tanh(b, gates[2])))
			h := ops.Mul(b, ops.Sigmoid(b, gates[3]), ops.Tanh(b, c))
			return []ir.Value{h, c}, []ir.Value{h}
		},
	})
	y := n.conv("out", n.reshape(ys[0], steps*batch, side, side, width), 1, 4, 1, 1)
	return ops.MSE(b, y, n.floats("next", steps*batch, side, side, 4), "mean")
}

// spatialTransformer samples images at affine grids that it predicts (Jaderberg et al.).
func spatialTransformer(n *net, times int) ir.Value {
	b := n.Builder
	batch := 8 * times
	x := n.convAct("stem", n.floats("x", batch, 64, 64, 3), 3, 32, 2, 1, ops.Relu)
	theta := n.mlp("where", ops.Mean(b, x, 1, 2), ops.Relu, 32, 6)
	grid := image.AffineGrid(b, n.reshape(theta, batch, 2, 3), []int{32, 32}, false)
	y := image.GridSample(b, x, grid)
	y = n.convAct("next", y, 3, 64, 2, 1, ops.Relu)
	return n.classify(ops.Mean(b, y, 1, 2), 10)
}

// word2vec is skip-grams with negative sampling (Mikolov et al.).
func word2vec(n *net, times int) ir.Value {
	b := n.Builder
	const vocabulary, width, negative = 50_000, 128, 10
	batch := 1024 * times
	centre := ops.Embedding(b, n.param("in", vocabulary, width), n.ids("centre", vocabulary, batch))
	others := ops.Embedding(b, n.param("out", vocabulary, width), n.ids("others", vocabulary, batch, negative+1))
	dots := n.reshape(ops.MatMul(b, others, n.reshape(centre, batch, width, 1)), batch, negative+1)
	first := ops.Eq(b, ops.Iota(b, ir.I32, 1, ir.Dims(batch, negative+1)...), ops.Const(b, ir.I32, 0))
	return n.mean(ops.Softplus(b, ops.Select(b, first, ops.Neg(b, dots), dots)))
}

// cycleGAN is a network from images to images, with instance norms and reflected borders (Zhu et al.).
func cycleGAN(n *net, times int) ir.Value {
	b := n.Builder
	norm := func(name string, x ir.Value) ir.Value {
		return ops.Relu(b, ops.InstanceNorm(b, x, n.param(name+"/scale", size(x, 3)), n.param(name+"/b", size(x, 3)), 1e-5))
	}
	mirrored := func(name string, x ir.Value, window, out int) ir.Value {
		k := window / 2
		x = ops.PadMode(b, x, []int{0, k, k, 0}, []int{0, k, k, 0}, ops.PadReflect)
		return ops.Conv2D(b, x, n.param(name+"/w", window, window, size(x, 3), out), n.param(name+"/b", out), ops.Conv2DAttrs{})
	}
	image := n.floats("x", times, 128, 128, 3)
	x := norm("norm0", mirrored("in", image, 7, 32))
	x = norm("norm1", n.conv("down1", x, 3, 64, 2, 1))
	x = norm("norm2", n.conv("down2", x, 3, 128, 2, 1))
	for i := range 3 {
		name := fmt.Sprint("block", i)
		y := norm(name+"/norm1", mirrored(name+"/a", x, 3, 128))
		x = ops.Add(b, x, norm(name+"/norm2", mirrored(name+"/b", y, 3, 128)))
	}
	for i, c := range []int{64, 32} {
		name := fmt.Sprint("up", i)
		x = ops.ConvTranspose(b, x, n.param(name+"/w", 3, 3, size(x, 3), c), n.param(name+"/b", c), ops.ConvTransposeAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}, OutputPadding: []int{1, 1}})
		x = norm(name+"/norm", x)
	}
	y := ops.Tanh(b, mirrored("out", x, 7, 3))
	return n.mean(ops.Abs(b, ops.Sub(b, y, image)))
}

// hyena has convolutions as long as its sequences, by Fourier transforms (Poli et al.).
func hyena(n *net, times int) ir.Value {
	b := n.Builder
	const length, width = 1024, 128
	x := ops.Embedding(b, n.param("words", 1000, width), n.ids("ids", 1000, times, length))
	for i := range 2 {
		name := fmt.Sprint("block", i)
		parts := ops.SplitEvenly(b, n.linear(name+"/in", n.layerNorm(name+"/norm", x), 3*width), 2, 3)
		v := ops.Transpose(b, ops.Mul(b, parts[0], parts[1]), 0, 2, 1)
		at := ops.Mul(b, n.reshape(ops.Iota(b, ir.F32, 0, ir.N(length)), length, 1), n.number(1.0/length))
		filter := ops.Transpose(b, n.mlp(name+"/filter", at, ops.Sin, 64, width), 1, 0)
		pad := func(x ir.Value) ir.Value {
			high := make([]int, x.Rank())
			high[x.Rank()-1] = length
			return ops.RFFT(b, ops.Pad(b, x, n.number(0), make([]int, x.Rank()), high, make([]int, x.Rank())), -1, "")
		}
		y := ops.IRFFT(b, ops.Mul(b, pad(v), pad(filter)), -1, 2*length, "")
		y = ops.Transpose(b, ops.SliceAxis(b, y, 2, ir.N(0), ir.N(length)), 0, 2, 1)
		x = ops.Add(b, x, n.linear(name+"/out", ops.Mul(b, y, parts[2]), width))
	}
	return n.classify(x, 1000)
}

// kan has a learnt function for each weight (Liu et al., Kolmogorov–Arnold Networks), here of Gaussians.
func kan(n *net, times int) ir.Value {
	b := n.Builder
	const grid = 8
	batch := 128 * times
	x := n.floats("x", batch, 64)
	for i, out := range []int{128, 128, 10} {
		name := fmt.Sprint("layer", i)
		in := size(x, 1)
		knots := ops.Sub(b, ops.Mul(b, ops.Iota(b, ir.F32, 0, ir.N(grid)), n.number(2.0/(grid-1))), n.number(1))
		far := ops.Mul(b, ops.Sub(b, ops.ExpandDims(b, ops.Tanh(b, x), 2), knots), n.number(grid/2))
		basis := ops.Exp(b, ops.Neg(b, ops.Square(b, far)))
		y := ops.Einsum(b, "big,iog->bo", basis, n.param(name+"/spline", in, out, grid))
		x = ops.Add(b, y, ops.MatMul(b, ops.Silu(b, x), n.param(name+"/w", in, out)))
	}
	return ops.CrossEntropyMean(b, x, n.ids("labels", 10, batch))
}

// capsules route by agreement (Sabour et al.).
func capsules(n *net, times int) ir.Value {
	b := n.Builder
	const primary, classes, from, to = 288, 10, 8, 16
	batch := 8 * times
	squash := func(x ir.Value) ir.Value {
		square := ops.KeepDims(b, ops.ReduceSum, ops.Square(b, x), -1)
		return ops.Mul(b, x, ops.Div(b, ops.Sqrt(b, ops.Add(b, square, n.number(1e-8))), ops.Add(b, square, n.number(1))))
	}
	x := ops.Relu(b, n.conv("in", n.floats("x", batch, 24, 24, 1), 5, 64, 2, 1))
	x = n.conv("primary", x, 5, 64, 2, 1)
	u := squash(n.reshape(x, batch, primary, from))
	votes := ops.Einsum(b, "bpi,pcio->bpco", u, n.param("votes", primary, classes, from, to))
	fixed := ops.StopGradient(b, votes)
	logits := ops.Const(b, ir.F32, 0, ir.Dims(batch, primary, classes)...)
	var v ir.Value
	for i := range 3 {
		share := ops.Softmax(b, logits, 2)
		if i == 2 {
			v = squash(ops.Einsum(b, "bpc,bpco->bco", share, votes))
			break
		}
		v = squash(ops.Einsum(b, "bpc,bpco->bco", share, fixed))
		logits = ops.Add(b, logits, ops.Einsum(b, "bpco,bco->bpc", fixed, v))
	}
	long := ops.Sqrt(b, ops.Add(b, ops.ReduceSum(b, ops.Square(b, v), 2), n.number(1e-8)))
	hit := ops.OneHot(b, n.ids("labels", classes, batch), ir.N(classes), ir.F32)
	low, high := ops.Relu(b, ops.Sub(b, n.number(0.9), long)), ops.Relu(b, ops.Sub(b, long, n.number(0.1)))
	return n.mean(ops.Add(b, ops.Mul(b, hit, ops.Square(b, low)), ops.Mul(b, ops.Sub(b, n.number(0.5), ops.Mul(b, n.number(0.5), hit)), ops.Square(b, high))))
}

// ode integrates a network by the method of Runge and Kutta (Chen et al., Neural Ordinary Differential Equations).
func ode(n *net, times int) ir.Value {
	b := n.Builder
	batch := 128 * times
	consts := []ir.Value{n.param("f0/w", 32, 64), n.param("f0/b", 64), n.param("f1/w", 64, 32), n.param("f1/b", 32)}
	const h = 0.1
	carries, _ := ops.Scan(b, ops.Loop{
		Consts: consts, Carries: []ir.Value{n.linear("in", n.floats("x", batch, 16), 32)}, Length: ir.N(16),
		Body: func(b *ir.Builder, c, carries, _ []ir.Value) (next, ys []ir.Value) {
			f := func(y ir.Value) ir.Value {
				return ops.Linear(b, ops.Tanh(b, ops.Linear(b, y, c[0], c[1])), c[2], c[3])
			}
			scaled := func(k float64, x ir.Value) ir.Value { return ops.Mul(b, ops.Const(b, ir.F32, k), x) }
			y := carries[0]
			k1 := f(y)
			k2 := f(ops.Add(b, y, scaled(h/2, k1)))
			k3 := f(ops.Add(b, y, scaled(h/2, k2)))
			k4 := f(ops.Add(b, y, scaled(h, k3)))
			sum := ops.Add(b, ops.Add(b, k1, scaled(2, k2)), ops.Add(b, scaled(2, k3), k4))
			return []ir.Value{ops.Add(b, y, scaled(h/6, sum))}, nil
		},
	})
	return n.classify(carries[0], 10)
}

// tabular attends between the columns of a table (Gorishniy et al., FT-Transformer).
func tabular(n *net, times int) ir.Value {
	b := n.Builder
	const columns, width = 40, 64
	batch := 64 * times
	x := ops.Mul(b, n.floats("x", batch, columns, 1), n.param("column/w", columns, width))
	x = ops.Add(b, x, n.param("column/b", columns, width))
	for i := range 3 {
		x = n.preNorm(fmt.Sprint("block", i), x, 8, false)
	}
	return ops.MSE(b, n.linear("head", n.layerNorm("norm", ops.Mean(b, x, 1)), 1), n.floats("y", batch, 1), "mean")
}
