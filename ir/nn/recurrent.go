package nn

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// RecurrentOptions are the options of [LSTM], [GRU] and [RNN].
type RecurrentOptions struct {
	// Name is the scope of the parameters; "" means the kind of layer and a number.
	Name string
	// Layers is the number of layers, each on the results of the one before; 0 means 1.
	Layers int
	// Bidirectional runs each layer in both directions and joins their results.
	Bidirectional bool
	// TimeFirst is for x [time, batch, features]; by default x is [batch, time, features].
	TimeFirst bool
	// Relu replaces the tanh of RNN.
	Relu bool
	// ResetBefore makes the reset gate of GRU multiply the state before the product with the weights, as Cho
	// et al. first had it (Keras's reset_after=False); by default it multiplies the product, as in PyTorch.
	ResetBefore bool
	// NoBias leaves the biases out.
	NoBias bool
	// Dropout is the rate at which the results of all layers but the last are dropped in training.
	Dropout float64
	// Hidden, and for LSTM Cell, are the states to begin with, [layers·directions, batch, hidden];
	// the default is zeros, or with a [Cache] the last states of the run before.
	Hidden, Cell ir.Value
	// Init is how all weights start; the default is uniform in ±1/√hidden, as in PyTorch.
	Init ir.Initial
}

// LSTM runs long short-term memories (Hochreiter and Schmidhuber) over x, [batch, time, features]:
// it returns the hidden states of the last layer, [batch, time, directions·hidden], and the final
// hidden and cell states of all layers, [layers·directions, batch, hidden]. For layer k its
// parameters are weight_ih_lk [in, 4·hidden], weight_hh_lk [hidden, 4·hidden], bias_ih_lk and
// bias_hh_lk [4·hidden], with gates in the order i, f, g, o, and for the backward direction those
// with the suffix _reverse. PyTorch's weights are the transposes. Errors are recorded in b: of kind
// [ir.ErrAttr] for options outside their domain.
func LSTM(b *ir.Builder, x ir.Value, hidden int, o ...RecurrentOptions) (y, h, c ir.Value) {
	out, states := recurrent(b, "lstm", x, o, cell{hidden: hidden, gates: 4, states: 2})
	return out, states[0], states[1]
}

// GRU is [LSTM] for gated recurrent units (Cho et al.), with 3·hidden columns, gates in the order r,
// z, n, and no cell state.
func GRU(b *ir.Builder, x ir.Value, hidden int, o ...RecurrentOptions) (y, h ir.Value) {
	out, states := recurrent(b, "gru", x, o, cell{hidden: hidden, gates: 3, states: 1})
	return out, states[0]
}

// RNN is [GRU] for a plain (Elman) recurrent network, with hidden columns and tanh.
func RNN(b *ir.Builder, x ir.Value, hidden int, o ...RecurrentOptions) (y, h ir.Value) {
	out, states := recurrent(b, "rnn", x, o, cell{hidden: hidden, gates: 1, states: 1})
	return out, states[0]
}

// cell has the numbers of hidden columns, of gates and of states of a recurrent layer.
type cell struct {
	hidden, gates, states int
}

// recurrent builds a stack of layers of one kind.
func recurrent(b *ir.Builder, kind string, x ir.Value, o []RecurrentOptions, c cell) (y ir.Value, last [2]ir.Value) {
	opts := option(b, kind, o)
	within(b, kind, opts.Name, x, func(l *layer) {
		r := &recurrence{layer: l, cell: c, o: opts, dirs: 1}
		if r.complete() {
			y, last = r.build()
		}
	})
	return y, last
}

// recurrence builds a stack of recurrent layers.
type recurrence struct {
	*layer
	cell
	o    RecurrentOptions
	dirs int // directions
}

func (r *recurrence) complete() bool {
	o := &r.o
	if r.x.Rank() != 3 {
		r.fail(ir.Shapef("x is %s: it must have three axes, batch, time and features", r.x.Type()))
	}
	r.require(r.hidden >= 1 && o.Layers >= 0, "hidden is %d and Layers %d: the first must be 1 or more, the second not negative", r.hidden, o.Layers)
	plain, cells := r.states == 1 && r.gates == 1, r.states == 2
	r.require(plain || !o.Relu, "Relu is set: it must be left out, as it is for RNN")
	r.require(r.kind == "gru" || !o.ResetBefore, "ResetBefore is set: it must be left out, as it is for GRU")
	r.require(cells || !o.Cell.Valid(), "Cell is given: it must be left out, as it is for LSTM")
	r.require(o.Dropout >= 0 && o.Dropout < 1, "Dropout is %v: it must be in [0, 1)", o.Dropout)
	r.require(contextOf(r.Builder).cache == nil || !o.Bidirectional, "Bidirectional is set: it must be left out with a cache")
	if o.Layers = max(o.Layers, 1); o.Bidirectional {
		r.dirs = 2
	}
	return r.Err() == nil
}

