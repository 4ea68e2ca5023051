package onnx

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("RNN", func(c *call) []ir.Value { return recurrent(c, 1, rnnStep) })
	add("GRU", func(c *call) []ir.Value { return recurrent(c, 3, gruStep) })
	add("LSTM", func(c *call) []ir.Value { return recurrent(c, 4, lstmStep) })
}

// cell holds the weights of one direction of a recurrent layer.
type cell struct {
	*call
	hidden           int
	activations      []unaryOp
	clip             float64 // bounds the sums of gates; 0 does not
	reset            bool    // linear_before_reset
	coupled          bool    // input_forget
	batchFirst       bool    // layout
	gates            int
	step             stepOf
	hasBias, hasPeep bool
}

// A stepOf returns the next states, the output first, from x·Wᵀ + the bias of W of all gates, the
// states, Rᵀ, the bias of R and the peepholes.
type stepOf = func(e *cell, gates ir.Value, state []ir.Value, r, bias, peep ir.Value) []ir.Value

// recurrent is a layer over time of one or two directions.
func recurrent(c *call, gates int, step stepOf) []ir.Value {
	x, w, r := c.x(0), c.x(1), c.x(2)
	hidden := c.int("hidden_size", 0)
	states := 1
	if c.n.op == "LSTM" {
		states = 2
	}
	clip := c.float("clip", 0)
	if x.Rank() != 3 || w.Rank() != 3 || r.Rank() != 3 || hidden < 1 || c.hasAttr("clip") && !(clip > 0) {
		c.failf("the operands are %s, %s and %s, hidden_size %d and clip %g: they must have three axes, be 1 or more, and be greater than 0 or left out", x.Shape(), w.Shape(), r.Shape(), hidden, clip)
		return nil
	}
	batchFirst := c.bool("layout")
	if batchFirst {
		x = ops.SwapAxes(c.b, x, 0, 1)
	}
	directions, ok := map[string][]bool{"forward": {false}, "reverse": {true}, "bidirectional": {false, true}}[c.text("direction", "forward")]
	if !ok {
		c.fail(ir.Attrf("direction is %q: it must be forward, reverse or bidirectional", c.text("direction", "")))
		return nil
	}
	var ys []ir.Value
	last := make([][]ir.Value, states)
	for i, backward := range directions {
		e := &cell{
			call: c, hidden: hidden, clip: clip, reset: c.bool("linear_before_reset"), coupled: c.bool("input_forget"),
			batchFirst: batchFirst, gates: gates, step: step, activations: activations(c, i),
		}
		if c.err != nil {
			return nil
		}
		y, h := e.direction(i, backward, x)
		ys = append(ys, y)
		for k := range h {
			last[k] = append(last[k], h[k])
		}
	}
	// [time, directions, batch, hidden], with layout 1 [batch, time, directions, hidden].
	y := ops.Stack(c.b, 1, ys...)
	if batchFirst {
		y = ops.MoveAxis(c.b, y, 2, 0)
	}
	out := one(y)
	for _, h := range last {
		axis := 0
		if batchFirst {
			axis = 1
		}
		out = append(out, ops.Stack(c.b, axis, h...))
	}
	return out
}

// direction returns direction i of an operand, without that axis.
func direction(c *call, operand, i int) ir.Value {
	x := c.x(operand)
	return ops.Squeeze(c.b, ops.SliceAxis(c.b, x, 0, ir.N(i), ir.N(1)), 0)
}

// state returns the initial state of a direction, zeros if it is not given.
func (e *cell) state(operand, i int, batch ir.Dim, d ir.DType) ir.Value {
	if !e.has(operand) {
		return ops.Zeros(e.b, d, batch, ir.N(e.hidden))
	}
	axis := 0
	if e.batchFirst {
		axis = 1
	}
	return ops.Squeeze(e.b, ops.SliceAxis(e.b, e.x(operand), axis, ir.N(i), ir.N(1)), axis)
}

