package scalar

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/format"
)

// TypeError says that an operation was given operands it is not defined for.
// Constructors panic with it, as it can only come from a bug in the code that
// builds the expression; Catch returns it.
type TypeError struct {
	Op     Op
	Types  []dtype.DType // of the operands; Invalid for a nil one
	Reason string
}

func (e *TypeError) Error() string {
	names := make([]string, len(e.Types))
	for i, t := range e.Types {
		names[i] = t.String()
	}
	return format.Sprintf("scalar: %s(%s): %s", e.Op, strings.Join(names, ", "), e.Reason)
}

// Catch calls build and returns its result, or the *TypeError that a
// constructor in it met.
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

// fail is the one place where constructors give up.
func fail(op Op, types []dtype.DType, reason string) {
	panic(&TypeError{Op: op, Types: types, Reason: reason})
}

// kindOf returns the class of t; packed and invalid types have none.
func kindOf(t dtype.DType) kinds {
	switch {
	case t.IsBool():
		return kBool
	case t.IsInteger():
		return kInt
	case t.IsFloat():
		return kFloat
	case t.IsComplex():
		return kComplex
	}
	return kNone
}

// checkLeaf fails unless t is of one of the kinds wanted.
func checkLeaf(op Op, t dtype.DType, want kinds) {
	if kindOf(t)&want == 0 {
		fail(op, []dtype.DType{t}, "the type is not allowed")
	}
}

// checkOperands fails unless args are what op takes.
func checkOperands(op Op, args []Expr) {
	info := op.info()
	types := make([]dtype.DType, len(args))
	for i, a := range args {
		if a != nil {
			types[i] = a.Type
		}
	}
	if len(args) != info.arity || info.arity == 0 {
		fail(op, types, format.Sprintf("takes %d operands", info.arity))
	}
	same, cond := types, dtype.Bool
	switch op {
	case OpSelect:
		cond, same = types[0], types[1:]
	case OpCheck:
		cond, same = types[1], types[:1]
	}
	if cond != dtype.Bool {
		fail(op, types, "the condition is not bool")
	}
	for _, t := range same {
		if t != same[0] {
			fail(op, types, "the operands differ in type")
		}
		if kindOf(t)&info.operands == 0 {
			fail(op, types, "the type is not allowed")
		}
	}
}

// promoted returns operands with the I32 among them as I64 where there is one of those:
// a position is as wide as its array needs, and whoever adds to it need not know.
func promoted(args []Expr) []Expr {
	is := func(t dtype.DType) func(Expr) bool {
		return func(a Expr) bool { return a != nil && a.Type == t }
	}
	if !slices.ContainsFunc(args, is(dtype.I64)) || !slices.ContainsFunc(args, is(dtype.I32)) {
		return args
	}
	args = slices.Clone(args)
	for i, a := range args {
		if is(dtype.I32)(a) {
			args[i] = Convert(a, dtype.I64)
		}
	}
	return args
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
