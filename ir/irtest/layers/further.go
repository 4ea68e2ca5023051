package layers

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/ops"
)

// furtherConvolutions have windows that are not square, even or larger than their steps, channels that are multiplied, and
// three axes of pixels.
func furtherConvolutions() (out []Layer) {
	for _, c := range []struct {
		x, w []int
		a    ops.Conv2DAttrs
	}{
		{[]int{32, 17, 17, 192}, []int{1, 7, 192, 192}, ops.Conv2DAttrs{PadLo: []int{0, 3}, PadHi: []int{0, 3}}},
		{[]int{32, 17, 17, 192}, []int{7, 1, 192, 192}, ops.Conv2DAttrs{PadLo: []int{3, 0}, PadHi: []int{3, 0}}},
		{[]int{64, 224, 224, 3}, []int{16, 16, 3, 384}, ops.Conv2DAttrs{Strides: []int{16, 16}}},
		{[]int{64, 224, 224, 3}, []int{4, 4, 3, 96}, ops.Conv2DAttrs{Strides: []int{4, 4}}},
		{[]int{32, 56, 56, 96}, []int{2, 2, 96, 192}, ops.Conv2DAttrs{Strides: []int{2, 2}}},
		{[]int{16, 84, 84, 4}, []int{8, 8, 4, 32}, ops.Conv2DAttrs{Strides: []int{4, 4}}},
		{[]int{16, 56, 56, 64}, []int{3, 3, 1, 128}, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}, Groups: 64}},
		{[]int{16, 65, 65, 48}, []int{3, 3, 48, 64}, ops.Conv2DAttrs{Strides: []int{3, 3}, Dilations: []int{2, 2}}},
		{[]int{32, 1, 4000, 64}, []int{1, 3, 64, 128}, ops.Conv2DAttrs{Dilations: []int{1, 16}, PadLo: []int{0, 32}, PadHi: []int{0, 0}}},
		{[]int{64, 28, 28, 1}, []int{5, 5, 1, 20}, ops.Conv2DAttrs{}},
		{[]int{4, 64, 64, 1280}, []int{3, 3, 1280, 640}, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}},
		{[]int{64, 14, 14, 480}, []int{5, 5, 1, 480}, ops.Conv2DAttrs{PadLo: []int{2, 2}, PadHi: []int{2, 2}, Groups: 480}},
		{[]int{1, 800, 1333, 3}, []int{7, 7, 3, 64}, ops.Conv2DAttrs{Strides: []int{2, 2}, PadLo: []int{3, 3}, PadHi: []int{3, 3}}},
	} {
		if c.a.Groups == 0 {
			c.a.Groups = 1
		}
		out = append(out, of(fmt.Sprint("convolution ", c.x, c.w, c.a.Strides), func(b *ir.Builder) ir.Value {
			return ops.Conv2D(b, ops.Relu(b, floats(b, "x", c.x...)), floats(b, "w", c.w...), floats(b, "bias", c.w[3]), c.a)
		}))
	}
	for _, c := range []struct{ n, size, in, out, window, stride int }{{4, 32, 16, 32, 3, 1}, {4, 32, 32, 64, 2, 2}, {2, 24, 64, 64, 3, 1}} {
		out = append(out, of(fmt.Sprint("convolution of volumes ", c), func(b *ir.Builder) ir.Value {
			last, pad := []int{0, 4, 1, 2, 3}, c.window/2*(2-c.stride)
			x, w := floats(b, "x", c.n, c.size, c.size, c.size, c.in), floats(b, "w", c.window, c.window, c.window, c.in, c.out)
			return ops.ConvGeneral(b, ops.Relu(b, x), w, ops.ConvAttrs{
				Strides: []int{c.stride, c.stride, c.stride}, PadLo: []int{pad, pad, pad}, PadHi: []int{pad, pad, pad},
				Lhs: last, Rhs: []int{4, 3, 0, 1, 2}, Out: last,
			})
		}))
	}
	return append(out,
		of("transposed convolution by 2", func(b *ir.Builder) ir.Value {
			return ops.ConvTranspose(b, floats(b, "x", 8, 64, 64, 128), floats(b, "w", 2, 2, 128, 64), floats(b, "bias", 64), ops.ConvTransposeAttrs{Strides: []int{2, 2}})
		}),
		of("convolution of patches of points", func(b *ir.Builder) ir.Value {
			return ops.MaxPool(b, ops.Relu(b, ops.MatMul(b, floats(b, "x", 16, 1024, 32, 64), floats(b, "w", 64, 128))), ops.PoolAttrs{Sizes: []int{1, 32}, Strides: []int{1, 32}})
		}),
		of("largest of each neighbourhood", func(b *ir.Builder) ir.Value {
			return ops.ReduceMax(b, ops.Relu(b, ops.MatMul(b, floats(b, "x", 16, 1024, 32, 64), floats(b, "w", 64, 128))), 2)
		}),
		of("patches folded", func(b *ir.Builder) ir.Value {
			return image.Fold(b, floats(b, "x", 8, 62*62, 9*32), []int{64, 64}, []int{3, 3})
		}))
}

