package layers

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/losses"
	"github.com/rlx-go/rlx/ir/ops"
)

// costs are losses of classes, of targets and of sequences.
func costs() []Layer {
	logits := func(b *ir.Builder) ir.Value { return floats(b, "x", 16, 21, 128, 128) }
	pair := func(b *ir.Builder) (x, y ir.Value) { return floats(b, "x", 8192, 512), floats(b, "y", 8192, 512) }
	return []Layer{
		{"cross-entropy of pixels in planes", 21, func(b *ir.Builder) ir.Value {
			return ops.CrossEntropyLoss(b, logits(b), ints(b, "i", 16, 128, 128), ir.Value{}, ops.ClassLossAttrs{LossAttrs: ops.LossAttrs{Reduction: "mean"}, Axis: 1})
		}},
		{"smoothed cross-entropy", 1000, func(b *ir.Builder) ir.Value {
			a := ops.ClassLossAttrs{LossAttrs: ops.LossAttrs{Reduction: "mean"}, Axis: 1, LabelSmoothing: 0.1}
			return ops.CrossEntropyLoss(b, floats(b, "x", 2048, 1000), ints(b, "i", 2048), ir.Value{}, a)
		}},
		of("cross-entropy of soft targets", func(b *ir.Builder) ir.Value {
			x, y := pair(b)
			return ops.Neg(b, ops.Mean(b, ops.ReduceSum(b, ops.Mul(b, ops.Softmax(b, y, 1), ops.LogSoftmax(b, x, 1)), 1)))
		}),
		of("binary cross-entropy", func(b *ir.Builder) ir.Value {
			x, y := pair(b)
			return ops.BCEWithLogits(b, x, ops.Sigmoid(b, y), "mean")
		}),
		of("focal loss", func(b *ir.Builder) ir.Value {
			x, y := pair(b)
			return ops.Focal(b, x, ops.Sigmoid(b, y), ops.FocalAttrs{LossAttrs: ops.LossAttrs{Reduction: "mean"}, Alpha: 0.25, Gamma: 2})
		}),
		of("Huber loss", func(b *ir.Builder) ir.Value { x, y := pair(b); return ops.Huber(b, x, y, 1, "mean") }),
		of("divergence of normals", func(b *ir.Builder) ir.Value {
			mean, log := pair(b)
			return ops.Mean(b, ops.ReduceSum(b, ops.Sub(b, ops.Add(b, ops.Exp(b, log), ops.Square(b, mean)), log), 1))
		}),
		of("triplet loss", func(b *ir.Builder) ir.Value {
			x, y := pair(b)
			return losses.TripletMargin(b, x, y, floats(b, "z", 8192, 512))
		}),
		of("contrastive loss", func(b *ir.Builder) ir.Value {
			unit := func(x ir.Value) ir.Value {
				return ops.Div(b, x, ops.KeepDims(b, func(b *ir.Builder, x ir.Value, axes ...int) ir.Value { return ops.Norm(b, x, 2, axes...) }, x, 1))
			}
			s := ops.MatMul(b, unit(floats(b, "x", 1024, 256)), ops.SwapAxes(b, unit(floats(b, "y", 1024, 256)), 0, 1))
			rows, columns := ops.LogSoftmax(b, s, 1), ops.LogSoftmax(b, s, 0)
			return ops.Add(b, ops.Trace(b, rows, 0), ops.Trace(b, columns, 0))
		}),
		of("dice loss", func(b *ir.Builder) ir.Value {
			p := ops.Softmax(b, logits(b), 1)
			t := floats(b, "t", 16, 21, 128, 128)
			over := ops.ReduceSum(b, ops.Mul(b, p, t), 2, 3)
			return ops.Div(b, over, ops.Add(b, ops.ReduceSum(b, p, 2, 3), ops.ReduceSum(b, ops.Square(b, t), 2, 3)))
		}),
		of("total variation", func(b *ir.Builder) ir.Value {
			x := floats(b, "x", 16, 256, 256, 3)
			along := func(axis int) ir.Value { return ops.Mean(b, ops.Abs(b, ops.Sub(b, x, ops.Roll(b, x, axis, 1)))) }
			return ops.Add(b, along(1), along(2))
		}),
		of("entropy of maps", func(b *ir.Builder) ir.Value {
			x := logits(b)
			return ops.ReduceSum(b, ops.Mul(b, ops.Softmax(b, x, 1), ops.LogSoftmax(b, x, 1)), 1)
		}),
		of("log-sum-exp of the first axis", func(b *ir.Builder) ir.Value { return ops.LogSumExp(b, floats(b, "x", 2000, 3000), 0) }),
	}
}

