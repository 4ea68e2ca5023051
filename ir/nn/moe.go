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
// with a weight such as 0.01. In inference ([Infer]) few tokens
// read the weights of the chosen experts alone, as tokens always do with packed experts ([Stored]), which ignore Capacity. Parameters are gate/weight [width, experts], experts/w1 [experts,
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
	l.require(activations[o.Activation] != nil, "Activation is %q: it must be one of the constants", string(o.Activation))
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
	weights, chosen, slots, loss := ops.MoERoute(b, logits, ops.MoERouteAttrs{K: o.K, Capacity: capacity, Normalize: true})
	b.Scope("experts", func() {
		e := l.experts(experts, width, o)
		// Up to two rows an expert, each row of a grouped product reads its own matrix.
		if e.packed() || contextOf(b).mode == inference && capacity == tokens && o.K*tokens <= 2*experts {
			y = e.ofRows(b, rows, weights, chosen)
			return
		}
		h := ops.Reshape(b, ops.MoEDispatch(b, rows, slots, ir.N(experts*capacity)), ir.N(experts), ir.N(capacity), ir.N(width))
		h = ops.MatMul(b, e.f(b, ops.MatMul(b, h, e.w1)), e.w2)
		if b.Err() == nil {
			y = ops.MoECombine(b, ops.Reshape(b, h, ir.N(experts*capacity), ir.N(width)), weights, slots)
		}
	})
	if b.Err() != nil {
		return y, loss
	}
	return ops.Reshape(b, y, l.x.Shape()...), loss
}

// experts are the MLPs of a layer: w1 [experts, width, columns] and w2 [experts, hidden, width], or the rows of their transposes
// packed in formats, [experts, columns, bytes] and [experts, width, bytes].
type experts struct {
	w1, w2           ir.Value
	format1, format2 string
	f                func(b *ir.Builder, x ir.Value) ir.Value
}

// experts declares the weights of the experts in the open scope.
func (l *layer) experts(count, width int, o MoEOptions) experts {
	columns := o.Hidden
	if o.Activation.gated() {
		columns *= 2
	}
	matrices := func(name string, in, out int) (ir.Value, string) {
		if format := l.storage(name).Format; format != "" {
			return l.packed(name, format, count, out, in), format
		}
		initial := stacked(or(o.Init, fanIn(in)), ir.TypeOf(l.x.DType(), ir.Dims(in, out)...))
		return l.param(name, initial, ir.Initial{}, count, in, out), ""
	}
	e := experts{f: activations[o.Activation]}
	e.w1, e.format1 = matrices("w1", width, columns)
	e.w2, e.format2 = matrices("w2", o.Hidden, width)
	return e
}

func (e experts) packed() bool { return e.format1 != "" || e.format2 != "" }

// ofRows returns the sum of the results of the chosen experts of each row, of which it reads those alone.
func (e experts) ofRows(b *ir.Builder, rows, weights, chosen ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	tokens, k, width := rows.Dim(0), weights.Dim(1), rows.Dim(1)
	all := tokens.Mul(k)
	x := ops.Reshape(b, ops.BroadcastInDim(b, rows, ir.Shape{tokens, k, width}, []int{0, 2}), all, width)
	groups := ops.Reshape(b, chosen, all)
	product := func(x, w ir.Value, format string) ir.Value {
		if format != "" {
			return ops.QuantizedGroupedMatMul(b, x, w, groups, format)
		}
		return ops.GroupedMatMul(b, x, w, groups)
	}
	y := product(e.f(b, product(x, e.w1, e.format1)), e.w2, e.format2)
	return ops.ReduceSum(b, ops.Mul(b, ops.Reshape(b, y, tokens, k, width), ops.ExpandDims(b, weights, -1)), 1)
}