// batchNorms are batch norms of pixels and of planes, and other norms over several axes.
func batchNorms() (out []Layer) {
	for _, s := range [][4]int{{32, 56, 56, 64}, {128, 7, 7, 512}, {16, 128, 128, 24}} {
		n, h, w, c := s[0], s[1], s[2], s[3]
		vectors := func(b *ir.Builder) ops.BatchNormVectors {
			return ops.BatchNormVectors{Scale: floats(b, "s", c), Bias: floats(b, "t", c), Mean: b.Input("mean", ir.F32, ir.N(c)), Variance: b.Input("variance", ir.F32, ir.N(c))}
		}
		out = append(out,
			of(fmt.Sprint("batch norm ", s), func(b *ir.Builder) ir.Value {
				y, _, _ := ops.BatchNormTraining(b, floats(b, "x", n, h, w, c), vectors(b), ops.BatchNormAttrs{EpsilonAttrs: ops.EpsilonAttrs{Epsilon: 1e-5}, Momentum: 0.1})
				return ops.Relu(b, y)
			}),
			of(fmt.Sprint("batch norm of planes ", s), func(b *ir.Builder) ir.Value {
				x := ops.Standardize(b, floats(b, "x", n, c, h, w), 1e-5, 0, 2, 3)
				return ops.Relu(b, ops.Add(b, ops.Mul(b, x, floats(b, "s", c, 1, 1)), floats(b, "t", c, 1, 1)))
			}),
			of(fmt.Sprint("group norm of planes ", s), func(b *ir.Builder) ir.Value {
				x := ops.Reshape(b, ops.Standardize(b, floats(b, "x", n, 8, c/8, h, w), 1e-5, 2, 3, 4), ir.Dims(n, c, h, w)...)
				return ops.Silu(b, ops.Add(b, ops.Mul(b, x, floats(b, "s", c, 1, 1)), floats(b, "t", c, 1, 1)))
			}),
			of(fmt.Sprint("layer norm of channels of planes ", s), func(b *ir.Builder) ir.Value {
				x := ops.Standardize(b, floats(b, "x", n, c, h, w), 1e-5, 1)
				return ops.Add(b, ops.Mul(b, x, floats(b, "s", c, 1, 1)), floats(b, "t", c, 1, 1))
			}),
			of(fmt.Sprint("squeeze and excite ", s), func(b *ir.Builder) ir.Value {
				x := ops.Silu(b, floats(b, "x", n, h, w, c))
				gate := ops.MatMul(b, ops.Relu(b, ops.MatMul(b, ops.Mean(b, x, 1, 2), floats(b, "u", c, c/4))), floats(b, "v", c/4, c))
				return ops.Mul(b, x, ops.Reshape(b, ops.Sigmoid(b, gate), ir.Dims(n, 1, 1, c)...))
			}))
	}
	return append(out,
		of("normalised weights", func(b *ir.Builder) ir.Value {
			return ops.MatMul(b, floats(b, "x", 512, 1000), ops.WeightNorm(b, floats(b, "v", 1000, 2000), floats(b, "g", 2000), 1))
		}),
		of("adaptive norm", func(b *ir.Builder) ir.Value {
			return ops.AdaNorm(b, floats(b, "x", 32, 256, 768), floats(b, "s", 32, 1, 768), floats(b, "t", 32, 1, 768), ops.AdaNormAttrs{})
		}),
		of("norm of heads", func(b *ir.Builder) ir.Value {
			return ops.RMSNorm(b, ops.SwapAxes(b, floats(b, "x", 8, 1024, 16, 64), 1, 2), floats(b, "s", 64), 1e-6)
		}))
}

