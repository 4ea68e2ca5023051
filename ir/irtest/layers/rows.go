package layers

import (
	"fmt"

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

// indexed are reads and sums by indices, of tables of several sizes, and selections.
func indexed() (out []Layer) {
	for _, t := range [][3]int{{100000, 64, 200000}, {1000, 512, 8192}, {1000000, 16, 50000}, {30, 256, 100000}, {50000, 3, 400000}} {
		rows, width, reads := t[0], t[1], t[2]
		segments := func(b *ir.Builder, x, i ir.Value, reduction string) ir.Value {
			return ops.SegmentReduce(b, x, i, ops.SegmentAttrs{Segments: ir.N(rows), Reduction: reduction})
		}
		out = append(out,
			Layer{fmt.Sprint("embedding ", t), rows, func(b *ir.Builder) ir.Value {
				return ops.Embedding(b, floats(b, "x", rows, width), ints(b, "i", reads))
			}},
			Layer{fmt.Sprint("maxima of segments ", t), rows, func(b *ir.Builder) ir.Value {
				return segments(b, floats(b, "x", reads, width), ints(b, "i", reads), "max")
			}},
			Layer{fmt.Sprint("messages along edges ", t), rows, func(b *ir.Builder) ir.Value {
				x, from, to := floats(b, "x", rows, width), ints(b, "from", reads), ints(b, "to", reads)
				return segments(b, ops.Relu(b, ops.Sub(b, ops.Embedding(b, x, from), ops.Embedding(b, x, to))), to, "mean")
			}})
	}
	for _, v := range [][2]int{{4096, 50257}, {64, 1000}, {20000, 10}, {512, 250000}} {
		out = append(out,
			Layer{fmt.Sprint("cross-entropy ", v), v[1], func(b *ir.Builder) ir.Value {
				return ops.CrossEntropyMean(b, floats(b, "x", v[0], v[1]), ints(b, "i", v[0]))
			}},
			of(fmt.Sprint("largest 8 of ", v), func(b *ir.Builder) ir.Value {
				y, _ := ops.TopK(b, floats(b, "x", v[0], v[1]), ops.TopKAttrs{K: 8})
				return y
			}))
	}
	return append(out,
		Layer{"take along an axis", 300, func(b *ir.Builder) ir.Value {
			return ops.TakeAlongAxis(b, floats(b, "x", 64, 300, 256), ints(b, "i", 64, 40, 256), 1, ops.OutsideClip)
		}},
		Layer{"take in the middle", 300, func(b *ir.Builder) ir.Value {
			return ops.Take(b, floats(b, "x", 64, 300, 256), ints(b, "i", 500), 1, ops.OutsideClip)
		}},
		of("median", func(b *ir.Builder) ir.Value { return ops.Median(b, floats(b, "x", 4096, 1000), 1) }),
		of("quantile of long rows", func(b *ir.Builder) ir.Value { return ops.Quantile(b, floats(b, "x", 4, 1000000), 0.9, 1) }),
		of("sort of a long row", func(b *ir.Builder) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 0}, floats(b, "x", 1000000))[0] }))
}

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

// sequences are recurrences, spectra and small matrices.
func sequences() []Layer {
	return []Layer{
		of("recurrence in the middle", func(b *ir.Builder) ir.Value {
			return ops.LinearRecurrence(b, ops.Sigmoid(b, floats(b, "x", 8, 2000, 256)), floats(b, "y", 8, 2000, 256), ops.CumSumAttrs{Axis: 1})
		}),
		of("recurrence of rows", func(b *ir.Builder) ir.Value {
			return ops.LinearRecurrence(b, ops.Sigmoid(b, floats(b, "x", 2000, 2000)), floats(b, "y", 2000, 2000), ops.CumSumAttrs{Axis: 1})
		}),
		of("lstm", func(b *ir.Builder) ir.Value {
			weights := []ir.Value{floats(b, "u", 100, 800), floats(b, "w", 200, 800), floats(b, "p", 800), floats(b, "q", 800)}
			y, _, _ := ops.LSTM(b, floats(b, "x", 50, 64, 100), floats(b, "h", 1, 64, 200), floats(b, "c", 1, 64, 200), weights, ops.RecurrentAttrs{})
			return y
		}),
		of("Fourier transform", func(b *ir.Builder) ir.Value {
			re, im := ops.DFT(b, floats(b, "x", 512, 1000), floats(b, "y", 512, 1000), false)
			return ops.Add(b, re, im)
		}),
		of("spectrogram", func(b *ir.Builder) ir.Value {
			re, im := ops.STFT(b, floats(b, "x", 32, 32000), floats(b, "window", 400), ops.FrameAttrs{Hop: 160})
			return ops.Add(b, ops.Square(b, re), ops.Square(b, im))
		}),
		of("solve", func(b *ir.Builder) ir.Value {
			a := ops.Add(b, floats(b, "x", 1000, 16, 16), ops.Diag(b, ops.Const(b, ir.F32, 9, ir.N(16)), 0))
			return ops.Solve(b, a, floats(b, "y", 1000, 16, 4), ops.SolveAttrs{})
		}),
	}
}
