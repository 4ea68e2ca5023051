package plan_test

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// furtherFamilies are losses of models of further kinds, at real sizes.
var furtherFamilies = []family{
	{"pyramid of dilations", trained(dilatedPyramid)},
	{"temporal shift", trained(temporalShift)},
	{"temporal convolutions", trained(temporalConvolutions)},
	{"relative attention", trained(relativeAttention)},
	{"mlp mixer", trained(mixer)},
	{"fourier operator", trained(fourierOperator)},
	{"capsules", trained(capsules)},
	{"coupling flow", trained(couplingFlow)},
	{"codebook", trained(codebook)},
	{"contrastive", trained(contrastive)},
	{"bags of words", trained(bags)},
	{"transducer", trained(transducer)},
	{"neural ode", trained(neuralODE)},
	{"sparse codes", trained(sparseCodes)},
	{"deformable", trained(deformable)},
	{"point cloud", trained(pointCloud)},
	{"fixed point", trained(fixedPoint)},
}

// dilatedPyramid is parallel convolutions of four dilations and a mean of the image (Chen et al., DeepLab).
func dilatedPyramid(b *ir.Builder) ir.Value {
	x := nn.Conv2d(b, input(b, "x", 8, 33, 33, 320), 256, 1)
	act := func(x ir.Value) ir.Value { return ops.Relu(b, nn.BatchNorm(b, x)) }
	parts := []ir.Value{act(nn.Conv2d(b, x, 256, 1))}
	for _, d := range []int{6, 12, 18} {
		parts = append(parts, act(nn.Conv2d(b, x, 256, 3, nn.ConvOptions{Same: true, Dilation: []int{d}})))
	}
	mean := ops.Relu(b, nn.Linear(b, nn.GlobalAvgPool(b, x), 256))
	parts = append(parts, ops.BroadcastTo(b, ops.Reshape(b, mean, ir.Dims(8, 1, 1, 256)...), ir.Dims(8, 33, 33, 256)))
	x = act(nn.Conv2d(b, ops.Concatenate(b, 3, parts...), 256, 1))
	return nn.Conv2d(b, image.Resize(b, x, []int{129, 129}), 21, 1)
}

// temporalShift moves an eighth of the channels to the next and to the last frame (Lin, Gan and Han).
func temporalShift(b *ir.Builder) ir.Value {
	const clips, frames, side, width, fold = 8, 8, 28, 128, 16
	x := nn.Conv2d(b, input(b, "x", clips*frames, side, side, 64), width, 1)
	for range 2 {
		h := ops.Reshape(b, x, ir.Dims(clips, frames, side, side, width)...)
		part := func(from, n int) ir.Value { return ops.SliceAxis(b, h, 4, ir.N(from), ir.N(n)) }
		h = ops.Concatenate(b, 4, ops.Roll(b, part(0, fold), 1, -1), ops.Roll(b, part(fold, fold), 1, 1), part(2*fold, width-2*fold))
		h = ops.Reshape(b, h, ir.Dims(clips*frames, side, side, width)...)
		x = ops.Add(b, x, ops.Relu(b, nn.BatchNorm(b, nn.Conv2d(b, h, width, 3, nn.ConvOptions{Same: true}))))
	}
	return nn.Linear(b, nn.GlobalAvgPool(b, x), 174)
}

// temporalConvolutions is causal convolutions of growing dilation (Bai, Kolter and Koltun).
func temporalConvolutions(b *ir.Builder) ir.Value {
	x := input(b, "x", 32, 1024, 88)
	for i := range 4 {
		h := image.Pad(b, x, []int{0, 2 << i, 0}, []int{0, 0, 0}, image.Zeros)
		h = ops.Relu(b, nn.Conv1d(b, h, 150, 3, nn.ConvOptions{Dilation: []int{1 << i}}))
		if i == 0 {
			x = nn.Conv1d(b, x, 150, 1)
		}
		x = ops.Relu(b, ops.Add(b, x, nn.Dropout(b, h, 0.2)))
	}
	return nn.Linear(b, x, 88)
}

