package nn

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// LinearCrossEntropyOptions are the options of [LinearCrossEntropy].
type LinearCrossEntropyOptions struct {
	LinearOptions
	// Softcap c, if not 0, replaces logits s by c·tanh(s/c).
	Softcap float64
	// Ignored, LabelSmoothing and Reduction are those of [ops.CrossEntropyLoss].
	Ignored        []int
	LabelSmoothing float64
	Reduction      string
	// Rows is the maximum number of rows whose logits exist at a time; 0 means as many as have 2²³ logits,
	// 32 MiB in f32.
	Rows int
}

// logitsAtOnce is the number of logits that exist at a time by default.
const logitsAtOnce = 1 << 23

// LinearCrossEntropy returns the cross entropy of labels [...], integers, for the logits of a linear layer,
// x·weight + bias [..., classes], of x [..., in]. Logits are computed some rows at a time, and again in the
// backward pass: memory does not grow with rows·classes (Wijmans et al., Cut Your Losses). Parameters are
// those of [Linear]. Errors are recorded in b: those of [Linear] and [ops.CrossEntropyLoss], of kind [ir.ErrAttr]
// for a Rows or Softcap outside its domain, and [ir.ErrSymbol] if the number of rows is not constant.
func LinearCrossEntropy(b *ir.Builder, x, labels ir.Value, classes int, o ...LinearCrossEntropyOptions) (loss ir.Value) {
	const kind = "linear"
	opts := option(b, kind, o)
	if !b.Require("nn.linear_cross_entropy", "labels", labels.Valid()) {
		return ir.Value{}
	}
	within(b, kind, opts.Name, x, func(l *layer) {
		l.require(opts.Rows >= 0 && opts.Softcap >= 0 && !math.IsInf(opts.Softcap, 0), "Rows is %d and Softcap %v: neither must be negative, and Softcap finite", opts.Rows, opts.Softcap)
		if l.rank(1, "[..., in]") && !labels.Shape().Equal(x.Shape()[:x.Rank()-1]) {
			l.fail(ir.Shapef("labels are %s: they must be %s, x without its last axis", labels.Shape(), x.Shape()[:x.Rank()-1]))
		}
		if a, ok := projectionOf(l, classes, opts.LinearOptions); ok {
			loss = (&rowLoss{l, a, opts}).of(labels, classes)
		}
	})
	return loss
}

// projectionOf has the operands of a linear layer. low is the product of x, lora_A and the scale, and up lora_B; bias and
// both may be the zero Value.
type projection struct {
	w             weight
	bias, low, up ir.Value
}

// projectionOf declares the parameters of a linear layer of x.
func projectionOf(l *layer, out int, o LinearOptions) (a projection, ok bool) {
	b, in := l.Builder, l.size(-1)
	if a.w, a.bias, ok = l.linearParams(in, out, o); !ok {
		return a, false
	}
	if lora := adapterOf(b); lora != nil {
		var down ir.Value
		down, a.up = l.lowRankParams(lora, in, out)
		low := ops.MatMul(b, l.drop(l.x, lora.Dropout), down)
		a.low = ops.Mul(b, low, ops.ConstLike(b, low, lora.Alpha/float64(lora.Rank)))
	}
	return a, b.Err() == nil
}

// operands returns those of the operands that are the same for all rows.
func (a projection) operands() (out []ir.Value) {
	for _, v := range []ir.Value{a.w.value, a.bias, a.up} {
		if v.Valid() {
			out = append(out, v)
		}
	}
	return out
}

// with replaces the operands that are the same for all rows.
func (a projection) with(in []ir.Value) projection {
	for _, v := range []*ir.Value{&a.w.value, &a.bias, &a.up} {
		if v.Valid() {
			*v, in = in[0], in[1:]
		}
	}
	return a
}

// times returns the result for some rows of x, and of low.
func (a projection) times(b *ir.Builder, x ir.Value) ir.Value {
	y := a.w.times(b, x)
	if a.up.Valid() {
		y = ops.Add(b, y, ops.MatMul(b, a.low, a.up))
	}
	if a.bias.Valid() && b.Err() == nil {
		y = ops.Add(b, y, a.bias)
	}
	return y
}

// rowLoss is the loss of rows by the logits of a linear layer.
type rowLoss struct {
	*layer
	projection
	o LinearCrossEntropyOptions
}

