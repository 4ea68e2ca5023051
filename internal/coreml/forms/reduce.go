package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	for op, kind := range map[ir.Op]string{
		ops.OpReduceSum: "reduce_sum", ops.OpReduceProd: "reduce_prod", ops.OpReduceMax: "reduce_max", ops.OpReduceMin: "reduce_min",
	} {
		add(op, single(func(e *Emitter, n *ir.Node, in []Value) Value {
			r := e.reduce(kind, e.Whole(in[0]), whole(n.Input(0).Type()), n.Attrs().(*ops.AxesAttrs).Axes)
			return e.value(r, whole(n.Types()[0]))
		}))
	}
	for op, kind := range map[ir.Op]string{ops.OpArgMax: "reduce_argmax", ops.OpArgMin: "reduce_argmin"} {
		add(op, single(func(e *Emitter, n *ir.Node, in []Value) Value {
			dims, axis := whole(n.Input(0).Type()), n.Attrs().(*ops.ArgAttrs).Axis
			x, at := e.along(e.Whole(in[0]), dims, axis)
			if x.Type.DType == mil.Bool {
				x = e.cast(x, mil.Int32)
			}
			r := e.Op(kind, mil.Args{"x": x, "axis": at, "keep_dims": true})
			return e.value(r, whole(n.Types()[0]))
		}))
	}
}

// reduce reduces some axes of a tensor of the given shape. The result has the remaining axes,
// possibly merged.
func (e *Emitter) reduce(kind string, r mil.Ref, dims, axes []int) mil.Ref {
	if len(axes) == 0 {
		return r
	}
	if len(dims) <= maxRank {
		return e.Op(kind, mil.Args{"x": r, "axes": axes, "keep_dims": true})
	}
	// Beyond the maximum rank, reduced axes are moved last.
	var stay []int
	for axis := range dims {
		if !slices.Contains(axes, axis) {
			stay = append(stay, axis)
		}
	}
	r, moved := e.transpose(r, dims, slices.Concat(stay, slices.Sorted(slices.Values(axes))))
	r = e.reshape(r, []int{product(moved[:len(stay)]), product(moved[len(stay):])})
	return e.Op(kind, mil.Args{"x": r, "axes": []int{1}, "keep_dims": true})
}
