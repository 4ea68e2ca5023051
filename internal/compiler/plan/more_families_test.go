package plan_test

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// moreFamilies are losses of models of further kinds, at sizes of a GPU, of which only plans are made.
var moreFamilies = []family{
	{"mobile vit", trained(mobileViT)},
	{"set transformer", trained(setTransformer)},
	{"perceiver", trained(perceiver)},
	{"graph attention", trained(graphAttention)},
	{"convlstm", trained(convLSTM)},
	{"conv 3d", trained(volumes)},
	{"super-resolution", trained(superResolution)},
	{"deep hedging", trained(hedging)},
	{"mixture density", trained(mixtureDensity)},
	{"triangular flow", trained(triangularFlow)},
}

// trained is [lossOf] a model of layers in training.
func trained(model func(b *ir.Builder) ir.Value) func() (*ir.Graph, error) {
	return lossOf(func(b *ir.Builder) ir.Value {
		nn.Train(b)
		return model(b)
	})
}

// input is an input of f32.
func input(b *ir.Builder, name string, dims ...int) ir.Value {
	return b.Input(name, ir.F32, ir.Dims(dims...)...)
}

// mobileViT is convolutions, then attention over the patches of an image (Mehta and Rastegari).
func mobileViT(b *ir.Builder) ir.Value {
	x := input(b, "x", 32, 64, 64, 3)
	x = ops.Silu(b, nn.BatchNorm(b, nn.Conv2d(b, x, 32, 3, nn.ConvOptions{Stride: []int{2}, Same: true})))
	x = ops.Silu(b, nn.BatchNorm(b, nn.Conv2d(b, x, 32, 3, nn.ConvOptions{Same: true, Groups: 32})))
	x = nn.Conv2d(b, x, 96, 1)
	// [batch, pixels of a patch, patches, channels]
	y := ops.Reshape(b, x, ir.Dims(32, 16, 2, 16, 2, 96)...)
	y = ops.Reshape(b, ops.Transpose(b, y, 0, 2, 4, 1, 3, 5), ir.Dims(128, 256, 96)...)
	for range 2 {
		y = nn.TransformerBlock(b, y, 4)
	}
	y = ops.Transpose(b, ops.Reshape(b, y, ir.Dims(32, 2, 2, 16, 16, 96)...), 0, 3, 1, 4, 2, 5)
	x = ops.Concatenate(b, 3, x, ops.Reshape(b, y, ir.Dims(32, 32, 32, 96)...))
	return nn.Linear(b, nn.GlobalAvgPool(b, ops.Silu(b, nn.Conv2d(b, x, 128, 3, nn.ConvOptions{Same: true}))), 100)
}

// setTransformer is induced attention over sets (Lee et al.).
func setTransformer(b *ir.Builder) ir.Value {
	x := nn.Linear(b, input(b, "x", 64, 500, 16), 128)
	for i := range 2 {
		points := ops.BroadcastTo(b, b.Param(fmt.Sprint("points", i), ir.F32, ir.Dims(32, 128)...), ir.Dims(64, 32, 128))
		h := nn.LayerNorm(b, ops.Add(b, points, nn.Attention(b, points, 4, nn.AttentionOptions{Context: x})))
		x = nn.LayerNorm(b, ops.Add(b, x, nn.Attention(b, x, 4, nn.AttentionOptions{Context: h})))
		x = ops.Add(b, x, nn.MLP(b, x, 256))
	}
	return nn.Linear(b, ops.ReduceMax(b, x, 1), 10)
}

// perceiver reads long inputs by few latents (Jaegle et al.).
func perceiver(b *ir.Builder) ir.Value {
	x := nn.Linear(b, input(b, "x", 16, 4096, 9), 64)
	y := ops.BroadcastTo(b, b.Param("latents", ir.F32, ir.Dims(64, 128)...), ir.Dims(16, 64, 128))
	for range 2 {
		y = ops.Add(b, y, nn.Attention(b, nn.LayerNorm(b, y), 1, nn.AttentionOptions{Context: x}))
		y = nn.TransformerBlock(b, y, 8)
	}
	return nn.Linear(b, ops.Mean(b, y, 1), 100)
}