// direction returns the outputs of direction i for x, [time, batch, features], and its last states.
func (e *cell) direction(i int, backward bool, x ir.Value) (y ir.Value, last []ir.Value) {
	b, c := e.b, e.call
	w, r := direction(c, 1, i), ops.Transpose(b, direction(c, 2, i), 1, 0)
	projected := ops.MatMul(b, x, ops.Transpose(b, w, 1, 0))
	consts := []ir.Value{r}
	if c.has(3) {
		both := direction(c, 3, i)
		n := ir.N(e.gates * e.hidden)
		projected = ops.Add(b, projected, ops.SliceAxis(b, both, 0, ir.N(0), n))
		consts = append(consts, ops.SliceAxis(b, both, 0, n, n))
		e.hasBias = true
	}
	if c.n.op == "LSTM" && c.has(7) {
		consts = append(consts, direction(c, 7, i))
		e.hasPeep = true
	}
	carries := []ir.Value{e.state(5, i, x.Dim(1), x.DType())}
	if c.n.op == "LSTM" {
		carries = append(carries, e.state(6, i, x.Dim(1), x.DType()))
	}
	xs := []ir.Value{projected}
	if c.has(4) {
		// A step counts for a sequence while its number is below the sequence's length.
		t := ops.Iota(b, ir.I32, 0, x.Dim(0), x.Dim(1), ir.N(1))
		n := ops.Reshape(b, ops.Convert(b, c.x(4), ir.I32), ir.N(1), x.Dim(1), ir.N(1))
		xs = append(xs, ops.Lt(b, t, n))
	}
	carries, ys := ops.Scan(b, ops.Loop{Consts: consts, Carries: carries, Xs: xs, Reverse: backward, Body: e.body})
	if len(ys) == 0 {
		return ir.Value{}, carries
	}
	return ys[0], carries
}

// body is a step of the loop over time. The constants are Rᵀ, then the bias of R and the peepholes if the direction
// has them; xs are the gates of x and, where sequences have lengths, whether the step counts for each of them.
func (e *cell) body(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
	inner := *e
	inner.call = &call{scope: &scope{im: e.im, b: b}, n: e.n, opset: e.opset}
	var bias, peep ir.Value
	if e.hasBias {
		bias = consts[1]
	}
	if e.hasPeep {
		peep = consts[len(consts)-1]
	}
	next = e.step(&inner, xs[0], carries, consts[0], bias, peep)
	y := next[0]
	if len(xs) > 1 {
		y = ops.Select(b, xs[1], y, ops.ConstLike(b, y, 0))
		for i := range next {
			next[i] = ops.Select(b, xs[1], next[i], carries[i])
		}
	}
	return next, []ir.Value{y}
}

// gate returns columns k·hidden and on.
func (e *cell) gate(x ir.Value, k int) ir.Value {
	return ops.SliceAxis(e.b, x, x.Rank()-1, ir.N(k*e.hidden), ir.N(e.hidden))
}

// plus adds a bias that may be left out.
func (e *cell) plus(x, bias ir.Value) ir.Value {
	if !bias.Valid() {
		return x
	}
	return ops.Add(e.b, x, bias)
}

// activate applies activation k to what a gate adds up. The state of an LSTM is not bounded, as in onnxruntime.
func (e *cell) activate(k int, x ir.Value) ir.Value {
	if e.clip > 0 {
		x = ops.Clamp(e.b, x, ops.Const(e.b, x.DType(), -e.clip), ops.Const(e.b, x.DType(), e.clip))
	}
	return e.activations[k](e.b, x)
}

func rnnStep(e *cell, gates ir.Value, state []ir.Value, r, bias, _ ir.Value) []ir.Value {
	sum := ops.Add(e.b, gates, e.plus(ops.MatMul(e.b, state[0], r), bias))
	return []ir.Value{e.activate(0, sum)}
}

// gruStep has the gates z, r, h.
func gruStep(e *cell, gates ir.Value, state []ir.Value, r, bias, _ ir.Value) []ir.Value {
	b, h := e.b, state[0]
	hidden := e.plus(ops.MatMul(b, h, r), bias)
	z := e.activate(0, ops.Add(b, e.gate(gates, 0), e.gate(hidden, 0)))
	reset := e.activate(0, ops.Add(b, e.gate(gates, 1), e.gate(hidden, 1)))
	var inner ir.Value
	if e.reset {
		inner = ops.Mul(b, reset, e.gate(hidden, 2))
	} else {
		inner = ops.MatMul(b, ops.Mul(b, reset, h), e.gate(r, 2))
		if bias.Valid() {
			inner = ops.Add(b, inner, e.gate(bias, 2))
		}
	}
	n := e.activate(1, ops.Add(b, e.gate(gates, 2), inner))
	one := ops.ConstLike(b, z, 1)
	return []ir.Value{ops.Add(b, ops.Mul(b, ops.Sub(b, one, z), n), ops.Mul(b, z, h))}
}

