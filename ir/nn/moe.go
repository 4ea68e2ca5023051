package nn

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// MoEOptions are the options of [MoE].
type MoEOptions struct {
	// Name is the scope of the parameters; "" means "moe" and a number.
	Name string
	// Hidden is the number of features within an expert; 0 means four times the width.
	Hidden int
	// K is the number of experts that process each token; 0 means 2.
	K int
	// Capacity bounds the tokens of an expert to Capacity·K·tokens/experts, rounded up; tokens
	// beyond it are dropped. 0 means no bound.
	Capacity float64
	// Activation is the function within an expert; "" means [SwiGlu].
	Activation Activation
	// Init initialises the weights; the default is uniform in ±1/√in, as in [Linear].
	Init ir.Initial
}

// MoE returns a mixture of experts: for each token of x, [..., width], the sum of the results of
// its k best experts, weighted by the softmax of the router's scores, normalised to sum to 1
// (Shazeer et al. 2017; as in Mixtral). Experts are MLPs without biases. loss is the load-balancing
// loss, of rank 0 (Fedus, Zoph and Shazeer, Switch Transformers), to be added to that of the model
// with a weight such as 0.01. Parameters are gate/weight [width, experts], experts/w1 [experts,
// width, hidden], twice as wide with a gated activation, and experts/w2 [experts, hidden, width].
// Sizes are constant. Errors are recorded in b: of kind [ir.ErrAttr] for options outside their
// domain.
func MoE(b *ir.Builder, x ir.Value, experts int, o ...MoEOptions) (y, loss ir.Value) {
	opts := option(b, "moe", o)
	within(b, "moe", opts.Name, x, func(l *layer) { y, loss = l.moe(experts, opts) })
	return y, loss
}

func (l *layer) moe(experts int, o MoEOptions) (y, loss ir.Value) {
	b, width := l.Builder, l.size(-1)
	if o.K == 0 {
		o.K = 2
	}
	if o.Hidden == 0 {
		o.Hidden = 4 * width
	}
	if o.Activation == "" {
		o.Activation = SwiGlu
	}
	f := activations[o.Activation]
	l.require(f != nil, "Activation is %q: it must be one of the constants", string(o.Activation))
	l.require(experts >= 1 && o.K >= 1 && o.K <= experts, "K is %d of %d experts: both must be 1 or more, and K at most their number", o.K, experts)
	l.require(o.Hidden >= 1 && o.Capacity >= 0, "Hidden is %d and Capacity %v: neither must be negative", o.Hidden, o.Capacity)
	dims, ok := l.x.Shape().Ints()
	if !ok {
		l.fail(ir.Errorf(ir.ErrSymbol, "x is %s: its sizes must be constant", l.x.Type()))
	}
	if b.Err() != nil {
		return y, loss
	}
	tokens := 1
	for _, d := range dims[:len(dims)-1] {
		tokens *= d
	}
	capacity := tokens
	if o.Capacity > 0 {
		capacity = min(tokens, int(math.Ceil(o.Capacity*float64(o.K*tokens)/float64(experts))))
	}
	rows := ops.Reshape(b, l.x, ir.N(tokens), ir.N(width))
	logits := Linear(b, rows, experts, LinearOptions{Name: "gate", NoBias: true, Init: o.Init})
	if b.Err() != nil {
		return y, loss
	}
	weights, _, slots, loss := ops.MoERoute(b, logits, ops.MoERouteAttrs{K: o.K, Capacity: capacity, Normalize: true})
	h := ops.Reshape(b, ops.MoEDispatch(b, rows, slots, ir.N(experts*capacity)), ir.N(experts), ir.N(capacity), ir.N(width))
	b.Scope("experts", func() { h = l.experts(h, experts, width, o, f) })
	if b.Err() != nil {
		return y, loss
	}
	y = ops.MoECombine(b, ops.Reshape(b, h, ir.N(experts*capacity), ir.N(width)), weights, slots)
	return ops.Reshape(b, y, l.x.Shape()...), loss
}

// experts returns the results of all experts for their tokens, [experts, capacity, width].
func (l *layer) experts(x ir.Value, experts, width int, o MoEOptions, f func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
	columns := o.Hidden
	if o.Activation.gated() {
		columns *= 2
	}
	initial := func(in, out int) ir.Initial {
		return stacked(or(o.Init, fanIn(in)), ir.TypeOf(x.DType(), ir.Dims(in, out)...))
	}
	w1 := l.param("w1", initial(width, columns), ir.Initial{}, experts, width, columns)
	w2 := l.param("w2", initial(o.Hidden, width), ir.Initial{}, experts, o.Hidden, width)
	return ops.MatMul(l.Builder, f(l.Builder, ops.MatMul(l.Builder, x, w1)), w2)
}
