package families

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// bert is an encoder with padding and dropout (Devlin et al.).
func bert(n *net, times int) ir.Value {
	b := n.Builder
	const length, width = 128, 128
	ids, lengths := n.ids("ids", 1000, 8*times, length), n.ids("lengths", length, 8*times)
	mask := ops.Le(b, ops.Iota(b, ir.I32, 3, ir.Dims(1, 1, 1, length)...), n.reshape(lengths, 8*times, 1, 1, 1))
	key, drops := n.State("key", ir.U32, ir.N(2)), 0
	n.SetState("key", ops.FoldIn(b, key, ops.Const(b, ir.U32, 0)))
	drop := func(x ir.Value) ir.Value {
		drops++
		return ops.Dropout(b, x, ops.FoldIn(b, key, ops.Const(b, ir.U32, float64(drops))), 0.1)
	}
	x := ops.Add(b, ops.Embedding(b, n.param("tokens", 1000, width), ids), n.param("positions", length, width))
	x = drop(n.layerNorm("norm", x))
	for i := range 2 {
		name := fmt.Sprint("block", i)
		x = n.layerNorm(name+"/norm1", ops.Add(b, x, drop(n.attend(name, x, 4, mask))))
		x = n.layerNorm(name+"/norm2", ops.Add(b, x, drop(n.mlp(name+"/mlp", x, ops.Gelu, 4*width, width))))
	}
	return n.classify(x, 1000)
}

// llamaSizes are the sizes of a language model of [llama]: shared is the number of heads of keys and values.
type llamaSizes struct {
	vocabulary, length, width, inner int
	layers, heads, shared            int
}

// llama is a language model with grouped queries, rotary positions and gated layers (Touvron
// et al.), and a vocabulary of an odd size.
func llama(n *net, times int) ir.Value {
	return n.llama(4*times, llamaSizes{vocabulary: 5003, length: 128, width: 192, inner: 512, layers: 2, heads: 6, shared: 2})
}

func (n *net) llama(batch int, z llamaSizes) ir.Value {
	b := n.Builder
	matrix := func(name string, x ir.Value, out int) ir.Value {
		return ops.MatMul(b, x, n.param(name, size(x, -1), out))
	}
	norm := func(name string, x ir.Value) ir.Value {
		return ops.RMSNorm(b, x, n.param(name+"/scale", z.width), 1e-5)
	}
	x := ops.Embedding(b, n.param("tokens", z.vocabulary, z.width), n.ids("ids", z.vocabulary, batch, z.length))
	cos, sin := ops.RopeTable(b, ops.Iota(b, ir.I32, 0, ir.N(z.length)), z.width/z.heads, 0)
	keys := z.width * z.shared / z.heads
	for i := range z.layers {
		name := fmt.Sprint("block", i)
		h := norm(name+"/norm1", x)
		q, k := n.heads(matrix(name+"/q", h, z.width), z.heads), n.heads(matrix(name+"/k", h, keys), z.shared)
		q, k = ops.Rope(b, q, cos, sin, ops.RopeAttrs{}), ops.Rope(b, k, cos, sin, ops.RopeAttrs{})
		v := n.heads(matrix(name+"/v", h, keys), z.shared)
		y := ops.Attention(b, q, k, v, ir.Value{}, ops.AttentionAttrs{Causal: true})
		y = n.joinHeads(y)
		x = ops.Add(b, x, matrix(name+"/out", y, z.width))
		h = norm(name+"/norm2", x)
		h = ops.Mul(b, ops.Silu(b, matrix(name+"/gate", h, z.inner)), matrix(name+"/up", h, z.inner))
		x = ops.Add(b, x, matrix(name+"/down", h, z.width))
	}
	return ops.CrossEntropyMean(b, matrix("head", norm("norm", x), z.vocabulary), n.ids("labels", z.vocabulary, batch, z.length))
}

// mixture is a layer of eight experts, two for each token (Fedus, Zoph and Shazeer).
func mixture(n *net, times int) ir.Value {
	b := n.Builder
	tokens, capacity := 1024*times, 512*times
	const width, experts = 128, 8
	x := n.floats("x", tokens, width)
	h := n.layerNorm("norm", x)
	weights, _, slots, balance := ops.MoERoute(b, ops.MatMul(b, h, n.param("router", width, experts)), ops.MoERouteAttrs{K: 2, Capacity: capacity, Normalize: true})
	h = n.reshape(ops.MoEDispatch(b, h, slots, ir.N(experts*capacity)), experts, capacity, width)
	h = ops.Gelu(b, ops.MatMul(b, h, n.param("up", experts, width, 4*width)))
	h = n.reshape(ops.MatMul(b, h, n.param("down", experts, 4*width, width)), experts*capacity, width)
	y := ops.Add(b, x, ops.MoECombine(b, h, weights, slots))
	return ops.Add(b, n.classify(y, 100), ops.Mul(b, balance, n.number(0.01)))
}