// furtherAttentions are attention with biases, of projections and of graphs, and what takes its place.
func furtherAttentions() []Layer {
	return []Layer{
		of("attention with a bias of positions", func(b *ir.Builder) ir.Value {
			q, k, v := floats(b, "q", 8, 8, 512, 64), floats(b, "k", 8, 8, 512, 64), floats(b, "v", 8, 8, 512, 64)
			near := ops.Sub(b, ops.Iota(b, ir.I32, 0, ir.Dims(512, 512)...), ops.Iota(b, ir.I32, 1, ir.Dims(512, 512)...))
			near = ops.Clamp(b, ops.Add(b, near, ops.Const(b, ir.I32, 32)), ops.Const(b, ir.I32, 0), ops.Const(b, ir.I32, 63))
			return ops.Attention(b, q, k, v, ops.Transpose(b, ops.Embedding(b, floats(b, "bias", 64, 8), near), 2, 0, 1), ops.AttentionAttrs{})
		}),
		of("attention of projections", func(b *ir.Builder) ir.Value {
			x := floats(b, "x", 8, 512, 512)
			heads := func(name string) ir.Value {
				return ops.Transpose(b, ops.Reshape(b, ops.MatMul(b, x, floats(b, name, 512, 512)), ir.Dims(8, 512, 8, 64)...), 0, 2, 1, 3)
			}
			y := ops.Attention(b, heads("q"), heads("k"), heads("v"), ir.Value{}, ops.AttentionAttrs{Causal: true})
			return ops.MatMul(b, ops.Reshape(b, ops.Transpose(b, y, 0, 2, 1, 3), ir.Dims(8, 512, 512)...), floats(b, "o", 512, 512))
		}),
		of("attention with dropout", func(b *ir.Builder) ir.Value {
			s := ops.Einsum(b, "bhqd,bhkd->bhqk", floats(b, "q", 8, 8, 256, 64), floats(b, "k", 8, 8, 256, 64))
			return ops.Einsum(b, "bhqk,bhkd->bhqd", ops.Dropout(b, ops.Softmax(b, s, 3), ops.Key(b, 7), 0.1), floats(b, "v", 8, 8, 256, 64))
		}),
		of("linear attention", func(b *ir.Builder) ir.Value {
			q, k := ops.Elu(b, floats(b, "q", 8, 8, 1024, 64), 1), ops.Elu(b, floats(b, "k", 8, 8, 1024, 64), 1)
			return ops.Einsum(b, "bhqd,bhde->bhqe", q, ops.Einsum(b, "bhkd,bhke->bhde", k, floats(b, "v", 8, 8, 1024, 64)))
		}),
		of("additive attention", func(b *ir.Builder) ir.Value {
			s := ops.Tanh(b, ops.Add(b, floats(b, "q", 16, 60, 1, 128), floats(b, "k", 16, 1, 80, 128)))
			p := ops.Softmax(b, ops.Einsum(b, "bqkd,d->bqk", s, floats(b, "w", 128)), 2)
			return ops.MatMul(b, p, floats(b, "v", 16, 80, 128))
		}),
		{"attention along edges", 20000, func(b *ir.Builder) ir.Value {
			x, from, to := floats(b, "x", 20000, 8, 16), ints(b, "from", 200000), ints(b, "to", 200000)
			sum := func(x ir.Value) ir.Value {
				return ops.SegmentReduce(b, x, to, ops.SegmentAttrs{Segments: ir.N(20000), Reduction: "sum"})
			}
			score := func(name string, i ir.Value) ir.Value {
				return ops.Embedding(b, ops.ReduceSum(b, ops.Mul(b, x, floats(b, name, 8, 16)), 2), i)
			}
			e := ops.Exp(b, ops.LeakyRelu(b, ops.Add(b, score("a", from), score("b", to)), 0.2))
			weight := ops.Div(b, e, ops.Embedding(b, sum(e), to))
			return sum(ops.Mul(b, ops.Take(b, x, from, 0, ops.OutsideClip), ops.ExpandDims(b, weight, 2)))
		}},
		{"bag of embeddings", 50000, func(b *ir.Builder) ir.Value {
			return ops.ReduceSum(b, ops.Embedding(b, floats(b, "x", 50000, 64), ints(b, "i", 8192, 20)), 1)
		}},
		{"one-hot product", 512, func(b *ir.Builder) ir.Value {
			return ops.MatMul(b, ops.OneHot(b, ints(b, "i", 20000), ir.N(512), ir.F32), floats(b, "x", 512, 128))
		}},
		{"pixels at indices", 128, func(b *ir.Builder) ir.Value {
			return ops.Gather(b, floats(b, "x", 128, 128, 64), ints(b, "i", 50000, 2), ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}}})
		}},
		{"pixels added at indices", 128, func(b *ir.Builder) ir.Value {
			return ops.ScatterAdd(b, floats(b, "x", 128, 128, 64), ints(b, "i", 50000, 2), floats(b, "y", 50000, 64), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}}})
		}},
		{"product with a sparse matrix", 30000, func(b *ir.Builder) ir.Value {
			y := ops.Mul(b, ops.ExpandDims(b, floats(b, "values", 300000), 1), ops.Embedding(b, floats(b, "x", 30000, 32), ints(b, "columns", 300000)))
			return ops.SegmentReduce(b, y, ints(b, "rows", 300000), ops.SegmentAttrs{Segments: ir.N(30000), Reduction: "sum"})
		}},
	}
}