// of returns the reduced loss of the rows of x.
func (l *rowLoss) of(labels ir.Value, classes int) ir.Value {
	b := l.Builder
	rows, ok := l.x.Shape()[:l.x.Rank()-1].Size().Const()
	if !ok {
		l.fail(ir.Errorf(ir.ErrSymbol, "x is %s: the number of its rows must be constant", l.x.Type()))
		return ir.Value{}
	}
	flat := func(v ir.Value) ir.Value { return ops.Reshape(b, v, ir.N(rows), v.Dim(-1)) }
	list := []ir.Value{ops.Reshape(b, labels, ir.N(rows)), flat(l.x)}
	if l.low.Valid() {
		list = append(list, flat(l.low))
	}
	limit := cmp.Or(l.o.Rows, max(1, logitsAtOnce/classes))
	if rows <= limit {
		return l.reduced(l.losses(b, l.projection, list), list[0], labels.Shape())
	}
	parts := (rows + limit - 1) / limit
	size := rows / parts
	return l.reduced(l.inParts(list, parts, size, rows), list[0], labels.Shape())
}

// inParts returns the losses of parts of size rows each, one after the other, and of those that remain.
func (l *rowLoss) inParts(list []ir.Value, parts, size, rows int) ir.Value {
	b, consts := l.Builder, l.operands()
	window := func(from, n int) (out []ir.Value) {
		for _, v := range list {
			out = append(out, ops.SliceAxis(b, v, 0, ir.N(from), ir.N(n)))
		}
		return out
	}
	var xs []ir.Value
	for _, v := range window(0, parts*size) {
		xs = append(xs, ops.Reshape(b, v, append(ir.Dims(parts, size), v.Shape()[1:]...)...))
	}
	_, ys := ops.Scan(b, ops.Loop{
		Consts: consts, Xs: xs,
		Body: func(b *ir.Builder, consts, _, xs []ir.Value) (next, ys []ir.Value) {
			return nil, l.recomputed(b, consts, xs)
		},
	})
	if b.Err() != nil {
		return ir.Value{}
	}
	all := ops.Reshape(b, ys[0], ir.N(parts*size))
	if rest := rows - parts*size; rest > 0 {
		all = ops.Concatenate(b, 0, append([]ir.Value{all}, l.recomputed(b, consts, window(parts*size, rest))...)...)
	}
	return all
}

// recomputed returns the losses of some rows as one op that reverse mode recomputes.
func (l *rowLoss) recomputed(b *ir.Builder, consts, list []ir.Value) []ir.Value {
	all := slices.Concat(consts, list)
	g, err := ir.Build("rows", func(b *ir.Builder) {
		in := make([]ir.Value, len(all))
		for i, v := range all {
			in[i] = b.Input("x"+strconv.Itoa(i), v.DType(), v.Shape()...)
		}
		b.Output("losses", l.losses(b, l.with(in[:len(consts)]), in[len(consts):]))
	})
	if err != nil {
		b.Fail(err)
		return nil
	}
	return ops.Checkpoint(b, g, 0, all...)
}

// Softcap returns c·tanh(x/c), which bounds scores to ±c, as in Gemma 2; x for a c of 0.
func Softcap(b *ir.Builder, x ir.Value, c float64) ir.Value {
	if c == 0 || b.Err() != nil {
		return x
	}
	return ops.Mul(b, ops.Tanh(b, ops.Mul(b, x, ops.ConstLike(b, x, 1/c))), ops.ConstLike(b, x, c))
}

// losses returns the loss of each row: list has labels, rows of x, and those of the product with lora_A if
// there is one.
func (l *rowLoss) losses(b *ir.Builder, a projection, list []ir.Value) ir.Value {
	if len(list) > 2 {
		a.low = list[2]
	}
	y := Softcap(b, a.times(b, list[1]), l.o.Softcap)
	return ops.CrossEntropyLoss(b, y, list[0], ir.Value{}, ops.ClassLossAttrs{
		LossAttrs: ops.LossAttrs{Reduction: ops.LossNone}, Ignored: l.o.Ignored, LabelSmoothing: l.o.LabelSmoothing,
	})
}

// reduced returns the losses of rows by the reduction.
func (l *rowLoss) reduced(losses, labels ir.Value, shape ir.Shape) ir.Value {
	b := l.Builder
	if b.Err() != nil {
		return ir.Value{}
	}
	d := losses.DType()
	sum := func(v ir.Value) ir.Value { return ops.ReduceSum(b, ops.Convert(b, v, argument.Wide(d))) }
	switch l.o.Reduction {
	case ops.LossNone:
		return ops.Reshape(b, losses, shape...)
	case ops.LossSum:
		return ops.Convert(b, sum(losses), d)
	case "", ops.LossMean:
	default:
		l.require(false, "Reduction is %q: it must be mean, sum or none", l.o.Reduction)
		return ir.Value{}
	}
	counts := ops.Ones(b, ir.Bool, labels.Shape()...)
	for _, label := range l.o.Ignored {
		counts = ops.And(b, counts, ops.Ne(b, labels, ops.ConstLike(b, labels, float64(label))))
	}
	return ops.Convert(b, ops.Div(b, sum(losses), sum(counts)), d)
}
