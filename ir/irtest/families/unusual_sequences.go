package families

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// lru has linear recurrences of complex numbers (Orvieto et al., Linear Recurrent Unit).
func lru(n *net, times int) ir.Value {
	b := n.Builder
	const length, width, states = 512, 64, 64
	batch := 4 * times
	x := n.linear("in", n.floats("x", batch, length, 16), width)
	for i := range 2 {
		name := fmt.Sprint("layer", i)
		h := n.layerNorm(name+"/norm", x)
		size := ops.Exp(b, ops.Neg(b, ops.Exp(b, n.param(name+"/nu/b", states))))
		angle := ops.Exp(b, n.param(name+"/theta/b", states))
		by := ops.Complex(b, ops.Mul(b, size, ops.Cos(b, angle)), ops.Mul(b, size, ops.Sin(b, angle)))
		gain := ops.Sqrt(b, ops.Sub(b, n.number(1), ops.Square(b, size)))
		in := ops.Complex(b, ops.Mul(b, ops.MatMul(b, h, n.param(name+"/b/re", width, states)), gain), ops.Mul(b, ops.MatMul(b, h, n.param(name+"/b/im", width, states)), gain))
		state := ops.LinearRecurrence(b, ops.BroadcastTo(b, by, in.Shape()), in, ops.CumSumAttrs{Axis: 1})
		y := ops.Sub(b, ops.MatMul(b, ops.Real(b, state), n.param(name+"/c/re", states, width)), ops.MatMul(b, ops.Imag(b, state), n.param(name+"/c/im", states, width)))
		y = ops.Gelu(b, ops.Add(b, y, ops.Mul(b, h, n.param(name+"/d", width))))
		x = ops.Add(b, x, ops.Glu(b, n.linear(name+"/out", y, 2*width), 2))
	}
	return n.classify(ops.Mean(b, x, 1), 10)
}

// rwkv has states of matrices that decay by what is read (Peng et al., RWKV-6).
func rwkv(n *net, times int) ir.Value {
	b := n.Builder
	const length, heads, each = 128, 4, 32
	const width = heads * each
	batch := 4 * times
	x := ops.Embedding(b, n.param("words", 1000, width), n.ids("ids", 1000, batch, length))
	h := n.layerNorm("norm", x)
	back := ops.Sub(b, ops.Pad(b, ops.SliceAxis(b, h, 1, ir.N(0), ir.N(length-1)), n.number(0), []int{0, 1, 0}, []int{0, 0, 0}, []int{0, 0, 0}), h)
	read := func(name string) ir.Value {
		mixed := ops.Add(b, h, ops.Mul(b, back, n.param(name+"/mix", width)))
		y := n.reshape(ops.MatMul(b, mixed, n.param(name+"/w", width, width)), batch, length, heads, each)
		return ops.Transpose(b, y, 1, 0, 2, 3)
	}
	r, k, v := read("r"), read("k"), read("v")
	decay := ops.Exp(b, ops.Neg(b, ops.Exp(b, read("decay"))))
	bonus := n.param("bonus", 1, heads, each, 1)
	_, ys := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{bonus}, Carries: []ir.Value{ops.Zeros(b, ir.F32, ir.Dims(batch, heads, each, each)...)}, Xs: []ir.Value{r, k, v, decay},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			kv := ops.Mul(b, ops.ExpandDims(b, xs[1], 3), ops.ExpandDims(b, xs[2], 2))
			s := ops.Add(b, carries[0], ops.Mul(b, consts[0], kv))
			y := ops.ReduceSum(b, ops.Mul(b, s, ops.ExpandDims(b, xs[0], 3)), 2)
			return []ir.Value{ops.Add(b, ops.Mul(b, carries[0], ops.ExpandDims(b, xs[3], 3)), kv)}, []ir.Value{y}
		},
	})
	y := n.reshape(ops.Transpose(b, ys[0], 1, 0, 2, 3), batch, length, width)
	x = ops.Add(b, x, n.linear("out", n.layerNorm("norm1", y), width))
	h = n.layerNorm("norm2", x)
	x = ops.Add(b, x, n.linear("down", ops.Square(b, ops.Relu(b, n.linear("up", h, 4*width))), width))
	return n.classify(x, 1000)
}