// furtherSequences are recurrences and scans of further kinds.
func furtherSequences() []Layer {
	return []Layer{
		of("gru", func(b *ir.Builder) ir.Value {
			weights := []ir.Value{floats(b, "u", 128, 768), floats(b, "w", 256, 768), floats(b, "p", 768), floats(b, "q", 768)}
			y, _ := ops.GRU(b, floats(b, "x", 100, 32, 128), floats(b, "h", 1, 32, 256), weights, ops.RecurrentAttrs{})
			return y
		}),
		of("lstm in both directions", func(b *ir.Builder) ir.Value {
			var weights []ir.Value
			for _, d := range []string{"forward ", "backward "} {
				weights = append(weights, floats(b, d+"u", 64, 512), floats(b, d+"w", 128, 512), floats(b, d+"p", 512), floats(b, d+"q", 512))
			}
			y, _, _ := ops.LSTM(b, floats(b, "x", 80, 64, 64), floats(b, "h", 2, 64, 128), floats(b, "c", 2, 64, 128), weights, ops.RecurrentAttrs{Bidirectional: true})
			return y
		}),
		of("selective scan", func(b *ir.Builder) ir.Value {
			y, _ := ops.SelectiveScan(b, ops.StateSpace{
				X: floats(b, "x", 4, 512, 512), Delta: ops.Softplus(b, floats(b, "delta", 4, 512, 512)), A: ops.Neg(b, ops.Exp(b, floats(b, "a", 512, 16))),
				B: floats(b, "b", 4, 512, 16), C: floats(b, "c", 4, 512, 16), State: ops.Zeros(b, ir.F32, ir.Dims(4, 512, 16)...),
			})
			return y
		}),
		of("state space by chunks", func(b *ir.Builder) ir.Value {
			y, _ := ops.SSD(b, ops.StateSpace{
				X: floats(b, "x", 4, 1024, 8, 64), Delta: ops.Softplus(b, floats(b, "delta", 4, 1024, 8)), A: ops.Neg(b, ops.Exp(b, floats(b, "a", 8))),
				B: floats(b, "b", 4, 1024, 1, 64), C: floats(b, "c", 4, 1024, 1, 64), State: ops.Zeros(b, ir.F32, ir.Dims(4, 8, 64, 64)...),
			}, 64)
			return y
		}),
		of("product so far", func(b *ir.Builder) ir.Value {
			return ops.CumProd(b, ops.Add(b, ops.Tanh(b, floats(b, "x", 2000, 500)), ops.Const(b, ir.F32, 1)), ops.CumSumAttrs{Axis: 1})
		}),
		of("transmittance along rays", func(b *ir.Builder) ir.Value {
			density := ops.Softplus(b, floats(b, "x", 8192, 128))
			seen := ops.Exp(b, ops.Neg(b, ops.CumSum(b, density, ops.CumSumAttrs{Axis: 1, Exclusive: true})))
			weight := ops.Mul(b, seen, ops.Sub(b, ops.ConstLike(b, seen, 1), ops.Exp(b, ops.Neg(b, density))))
			return ops.ReduceSum(b, ops.Mul(b, ops.ExpandDims(b, weight, 2), ops.Sigmoid(b, floats(b, "colour", 8192, 128, 3))), 1)
		}),
		of("scan of rows", func(b *ir.Builder) ir.Value {
			carries, _ := ops.Scan(b, ops.Loop{
				Consts: []ir.Value{floats(b, "w", 64, 64)}, Carries: []ir.Value{floats(b, "h", 512, 64)}, Xs: []ir.Value{floats(b, "x", 60, 512, 64)},
				Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
					return []ir.Value{ops.Tanh(b, ops.Add(b, ops.MatMul(b, carries[0], consts[0]), xs[0]))}, nil
				},
			})
			return carries[0]
		}),
	}
}