// relativeAttention is attention by content and by distance over a segment and its memory (Dai et al., Transformer-XL).
func relativeAttention(b *ir.Builder) ir.Value {
	const batch, length, memory, heads, depth = 8, 256, 256, 8, 64
	const width, keys = heads * depth, length + memory
	x := nn.Linear(b, input(b, "x", batch, length, 128), width)
	all := ops.Concatenate(b, 1, input(b, "memory", batch, memory, width), x)
	split := func(x ir.Value, n int) ir.Value { return ops.Reshape(b, x, ir.Dims(batch, n, heads, depth)...) }
	q, k, v := split(nn.Linear(b, x, width), length), split(nn.Linear(b, all, width), keys), split(nn.Linear(b, all, width), keys)
	r := ops.Reshape(b, nn.Linear(b, input(b, "distances", keys, width), width), ir.Dims(keys, heads, depth)...)
	content, place := b.Param("u", ir.F32, ir.Dims(heads, depth)...), b.Param("v", ir.F32, ir.Dims(heads, depth)...)
	near := ops.Einsum(b, "bihd,bjhd->bhij", ops.Add(b, q, content), k)
	far := ops.Einsum(b, "bihd,jhd->bhij", ops.Add(b, q, place), r)
	// Row i is shifted by i: a column is added, and the rows are read with another length.
	far = ops.Reshape(b, image.Pad(b, far, []int{0, 0, 0, 1}, []int{0, 0, 0, 0}, image.Zeros), ir.Dims(batch, heads, keys+1, length)...)
	far = ops.Reshape(b, ops.SliceAxis(b, far, 2, ir.N(1), ir.N(keys)), ir.Dims(batch, heads, length, keys)...)
	score := ops.Add(b, near, far)
	weight := ops.Softmax(b, ops.Mul(b, score, ops.ConstLike(b, score, 1/math.Sqrt(depth))), 3)
	y := ops.Reshape(b, ops.Einsum(b, "bhij,bjhd->bihd", weight, v), ir.Dims(batch, length, width)...)
	return nn.LayerNorm(b, ops.Add(b, x, nn.Linear(b, y, width)))
}

// mixer mixes patches, then channels (Tolstikhin et al.).
func mixer(b *ir.Builder) ir.Value {
	x := nn.Linear(b, input(b, "x", 32, 196, 768), 512)
	for range 2 {
		h := ops.Transpose(b, nn.LayerNorm(b, x), 0, 2, 1)
		x = ops.Add(b, x, ops.Transpose(b, nn.MLP(b, h, 256), 0, 2, 1))
		x = ops.Add(b, x, nn.MLP(b, nn.LayerNorm(b, x), 2048))
	}
	return nn.Linear(b, ops.Mean(b, x, 1), 1000)
}

// fourierOperator multiplies the low frequencies of fields by matrices (Li et al.).
func fourierOperator(b *ir.Builder) ir.Value {
	const batch, length, width, modes = 16, 4096, 64, 32
	x := nn.Linear(b, input(b, "x", batch, length, 2), width)
	for i := range 2 {
		low := ops.SliceAxis(b, ops.RFFT(b, ops.Transpose(b, x, 0, 2, 1), 2, ""), 2, ir.N(0), ir.N(modes))
		re, im := ops.Real(b, low), ops.Imag(b, low)
		a, c := b.Param(fmt.Sprint("real", i), ir.F32, ir.Dims(modes, width, width)...), b.Param(fmt.Sprint("imag", i), ir.F32, ir.Dims(modes, width, width)...)
		mul := func(x, w ir.Value) ir.Value { return ops.Einsum(b, "bik,kio->bok", x, w) }
		y := ops.Complex(b, ops.Sub(b, mul(re, a), mul(im, c)), ops.Add(b, mul(re, c), mul(im, a)))
		zero := ops.Zeros(b, ir.C64, ir.Dims(batch, width, length/2+1-modes)...)
		y = ops.IRFFT(b, ops.Concatenate(b, 2, y, zero), 2, length, "")
		x = ops.Gelu(b, ops.Add(b, ops.Transpose(b, y, 0, 2, 1), nn.Linear(b, x, width)))
	}
	return nn.Linear(b, x, 1)
}