// pointwise are chains of elementwise operations, noise and quantities that only broadcasts join.
func pointwise() (out []Layer) {
	for _, a := range []struct {
		name string
		f    func(b *ir.Builder, x ir.Value) ir.Value
	}{
		{"gelu", ops.Gelu},
		{"silu", ops.Silu},
		{"mish", ops.Mish},
		{"softplus", ops.Softplus},
		{"tanh", ops.Tanh},
		{"sine of sines", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sin(b, ops.Mul(b, x, ops.Sin(b, x))) }},
		{"error function", ops.Erf},
		{"logarithm of the gamma function", ops.Lgamma},
		{"dropout", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Dropout(b, x, ops.Key(b, 7), 0.1) }},
		{"noise", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Mul(b, x, ops.Normal(b, ops.Key(b, 7), ir.F32, ir.Dims(4000, 1500)...))
		}},
		{"gumbel softmax", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Softmax(b, ops.Add(b, x, ops.Gumbel(b, ops.Key(b, 7), ir.F32, ir.Dims(4000, 1500)...)), 1)
		}},
		{"fake quantization", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Mul(b, ops.RoundSTE(b, ops.Div(b, x, ops.Const(b, ir.F32, 0.1))), ops.Const(b, ir.F32, 0.1))
		}},
		{"powers", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Pow(b, ops.Add(b, ops.Square(b, x), ops.ConstLike(b, x, 0.5)), ops.ConstLike(b, x, 0.75))
		}},
	} {
		out = append(out, of("pointwise "+a.name, func(b *ir.Builder) ir.Value { return a.f(b, floats(b, "x", 4000, 1500)) }))
	}
	for _, s := range [][]int{{16, 64, 128, 96}, {16, 8, 31, 77}} {
		bias := func(axis int) []int {
			d := []int{1, 1, 1, 1}
			d[axis] = s[axis]
			return d
		}
		for axis := range s {
			out = append(out, of(fmt.Sprint("scale and bias ", s, " along ", axis), func(b *ir.Builder) ir.Value {
				x := ops.Mul(b, floats(b, "x", s...), floats(b, "s", bias(axis)...))
				return ops.Relu(b, ops.Add(b, x, floats(b, "t", bias(axis)...)))
			}))
		}
	}
	return append(out,
		of("unstack", func(b *ir.Builder) ir.Value {
			parts := ops.Unstack(b, floats(b, "x", 4000, 3, 128), 1)
			return ops.Add(b, ops.Mul(b, parts[0], parts[1]), parts[2])
		}),
		of("interleaved halves", func(b *ir.Builder) ir.Value {
			x, y := floats(b, "x", 4000, 400), floats(b, "y", 4000, 400)
			return ops.Reshape(b, ops.Stack(b, 2, ops.Sin(b, x), ops.Cos(b, y)), ir.Dims(4000, 800)...)
		}),
		of("tile", func(b *ir.Builder) ir.Value { return ops.Tile(b, floats(b, "x", 16, 100, 30), 4, 3, 5) }),
		of("zeros between", func(b *ir.Builder) ir.Value {
			return ops.Pad(b, floats(b, "x", 64, 100, 100), ops.Const(b, ir.F32, 0), []int{0, 1, 1}, []int{0, 1, 1}, []int{0, 1, 1})
		}),
		of("space to depth", func(b *ir.Builder) ir.Value { return ops.PixelUnshuffle(b, floats(b, "x", 16, 128, 128, 24), 2) }),
		of("rotary positions", func(b *ir.Builder) ir.Value {
			cos, sin := ops.RopeTable(b, ops.Iota(b, ir.I32, 0, ir.N(2048)), 64, 1e4)
			return ops.Rope(b, floats(b, "x", 4, 16, 2048, 64), cos, sin, ops.RopeAttrs{})
		}),
		of("shifted windows", func(b *ir.Builder) ir.Value {
			x := ops.Roll(b, ops.Roll(b, floats(b, "x", 16, 56, 56, 96), 1, -3), 2, -3)
			return ops.Transpose(b, ops.Reshape(b, x, ir.Dims(16, 8, 7, 8, 7, 96)...), 0, 1, 3, 2, 4, 5)
		}))
}
