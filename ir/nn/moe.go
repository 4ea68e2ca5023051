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
	within(b, "moe", opts.Name, x, func(l *layer) { y, loss = moe(l, experts, opts) })
	return y, loss
}

func moe(l *layer, experts int, o MoEOptions) (y, loss ir.Value) {
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
	l.activation(o.Activation)
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
		e := expertsOf(l, experts, width, o)
		// Up to two rows an expert, each row of a grouped product reads its own matrix.
		if e.packed() || contextOf(b).mode == inference && capacity == tokens && o.K*tokens <= 2*experts {
			y = e.ofRows(b, rows, weights, chosen)
			return
		}
		h := ops.Reshape(b, ops.MoEDispatch(b, rows, slots, ir.N(experts*capacity)), ir.N(experts), ir.N(capacity), ir.N(width))
		h = ops.MatMul(b, e.f(b, ops.MatMul(b, h, e.w1.value)), e.w2.value)
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
	w1, w2 weight
	f      func(b *ir.Builder, x ir.Value) ir.Value
}

// expertsOf declares the weights of the experts in the open scope.
func expertsOf(l *layer, count, width int, o MoEOptions) experts {
	columns := o.Hidden
	if o.Activation.gated() {
		columns *= 2
	}
	return experts{matrices(l, "w1", o.Init, count, width, columns), matrices(l, "w2", o.Init, count, o.Hidden, width), activations[o.Activation]}
}

func (e experts) packed() bool { return e.w1.Format != "" || e.w2.Format != "" }

// ofRows returns the sum of the results of the chosen experts of each row. It reads the weights of those alone.
func (e experts) ofRows(b *ir.Builder, rows, weights, chosen ir.Value) ir.Value {
	return ChosenExperts(b, rows, weights, chosen, func(x, groups ir.Value) ir.Value {
		return e.w2.grouped(b, e.f(b, e.w1.grouped(b, x, groups)), groups)
	})
}

// ChosenExperts returns, for each row of x, [tokens, width], the sum of the results of k experts times weights, [tokens, k]. chosen are
// their numbers, i32[tokens, k]: see [ops.MoERoute]. f returns the results [tokens·k, out] of rows [tokens·k, width], each by the expert
// of groups, i32[tokens·k], such as products by [GroupedLinear]. Errors are recorded in b: of kind [ir.ErrShape] for other shapes and
// [ir.ErrGraph] if f is nil.
func ChosenExperts(b *ir.Builder, x, weights, chosen ir.Value, f func(x, groups ir.Value) ir.Value) ir.Value {
	const op ir.Op = "nn.chosen_experts"
	if !b.Require(op, "input", x.Valid() && weights.Valid() && chosen.Valid()) || !b.Require(op, "function", f != nil) {
		return ir.Value{}
	}
	if x.Rank() != 2 || chosen.Rank() != 2 || !weights.Shape().Equal(chosen.Shape()) || x.Dim(0) != chosen.Dim(0) {
		b.Failf(op, []ir.Value{x, weights, chosen}, ir.Shapef("they must be [tokens, width], [tokens, k] and [tokens, k]"))
		return ir.Value{}
	}
	tokens, k, width := x.Dim(0), chosen.Dim(1), x.Dim(1)
	all := tokens.Mul(k)
	each := ops.Reshape(b, ops.BroadcastInDim(b, x, ir.Shape{tokens, k, width}, []int{0, 2}), all, width)
	y := f(each, ops.Reshape(b, chosen, all))
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.ReduceSum(b, ops.Mul(b, ops.Reshape(b, y, tokens, k, y.Dim(-1)), ops.ExpandDims(b, weights, -1)), 1)
}

// GroupedLinearOptions are the options of [GroupedLinear].
type GroupedLinearOptions struct {
	// Name is the scope of the parameter; "" means "grouped_linear" and a number.
	Name string
	// Init initialises the weight; the default is uniform in ±1/√in, as in [Linear].
	Init ir.Initial
}

// GroupedLinear returns row i of x, [m, in], times matrix groups[i], i32[m], of count matrices: [m, out]. A number out of range gives 0.
// Its parameter is weight [count, in, out]; with a Format of [Stored] it is u8 [count, out, bytes], frozen, and the rows of the chosen
// matrices alone are read, without unpacking them in memory. [LoRA] adds nothing to it. Errors are recorded in b: of kind [ir.ErrAttr]
// if count or out is less than 1, [ir.ErrShape] for other shapes, and [ir.ErrSymbol] for symbolic sizes.
func GroupedLinear(b *ir.Builder, x, groups ir.Value, count, out int, o ...GroupedLinearOptions) (y ir.Value) {
	opts := option(b, "grouped_linear", o)
	within(b, "grouped_linear", opts.Name, x, func(l *layer) {
		in := l.size(-1)
		if l.require(groups.Valid(), "groups are missing") && l.require(count >= 1 && out >= 1, "count is %d and out %d: they must be 1 or more", count, out) {
			y = matrices(l, "weight", opts.Init, count, in, out).grouped(b, x, groups)
		}
	})
	return y
}

// matrices declares count matrices [in, out], or the packed rows of their transposes.
func matrices(l *layer, name string, init ir.Initial, count, in, out int) weight {
	w := weight{Storage: l.storage(name)}
	if w.Format != "" && l.knownBits(w.Storage) {
		w.value = l.packed(name, w.Format, count, out, in)
		return w
	}
	initial := stacked(or(init, fanIn(in)), ir.TypeOf(l.x.DType(), ir.Dims(in, out)...))
	w.value = l.param(name, initial, ir.Initial{}, count, in, out)
	return w
}

// grouped returns the rows of x, each times the matrix of its group.
func (w weight) grouped(b *ir.Builder, x, groups ir.Value) ir.Value {
	switch {
	case b.Err() != nil:
		return ir.Value{}
	case w.Format != "" && w.ActivationBits != 0:
		return ops.QuantizedGroupedMatMul8(b, x, w.value, groups, w.Format)
	case w.Format != "":
		return ops.QuantizedGroupedMatMul(b, x, w.value, groups, w.Format)
	}
	return ops.GroupedMatMul(b, x, w.value, groups)
}
