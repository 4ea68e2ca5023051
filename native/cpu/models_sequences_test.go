package cpu_test

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// keywords recognises words in waves by convolutions (Dai et al., M5), channels first.
func keywords(z *zoo, batch int) ir.Value {
	b := z.Builder
	x := z.floats("x", batch, 1, 8000)
	for i, out := range []int{32, 32, 64, 64} {
		o := nn.ConvOptions{ChannelsFirst: true}
		window := 3
		if i == 0 {
			o.Stride, window = []int{8}, 80
		}
		x = ops.Relu(b, nn.BatchNorm(b, nn.Conv1d(b, x, out, window, o), nn.BatchNormOptions{ChannelsFirst: true}))
		x = nn.MaxPool(b, x, 4, nn.PoolOptions{ChannelsFirst: true})
	}
	return nn.Linear(b, ops.Mean(b, x, 2), 35)
}

// pointNet classifies clouds of 1,024 points (Qi et al.), channels first.
func pointNet(z *zoo, batch int) ir.Value {
	b := z.Builder
	x := z.floats("x", batch, 3, 1024)
	for _, out := range []int{64, 64, 128, 512} {
		x = nn.Conv1d(b, x, out, 1, nn.ConvOptions{ChannelsFirst: true})
		x = ops.Relu(b, nn.BatchNorm(b, x, nn.BatchNormOptions{ChannelsFirst: true}))
	}
	return z.mlp(ops.ReduceMax(b, x, 2), ops.Relu, 256, 40)
}

// graphAttention has two layers of four heads of attention along 16,000 edges (Veličković et al.).
func graphAttention(z *zoo, _ int) ir.Value {
	b := z.Builder
	const nodes, edges, heads = 2000, 16000, 4
	from, to := z.ids("from", nodes, edges), z.ids("to", nodes, edges)
	take := func(x, at ir.Value) ir.Value { return ops.Take(b, x, at, 0, ops.OutsideClip) }
	places := ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}}
	gather := func(x ir.Value) ir.Value {
		zeros := z.full(0, append([]ir.Dim{ir.N(nodes)}, x.Type().Shape[1:]...)...)
		return ops.ScatterAdd(b, zeros, ops.ExpandDims(b, to, -1), x, places)
	}
	x := z.floats("x", nodes, 64)
	for i, width := range []int{16, 8} {
		h := z.reshape(nn.Linear(b, x, heads*width, nn.LinearOptions{NoBias: true}), nodes, heads, width)
		score := func(name string) ir.Value {
			return ops.ReduceSum(b, ops.Mul(b, h, b.Param(fmt.Sprint(name, i), ir.F32, ir.Dims(heads, width)...)), 2)
		}
		s := ops.LeakyRelu(b, ops.Add(b, take(score("source"), from), take(score("target"), to)), 0.2)
		low := z.full(-1e30, ir.Dims(nodes, heads)...)
		most := ops.StopGradient(b, ops.ScatterMax(b, low, ops.ExpandDims(b, to, -1), s, places))
		s = ops.Exp(b, ops.Sub(b, s, take(most, to)))
		s = ops.Div(b, s, take(ops.Add(b, gather(s), z.number(1e-16)), to))
		x = ops.Elu(b, z.reshape(gather(ops.Mul(b, take(h, from), ops.ExpandDims(b, s, 2))), nodes, heads*width), 1)
	}
	return nn.Linear(b, x, 7)
}

// tabNet chooses columns of a table in three steps (Arik and Pfister), with softmax for sparsemax.
func tabNet(z *zoo, batch int) ir.Value {
	b := z.Builder
	parts := []ir.Value{z.floats("x", batch, 20)}
	for i := range 8 {
		parts = append(parts, nn.Embedding(b, z.ids(fmt.Sprint("column", i), 100, batch), 100, 8))
	}
	x := nn.BatchNorm(b, ops.Concatenate(b, 1, parts...))
	unit := func(x ir.Value) ir.Value {
		y := ops.Glu(b, nn.BatchNorm(b, nn.Linear(b, x, 128)), 1)
		y2 := ops.Glu(b, nn.BatchNorm(b, nn.Linear(b, y, 128)), 1)
		return ops.Mul(b, ops.Add(b, y, y2), z.number(0.7071))
	}
	h, prior := unit(x), z.number(1)
	y := z.number(0)
	for range 3 {
		mask := ops.Softmax(b, ops.Mul(b, prior, nn.BatchNorm(b, nn.Linear(b, h, 84))), 1)
		prior = ops.Mul(b, prior, ops.Sub(b, z.number(1.3), mask))
		h = unit(ops.Mul(b, mask, x))
		y = ops.Add(b, y, ops.Relu(b, h))
	}
	return nn.Linear(b, y, 2)
}

