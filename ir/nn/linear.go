package nn

import (
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/nearest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

const kindEmbedding = "embedding"

// LinearOptions are the options of [Linear].
type LinearOptions struct {
	// Name is the scope of the parameters; "" means "linear" and a number.
	Name string
	// NoBias omits the bias.
	NoBias bool
	// Init and BiasInit initialise weight and bias; the default of both is uniform in ±1/√in, as in
	// PyTorch.
	Init, BiasInit ir.Initial
	// Weight is used instead of a parameter, [in, out]: the transpose of an embedding's table, for
	// example.
	Weight ir.Value
	// Tied is the full name of an earlier weight to use instead of a parameter: the table of an
	// [Embedding], [out, in], as stored ([Stored]).
	Tied string
}

// Linear returns x·weight + bias, [..., out], for x [..., in]. Its parameters are weight [in, out]
// and bias [out]. PyTorch's weight is the transpose. Errors are recorded in b: of kind [ir.ErrAttr]
// if out is less than 1 and [ir.ErrSymbol] if in is symbolic.
func Linear(b *ir.Builder, x ir.Value, out int, o ...LinearOptions) (y ir.Value) {
	opts := option(b, "linear", o)
	within(b, "linear", opts.Name, x, func(l *layer) { y = l.linear(out, opts) })
	return y
}

func (l *layer) linear(out int, o LinearOptions) ir.Value {
	in := l.size(-1)
	w, bias, ok := l.linearParams(in, out, o)
	if !ok {
		return ir.Value{}
	}
	return l.linearOf(w, bias, in, out)
}

// linearParams returns the weight of a linear layer, and its bias, the zero Value without one.
func (l *layer) linearParams(in, out int, o LinearOptions) (w weight, bias ir.Value, ok bool) {
	if !l.require(out >= 1, "out is %d: it must be 1 or more", out) {
		return w, bias, false
	}
	usual := fanIn(in)
	w.value = o.Weight
	switch {
	case o.Tied != "":
		l.require(!w.value.Valid(), "Tied is %q and Weight is given: one of them must be left out", o.Tied)
		w = l.tied(o.Tied)
	case !w.value.Valid():
		w = l.stored(ir.PortOptions{Initial: or(o.Init, usual)}, l.x.DType(), out, in, false)
	}
	if !o.NoBias {
		bias = l.param("bias", o.BiasInit, usual, out)
	}
	return w, bias, l.Err() == nil
}

// linearOf returns x·weight + bias, plus the term of [LoRA]. The bias may be the zero Value.
func (l *layer) linearOf(w weight, bias ir.Value, in, out int) ir.Value {
	if l.Err() != nil {
		return ir.Value{}
	}
	var y ir.Value
	switch lora := adapterOf(l.Builder); {
	case lora != nil:
		y = l.lowRank(lora, w, in, out)
	case w.Format != "":
		y = w.times(l.Builder, l.x)
	default:
		return ops.Linear(l.Builder, l.x, w.matrix(l.Builder, l.x.DType()), bias)
	}
	if bias.Valid() && l.Err() == nil {
		y = ops.Add(l.Builder, y, bias)
	}
	return y
}

// fanIn is PyTorch's initial rule of weights and biases, uniform in ±1/√in.
func fanIn(in int) ir.Initial {
	bound := 1 / math.Sqrt(float64(max(in, 1)))
	return Uniform(-bound, bound)
}

// LoRAOptions are the options of [LoRA].
type LoRAOptions struct {
	// Rank is the rank of the added matrices; 0 means 8.
	Rank int
	// Alpha divided by Rank scales the added term; 0 means Rank, a scale of 1.
	Alpha float64
	// Dropout is the rate at which inputs of the added matrices are dropped.
	Dropout float64
	// Targets are the names of the layers that get matrices, the last parts of their scopes: "q_proj". nil means all.
	Targets []string
}

// adapter is the options of LoRA, and the names of the layers that were built with them.
type adapter struct {
	LoRAOptions
	built []string
}

// adapterOf returns the options of LoRA for the layer in the open scope, nil if it adds nothing to that.
func adapterOf(b *ir.Builder) *LoRAOptions {
	a := contextOf(b).lora
	if a == nil {
		return nil
	}
	if name := path.Base(b.ScopeName()); a.Targets != nil {
		a.built = append(a.built, name)
		if !slices.Contains(a.Targets, name) {
			return nil
		}
	}
	return &a.LoRAOptions
}

// missing returns the error of a target that no layer has the name of.
func (a *adapter) missing() error {
	for _, name := range a.Targets {
		if slices.Contains(a.built, name) {
			continue
		}
		hint := "there are none"
		if best := nearest.Name(name, a.built); best != "" {
			hint = "the nearest is " + strconv.Quote(best)
		} else if len(a.built) > 0 {
			hint = "one is " + strconv.Quote(a.built[0])
		}
		return ir.Errorf(ir.ErrName, "no layer has the name %q of Targets: %s", name, hint)
	}
	return nil
}

// LoRA calls f with frozen parameters ([ir.PortOptions]). Each [Linear] in it, also those of other
// layers, adds x·lora_A·lora_B·alpha/rank to its result (Hu et al., LoRA). The trained parameters
// are lora_A/weight [in, rank], uniform in ±1/√in at first, and lora_B/weight [rank, out], 0 at
// first. PEFT's matrices are the transposes. Errors are recorded in b: of kind [ir.ErrAttr] for a
// negative rank or a rate outside [0, 1), [ir.ErrName] for a target that no layer has the name of, and [ir.ErrGraph] if f is nil.
func LoRA(b *ir.Builder, o LoRAOptions, f func()) {
	const op ir.Op = "nn.lora"
	if !b.Require(op, "function", f != nil) {
		return
	}
	if o.Rank < 0 || math.IsNaN(o.Alpha) || math.IsInf(o.Alpha, 0) || !(o.Dropout >= 0 && o.Dropout < 1) {
		b.Failf(op, nil, ir.Attrf("Rank is %d, Alpha %v and Dropout %v: Rank must not be negative, Alpha finite, and Dropout in [0, 1)", o.Rank, o.Alpha, o.Dropout))
		return
	}
	if o.Rank == 0 {
		o.Rank = 8
	}
	if o.Alpha == 0 {
		o.Alpha = float64(o.Rank)
	}
	a := &adapter{LoRAOptions: o}
	during(b, func(c *context) { c.frozen, c.lora = true, a }, f)
	if err := a.missing(); err != nil && b.Err() == nil {
		b.Failf(op, nil, err)
	}
}

// lowRank returns x·weight + scale·(x·a)·b.
func (l *layer) lowRank(o *LoRAOptions, w weight, in, out int) ir.Value {
	down, up := l.lowRankParams(o, in, out)
	scale := o.Alpha / float64(o.Rank)
	if o.Dropout == 0 && w.Format == "" {
		return ops.LoRAMatMul(l.Builder, l.x, w.matrix(l.Builder, l.x.DType()), down, up, scale)
	}
	low := ops.MatMul(l.Builder, ops.MatMul(l.Builder, l.drop(l.x, o.Dropout), down), up)
	return ops.Add(l.Builder, w.times(l.Builder, l.x), ops.Mul(l.Builder, low, ops.ConstLike(l.Builder, low, scale)))
}

// lowRankParams returns the matrices of [LoRA].
func (l *layer) lowRankParams(o *LoRAOptions, in, out int) (down, up ir.Value) {
	declare := func(scope string, start ir.Initial, rows, cols int) (w ir.Value) {
		l.Scope(scope, func() { w = l.paramOf("weight", ir.PortOptions{Initial: start}, l.x.DType(), rows, cols) })
		return w
	}
	down = declare("lora_A", fanIn(in), in, o.Rank)
	return down, declare("lora_B", Constant(0), o.Rank, out)
}

// EmbeddingOptions are the options of [Embedding].
type EmbeddingOptions struct {
	// Name is the scope of the parameter; "" means "embedding" and a number.
	Name string
	// Init initialises the table; the default is normal(0, 1), as in PyTorch.
	Init ir.Initial
	// DType is the element type of the result and, unless [Stored] says otherwise, of the table;
	// the zero value means f32.
	DType ir.DType
	// Table is used instead of a parameter, [rows, width].
	Table ir.Value
	// Unordered lets the gradient add rows in any order, so that runs may differ in the last bit:
	// see [ops.EmbeddingUnordered].
	Unordered bool
}

// Embedding returns the rows of a table at integer ids [...]: [..., width]. Its parameter is weight
// [rows, width]. An id outside [0, rows) is an error of kind [ir.ErrIndex] when the graph runs.
// Errors are recorded in b: of kind [ir.ErrAttr] for rows or a width below 1, [ir.ErrDType] for ids
// that are no integers.
func Embedding(b *ir.Builder, ids ir.Value, rows, width int, o ...EmbeddingOptions) (y ir.Value) {
	opts := option(b, kindEmbedding, o)
	within(b, kindEmbedding, opts.Name, ids, func(l *layer) {
		if !ids.DType().IsInteger() {
			l.fail(ir.DTypef("ids are %s: they must be integers", ids.Type()))
		}
		if !opts.DType.Valid() {
			opts.DType = ir.F32
		}
		if !l.require(rows >= 1 && width >= 1, "rows is %d and width %d: they must be 1 or more", rows, width) {
			return
		}
		table := weight{value: opts.Table}
		if d := opts.Table.DType(); d.Valid() {
			opts.DType = d
		} else {
			table = l.stored(ir.PortOptions{Initial: or(opts.Init, Normal(0, 1))}, opts.DType, rows, width, true)
		}
		look := ops.Embedding
		if opts.Unordered {
			look = ops.EmbeddingUnordered
		}
		if b.Err() == nil {
			y = table.rows(b, ids, opts.DType, look)
		}
	})
	return y
}

// EmbeddingBagOptions are the options of [EmbeddingBag].
type EmbeddingBagOptions struct {
	EmbeddingOptions
	// Mode is how the rows of a bag are combined: "mean", also for "", "sum" or "max".
	Mode string
	// Weights multiply the rows, of the shape of ids; for the mode sum alone.
	Weights ir.Value
	// Padding is an id that counts for nothing, unless it is nil. A bag without other ids is 0.
	Padding *int
}

// EmbeddingBag returns the mean, the sum or the maximum of the rows of a table at integer ids [...,
// count]: [..., width], as torch.nn.EmbeddingBag. Bags of various lengths are filled up with the id
// Padding. The parameter, its scope and errors are those of [Embedding].
func EmbeddingBag(b *ir.Builder, ids ir.Value, rows, width int, o ...EmbeddingBagOptions) ir.Value {
	opts := option(b, "embedding_bag", o)
	y := Embedding(b, ids, rows, width, opts.EmbeddingOptions)
	if b.Err() != nil {
		return ir.Value{}
	}
	l := &layer{b, "embedding_bag", ids}
	l.require(slices.Contains([]string{"", "mean", "sum", "max"}, opts.Mode), "Mode is %q: it must be mean, sum or max", opts.Mode)
	l.require(!opts.Weights.Valid() || opts.Mode == "sum", "Weights are given: Mode is %q, and must be sum", opts.Mode)
	if !l.rank(1, "[..., count]") {
		return ir.Value{}
	}
	if opts.Weights.Valid() {
		y = ops.Mul(b, y, ops.ExpandDims(b, opts.Weights, -1))
	}
	mean := opts.Mode == "" || opts.Mode == "mean"
	if opts.Padding == nil {
		switch {
		case mean:
			return ops.Mean(b, y, -2)
		case opts.Mode == "sum":
			return ops.ReduceSum(b, y, -2)
		}
		return ops.ReduceMax(b, y, -2)
	}
	counts := ops.Ne(b, ids, ops.ConstLike(b, ids, float64(*opts.Padding)))
	number := ops.ReduceSum(b, ops.Convert(b, ops.ExpandDims(b, counts, -1), y.DType()), -2)
	shown := ops.BroadcastTo(b, ops.ExpandDims(b, counts, -1), y.Shape())
	if opts.Mode == "max" {
		y = ops.ReduceMax(b, ops.Select(b, shown, y, ops.ConstLike(b, y, math.Inf(-1))), -2)
		some := ops.BroadcastTo(b, ops.Gt(b, number, ops.ZerosLike(b, number)), y.Shape())
		return ops.Select(b, some, y, ops.ZerosLike(b, y))
	}
	y = ops.ReduceSum(b, ops.Select(b, shown, y, ops.ZerosLike(b, y)), -2)
	if mean {
		y = ops.Div(b, y, ops.Max(b, number, ops.OnesLike(b, number)))
	}
	return y
}