func (r *recurrence) build() (y ir.Value, last [2]ir.Value) {
	b := r.Builder
	x, features := r.x, r.size(-1)
	if !r.o.TimeFirst {
		x = ops.SwapAxes(b, x, 0, 1)
	}
	var keeps [2]func(ir.Value)
	begin := [2]ir.Value{r.o.Hidden, r.o.Cell}
	for k, name := range []string{"hidden", "cell"}[:r.states] {
		keeps[k] = func(ir.Value) {}
		if !begin[k].Valid() {
			begin[k], keeps[k] = r.carried(name, x.Dim(0), ir.N(r.o.Layers*r.dirs), x.Dim(1), ir.N(r.hidden))
		}
	}
	whole := (r.o.Dropout == 0 || r.o.Layers == 1) && !r.o.ResetBefore // whether one op computes all layers
	var finals [2][]ir.Value
	var weights []ir.Value
	for k := range r.o.Layers {
		for dir := range r.dirs {
			weights = append(weights, r.weights(k, dir, features)...)
		}
		if features = r.hidden * r.dirs; whole && k+1 < r.o.Layers || b.Err() != nil {
			continue
		}
		first, n := k*r.dirs, r.dirs
		if whole {
			first, n = 0, r.o.Layers*r.dirs
		}
		var in [2]ir.Value
		for s := range r.states {
			in[s] = ops.SliceAxis(b, begin[s], 0, ir.N(first), ir.N(n))
		}
		var out [2]ir.Value
		x, out = r.run(x, in, weights)
		for s := range r.states {
			finals[s] = append(finals[s], out[s])
		}
		if weights = nil; k+1 < r.o.Layers {
			x = r.drop(x, r.o.Dropout)
		}
	}
	if b.Err() != nil {
		return y, last
	}
	for s := range r.states {
		last[s] = ops.Concatenate(b, 0, finals[s]...)
		keeps[s](last[s])
	}
	if !r.o.TimeFirst {
		x = ops.SwapAxes(b, x, 0, 1)
	}
	return x, last
}

// weights declares the parameters of a layer in one direction.
func (r *recurrence) weights(k, dir, features int) []ir.Value {
	suffix := "_l" + strconv.Itoa(k)
	if dir == 1 {
		suffix += "_reverse"
	}
	usual, columns := fanIn(r.hidden), r.gates*r.hidden
	w := []ir.Value{
		r.param("weight_ih"+suffix, r.o.Init, usual, features, columns),
		r.param("weight_hh"+suffix, r.o.Init, usual, r.hidden, columns),
	}
	if r.o.NoBias {
		none := ops.Zeros(r.Builder, r.x.DType(), ir.N(columns))
		return append(w, none, none)
	}
	return append(w,
		r.param("bias_ih"+suffix, r.o.Init, usual, columns),
		r.param("bias_hh"+suffix, r.o.Init, usual, columns))
}

// run adds the op of some layers.
func (r *recurrence) run(x ir.Value, in [2]ir.Value, weights []ir.Value) (y ir.Value, out [2]ir.Value) {
	a := ops.RecurrentAttrs{Bidirectional: r.o.Bidirectional, Relu: r.o.Relu}
	switch r.kind {
	case "lstm":
		y, out[0], out[1] = ops.LSTM(r.Builder, x, in[0], in[1], weights, a)
	case "gru":
		if r.o.ResetBefore {
			y, out[0] = r.resetBefore(x, in[0], weights)
			break
		}
		y, out[0] = ops.GRU(r.Builder, x, in[0], weights, a)
	default:
		y, out[0] = ops.RNN(r.Builder, x, in[0], weights, a)
	}
	return y, out
}

// resetBefore runs one layer of GRU, in one or both directions, whose reset gate multiplies the state
// before the product: n = tanh(x·W + b + (r·h)·U + c).
func (r *recurrence) resetBefore(x, h ir.Value, weights []ir.Value) (y, last ir.Value) {
	b := r.Builder
	var ys, finals []ir.Value
	for dir := range r.dirs {
		w := weights[4*dir:]
		first := ops.Squeeze(b, ops.SliceAxis(b, h, 0, ir.N(dir), ir.N(1)), 0)
		carries, out := ops.Scan(b, ops.Loop{
			Consts: []ir.Value{w[1], w[3]}, Carries: []ir.Value{first}, Xs: []ir.Value{ops.Linear(b, x, w[0], w[2])}, Reverse: dir == 1,
			Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
				n := ir.N(r.hidden)
				part := func(v ir.Value, i, count int) ir.Value {
					return ops.SliceAxis(b, v, -1, ir.N(i*r.hidden), ir.N(count*r.hidden))
				}
				gates := ops.Sigmoid(b, ops.Add(b, part(xs[0], 0, 2), ops.Linear(b, carries[0], part(consts[0], 0, 2), part(consts[1], 0, 2))))
				reset, update := ops.SliceAxis(b, gates, -1, ir.N(0), n), ops.SliceAxis(b, gates, -1, n, n)
				product := ops.Linear(b, ops.Mul(b, reset, carries[0]), part(consts[0], 2, 1), part(consts[1], 2, 1))
				fresh := ops.Tanh(b, ops.Add(b, part(xs[0], 2, 1), product))
				h := ops.Add(b, fresh, ops.Mul(b, update, ops.Sub(b, carries[0], fresh)))
				return []ir.Value{h}, []ir.Value{h}
			},
		})
		if b.Err() != nil {
			return y, last
		}
		ys, finals = append(ys, out[0]), append(finals, carries[0])
	}
	return ops.Concatenate(b, 2, ys...), ops.Stack(b, 0, finals...)
}