// tagger labels words by an LSTM in both directions.
func tagger(z *zoo, batch int) ir.Value {
	b := z.Builder
	y, _, _ := nn.LSTM(b, nn.Embedding(b, z.ids("words", 5000, batch, 40), 5000, 64), 96, nn.RecurrentOptions{Bidirectional: true})
	return nn.Linear(b, y, 20)
}

// seq2seq is an encoder and a decoder of GRUs, with attention of dot products (Luong, Pham and Manning).
func seq2seq(z *zoo, batch int) ir.Value {
	b := z.Builder
	encoded, h := nn.GRU(b, nn.Embedding(b, z.ids("source", 2000, batch, 30), 2000, 64), 128)
	y, _ := nn.GRU(b, nn.Embedding(b, z.ids("target", 2000, batch, 25), 2000, 64), 128, nn.RecurrentOptions{Hidden: h})
	weights := ops.Softmax(b, ops.MatMul(b, y, ops.Transpose(b, encoded, 0, 2, 1)), 2)
	y = ops.Concatenate(b, 2, y, ops.MatMul(b, weights, encoded))
	return nn.Linear(b, ops.Tanh(b, nn.Linear(b, y, 128)), 2000)
}

// dlrm has embeddings, a network for numbers, and products of all pairs (Naumov et al.).
func dlrm(z *zoo, batch int) ir.Value {
	b := z.Builder
	dense := ops.Relu(b, z.mlp(z.floats("x", batch, 13), ops.Relu, 128, 64, 32))
	rows := []ir.Value{dense}
	for i := range 8 {
		rows = append(rows, nn.Embedding(b, z.ids(fmt.Sprint("feature", i), 10_000, batch), 10_000, 32))
	}
	all := ops.Stack(b, 1, rows...)
	pairs := z.reshape(ops.MatMul(b, all, ops.Transpose(b, all, 0, 2, 1)), batch, 81)
	return z.mlp(ops.Concatenate(b, 1, dense, pairs), ops.Relu, 256, 128, 1)
}

// neuMF joins a product and a network of embeddings of users and items (He et al.).
func neuMF(z *zoo, batch int) ir.Value {
	b := z.Builder
	user, item := z.ids("user", 6000, batch), z.ids("item", 4000, batch)
	row := func(ids ir.Value, rows, width int) ir.Value { return nn.Embedding(b, ids, rows, width) }
	product := ops.Mul(b, row(user, 6000, 16), row(item, 4000, 16))
	h := ops.Concatenate(b, 1, row(user, 6000, 32), row(item, 4000, 32))
	h = ops.Relu(b, z.mlp(h, ops.Relu, 64, 32, 16))
	return nn.Linear(b, ops.Concatenate(b, 1, product, h), 1)
}

// linearAttention is a causal transformer whose attention is running sums in parts of 64 (Katharopoulos et al.).
func linearAttention(z *zoo, batch int) ir.Value {
	b := z.Builder
	const length, width, heads, part = 256, 128, 4, 64
	const parts, each = length / part, width / heads
	x := nn.Embedding(b, z.ids("tokens", 1000, batch, length), 1000, width)
	row, column := ops.Iota(b, ir.I32, 0, ir.Dims(part, part)...), ops.Iota(b, ir.I32, 1, ir.Dims(part, part)...)
	lower := ops.Convert(b, ops.Ge(b, row, column), ir.F32)
	for range 2 {
		y := nn.LayerNorm(b, x)
		split := func() ir.Value { // [batch, heads, parts, part, each]
			v := z.reshape(nn.Linear(b, y, width), batch, parts, part, heads, each)
			return ops.Transpose(b, v, 0, 3, 1, 2, 4)
		}
		positive := func(x ir.Value) ir.Value { return ops.Add(b, ops.Elu(b, x, 1), z.number(1)) }
		q, k, v := positive(split()), positive(split()), split()
		turned := ops.Transpose(b, k, 0, 1, 2, 4, 3)
		state := ops.CumSum(b, ops.MatMul(b, turned, v), ops.CumSumAttrs{Axis: 2, Exclusive: true})
		sums := ops.CumSum(b, ops.ReduceSum(b, k, 3), ops.CumSumAttrs{Axis: 2, Exclusive: true})
		scores := ops.Mul(b, ops.MatMul(b, q, turned), lower)
		over := ops.Add(b, ops.ReduceSum(b, scores, 4), ops.ReduceSum(b, ops.Mul(b, q, ops.ExpandDims(b, sums, 3)), 4))
		y = ops.Div(b, ops.Add(b, ops.MatMul(b, scores, v), ops.MatMul(b, q, state)), ops.ExpandDims(b, over, 4))
		y = z.reshape(ops.Transpose(b, y, 0, 2, 3, 1, 4), batch, length, width)
		x = ops.Add(b, x, nn.Linear(b, y, width))
		x = ops.Add(b, x, z.mlp(nn.LayerNorm(b, x), ops.Gelu, 4*width, width))
	}
	return nn.Linear(b, nn.LayerNorm(b, x), 1000)
}

