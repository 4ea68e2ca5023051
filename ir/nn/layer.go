package nn

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// layer declares the parameters of one layer in its scope.
type layer struct {
	*ir.Builder
	kind string
	x    ir.Value // the input, for error messages
}

// within calls f with a layer whose scope is name or, without one, the kind and the number of
// layers of that kind without a name in the open scope: "linear0". It does nothing after an error.
// With the name [Here] it opens no scope. x is a float value unless kind is embedding.
func within(b *ir.Builder, kind, name string, x ir.Value, f func(l *layer)) {
	op := ir.Op("nn." + kind)
	if !b.Require(op, "input", x.Valid()) {
		return
	}
	if name == "" {
		name = kind + strconv.Itoa(contextOf(b).count(b.ScopeName()+"/"+kind))
	}
	declare := func() {
		l := &layer{b, kind, x}
		if kind != kindEmbedding && !x.DType().IsFloat() {
			l.fail(ir.DTypef("x is %s: it must be of a float type", x.Type()))
		}
		if b.Err() == nil {
			f(l)
		}
	}
	if name == Here {
		declare()
		return
	}
	b.Scope(name, declare)
}

// Here is the Name of a layer whose parameters are in the open scope, without a scope of its own.
const Here = "."

// fail records an error that names the layer's scope.
func (l *layer) fail(err error) { l.Failf(ir.Op("nn."+l.kind), []ir.Value{l.x}, err) }

// require records an error of kind [ir.ErrAttr] unless ok.
func (l *layer) require(ok bool, text string, args ...any) bool {
	if !ok {
		l.fail(ir.Attrf(text, args...))
	}
	return l.Err() == nil
}

// option returns the options of a layer: the zero value if there are none. More than one is an
// error of kind [ir.ErrAttr].
func option[T any](b *ir.Builder, kind string, o []T) (given T) {
	switch len(o) {
	case 0:
	case 1:
		given = o[0]
	default:
		b.Failf(ir.Op("nn."+kind), nil, ir.Attrf("%d option structs are given: there must be one at most", len(o)))
	}
	return given
}

// size returns a constant size that a parameter's shape needs. The error is of kind [ir.ErrSymbol]
// for a symbol and [ir.ErrShape] for a missing axis.
func (l *layer) size(axis int) int {
	d := l.x.Dim(axis)
	n, ok := d.Const()
	switch {
	case !d.Valid():
		l.fail(ir.Shapef("x is %s: it must have an axis %d", l.x.Type(), axis))
	case !ok:
		l.fail(ir.Errorf(ir.ErrSymbol, "axis %d of x is %s: it must be a number, as the shape of a parameter depends on it", axis, d))
	}
	return n
}

// rank requires x to have at least n axes.
func (l *layer) rank(n int, what string) bool {
	if l.x.Rank() < n {
		l.fail(ir.Shapef("x is %s: it must be %s", l.x.Type(), what))
	}
	return l.Err() == nil
}

// param declares a parameter of x's element type, initialised by given, or by usual if that is the
// zero Initial.
func (l *layer) param(name string, given, usual ir.Initial, dims ...int) ir.Value {
	return l.paramOf(name, ir.PortOptions{Initial: or(given, usual), Frozen: contextOf(l.Builder).frozen}, l.x.DType(), dims...)
}

func or(given, usual ir.Initial) ir.Initial {
	if given.IsZero() {
		return usual
	}
	return given
}

// paramOf declares a parameter, or returns the one declared before within [Shared].
func (l *layer) paramOf(name string, o ir.PortOptions, d ir.DType, dims ...int) ir.Value {
	if v, ok := l.sharedPort(name, ir.ParamPort, d, dims); ok {
		return v
	}
	return l.ParamWith(name, o, d, ir.Dims(dims...)...)
}

// sharedPort returns the port of that name and type that was declared before, within [Shared].
func (l *layer) sharedPort(name string, kind ir.PortKind, d ir.DType, dims []int) (v ir.Value, ok bool) {
	if !contextOf(l.Builder).shared {
		return ir.Value{}, false
	}
	p, ok := l.Declared(l.full(name))
	return p.Value, ok && p.Kind == kind && p.Value.Type().Equal(ir.TypeOf(d, ir.Dims(dims...)...))
}

// training reports whether [Train] is in effect. The error is of kind [ir.ErrGraph] if neither
// [Train] nor [Infer] was called.
func (l *layer) training() bool {
	m := contextOf(l.Builder).mode
	if m == unset {
		l.fail(ir.Errorf(ir.ErrGraph, "no mode is set: nn.Train or nn.Infer must be called first, as the layer differs between training and inference"))
	}
	return m == training
}

// drop is [Dropout] within a layer.
func (l *layer) drop(x ir.Value, rate float64) ir.Value {
	if !l.require(rate >= 0 && rate < 1, "the rate of dropout is %v: it must be in [0, 1)", rate) || rate == 0 || !l.training() || l.Err() != nil {
		return x
	}
	return ops.Dropout(l.Builder, x, Key(l.Builder, "dropout"), rate)
}

// Dropout returns x with each element set to 0 with probability rate, in [0, 1), and the others
// divided by 1 − rate, while training ([Train]); in inference x itself. The random numbers are
// those of the stream "dropout": see [Key]. The error is of kind [ir.ErrAttr] for another rate, and
// [ir.ErrGraph] without [Train] or [Infer].
func Dropout(b *ir.Builder, x ir.Value, rate float64) ir.Value {
	if !b.Require("nn.dropout", "input", x.Valid()) {
		return ir.Value{}
	}
	l := &layer{b, "dropout", x}
	return l.drop(x, rate)
}