// xLSTM has exponential gates with a running maximum and a recurrent matrix for each head (Beck et al.).
func xLSTM(n *net, times int) ir.Value {
	b := n.Builder
	const length, heads, each = 64, 4, 32
	const width = heads * each
	batch := 8 * times
	x := ops.Embedding(b, n.param("words", 1000, width), n.ids("ids", 1000, length, batch))
	gates := n.reshape(n.linear("gates", n.layerNorm("norm", x), 4*width), length, batch, heads, 4*each)
	zero := ops.Zeros(b, ir.F32, ir.Dims(batch, heads, each)...)
	_, ys := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{n.param("recurrent", heads, each, 4*each)}, Carries: []ir.Value{zero, zero, zero, zero}, Xs: []ir.Value{gates},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			h, c, sum, top := carries[0], carries[1], carries[2], carries[3]
			g := ops.SplitEvenly(b, ops.Add(b, xs[0], ops.Einsum(b, "bhi,hio->bho", h, consts[0])), 2, 4)
			forget := ops.Add(b, ops.LogSigmoid(b, g[1]), top)
			next0 := ops.Max(b, forget, g[0])
			i, f := ops.Exp(b, ops.Sub(b, g[0], next0)), ops.Exp(b, ops.Sub(b, forget, next0))
			c = ops.Add(b, ops.Mul(b, f, c), ops.Mul(b, i, ops.Tanh(b, g[2])))
			sum = ops.Add(b, ops.Mul(b, f, sum), i)
			h = ops.Div(b, ops.Mul(b, ops.Sigmoid(b, g[3]), c), ops.Max(b, sum, ops.Const(b, ir.F32, 1e-6)))
			return []ir.Value{h, c, sum, next0}, []ir.Value{h}
		},
	})
	y := n.reshape(ops.Standardize(b, ys[0], 1e-5, 3), length, batch, width)
	return n.classify(ops.Add(b, x, n.linear("out", y, width)), 1000)
}

// triangle updates pairs of residues along the third side of triangles (Jumper et al., AlphaFold).
func triangle(n *net, times int) ir.Value {
	b := n.Builder
	const side, width, heads = 48, 64, 4
	x := n.floats("x", times, side, side, width)
	gated := func(name string, h ir.Value, out int) ir.Value {
		return ops.Mul(b, ops.Sigmoid(b, n.linear(name+"/gate", h, out)), n.linear(name, h, out))
	}
	for i, equation := range []string{"bikc,bjkc->bijc", "bkic,bkjc->bijc"} {
		name := fmt.Sprint("multiply", i)
		h := n.layerNorm(name+"/norm", x)
		y := ops.Einsum(b, equation, gated(name+"/left", h, width), gated(name+"/right", h, width))
		y = n.linear(name+"/out", n.layerNorm(name+"/norm1", y), width)
		x = ops.Add(b, x, ops.Mul(b, ops.Sigmoid(b, n.linear(name+"/gate", h, width)), y))
	}
	for i := range 2 {
		name := fmt.Sprint("attend", i)
		h := n.layerNorm(name+"/norm", x)
		if i == 1 {
			h = ops.Transpose(b, h, 0, 2, 1, 3)
		}
		split := func(which string) ir.Value {
			y := n.reshape(ops.MatMul(b, h, n.param(name+which, width, width)), times, side, side, heads, width/heads)
			return ops.Transpose(b, y, 0, 1, 3, 2, 4)
		}
		bias := n.reshape(ops.Transpose(b, ops.MatMul(b, h, n.param(name+"/bias", width, heads)), 0, 3, 1, 2), times, 1, heads, side, side)
		y := ops.Attention(b, split("/q"), split("/k"), split("/v"), bias, ops.AttentionAttrs{})
		y = n.reshape(ops.Transpose(b, y, 0, 1, 3, 2, 4), times, side, side, width)
		y = n.linear(name+"/out", ops.Mul(b, y, ops.Sigmoid(b, n.linear(name+"/gate", h, width))), width)
		if i == 1 {
			y = ops.Transpose(b, y, 0, 2, 1, 3)
		}
		x = ops.Add(b, x, y)
	}
	x = ops.Add(b, x, n.mlp("mlp", n.layerNorm("norm", x), ops.Relu, 2*width, width))
	return n.classify(x, 32)
}