// capsules routes 1,152 capsules to ten by agreement (Sabour, Frosst and Hinton).
func capsules(b *ir.Builder) ir.Value {
	const batch, in, out, short, long = 64, 1152, 10, 8, 16
	u := ops.Einsum(b, "bis,iosl->biol", input(b, "u", batch, in, short), b.Param("w", ir.F32, ir.Dims(in, out, short, long)...))
	logits := ops.Zeros(b, ir.F32, ir.Dims(batch, in, out)...)
	var v ir.Value
	for i := range 3 {
		s := ops.Einsum(b, "bio,biol->bol", ops.Softmax(b, logits, 2), u)
		norm := ops.KeepDims(b, ops.ReduceSum, ops.Square(b, s), 2)
		v = ops.Mul(b, s, ops.Div(b, ops.Sqrt(b, ops.Add(b, norm, ops.ConstLike(b, norm, 1e-7))), ops.Add(b, norm, ops.ConstLike(b, norm, 1))))
		if i < 2 {
			logits = ops.Add(b, logits, ops.Einsum(b, "biol,bol->bio", u, v))
		}
	}
	return v
}

// couplingFlow scales and shifts half of the pixels by a network of the others (Dinh, Sohl-Dickstein and Bengio).
func couplingFlow(b *ir.Builder) ir.Value {
	x := input(b, "x", 64, 32, 32, 6)
	var logs ir.Value
	for i := range 4 {
		kept, moved := ops.SliceAxis(b, x, 3, ir.N(0), ir.N(3)), ops.SliceAxis(b, x, 3, ir.N(3), ir.N(3))
		h := ops.Relu(b, nn.Conv2d(b, kept, 64, 3, nn.ConvOptions{Same: true}))
		h = nn.Conv2d(b, h, 6, 3, nn.ConvOptions{Same: true})
		scale := ops.Tanh(b, ops.SliceAxis(b, h, 3, ir.N(0), ir.N(3)))
		moved = ops.Add(b, ops.Mul(b, moved, ops.Exp(b, scale)), ops.SliceAxis(b, h, 3, ir.N(3), ir.N(3)))
		x = ops.Concatenate(b, 3, moved, kept)
		if sum := ops.ReduceSum(b, scale, 1, 2, 3); i == 0 {
			logs = sum
		} else {
			logs = ops.Add(b, logs, sum)
		}
	}
	return ops.Sub(b, logs, ops.ReduceSum(b, ops.Square(b, x), 1, 2, 3))
}

// codebook replaces vectors by the nearest of 1,024, through which gradients pass (van den Oord et al., VQ-VAE).
func codebook(b *ir.Builder) ir.Value {
	const rows, width, codes = 32_768, 64, 1024
	x := nn.Linear(b, input(b, "x", rows, 128), width)
	table := b.Param("codes", ir.F32, ir.Dims(codes, width)...)
	dots := ops.Einsum(b, "rw,cw->rc", x, table)
	far := ops.Sub(b, ops.ReduceSum(b, ops.Square(b, table), 1), ops.Mul(b, dots, ops.ConstLike(b, dots, 2)))
	near := ops.Embedding(b, table, ops.ArgMin(b, far, 1))
	y := nn.Linear(b, ops.Add(b, x, ops.StopGradient(b, ops.Sub(b, near, x))), 128)
	pull := ops.Add(b, ops.Square(b, ops.Sub(b, ops.StopGradient(b, x), near)), ops.Square(b, ops.Sub(b, x, ops.StopGradient(b, near))))
	return ops.Concatenate(b, 1, y, pull)
}

// contrastive compares 4,096 texts with 4,096 pictures, each with each (Radford et al., CLIP).
func contrastive(b *ir.Builder) ir.Value {
	const pairs, width = 4096, 512
	unit := func(x ir.Value) ir.Value {
		norm := ops.KeepDims(b, ops.ReduceSum, ops.Square(b, x), 1)
		return ops.Mul(b, x, ops.Rsqrt(b, ops.Add(b, norm, ops.ConstLike(b, norm, 1e-6))))
	}
	x, y := unit(nn.Linear(b, input(b, "x", pairs, 768), width)), unit(nn.Linear(b, input(b, "y", pairs, 1024), width))
	logits := ops.Einsum(b, "iw,jw->ij", x, y)
	logits = ops.Mul(b, logits, ops.Exp(b, b.Param("scale", ir.F32)))
	at := ops.Iota(b, ir.I32, 0, ir.N(pairs))
	return ops.Add(b, ops.CrossEntropy(b, logits, at), ops.CrossEntropy(b, ops.Transpose(b, logits, 1, 0), at))
}