// conformer has blocks of attention and depthwise convolutions over time (Gulati et al.).
func conformer(z *zoo, batch int) ir.Value {
	b := z.Builder
	const width = 96
	x := nn.Linear(b, z.floats("x", batch, 150, 80), width)
	feed := func(x ir.Value) ir.Value {
		y := z.mlp(nn.LayerNorm(b, x), ops.Silu, 4*width, width)
		return ops.Add(b, x, ops.Mul(b, y, z.number(0.5)))
	}
	for range 2 {
		x = feed(x)
		x = ops.Add(b, x, nn.Attention(b, nn.LayerNorm(b, x), 4))
		y := ops.Glu(b, nn.Linear(b, nn.LayerNorm(b, x), 2*width), 2)
		y = nn.Conv1d(b, y, width, 31, nn.ConvOptions{Pad: []int{15}, Groups: width})
		x = ops.Add(b, x, nn.Linear(b, ops.Silu(b, nn.BatchNorm(b, y)), width))
		x = nn.LayerNorm(b, feed(x))
	}
	return nn.Linear(b, x, 100)
}

// actorCritic has a policy and a value of small observations.
func actorCritic(z *zoo, batch int) ir.Value {
	b := z.Builder
	x := z.floats("x", batch, 24)
	policy, value := z.mlp(x, ops.Tanh, 64, 64, 4), z.mlp(x, ops.Tanh, 64, 64, 1)
	chosen := ops.TakeAlongAxis(b, ops.LogSoftmax(b, policy, 1), z.ids("action", 4, batch, 1), 1, ops.OutsideClip)
	gain := ops.Sub(b, z.floats("reward", batch, 1), value)
	return ops.Concatenate(b, 1, ops.Mul(b, chosen, ops.StopGradient(b, gain)), gain)
}

// kalman is a filter of 50 steps with four states and two measurements, whose matrices are learned.
func kalman(z *zoo, batch int) ir.Value {
	b := z.Builder
	const n, m, steps = 4, 2, 50
	move, see := b.Param("move", ir.F32, ir.Dims(n, n)...), b.Param("see", ir.F32, ir.Dims(m, n)...)
	one := func(n int) ir.Value {
		return ops.Convert(b, ops.Eq(b, ops.Iota(b, ir.I32, 0, ir.Dims(n, n)...), ops.Iota(b, ir.I32, 1, ir.Dims(n, n)...)), ir.F32)
	}
	turn := func(b *ir.Builder, x ir.Value) ir.Value { return ops.SwapAxes(b, x, -1, -2) }
	_, ys := ops.Scan(b, ops.Loop{
		Carries: []ir.Value{z.full(0, ir.Dims(batch, n, 1)...), ops.BroadcastTo(b, one(n), ir.Dims(batch, n, n))},
		Xs:      []ir.Value{z.floats("seen", steps, batch, m, 1)},
		Consts:  []ir.Value{move, see, one(n), one(m)},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			move, see, in, im := consts[0], consts[1], consts[2], consts[3]
			x := ops.MatMul(b, move, carries[0])
			p := ops.Add(b, ops.MatMul(b, ops.MatMul(b, move, carries[1]), turn(b, move)), in)
			s := ops.Add(b, ops.MatMul(b, ops.MatMul(b, see, p), turn(b, see)), im)
			gain := turn(b, ops.Solve(b, s, ops.MatMul(b, see, p), ops.SolveAttrs{}))
			x = ops.Add(b, x, ops.MatMul(b, gain, ops.Sub(b, xs[0], ops.MatMul(b, see, x))))
			p = ops.MatMul(b, ops.Sub(b, in, ops.MatMul(b, gain, see)), p)
			return []ir.Value{x, p}, []ir.Value{x}
		},
	})
	return ys[0]
}
