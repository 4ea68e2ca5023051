package layers

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// attentions are attention with heads, lengths and masks of several kinds.
func attentions() (out []Layer) {
	for _, l := range []struct {
		name                                  string
		batch, heads, shared, from, to, depth int
		masked                                bool
		a                                     ops.AttentionAttrs
	}{
		{"odd", 4, 6, 6, 333, 333, 40, false, ops.AttentionAttrs{}},
		{"grouped", 2, 32, 4, 1024, 1024, 128, false, ops.AttentionAttrs{Causal: true}},
		{"cross", 8, 8, 8, 100, 1500, 64, false, ops.AttentionAttrs{}},
		{"masked", 4, 8, 8, 512, 512, 64, true, ops.AttentionAttrs{}},
		{"window", 2, 8, 8, 2048, 2048, 64, false, ops.AttentionAttrs{Causal: true, Window: 128}},
		{"wide", 2, 4, 4, 512, 512, 256, false, ops.AttentionAttrs{Causal: true}},
		{"many short", 4096, 4, 4, 16, 16, 32, false, ops.AttentionAttrs{}},
		{"softcap", 2, 8, 8, 1000, 1000, 96, false, ops.AttentionAttrs{Causal: true, Softcap: 50}},
		{"windows of 49", 512, 4, 4, 49, 49, 32, true, ops.AttentionAttrs{}},
	} {
		out = append(out, of("attention "+l.name, func(b *ir.Builder) ir.Value {
			q, k, v := floats(b, "q", l.batch, l.heads, l.from, l.depth), floats(b, "k", l.batch, l.shared, l.to, l.depth), floats(b, "v", l.batch, l.shared, l.to, l.depth)
			var mask ir.Value
			if l.masked {
				mask = floats(b, "mask", l.heads, l.from, l.to)
			}
			return ops.Attention(b, q, k, v, mask, l.a)
		}))
	}
	return out
}

// attentionVariants are attention with a learned bias, of projections, with dropout, and what takes its place.
func attentionVariants() []Layer {
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
	}
}