// bags sums 20 rows of each of 26 tables of 10⁵ rows, and multiplies all pairs (Naumov et al., DLRM).
func bags(b *ir.Builder) ir.Value {
	const batch, tables, words, rows, width = 2048, 26, 20, 100_000, 16
	parts := []ir.Value{nn.MLP(b, input(b, "dense", batch, 13), 512)}
	parts[0] = nn.Linear(b, parts[0], width)
	for i := range tables {
		ids := b.Input(fmt.Sprint("ids", i), ir.I32, ir.Dims(batch, words)...)
		parts = append(parts, nn.EmbeddingBag(b, ids, rows, width))
	}
	x := ops.Stack(b, 1, parts...)
	pairs := ops.Reshape(b, ops.Einsum(b, "biw,bjw->bij", x, x), ir.Dims(batch, (tables+1)*(tables+1))...)
	return nn.Linear(b, ops.Relu(b, nn.Linear(b, ops.Concatenate(b, 1, parts[0], pairs), 512)), 1)
}

// transducer is the likelihood of texts of 40 letters in 200 frames, over all alignments (Graves): the sums of a row
// are a recurrence over its letters, in logarithms.
func transducer(b *ir.Builder) ir.Value {
	const batch, frames, letters, width, symbols = 8, 200, 40, 128, 48
	heard, said := nn.Linear(b, input(b, "frames", batch, frames, 80), width), nn.Linear(b, input(b, "letters", batch, letters, 64), width)
	joint := ops.Tanh(b, ops.Add(b, ops.ExpandDims(b, heard, 2), ops.ExpandDims(b, said, 1)))
	logs := ops.LogSoftmax(b, nn.Linear(b, joint, symbols), 3)
	blank := ops.Squeeze(b, ops.SliceAxis(b, logs, 3, ir.N(0), ir.N(1)), 3)
	ids := ops.BroadcastTo(b, ops.Reshape(b, b.Input("text", ir.I32, ir.Dims(batch, letters)...), ir.Dims(batch, 1, letters, 1)...), ir.Dims(batch, frames, letters, 1))
	next := ops.Squeeze(b, ops.TakeAlongAxis(b, logs, ids, 3, ""), 3)
	over := func(x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0, 2) }
	first := ops.Zeros(b, ir.F32, ir.Dims(batch, letters)...)
	_, ys := ops.Scan(b, ops.Loop{
		Carries: []ir.Value{first}, Xs: []ir.Value{over(blank), over(next)},
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			said := ops.CumSum(b, xs[1], ops.CumSumAttrs{Axis: 1})
			sum := ops.Add(b, said, ops.CumLogSumExp(b, ops.Sub(b, ops.Add(b, carries[0], xs[0]), said), ops.CumSumAttrs{Axis: 1}))
			return []ir.Value{sum}, []ir.Value{sum}
		},
	})
	return ys[0]
}

// neuralODE integrates a network by Runge and Kutta's fourth order (Chen et al.).
func neuralODE(b *ir.Builder) ir.Value {
	const batch, width, hidden, steps = 4096, 64, 128, 20
	weights := []ir.Value{b.Param("w0", ir.F32, ir.Dims(width, hidden)...), b.Param("b0", ir.F32, ir.N(hidden)), b.Param("w1", ir.F32, ir.Dims(hidden, width)...), b.Param("b1", ir.F32, ir.N(width))}
	carries, _ := ops.Scan(b, ops.Loop{
		Consts: weights, Carries: []ir.Value{input(b, "x", batch, width)}, Xs: []ir.Value{input(b, "steps", steps)},
		Body: func(b *ir.Builder, w, carries, xs []ir.Value) (next, ys []ir.Value) {
			x := carries[0]
			f := func(x ir.Value) ir.Value {
				return ops.Linear(b, ops.Tanh(b, ops.Linear(b, x, w[0], w[1])), w[2], w[3])
			}
			along := func(k ir.Value, by float64) ir.Value {
				return ops.Add(b, x, ops.Mul(b, k, ops.ConstLike(b, k, by)))
			}
			k1 := f(x)
			k2 := f(along(k1, 0.025))
			k3 := f(along(k2, 0.025))
			k4 := f(along(k3, 0.05))
			sum := ops.Add(b, ops.Add(b, k1, k4), ops.Mul(b, ops.Add(b, k2, k3), ops.ConstLike(b, k2, 2)))
			return []ir.Value{along(ops.Mul(b, sum, xs[0]), 1)}, nil
		},
	})
	return carries[0]
}