// t5 translates by an encoder and a decoder with biases by distance (Raffel et al.).
func t5(n *net, times int) ir.Value {
	b := n.Builder
	const from, to, width, heads, words, buckets = 96, 64, 128, 4, 2000, 32
	batch := 4 * times
	norm := func(name string, x ir.Value) ir.Value { return ops.RMSNorm(b, x, n.param(name+"/scale", width), 1e-6) }
	matrix := func(name string, x ir.Value, out int) ir.Value {
		return ops.MatMul(b, x, n.param(name, size(x, -1), out))
	}
	attend := func(name string, x, memory, bias ir.Value) ir.Value {
		q, k, v := matrix(name+"/q", x, width), matrix(name+"/k", memory, width), matrix(name+"/v", memory, width)
		y := ops.Attention(b, n.heads(q, heads), n.heads(k, heads), n.heads(v, heads), bias, ops.AttentionAttrs{Scale: 1})
		return matrix(name+"/out", n.joinHeads(y), width)
	}
	bias := func(name string, length int, both bool) ir.Value {
		table := make([]int64, length*length)
		for i := range table {
			table[i] = distanceBucket(i%length-i/length, buckets, both)
		}
		y := ops.Embedding(b, n.param(name, buckets, heads), ops.Literal(b, ir.Ints(ir.I32, table, length, length)))
		return n.reshape(ops.Transpose(b, y, 2, 0, 1), 1, heads, length, length)
	}
	table := n.param("tokens", words, width)
	lengths := n.ids("lengths", from, batch)
	seen := ops.Le(b, ops.Iota(b, ir.I32, 3, ir.Dims(1, 1, 1, from)...), n.reshape(lengths, batch, 1, 1, 1))
	pad := ops.Select(b, seen, n.number(0), n.number(-1e9))
	x := ops.Embedding(b, table, n.ids("ids", words, batch, from))
	near := ops.Add(b, bias("encoder/bias", from, true), pad)
	for i := range 2 {
		name := fmt.Sprint("encoder", i)
		h := norm(name+"/norm1", x)
		x = ops.Add(b, x, attend(name, h, h, near))
		x = ops.Add(b, x, matrix(name+"/down", ops.Relu(b, matrix(name+"/up", norm(name+"/norm2", x), 4*width)), width))
	}
	memory := norm("encoder/norm", x)
	y := ops.Embedding(b, table, n.ids("targets", words, batch, to))
	later := ops.Gt(b, ops.Iota(b, ir.I32, 3, ir.Dims(1, 1, to, to)...), ops.Iota(b, ir.I32, 2, ir.Dims(1, 1, to, to)...))
	near = ops.Add(b, bias("decoder/bias", to, false), ops.Select(b, later, n.number(-1e9), n.number(0)))
	for i := range 2 {
		name := fmt.Sprint("decoder", i)
		h := norm(name+"/norm1", y)
		y = ops.Add(b, y, attend(name, h, h, near))
		y = ops.Add(b, y, attend(name+"/cross", norm(name+"/norm2", y), memory, pad))
		y = ops.Add(b, y, matrix(name+"/down", ops.Relu(b, matrix(name+"/up", norm(name+"/norm3", y), 4*width)), width))
	}
	logits := ops.MatMul(b, ops.Mul(b, norm("decoder/norm", y), n.number(1/math.Sqrt(width))), ops.Transpose(b, table, 1, 0))
	return ops.CrossEntropyMean(b, logits, n.ids("labels", words, batch, to))
}

