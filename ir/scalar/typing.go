package scalar

import (
	"math"
	"strings"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
)

// TypeError reports an operation with operands that it is not defined for. Constructors panic with
// it, since it is a bug in the code that builds the expression; Catch returns it.
type TypeError struct {
	Op     Op
	Types  []dtype.DType // of the operands; Invalid for nil
	Reason string
}

func (e *TypeError) Error() string {
	names := make([]string, len(e.Types))
	for i, t := range e.Types {
		names[i] = t.String()
	}
	return format.Sprintf("scalar: %s(%s): %s", e.Op, strings.Join(names, ", "), e.Reason)
}

// Catch calls build and returns its result, or the *TypeError of a constructor.
func Catch(build func() Expr) (e Expr, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *TypeError:
			err = r
		default:
			panic(r)
		}
	}()
	return build(), nil
}

// fail panics with a TypeError. It is the only panic of the constructors.
func fail(op Op, types []dtype.DType, reason string) {
	panic(&TypeError{Op: op, Types: types, Reason: reason})
}

// kindOf returns the kind of t; packed and invalid types have none.
func kindOf(t dtype.DType) kinds { return kindTable[t] }

// kindTable caches the kinds of all types, which every constructor needs.
var kindTable = func() (table [math.MaxUint8 + 1]kinds) {
	for _, t := range dtype.All() {
		switch {
		case t.IsBool():
			table[t] = kBool
		case t.IsInteger():
			table[t] = kInt
		case t.IsFloat():
			table[t] = kFloat
		case t.IsComplex():
			table[t] = kComplex
		}
	}
	return table
}()

// checkLeaf fails unless t is of one of the kinds wanted.
func checkLeaf(op Op, t dtype.DType, want kinds) {
	if kindOf(t)&want == 0 {
		fail(op, []dtype.DType{t}, "the type is not allowed")
	}
}

// checkOperands fails unless args are valid operands of op.
func checkOperands(op Op, args []Expr) {
	if reason := operandFault(op, args); reason != "" {
		types := make([]dtype.DType, len(args))
		for i, a := range args {
			types[i] = typeOf(a)
		}
		fail(op, types, reason)
	}
}

// operandFault returns the fault of the operands of op, or "".
func operandFault(op Op, args []Expr) string {
	info := op.info()
	if len(args) != info.arity || info.arity == 0 {
		return format.Sprintf("takes %d operands", info.arity)
	}
	same, cond := args, dtype.Bool
	switch op {
	case OpSelect:
		cond, same = typeOf(args[0]), args[1:]
	case OpCheck:
		cond, same = typeOf(args[1]), args[:1]
	}
	if cond != dtype.Bool {
		return "the condition is not bool"
	}
	first := typeOf(same[0])
	for _, a := range same {
		if typeOf(a) != first {
			return "the operands differ in type"
		}
	}
	if kindOf(first)&info.operands == 0 {
		return "the type is not allowed"
	}
	return ""
}

// typeOf returns the type of an operand, Invalid for nil.
func typeOf(a Expr) dtype.DType {
	if a == nil {
		return dtype.Invalid
	}
	return a.Type
}

// mixesWidths reports whether there are both I32 and I64 among at most three operands.
func mixesWidths(args []Expr) bool {
	short, long := false, false
	for _, a := range args {
		short = short || typeOf(a) == dtype.I32
		long = long || typeOf(a) == dtype.I64
	}
	return short && long && len(args) <= 3
}

// promoted returns the operands with I32 converted to I64: a position has the width that its array
// needs, and code that adds to it need not know.
func promoted(args []Expr) (wide [3]Expr) {
	for i, a := range args {
		if wide[i] = a; typeOf(a) == dtype.I32 {
			wide[i] = Convert(a, dtype.I64)
		}
	}
	return wide
}

// resultType returns the type of op on operands of type t.
func resultType(op Op, t dtype.DType) dtype.DType {
	switch op.info().result {
	case ofBool:
		return dtype.Bool
	case ofReal:
		return t.Real()
	case ofComplex:
		return t.Complex()
	}
	return t
}