// sparseCodes are ten steps of a learned shrinkage (Gregor and LeCun).
func sparseCodes(b *ir.Builder) ir.Value {
	const batch, width, codes = 4096, 256, 1024
	dictionary, threshold := b.Param("dictionary", ir.F32, ir.Dims(codes, width)...), b.Param("threshold", ir.F32, ir.N(codes))
	x := input(b, "x", batch, width)
	z := ops.Zeros(b, ir.F32, ir.Dims(batch, codes)...)
	for range 5 {
		rest := ops.Sub(b, x, ops.MatMul(b, z, dictionary))
		z = ops.Add(b, z, ops.Einsum(b, "bw,cw->bc", rest, dictionary))
		z = ops.Mul(b, ops.Sign(b, z), ops.Relu(b, ops.Sub(b, ops.Abs(b, z), threshold)))
	}
	return ops.Sub(b, x, ops.MatMul(b, z, dictionary))
}

// deformable samples a picture at nine moved places for each pixel (Dai et al., Deformable Convolutional Networks).
func deformable(b *ir.Builder) ir.Value {
	const batch, side, width = 8, 32, 64
	x := nn.Conv2d(b, input(b, "x", batch, side, side, 3), width, 3, nn.ConvOptions{Same: true})
	grid := ops.Reshape(b, nn.Conv2d(b, x, 18, 3, nn.ConvOptions{Same: true}), ir.Dims(batch, side, 9*side, 2)...)
	y := image.GridSample(b, x, ops.Tanh(b, grid))
	return nn.Linear(b, ops.Reshape(b, y, ir.Dims(batch, side, side, 9*width)...), width)
}

// pointCloud is a convolution over the edges to the 16 nearest of 1,024 points (Wang et al., Dynamic Graph CNN).
func pointCloud(b *ir.Builder) ir.Value {
	const batch, points, near, width = 8, 1024, 16, 64
	x := nn.Linear(b, input(b, "x", batch, points, 3), 32)
	norm := ops.ReduceSum(b, ops.Square(b, x), 2)
	dots := ops.Einsum(b, "biw,bjw->bij", x, x)
	close := ops.Sub(b, ops.Mul(b, dots, ops.ConstLike(b, dots, 2)), ops.ExpandDims(b, norm, 1))
	_, at := ops.TopK(b, ops.StopGradient(b, close), ops.TopKAttrs{K: near, Axis: 2})
	first := ops.Reshape(b, ops.Mul(b, ops.Iota(b, ir.I32, 0, ir.N(batch)), ops.Const(b, ir.I32, points, ir.N(batch))), ir.Dims(batch, 1, 1)...)
	others := ops.Embedding(b, ops.Reshape(b, x, ir.Dims(batch*points, 32)...), ops.Add(b, ops.Convert(b, at, ir.I32), first))
	own := ops.BroadcastTo(b, ops.ExpandDims(b, x, 2), ir.Dims(batch, points, near, 32))
	edges := ops.Relu(b, nn.BatchNorm(b, nn.Linear(b, ops.Concatenate(b, 3, own, ops.Sub(b, others, own)), width)))
	return nn.Linear(b, ops.ReduceMax(b, ops.ReduceMax(b, edges, 2), 1), 40)
}

// fixedPoint is an equilibrium (Bai, Kolter and Koltun) by iterations of one layer, whose layer norm has few rows.
func fixedPoint(b *ir.Builder) ir.Value {
	const batch, width, steps = 512, 128, 24
	w, bias := b.Param("w", ir.F32, ir.Dims(width, width)...), b.Param("bias", ir.F32, ir.N(width))
	scale, shift := b.Param("scale", ir.F32, ir.N(width)), b.Param("shift", ir.F32, ir.N(width))
	x := nn.Linear(b, input(b, "x", batch, 64), width)
	z := ops.ZerosLike(b, x)
	for range steps {
		z = ops.Tanh(b, ops.Add(b, ops.LayerNorm(b, ops.Linear(b, z, w, bias), scale, shift, 1e-5), x))
	}
	return z
}
