package ops

import "github.com/rlx-go/rlx/ir"

// Recurrent layers.
const (
	OpLSTM ir.Op = "lstm"
	OpGRU  ir.Op = "gru"
	OpRNN  ir.Op = "rnn"
)

// RecurrentAttrs choose bidirectional layers and, for [RNN], relu instead of tanh.
type RecurrentAttrs struct{ Bidirectional, Relu bool }

// Visit shows the attributes.
func (a *RecurrentAttrs) Visit(v ir.AttrVisitor) {
	v.Bool("bidirectional", &a.Bidirectional)
	v.Bool("relu", &a.Relu)
}

// cell is one step of a recurrent network.
type cell struct {
	op      ir.Op
	doc     string
	gates   int // number of gates: blocks of the hidden size in the weights
	carries int // number of carries, the hidden state first
	// step returns the new carries from the pre-activations x·w + bias and h·w + bias of
	// each gate.
	step func(b *ir.Builder, a *RecurrentAttrs, x, h []ir.Value, carries []ir.Value) []ir.Value
}

var cells = []cell{
	{
		op: OpLSTM, gates: 4, carries: 2,
		doc: "A long short-term memory (Hochreiter and Schmidhuber): gates i, f, g, o of σ, σ, tanh, σ, c ← f·c + i·g and h ← o·tanh(c).",
		step: func(b *ir.Builder, _ *RecurrentAttrs, x, h, carries []ir.Value) []ir.Value {
			gate := func(i int) ir.Value { return Add(b, x[i], h[i]) }
			c := Add(b, Mul(b, Sigmoid(b, gate(1)), carries[1]), Mul(b, Sigmoid(b, gate(0)), Tanh(b, gate(2))))
			return []ir.Value{Mul(b, Sigmoid(b, gate(3)), Tanh(b, c)), c}
		},
	},
	{
		op: OpGRU, gates: 3, carries: 1,
		doc: "A gated recurrent unit (Cho et al.): gates r, z, n of σ, σ and tanh(x + r·h), with h ← (1 − z)·n + z·h.",
		step: func(b *ir.Builder, _ *RecurrentAttrs, x, h, carries []ir.Value) []ir.Value {
			r, z := Sigmoid(b, Add(b, x[0], h[0])), Sigmoid(b, Add(b, x[1], h[1]))
			n := Tanh(b, Add(b, x[2], Mul(b, r, h[2])))
			return []ir.Value{Add(b, n, Mul(b, z, Sub(b, carries[0], n)))}
		},
	},
	{
		op: OpRNN, gates: 1, carries: 1,
		doc: "A plain recurrent network: h ← tanh(x + h), or relu.",
		step: func(b *ir.Builder, a *RecurrentAttrs, x, h, _ []ir.Value) []ir.Value {
			sum := Add(b, x[0], h[0])
			if a.Relu {
				return []ir.Value{Relu(b, sum)}
			}
			return []ir.Value{Tanh(b, sum)}
		},
	},
}

func init() {
	for _, c := range cells {
		operands := append([]string{"x", "h", "c"}[:1+c.carries], "weights...")
		defineComposite(composite{
			op: c.op, operands: operands, types: floats,
			doc: c.doc + " x is [time, batch, features], each carry [layers·directions, batch, hidden]. Results are the hidden states of the last layer, " +
				"[time, batch, directions·hidden], and the final carries, to continue the sequence with. Each layer and each " +
				"direction within it has PyTorch's weights, transposed: for the input [features, gates·hidden], for the hidden state " +
				"[hidden, gates·hidden], and two biases [gates·hidden]. It is computed in f32 for narrower types.",
			newAttrs: func() ir.Attrs { return &RecurrentAttrs{} },
			constraints: []string{
				"all operands have one element type", "the carries have one shape",
				"there are four weights for each layer and direction, of the shapes above",
			},
			check:  func(n *ir.Node) error { return checkRecurrent(c, n) },
			bodies: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value { return recurrent(b, c, n, in) },
		})
	}
}

func directions(n *ir.Node) int {
	if n.Attrs().(*RecurrentAttrs).Bidirectional {
		return 2
	}
	return 1
}

