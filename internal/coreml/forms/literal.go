package forms

import (
	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// literal adds a node without operands as a constant.
func literal(e *Emitter, n *ir.Node, _ []Value) []Value {
	arrays, err := n.Def().Eval(&ir.EvalContext{}, n, nil)
	if err != nil {
		e.Fail(err)
		return make([]Value, n.NumResults())
	}
	out := make([]Value, len(arrays))
	for i, a := range arrays {
		out[i] = e.Literal(a)
	}
	return out
}

func init() {
	add(ir.OpConstant, single(func(e *Emitter, n *ir.Node, _ []Value) Value {
		c := n.Attrs().(*ir.ConstantAttrs)
		a, err := ir.ArrayOf(c.Type, c.Data)
		if err != nil {
			e.Fail(err)
			return Value{}
		}
		return e.Literal(a)
	}))
	add(ops.OpIota, single(func(e *Emitter, n *ir.Node, _ []Value) Value {
		a := n.Attrs().(*ops.IotaAttrs)
		dims := whole(n.Types()[0])
		line := ir.NewArray(a.DType, dims[a.Axis])
		for i := range line.Len() {
			setNumber(line, i, i)
		}
		line.Round()
		return e.repeated(e.Literal(line).Ref, []int{dims[a.Axis]}, []int{a.Axis}, dims)
	}))
}

// setNumber sets an element of a real array.
func setNumber(a *ir.Array, i, x int) {
	if a.DType.IsFloat() {
		a.F[i] = float64(x)
	} else {
		a.I[i] = int64(x)
	}
}

// Literal returns an array as a constant.
func (e *Emitter) Literal(a *ir.Array) Value {
	t, err := e.Type(a.Type())
	if err != nil {
		e.Fail(err)
		return Value{}
	}
	v := &mil.Value{}
	switch {
	case t.DType.IsFloat():
		v = mil.Floats(t.DType, a.F, t.Dims...)
	default:
		x := make([]int, len(a.I))
		for i := range x {
			x[i] = int(a.I[i])
		}
		if v = mil.Ints(x, t.Dims...); t.DType == mil.Bool {
			v = mil.Bools(bools(x), t.Dims...)
		}
	}
	return Value{e.Const(v), t.Dims}
}

func bools(x []int) []bool {
	out := make([]bool, len(x))
	for i := range x {
		out[i] = x[i] != 0
	}
	return out
}
