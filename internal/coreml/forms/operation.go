package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
)

// number returns a constant of one element of a type, for an operand.
func (e *Emitter) number(d mil.DType, x float64) mil.Ref {
	switch d {
	case mil.Int32:
		return e.Const(mil.Ints([]int{int(x)}))
	case mil.Bool:
		return e.Const(mil.Bools([]bool{x != 0}))
	}
	return e.Const(mil.Floats(d, []float64{x}))
}

// op1 and op2 are operations of one and of two operands.
func (e *Emitter) op1(kind string, x mil.Ref) mil.Ref { return e.Op(kind, mil.Args{"x": x}) }

func (e *Emitter) op2(kind string, x, y mil.Ref) mil.Ref { return e.Op(kind, mil.Args{"x": x, "y": y}) }

// choose is a select. MIL repeats the condition to the sizes of the values and not
// they to its, so one of them is made as large.
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

// cast converts a tensor as MIL does: floats to integers by cutting, anything to
// bool by comparing with 0.
func (e *Emitter) cast(x mil.Ref, d mil.DType) mil.Ref {
	if x.Type.DType == d {
		return x
	}
	return e.Op("cast", mil.Args{"x": x, "dtype": d.String()})
}

// withoutBools computes with a bool as an int32, for operations that take none.
func (e *Emitter) withoutBools(x mil.Ref, f func(x mil.Ref) mil.Ref) mil.Ref {
	if x.Type.DType != mil.Bool {
		return f(x)
	}
	return e.cast(f(e.cast(x, mil.Int32)), mil.Bool)
}