func checkRecurrent(c cell, n *ir.Node) error {
	if err := oneDType(n); err != nil {
		return err
	}
	in, dirs := n.InTypes(), directions(n)
	x, h, weights := in[0], in[1], in[1+c.carries:]
	if len(x.Shape) != 3 || len(h.Shape) != 3 {
		return ir.Shapef("x is %s and h %s, not both of rank 3", x, h)
	}
	if len(weights) == 0 || len(weights)%(4*dirs) != 0 {
		return ir.Shapef("%d weights are not four for each layer and direction", len(weights))
	}
	hidden, layers := h.Shape[2], len(weights)/4/dirs
	for _, carry := range in[1 : 1+c.carries] {
		if want := (ir.Type{DType: x.DType, Shape: ir.Shape{ir.N(layers * dirs), x.Shape[1], hidden}}); !carry.Equal(want) {
			return ir.Shapef("a carry is %s, not %s", carry, want)
		}
	}
	wide := hidden.Mul(ir.N(c.gates))
	for i, w := range weights {
		want := ir.TypeOf(x.DType, wide)
		switch {
		case i%4 == 0 && i/4 < dirs:
			want = ir.TypeOf(x.DType, x.Shape[2], wide)
		case i%4 == 0:
			want = ir.TypeOf(x.DType, hidden.Mul(ir.N(dirs)), wide)
		case i%4 == 1:
			want = ir.TypeOf(x.DType, hidden, wide)
		}
		if !w.Equal(want) {
			return ir.Shapef("weight %d is %s, not %s", i, w, want)
		}
	}
	return nil
}

// recurrent runs the layers. The input projections of a layer are one matrix product for
// the whole sequence.
func recurrent(b *ir.Builder, c cell, n *ir.Node, in []ir.Value) []ir.Value {
	d, dirs := in[0].DType(), directions(n)
	in = each(in, func(v ir.Value) ir.Value { return wide(b, v) })
	x, weights := in[0], in[1+c.carries:]
	finals := make([][]ir.Value, c.carries)
	for at := 0; at < len(weights)/4; at += dirs {
		var outputs []ir.Value
		for dir := range dirs {
			first := each(in[1:1+c.carries], func(v ir.Value) ir.Value {
				return Squeeze(b, SliceAxis(b, v, 0, ir.N(at+dir), ir.N(1)), 0)
			})
			last, y := c.run(b, n.Attrs().(*RecurrentAttrs), x, first, weights[4*(at+dir):], dir == 1)
			outputs = append(outputs, y)
			for i := range finals {
				finals[i] = append(finals[i], last[i])
			}
		}
		x = Concatenate(b, 2, outputs...)
	}
	out := []ir.Value{Convert(b, x, d)}
	for _, f := range finals {
		out = append(out, Convert(b, Stack(b, 0, f...), d))
	}
	return out
}

// run scans a sequence with the weights of one layer and direction, and returns the final
// carries and the hidden states.
func (c cell) run(b *ir.Builder, a *RecurrentAttrs, x ir.Value, first, w []ir.Value, reverse bool) ([]ir.Value, ir.Value) {
	gates := func(b *ir.Builder, v ir.Value) []ir.Value { return SplitEvenly(b, v, -1, c.gates) }
	last, ys := Scan(b, Loop{
		Consts: []ir.Value{w[1], w[3]}, Carries: first, Xs: []ir.Value{Linear(b, x, w[0], w[2])}, Reverse: reverse,
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			next = c.step(b, a, gates(b, xs[0]), gates(b, Linear(b, carries[0], consts[0], consts[1])), carries)
			return next, next[:1]
		},
	})
	return last, optional(ys)
}

// each maps f over a list of values.
func each(list []ir.Value, f func(v ir.Value) ir.Value) []ir.Value {
	out := make([]ir.Value, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// LSTM runs a long short-term memory (Hochreiter and Schmidhuber) over x, [time, batch, features],
// from the states h and c, each [layers·directions, batch, hidden]. It returns the hidden states of
// the last layer, [time, batch, directions·hidden], and both final states. weights are four for
// each layer and direction, those of PyTorch transposed: [features, 4·hidden] (after the first
// layer [directions·hidden, 4·hidden]), [hidden, 4·hidden] and two biases [4·hidden].
func LSTM(b *ir.Builder, x, h, c ir.Value, weights []ir.Value, a RecurrentAttrs) (y, hLast, cLast ir.Value) {
	out := several(3, b.Add(OpLSTM, &a, append([]ir.Value{x, h, c}, weights...)...))
	return out[0], out[1], out[2]
}

// GRU is [LSTM] for gated recurrent units (Cho et al.), whose weights have 3·hidden
// columns and whose only state is h.
func GRU(b *ir.Builder, x, h ir.Value, weights []ir.Value, a RecurrentAttrs) (y, hLast ir.Value) {
	return two(b.Add(OpGRU, &a, append([]ir.Value{x, h}, weights...)...))
}

// RNN is [GRU] for a plain (Elman) recurrent network, whose weights have hidden columns.
func RNN(b *ir.Builder, x, h ir.Value, weights []ir.Value, a RecurrentAttrs) (y, hLast ir.Value) {
	return two(b.Add(OpRNN, &a, append([]ir.Value{x, h}, weights...)...))
}