// lstmStep has the gates i, o, f, c and the peepholes i, o, f.
func lstmStep(e *cell, gates ir.Value, state []ir.Value, r, bias, peep ir.Value) []ir.Value {
	b, h, s := e.b, state[0], state[1]
	sum := ops.Add(b, gates, e.plus(ops.MatMul(b, h, r), bias))
	look := func(x ir.Value, k int, s ir.Value) ir.Value {
		if !peep.Valid() {
			return x
		}
		return ops.Add(b, x, ops.Mul(b, e.gate(peep, k), s))
	}
	i := e.activate(0, look(e.gate(sum, 0), 0, s))
	f := ops.Sub(b, ops.ConstLike(b, i, 1), i)
	if !e.coupled {
		f = e.activate(0, look(e.gate(sum, 2), 2, s))
	}
	next := ops.Add(b, ops.Mul(b, f, s), ops.Mul(b, i, e.activate(1, e.gate(sum, 3))))
	o := e.activate(0, look(e.gate(sum, 1), 1, next))
	return []ir.Value{ops.Mul(b, o, e.activations[2](b, next)), next}
}

// activations returns the functions of a direction: the model's, or the defaults of the layer. The functions of both
// directions take their parameters from the same lists, one after the other.
func activations(c *call, direction int) []unaryOp {
	names := map[string][]string{"RNN": {"Tanh"}, "GRU": {"Sigmoid", "Tanh"}, "LSTM": {"Sigmoid", "Tanh", "Tanh"}}[c.n.op]
	n := len(names)
	var alphas, betas []float64
	if a := c.attr("activations"); a != nil {
		if len(a.strings) < n*(direction+1) {
			c.fail(ir.Attrf("activations are %q: there must be %d for each direction", a.strings, n))
			return nil
		}
		names = a.strings[:n*(direction+1)]
		alphas, betas = floatsAttr(c, "activation_alpha"), floatsAttr(c, "activation_beta")
	}
	var out []unaryOp
	for _, name := range names {
		f, err := activation(strings.ToLower(name), &alphas, &betas)
		c.fail(err)
		out = append(out, f)
	}
	return out[len(out)-n:]
}

// activation returns a function, which takes its parameters from the lists.
func activation(name string, alphas, betas *[]float64) (unaryOp, error) {
	plain := map[string]unaryOp{"relu": ops.Relu, "tanh": ops.Tanh, "sigmoid": ops.Sigmoid, "softsign": ops.Softsign, "softplus": ops.Softplus}
	if f, ok := plain[name]; ok {
		return f, nil
	}
	take := func(list *[]float64, otherwise float64) float64 {
		if len(*list) == 0 {
			return otherwise
		}
		x := (*list)[0]
		*list = slices.Clone((*list)[1:])
		return x
	}
	number := func(b *ir.Builder, x ir.Value, v float64) ir.Value { return ops.ConstLike(b, x, v) }
	switch name {
	case "elu":
		alpha := take(alphas, 1)
		return func(b *ir.Builder, x ir.Value) ir.Value { return ops.Elu(b, x, alpha) }, nil
	case "leakyrelu":
		alpha := take(alphas, 0.01)
		return func(b *ir.Builder, x ir.Value) ir.Value { return ops.LeakyRelu(b, x, alpha) }, nil
	case "thresholdedrelu":
		alpha := take(alphas, 1)
		return func(b *ir.Builder, x ir.Value) ir.Value { return ops.ThresholdedRelu(b, x, alpha) }, nil
	case "affine":
		alpha, beta := take(alphas, 1), take(betas, 0)
		return func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Add(b, ops.Mul(b, x, number(b, x, alpha)), number(b, x, beta))
		}, nil
	case "scaledtanh":
		alpha, beta := take(alphas, 1), take(betas, 1)
		return func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Mul(b, number(b, x, alpha), ops.Tanh(b, ops.Mul(b, x, number(b, x, beta))))
		}, nil
	case "hardsigmoid":
		alpha, beta := take(alphas, 0.2), take(betas, 0.5)
		return func(b *ir.Builder, x ir.Value) ir.Value {
			y := ops.Add(b, ops.Mul(b, x, number(b, x, alpha)), number(b, x, beta))
			return ops.Clamp(b, y, ops.Const(b, x.DType(), 0), ops.Const(b, x.DType(), 1))
		}, nil
	}
	return ops.Tanh, ir.Errorf(ir.ErrUnsupported, "activation %q", name)
}