// distanceBucket is the number of a bucket of distances: single ones when near, then ranges that grow.
func distanceBucket(d, buckets int, both bool) int64 {
	base := 0
	if both {
		buckets /= 2
		if d > 0 {
			base = buckets
		}
		d = max(d, -d)
	} else {
		d = max(-d, 0)
	}
	near := buckets / 2
	if d >= near {
		far := float64(near) + math.Log(float64(d)/float64(near))/math.Log(128/float64(near))*float64(buckets-near)
		d = min(int(far), buckets-1)
	}
	return int64(base + d)
}

// performer has causal attention by random features, in chunks (Choromanski et al.).
func performer(n *net, times int) ir.Value {
	b := n.Builder
	const length, chunk, width, heads, features = 512, 64, 128, 4, 64
	const each = width / heads
	batch := 2 * times
	x := ops.Embedding(b, n.param("words", 1000, width), n.ids("ids", 1000, batch, length))
	project := n.floats("project", each, features)
	for i := range 2 {
		name := fmt.Sprint("block", i)
		h := n.layerNorm(name+"/norm1", x)
		split := func(which string) ir.Value { return n.heads(n.linear(name+which, h, width), heads) }
		positive := func(x ir.Value, axes ...int) ir.Value {
			x = ops.Mul(b, x, n.number(math.Pow(each, -0.25)))
			y := ops.Sub(b, ops.MatMul(b, x, project), ops.Mul(b, ops.KeepDims(b, ops.ReduceSum, ops.Square(b, x), 3), n.number(0.5)))
			y = ops.Exp(b, ops.Sub(b, y, ops.StopGradient(b, ops.KeepDims(b, ops.ReduceMax, y, axes...))))
			return n.reshape(ops.Add(b, y, n.number(1e-4)), batch, heads, length/chunk, chunk, features)
		}
		q, k := positive(split("/q"), 3), positive(split("/k"), 2, 3)
		v := n.reshape(split("/v"), batch, heads, length/chunk, chunk, each)
		v = ops.Concatenate(b, 4, v, ops.Ones(b, ir.F32, ir.Dims(batch, heads, length/chunk, chunk, 1)...))
		states := ops.CumSum(b, ops.MatMul(b, ops.SwapAxes(b, k, 3, 4), v), ops.CumSumAttrs{Axis: 2, Exclusive: true})
		inside := ops.Tril(b, ops.MatMul(b, q, ops.SwapAxes(b, k, 3, 4)), 0)
		y := ops.Add(b, ops.MatMul(b, q, states), ops.MatMul(b, inside, v))
		parts := ops.Split(b, y, 4, ir.N(each), ir.N(1))
		y = n.reshape(ops.Div(b, parts[0], parts[1]), batch, heads, length, each)
		y = n.joinHeads(y)
		x = n.feed(name, ops.Add(b, x, n.linear(name+"/out", y, width)))
	}
	return n.classify(x, 1000)
}