// graphAttention is attention over the edges of a graph (Veličković et al.).
func graphAttention(b *ir.Builder) ir.Value {
	const nodes, edges, heads, width = 20_000, 200_000, 4, 16
	x := input(b, "x", nodes, 64)
	from, to := b.Input("from", ir.I32, ir.N(edges)), b.Input("to", ir.I32, ir.N(edges))
	for range 2 {
		h := ops.Reshape(b, nn.Linear(b, x, heads*width), ir.Dims(nodes, heads, width)...)
		left, right := nn.Linear(b, x, heads), nn.Linear(b, x, heads)
		score := ops.LeakyRelu(b, ops.Add(b, ops.Embedding(b, left, from), ops.Embedding(b, right, to)), 0.2)
		top := ops.SegmentReduce(b, ops.StopGradient(b, score), to, ops.SegmentAttrs{Segments: ir.N(nodes), Reduction: "max"})
		e := ops.Exp(b, ops.Sub(b, score, ops.Embedding(b, top, to)))
		sum := ops.SegmentReduce(b, e, to, ops.SegmentAttrs{Segments: ir.N(nodes)})
		weight := ops.Div(b, e, ops.Embedding(b, sum, to))
		sent := ops.Mul(b, ops.Reshape(b, ops.Embedding(b, ops.Reshape(b, h, ir.Dims(nodes, heads*width)...), from), ir.Dims(edges, heads, width)...), ops.ExpandDims(b, weight, 2))
		x = ops.Elu(b, ops.SegmentReduce(b, ops.Reshape(b, sent, ir.Dims(edges, heads*width)...), to, ops.SegmentAttrs{Segments: ir.N(nodes)}), 1)
	}
	return nn.Linear(b, x, 7)
}

// convLSTM is a recurrent net of convolutions over eight images (Shi et al.).
func convLSTM(b *ir.Builder) ir.Value {
	const steps, batch, side, width = 8, 8, 32, 32
	zero := ops.Zeros(b, ir.F32, ir.Dims(batch, side, side, width)...)
	w, bias := b.Param("w", ir.F32, ir.Dims(3, 3, 3+width, 4*width)...), b.Param("bias", ir.F32, ir.N(4*width))
	_, ys := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{w, bias}, Carries: []ir.Value{zero, zero}, Xs: []ir.Value{input(b, "x", steps, batch, side, side, 3)},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			in := ops.Concatenate(b, 3, xs[0], carries[0])
			gates := ops.Conv2D(b, in, consts[0], consts[1], ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}})
			part := func(i int) ir.Value { return ops.SliceAxis(b, gates, 3, ir.N(i*width), ir.N(width)) }
			c := ops.Add(b, ops.Mul(b, ops.Sigmoid(b, part(0)), carries[1]), ops.Mul(b, ops.Sigmoid(b, part(1)), ops.Tanh(b, part(2))))
			h := ops.Mul(b, ops.Sigmoid(b, part(3)), ops.Tanh(b, c))
			return []ir.Value{h, c}, []ir.Value{h}
		},
	})
	return ys[0]
}

// volumes is a net of convolutions over volumes.
func volumes(b *ir.Builder) ir.Value {
	x := input(b, "x", 4, 32, 32, 32, 1)
	for _, width := range []int{16, 32, 64} {
		x = ops.Relu(b, nn.BatchNorm(b, nn.Conv3d(b, x, width, 3, nn.ConvOptions{Same: true})))
		x = nn.MaxPool(b, x, 2)
	}
	return nn.Linear(b, nn.GlobalAvgPool(b, x), 10)
}

// superResolution quadruples the pixels of an image by a shuffle (Shi et al.).
func superResolution(b *ir.Builder) ir.Value {
	x := nn.Conv2d(b, input(b, "x", 16, 48, 48, 3), 64, 3, nn.ConvOptions{Same: true})
	for range 3 {
		h := ops.Relu(b, nn.Conv2d(b, x, 64, 3, nn.ConvOptions{Same: true}))
		x = ops.Add(b, x, nn.Conv2d(b, h, 64, 3, nn.ConvOptions{Same: true}))
	}
	return nn.Conv2d(b, ops.PixelShuffle(b, nn.Conv2d(b, x, 256, 3, nn.ConvOptions{Same: true}), 2), 3, 3, nn.ConvOptions{Same: true})
}