// mamba is a block of a selective state space (Gu and Dao).
func mamba(n *net, times int) ir.Value {
	b := n.Builder
	const length, width, inner, states = 128, 64, 128, 16
	x := n.floats("x", 4*times, length, width)
	h := n.linear("in", n.layerNorm("norm", x), 2*inner)
	parts := ops.SplitEvenly(b, h, 2, 2)
	u := ops.Silu(b, n.causal("conv", parts[0], 4, inner, 1, inner))
	delta := ops.Softplus(b, n.linear("delta", u, inner))
	a := ops.Neg(b, ops.Exp(b, n.param("a", inner, states)))
	y, _ := ops.SelectiveScan(b, ops.StateSpace{X: u, Delta: delta, A: a, B: n.linear("b", u, states), C: n.linear("c", u, states)})
	y = ops.Mul(b, ops.Add(b, y, ops.Mul(b, u, n.param("d", inner))), ops.Silu(b, parts[1]))
	return n.classify(ops.Add(b, x, n.linear("out", y, width)), 100)
}

// causal is a dilated convolution over time, [batch, time, channels], that sees no later steps.
func (n *net) causal(name string, x ir.Value, window, out, dilation, groups int) ir.Value {
	w := n.param(name+"/w", window, size(x, 2)/groups, out)
	y := ops.ConvGeneral(n.Builder, x, w, ops.ConvAttrs{
		PadLo: []int{(window - 1) * dilation}, PadHi: []int{0}, RhsDilation: []int{dilation}, FeatureGroups: ir.N(groups),
		Lhs: []int{0, 2, 1}, Rhs: []int{2, 1, 0}, Out: []int{0, 2, 1},
	})
	return ops.Add(n.Builder, y, n.param(name+"/b", out))
}

// gatedDelta is a layer of the gated delta rule (Yang, Kautz and Hatamizadeh).
func gatedDelta(n *net, times int) ir.Value {
	b := n.Builder
	const length, width, heads = 128, 128, 4
	x := n.floats("x", 4*times, length, width)
	h := n.layerNorm("norm", x)
	split := func(name string) ir.Value {
		return n.reshape(n.linear(name, h, width), 4*times, length, heads, width/heads)
	}
	unit := func(x ir.Value) ir.Value {
		sum := ops.KeepDims(b, ops.ReduceSum, ops.Square(b, x), 3)
		return ops.Mul(b, x, ops.Rsqrt(b, ops.Add(b, sum, n.number(1e-6))))
	}
	gate := ops.LogSigmoid(b, n.linear("gate", h, heads))
	rule := ops.DeltaRule{Q: unit(split("q")), K: unit(split("k")), V: split("v"), G: gate, Beta: ops.Sigmoid(b, n.linear("beta", h, heads))}
	y, _ := ops.GatedDelta(b, rule, 1)
	return n.classify(ops.Add(b, x, n.linear("out", n.reshape(y, 4*times, length, width), width)), 100)
}

// recurrent are the embeddings and the weights of a recurrent language model with gates.
func (n *net) recurrent(times, gates int) (x, h ir.Value, weights []ir.Value) {
	const vocabulary, length, batch, width, hidden = 1000, 32, 16, 128, 256
	x = ops.Embedding(n.Builder, n.param("tokens", vocabulary, width), n.ids("ids", vocabulary, length, batch*times))
	for i, dims := range [][]int{{width, gates * hidden}, {hidden, gates * hidden}, {gates * hidden}, {gates * hidden}} {
		weights = append(weights, n.param(fmt.Sprint("weight", i), dims...))
	}
	return x, ops.Zeros(n.Builder, ir.F32, ir.Dims(1, batch*times, hidden)...), weights
}

// lstm is a language model of one LSTM.
func lstm(n *net, times int) ir.Value {
	x, h, weights := n.recurrent(times, 4)
	y, _, _ := ops.LSTM(n.Builder, x, h, h, weights, ops.RecurrentAttrs{})
	return n.classify(y, 1000)
}

// gru is a language model of one GRU.
func gru(n *net, times int) ir.Value {
	x, h, weights := n.recurrent(times, 3)
	y, _ := ops.GRU(n.Builder, x, h, weights, ops.RecurrentAttrs{})
	return n.classify(y, 1000)
}

// waveNet is a stack of dilated causal convolutions with gates (van den Oord et al.).
func waveNet(n *net, times int) ir.Value {
	b := n.Builder
	x := n.linear("in", n.floats("x", 4*times, 1024, 1), 32)
	skip := ir.Value{}
	for i := range 7 {
		name := fmt.Sprint("layer", i)
		parts := ops.SplitEvenly(b, n.causal(name, x, 2, 64, 1<<i, 1), 2, 2)
		h := ops.Mul(b, ops.Tanh(b, parts[0]), ops.Sigmoid(b, parts[1]))
		s := n.linear(name+"/skip", h, 64)
		if i == 0 {
			skip = s
		} else {
			skip = ops.Add(b, skip, s)
		}
		if i < 6 {
			x = ops.Add(b, x, n.linear(name+"/out", h, 32))
		}
	}
	return n.classify(ops.Relu(b, skip), 256)
}

// ctc is a speech net of convolutions over time with the CTC loss (Graves et al.).
func ctc(n *net, times int) ir.Value {
	b := n.Builder
	const length, classes, labels = 128, 29, 24
	x := n.floats("x", 8*times, length, 80)
	for i := range 3 {
		x = ops.Relu(b, n.causal(fmt.Sprint("conv", i), x, 5, 128, 1, 1))
	}
	logs := ops.LogSoftmax(b, ops.Transpose(b, n.linear("head", x, classes), 1, 0, 2), 2)
	count := func(k int) ir.Value { return ops.Const(b, ir.I32, float64(k), ir.N(8*times)) }
	return ops.CTCLoss(b, logs, n.ids("labels", classes, 8*times, labels), count(length), count(labels), ops.CTCAttrs{})
}