// longformer attends to neighbours in blocks (Beltagy, Peters and Cohan).
func longformer(n *net, times int) ir.Value {
	b := n.Builder
	const length, block, width, heads = 1024, 64, 128, 4
	const each, blocks = width / heads, length / block
	x := ops.Embedding(b, n.param("words", 1000, width), n.ids("ids", 1000, times, length))
	at := ops.Sub(b, ops.Iota(b, ir.I32, 1, ir.Dims(block, 3*block)...), ops.Iota(b, ir.I32, 0, ir.Dims(block, 3*block)...))
	near := ops.And(b, ops.Ge(b, at, ops.Const(b, ir.I32, 0)), ops.Le(b, at, ops.Const(b, ir.I32, 2*block)))
	place := ops.Add(b, ops.Iota(b, ir.I32, 2, ir.Dims(blocks, 1, 3*block)...), ops.Mul(b, ops.Iota(b, ir.I32, 0, ir.Dims(blocks, 1, 3*block)...), ops.Const(b, ir.I32, block)))
	within := ops.And(b, ops.Ge(b, place, ops.Const(b, ir.I32, block)), ops.Lt(b, place, ops.Const(b, ir.I32, length+block)))
	mask := ops.And(b, within, near)
	for i := range 2 {
		name := fmt.Sprint("block", i)
		h := n.layerNorm(name+"/norm1", x)
		split := func(which string) ir.Value { return n.heads(n.linear(name+which, h, width), heads) }
		wide := func(x ir.Value) ir.Value {
			x = ops.Pad(b, x, n.number(0), []int{0, 0, block, 0}, []int{0, 0, block, 0}, []int{0, 0, 0, 0})
			var parts []ir.Value
			for k := range 3 {
				part := ops.SliceAxis(b, x, 2, ir.N(k*block), ir.N(length))
				parts = append(parts, n.reshape(part, times, heads, blocks, block, each))
			}
			return ops.Concatenate(b, 3, parts...)
		}
		q := n.reshape(split("/q"), times, heads, blocks, block, each)
		y := ops.Attention(b, q, wide(split("/k")), wide(split("/v")), mask, ops.AttentionAttrs{})
		y = n.joinHeads(n.reshape(y, times, heads, length, each))
		x = n.feed(name, ops.Add(b, x, n.linear(name+"/out", y, width)))
	}
	return n.classify(x, 1000)
}

// rnnt is the loss of a transducer over the paths of a lattice of frames and labels (Graves).
func rnnt(n *net, times int) ir.Value {
	b := n.Builder
	const frames, labels, width, classes = 64, 16, 128, 64
	batch := 4 * times
	sound := n.mlp("encoder", n.floats("x", batch, frames, 80), ops.Relu, width, width)
	said := n.ids("labels", classes-1, batch, labels)
	text := ops.Embedding(b, n.param("words", classes, width), said)
	text = ops.Pad(b, n.linear("predictor", text, width), n.number(0), []int{0, 1, 0}, []int{0, 0, 0}, []int{0, 0, 0})
	joint := ops.Tanh(b, ops.Add(b, ops.ExpandDims(b, sound, 2), ops.ExpandDims(b, text, 1)))
	logs := ops.LogSoftmax(b, n.linear("joint", joint, classes), 3)
	blank := n.reshape(ops.SliceAxis(b, logs, 3, ir.N(classes-1), ir.N(1)), batch, frames, labels+1)
	at := ops.BroadcastTo(b, n.reshape(said, batch, 1, labels, 1), ir.Dims(batch, frames, labels, 1))
	emit := ops.TakeAlongAxis(b, ops.SliceAxis(b, logs, 2, ir.N(0), ir.N(labels)), at, 3, ops.OutsideClip)
	emit = n.reshape(emit, batch, frames, labels)
	before := ops.Pad(b, ops.CumSum(b, emit, ops.CumSumAttrs{Axis: 2}), n.number(0), []int{0, 0, 1}, []int{0, 0, 0}, []int{0, 0, 0})
	turned := func(x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0, 2) }
	frame := func(x ir.Value, from, count int) ir.Value { return ops.SliceAxis(b, x, 0, ir.N(from), ir.N(count)) }
	before, blank = turned(before), turned(blank)
	carries, _ := ops.Scan(b, ops.Loop{
		Carries: []ir.Value{n.reshape(frame(before, 0, 1), batch, labels+1)}, Xs: []ir.Value{frame(before, 1, frames-1), frame(blank, 0, frames-1)},
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			came := ops.Sub(b, ops.Add(b, carries[0], xs[1]), xs[0])
			return []ir.Value{ops.Add(b, xs[0], ops.CumLogSumExp(b, came, ops.CumSumAttrs{Axis: 1}))}, nil
		},
	})
	last := ops.Add(b, carries[0], n.reshape(frame(blank, frames-1, 1), batch, labels+1))
	return ops.Neg(b, n.mean(ops.SliceAxis(b, last, 1, ir.N(labels), ir.N(1))))
}
