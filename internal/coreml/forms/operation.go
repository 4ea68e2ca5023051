package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
)

// number returns a constant of one element with the type of an operand.
func (e *Emitter) number(d mil.DType, x float64) mil.Ref {
	switch d {
	case mil.Int32:
		return e.Const(mil.Ints([]int{int(x)}))
	case mil.Bool:
		return e.Const(mil.Bools([]bool{x != 0}))
	}
	return e.Const(mil.Floats(d, []float64{x}))
}

// op1 and op2 emit operations of one and of two operands.
func (e *Emitter) op1(kind string, x mil.Ref) mil.Ref { return e.Op(kind, mil.Args{"x": x}) }

func (e *Emitter) op2(kind string, x, y mil.Ref) mil.Ref { return e.Op(kind, mil.Args{"x": x, "y": y}) }

// choose emits a select. MIL broadcasts the condition to the values but not the reverse, so it
// broadcasts one of the values first.
func (e *Emitter) choose(cond, a, b mil.Ref) mil.Ref {
	if e.Err() != nil {
		return mil.Ref{}
	}
	values, err := mil.Broadcast(a.Type, b.Type)
	if err == nil {
		var all []int
		if all, err = mil.Broadcast(cond.Type, mil.Type{Dims: values}); !slices.Equal(all, values) {
			a = e.Whole(Value{a, all})
		}
	}
	if err != nil {
		e.Fail(err)
	}
	return e.Op("select", mil.Args{"cond": cond, "a": a, "b": b})
}

// cast converts a tensor by MIL's rules: floats to integers by truncation, anything to bool by
// comparison with 0.
func (e *Emitter) cast(x mil.Ref, d mil.DType) mil.Ref {
	if x.Type.DType == d {
		return x
	}
	return e.Op("cast", mil.Args{"x": x, "dtype": d.String()})
}

// withoutBools emits an operation that takes no bools with an int32 in place of each.
func (e *Emitter) withoutBools(x mil.Ref, f func(x mil.Ref) mil.Ref) mil.Ref {
	if x.Type.DType != mil.Bool {
		return f(x)
	}
	return e.cast(f(e.cast(x, mil.Int32)), mil.Bool)
}
