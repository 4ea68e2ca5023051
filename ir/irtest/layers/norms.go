package layers

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// norms are norms with their parameters, distances and broadcasts.
func norms() []Layer {
	return []Layer{
		of("group norm", func(b *ir.Builder) ir.Value {
			return ops.GroupNorm(b, floats(b, "x", 8, 64, 64, 320), floats(b, "s", 320), floats(b, "t", 320), 32, 1e-5)
		}),
		of("instance norm", func(b *ir.Builder) ir.Value {
			return ops.InstanceNorm(b, floats(b, "x", 8, 128, 128, 32), floats(b, "s", 32), floats(b, "t", 32), 1e-5)
		}),
		of("layer norm", func(b *ir.Builder) ir.Value {
			return ops.LayerNorm(b, floats(b, "x", 20000, 200), floats(b, "s", 200), floats(b, "t", 200), 1e-5)
		}),
		of("layer norm of long rows", func(b *ir.Builder) ir.Value {
			return ops.LayerNorm(b, floats(b, "x", 300, 40000), floats(b, "s", 40000), floats(b, "t", 40000), 1e-5)
		}),
		of("rms norm of short rows", func(b *ir.Builder) ir.Value {
			return ops.RMSNorm(b, floats(b, "x", 200000, 24), floats(b, "s", 24), 1e-5)
		}),
		of("least squared distance", func(b *ir.Builder) ir.Value {
			d := ops.Sub(b, floats(b, "x", 1, 2000, 3), floats(b, "y", 3000, 1, 3))
			return ops.ReduceMin(b, ops.ReduceSum(b, ops.Square(b, d), 2), 0)
		}),
		of("absolute distances", func(b *ir.Builder) ir.Value {
			return ops.ReduceSum(b, ops.Abs(b, ops.Sub(b, floats(b, "x", 1, 500, 64), floats(b, "y", 400, 1, 64))), 2)
		}),
		of("cosines", func(b *ir.Builder) ir.Value {
			return ops.CosineSimilarity(b, floats(b, "x", 4096, 768), floats(b, "y", 4096, 768), 1, 1e-8)
		}),
		of("repeat", func(b *ir.Builder) ir.Value { return ops.Repeat(b, floats(b, "x", 64, 100, 128), 1, 7) }),
		of("broadcast in the middle", func(b *ir.Builder) ir.Value {
			return ops.Mul(b, floats(b, "x", 256, 1, 500), floats(b, "y", 1, 300, 500))
		}),
		of("broadcast of the last axis", func(b *ir.Builder) ir.Value {
			return ops.Mul(b, floats(b, "x", 256, 300, 1), floats(b, "y", 256, 1, 200))
		}),
		of("outer product", func(b *ir.Builder) ir.Value { return ops.Outer(b, floats(b, "x", 5000), floats(b, "y", 3000)) }),
		of("gated in the middle", func(b *ir.Builder) ir.Value { return ops.Glu(b, floats(b, "x", 32, 256, 1000), 1) }),
		of("sum of a long vector", func(b *ir.Builder) ir.Value { return ops.ReduceSum(b, ops.Exp(b, floats(b, "x", 20000000))) }),
	}
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