// hedging trades along simulated paths by a network that sees its last position (Buehler et al.).
func hedging(b *ir.Builder) ir.Value {
	const steps, paths = 30, 32_768
	sizes := []int{3, 32, 32, 1}
	var weights []ir.Value
	for i, out := range sizes[1:] {
		weights = append(weights, b.Param(fmt.Sprint("w", i), ir.F32, ir.Dims(sizes[i], out)...), b.Param(fmt.Sprint("b", i), ir.F32, ir.N(out)))
	}
	zero := ops.Zeros(b, ir.F32, ir.Dims(paths, 1)...)
	carries, _ := ops.Scan(b, ops.Loop{
		Consts: weights, Carries: []ir.Value{zero, zero}, Xs: []ir.Value{input(b, "prices", steps, paths, 1), input(b, "moves", steps, paths, 1)},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			h := ops.Concatenate(b, 1, xs[0], xs[1], carries[0])
			for i := 0; i < len(consts); i += 2 {
				if i > 0 {
					h = ops.Relu(b, h)
				}
				h = ops.Linear(b, h, consts[i], consts[i+1])
			}
			return []ir.Value{h, ops.Add(b, carries[1], ops.Mul(b, h, xs[1]))}, nil
		},
	})
	payoff := ops.Relu(b, input(b, "final", paths, 1))
	return ops.Exp(b, ops.Sub(b, payoff, carries[1]))
}

// mixtureDensity is the likelihood of numbers by a mixture of Gaussians of a network (Bishop).
func mixtureDensity(b *ir.Builder) ir.Value {
	const rows, parts, width = 65_536, 16, 4
	h := input(b, "x", rows, 8)
	for range 2 {
		h = ops.Tanh(b, nn.Linear(b, h, 128))
	}
	logits := ops.LogSoftmax(b, nn.Linear(b, h, parts), 1)
	mean := ops.Reshape(b, nn.Linear(b, h, parts*width), ir.Dims(rows, parts, width)...)
	spread := ops.Reshape(b, nn.Linear(b, h, parts*width), ir.Dims(rows, parts, width)...)
	z := ops.Mul(b, ops.Sub(b, ops.ExpandDims(b, input(b, "y", rows, width), 1), mean), ops.Exp(b, ops.Neg(b, spread)))
	density := ops.ReduceSum(b, ops.Sub(b, ops.Mul(b, ops.Square(b, z), ops.ConstLike(b, z, -0.5)), spread), 2)
	return ops.LogSumExp(b, ops.Add(b, logits, density), 1)
}

// triangularFlow is a normalising flow of triangular matrices and a cubic nonlinearity.
func triangularFlow(b *ir.Builder) ir.Value {
	const rows, width = 16_384, 64
	x := input(b, "x", rows, width)
	var logs ir.Value
	for i := range 4 {
		w := b.Param(fmt.Sprint("w", i), ir.F32, ir.Dims(width, width)...)
		diagonal := b.Param(fmt.Sprint("diagonal", i), ir.F32, ir.N(width))
		l := ops.Add(b, ops.Tril(b, w, -1), ops.Diag(b, ops.Exp(b, diagonal), 0))
		x = ops.Transpose(b, ops.TriangularSolve(b, l, ops.Transpose(b, x, 1, 0), ops.TriangularAttrs{LeftSide: true, Lower: true}), 1, 0)
		x = ops.Add(b, x, ops.Mul(b, ops.ConstLike(b, x, 0.1), ops.Mul(b, x, ops.Square(b, x))))
		if i == 0 {
			logs = ops.ReduceSum(b, diagonal)
		} else {
			logs = ops.Add(b, logs, ops.ReduceSum(b, diagonal))
		}
	}
	return ops.Add(b, ops.ReduceSum(b, ops.Square(b, x), 1), logs)
}
