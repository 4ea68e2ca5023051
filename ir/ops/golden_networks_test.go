package ops_test

import (
	"maps"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// results adds a golden case for each result of what build returns.
func results(name string, in shapes, build func(b *ir.Builder, in values) values, dims [][]int, want ...float64) {
	for i, w := range want {
		golden[name+", result "+strconv.Itoa(i)] = goldenCase{in, func(b *ir.Builder, in values) ir.Value {
			out := build(b, in)
			if b.Err() != nil {
				return ir.Value{}
			}
			return ops.Convert(b, out[i], ir.F64)
		}, dims[i], w}
	}
}

// recurrentShapes are those of x, the carries and the weights of a network over
// 3 features with 2 hidden ones, for a batch of 2.
func recurrentShapes(time, gates, carries, directions, layers int) shapes {
	out := shapes{{time, 2, 3}}
	for range carries {
		out = append(out, []int{layers * directions, 2, 2})
	}
	for i := range layers * directions {
		width := 3
		if i >= directions {
			width = 2 * directions
		}
		out = append(out, []int{width, 2 * gates}, []int{2, 2 * gates}, []int{2 * gates}, []int{2 * gates})
	}
	return out
}

func scaledBy(b *ir.Builder, x ir.Value, by float64) ir.Value {
	return ops.Mul(b, x, ops.ConstLike(b, x, by))
}

// By PyTorch 2.15 in float64 (torch.nn.LSTM, GRU, RNN with the weights
// transposed), and NumPy 2.4.6 for the formulas stated, step by step.
func init() {
	lstm := func(a ops.RecurrentAttrs) func(b *ir.Builder, in values) values {
		return func(b *ir.Builder, in values) values {
			y, h, c := ops.LSTM(b, in[0], in[1], in[2], in[3:], a)
			return values{y, h, c}
		}
	}
	gru := func(b *ir.Builder, in values) values {
		y, h := ops.GRU(b, in[0], in[1], in[2:], ops.RecurrentAttrs{Bidirectional: true})
		return values{y, h}
	}
	rnn := func(a ops.RecurrentAttrs) func(b *ir.Builder, in values) values {
		return func(b *ir.Builder, in values) values {
			y, h := ops.RNN(b, in[0], in[1], in[2:], a)
			return values{y, h}
		}
	}
	results("lstm", recurrentShapes(4, 4, 2, 1, 1), lstm(ops.RecurrentAttrs{}),
		[][]int{{4, 2, 2}, {1, 2, 2}, {1, 2, 2}}, -1.1835687423409371, -0.022391899434631525, 1.436326887169697)
	results("lstm of two layers, both ways", recurrentShapes(3, 4, 2, 2, 2), lstm(ops.RecurrentAttrs{Bidirectional: true}),
		[][]int{{3, 2, 4}, {4, 2, 2}, {4, 2, 2}}, -0.3438620031829525, 1.0581255469821234, 2.3685282211167187)
	results("gru of two layers, both ways", recurrentShapes(3, 3, 1, 2, 2), gru, [][]int{{3, 2, 4}, {4, 2, 2}}, 3.12658392833457, -1.7157024543599557)
	results("rnn of two layers", recurrentShapes(4, 1, 1, 1, 2), rnn(ops.RecurrentAttrs{}), [][]int{{4, 2, 2}, {2, 2, 2}}, 4.265649422859306, 1.2290334575488253)
	results("rnn with relu", recurrentShapes(4, 1, 1, 1, 1), rnn(ops.RecurrentAttrs{Relu: true}), [][]int{{4, 2, 2}, {1, 2, 2}}, 2.182647705078125, 0.732696533203125)

	results("selective_scan", shapes{{2, 5, 3}, {2, 5, 3}, {3, 2}, {2, 5, 2}, {2, 5, 2}, {2, 3, 2}}, func(b *ir.Builder, in values) values {
		y, h := ops.SelectiveScan(b, ops.StateSpace{X: in[0], Delta: scaledBy(b, in[1], 0.25), A: in[2], B: in[3], C: in[4], State: in[5]})
		return values{y, h}
	}, [][]int{{2, 5, 3}, {2, 3, 2}}, -5.564983366272771, 0.5448928106890361)
	for _, chunk := range []int{2, 5, 64} {
		results("ssd by chunks of "+strconv.Itoa(chunk), shapes{{2, 5, 4, 3}, {2, 5, 4}, {4}, {2, 5, 2, 2}, {2, 5, 2, 2}, {2, 4, 3, 2}}, func(b *ir.Builder, in values) values {
			y, h := ops.SSD(b, ops.StateSpace{X: in[0], Delta: scaledBy(b, in[1], 0.25), A: in[2], B: in[3], C: in[4], State: in[5]}, chunk)
			return values{y, h}
		}, [][]int{{2, 5, 4, 3}, {2, 4, 3, 2}}, 12.884414712276767, 3.0033590102453376)
	}
	delta := func(b *ir.Builder, in values) values {
		y, s := ops.GatedDelta(b, ops.DeltaRule{Q: scaledBy(b, in[0], 0.5), K: scaledBy(b, in[1], 0.5), V: in[2], G: scaledBy(b, in[3], 0.25), Beta: scaledBy(b, in[4], 0.5), State: in[5]}, 0.5)
		return values{y, s}
	}
	results("gated_delta", shapes{{2, 4, 2, 3}, {2, 4, 2, 3}, {2, 4, 2, 2}, {2, 4, 2}, {2, 4, 2}, {2, 2, 3, 2}}, delta,
		[][]int{{2, 4, 2, 2}, {2, 2, 3, 2}}, -0.15149079528803444, 5.424320602706865)
	// by Python 3.11 in float64, step by step: one padded chunk, chunks of 32 and of 64
	for time, want := range map[int][]float64{9: {1.811092417871079, 3.443445794842218}, 70: {-27.586394905657198, 22.86657005916267}, 300: {-204.00151754689838, 212.2238576183372}} {
		results("gated_delta of "+strconv.Itoa(time)+" steps", shapes{{1, time, 2, 3}, {1, time, 2, 3}, {1, time, 2, 2}, {1, time, 2}, {1, time, 2}, {1, 2, 3, 2}}, delta,
			[][]int{{1, time, 2, 2}, {1, 2, 3, 2}}, want...)
	}
	results("gated_delta with gates of channels", shapes{{2, 4, 2, 3}, {2, 4, 2, 3}, {2, 4, 2, 2}, {2, 4, 2, 3}, {2, 4, 2}, {2, 2, 3, 2}}, delta,
		[][]int{{2, 4, 2, 2}, {2, 2, 3, 2}}, 0.2237622877503016, 3.6466182305180794)
	results("moe_route", shapes{{7, 4}}, func(b *ir.Builder, in values) values {
		ties := scaledBy(b, ops.Reshape(b, ops.Iota(b, ir.F64, 0, ir.N(28)), ir.Dims(7, 4)...), 1e-3)
		w, e, s, loss := ops.MoERoute(b, ops.Add(b, in[0], ties), ops.MoERouteAttrs{K: 2, Capacity: 3, Normalize: true})
		places := ops.Eq(b, s, indices(b, []int64{6, 1, 9, 4, 7, 2, 10, 5, 8, -1, 0, 11, 3, -1}, 7, 2))
		return values{w, e, s, loss, ops.CountNonzero(b, places)}
	}, [][]int{{7, 2}, {7, 2}, {7, 2}, nil, nil}, 0.27422279952505735, -2.0, -8.75, -1.4946781780340472, 14*-0.75)
	maps.Copy(golden, goldenNetworks)
}

var goldenNetworks = map[string]goldenCase{
	"rope of neighbours": {
		shapes{{2, 3, 6}, {3, 2}, {3, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Rope(b, in[0], in[1], in[2], ops.RopeAttrs{Interleaved: true})
		},
		[]int{2, 3, 6},
		9.140625,
	},
	"rope of halves": {
		shapes{{2, 3, 6}, {3, 2}, {3, 2}},
		func(b *ir.Builder, in values) ir.Value { return ops.Rope(b, in[0], in[1], in[2], ops.RopeAttrs{}) },
		[]int{2, 3, 6},
		5.140625,
	},
	"axial_rope": { // the table is f32
		shapes{{2, 6, 8}},
		func(b *ir.Builder, in values) ir.Value { return ops.AxialRope(b, in[0], 3, 100) },
		[]int{2, 6, 8},
		12.257256805747666,
	},
	"alibi of six heads": {
		nil, func(b *ir.Builder, _ values) ir.Value {
			return ops.Convert(b, ops.ALiBi(b, ir.N(6), ir.N(3), ir.N(5)), ir.F64)
		}, []int{6, 3, 5}, 1.1298828125,
	},
	"alibi of eight heads": {
		nil, func(b *ir.Builder, _ values) ir.Value {
			return ops.Convert(b, ops.ALiBi(b, ir.N(8), ir.N(2), ir.N(4)), ir.F64)
		}, []int{8, 2, 4}, 1.4404296875,
	},
	"sink_attention": { // a column of scores more, and softmax without it
		shapes{{2, 3, 4, 5}, {2, 3, 6, 5}, {2, 3, 6, 2}, {3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.SinkAttention(b, ops.AttentionOperands{Q: in[0], K: in[1], V: in[2], Mask: ops.WindowMask(b, ir.N(4), ir.N(6), -1, 0)}, in[3], ops.AttentionAttrs{Scale: 0.3})
		},
		[]int{2, 3, 4, 2},
		1.0113196938754818,
	},
	"cached_attention":                         cachedGolden(ops.CachedAttentionAttrs{Scale: 0.3}, -5.1807961062637125),
	"cached_attention with softcap and window": cachedGolden(ops.CachedAttentionAttrs{Scale: 0.3, Softcap: 2, Window: 3}, -4.378182315104651),
	"grouped_matmul": {
		shapes{{5, 3}, {3, 3, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.GroupedMatMul(b, in[0], in[1], indices(b, []int64{2, 0, 2, -1, 0}, 5))
		},
		[]int{5, 2},
		-8.34375,
	},
	"lora_matmul": {
		shapes{{3, 4}, {4, 5}, {4, 2}, {2, 5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.LoRAMatMul(b, in[0], in[1], in[2], in[3], 0.5)
		},
		[]int{3, 5},
		-3.955810546875,
	},
	"experts by dispatch and combination": { // the product with each expert, as grouped_matmul has it
		shapes{{5, 3}, {3, 3, 2}},
		func(b *ir.Builder, in values) ir.Value {
			slots := indices(b, []int64{10, 0, 11, -1, 1}, 5, 1)
			rows := ops.Reshape(b, ops.MoEDispatch(b, in[0], slots, ir.N(15)), ir.Dims(3, 5, 3)...)
			y := ops.Reshape(b, ops.MatMul(b, rows, in[1]), ir.Dims(15, 2)...)
			return ops.MoECombine(b, y, ops.Const(b, ir.F64, 1, ir.Dims(5, 1)...), slots)
		},
		[]int{5, 2},
		-8.34375,
	},
	"window_mask": {
		nil, func(b *ir.Builder, _ values) ir.Value {
			seen := ops.Convert(b, ops.WindowMask(b, ir.N(2), ir.N(4), 1, 0), ir.F64)
			want := ops.Literal(b, ir.Floats(ir.F64, []float64{0, 1, 1, 0, 0, 0, 1, 1}, 2, 4))
			return ops.ReduceMax(b, ops.Abs(b, ops.Sub(b, seen, want)))
		}, nil, 0,
	},
}

// cachedGolden is a case of two sequences of two new positions each, by NumPy 2.4.6: the softmax of each
// query over the keys that it sees.
func cachedGolden(a ops.CachedAttentionAttrs, want float64) goldenCase {
	return goldenCase{
		shapes{{2, 4, 2, 5}, {3, 2, 6, 5}, {3, 2, 6, 2}},
		func(b *ir.Builder, in values) ir.Value {
			past, row := ops.Literal(b, ir.Ints(ir.I32, []int64{3, 1}, 2)), ops.Literal(b, ir.Ints(ir.I32, []int64{2, 0}, 2))
			return ops.CachedAttention(b, in[0], ops.KVCache{K: in[1], V: in[2], Past: past, Row: row}, a)
		},
		[]int{2, 4, 2, 2},
		want,
	}
}
