package clike

import (
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// longExpansion is the number of operations from which an expansion becomes a
// function.
const longExpansion = 6

// operation identifies a function by its operation and types.
type operation struct {
	op     scalar.Op
	of, to dtype.DType
}

func operationOf(e scalar.Expr) operation { return operation{e.Op, e.Args[len(e.Args)-1].Type, e.Type} }

// name returns the name of the function: "tanh_f32", "convert_f32_i32".
func (o operation) name() string {
	name := o.op.String() + "_" + o.of.String()
	if o.op == scalar.OpConvert {
		name += "_" + o.to.String()
	}
	return name
}

// isFunctionName reports whether a name may be that of an operation's function:
// whether it ends in a type.
func isFunctionName(name string) bool {
	_, err := dtype.Parse(name[strings.LastIndexByte(name, '_')+1:])
	return err == nil
}

// expand expands the operations of e that the dialect has no form for. Some become
// calls of functions, which it writes.
func (w *Writer) expand(e scalar.Expr) scalar.Expr {
	return w.wrapping(scalar.ExpandExcept(e, w.d.Expansion, w.outline))
}

// wrapping returns e with wrapping signed arithmetic made explicit, if overflow is
// undefined in the language.
func (w *Writer) wrapping(e scalar.Expr) scalar.Expr {
	if w.d.UndefinedOverflow {
		return w.ranges.Wrapping(e)
	}
	return e
}

// callsFunction reports whether e is a call of a function. The body of a function has no
// calls.
func (w *Writer) callsFunction(e scalar.Expr) bool {
	return !w.inFunction && w.outlined[operationOf(e)]
}

// outline reports whether the operation of n is not expanded: it is native, or
// becomes a function, which outline writes. Only operations on floats become functions:
// index arithmetic is simplified better inline.
func (w *Writer) outline(n scalar.Expr) bool {
	if len(n.Args) == 0 || n.Op == scalar.OpLoad || n.Op == scalar.OpCheck {
		return false
	}
	if w.d.Native != nil && w.d.Native(n.Op, n.Type) {
		return true
	}
	o := operationOf(n)
	is, known := w.outlined[o]
	if !known {
		is = w.outlineNew(n, o)
		w.outlined[o] = is
	}
	return is
}

// outlineNew is outline for an operation seen for the first time.
func (w *Writer) outlineNew(n scalar.Expr, o operation) bool {
	params := make([]scalar.Expr, len(n.Args))
	for i, a := range n.Args {
		if !a.Type.IsFloat() {
			return false
		}
		params[i] = scalar.FreeVar(string("xyz"[i]), a.Type)
	}
	plain := scalar.Rebuild(n, params...)
	body := scalar.Expand(plain, w.d.Expansion)
	if plain == body || scalar.Count(body) < longExpansion {
		return false
	}
	w.Define(o.name(), w.function(o.name(), params, w.wrapping(body)))
	return true
}

// function writes a function that returns body.
func (w *Writer) function(name string, params []scalar.Expr, body scalar.Expr) string {
	inner := &Writer{
		d: w.d, k: w.k, out: w.out, err: w.err, depth: 1, inFunction: true,
		taken: map[string]bool{}, alias: map[string]text{}, functions: w.functions, ranges: w.ranges,
	}
	s := inner.ranges.BindShared(localPrefix, body)
	inner.bindLocals(s.Locals)
	value := s.Roots[0]
	inner.line("return " + inner.expr(value).s + ";")
	w.err = inner.err
	head := w.d.Function(name, params, body.Type)
	return head + " {\n" + inner.sb.String() + "}\n"
}
