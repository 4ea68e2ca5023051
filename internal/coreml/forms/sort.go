package forms

import (
	"math"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() { add(ops.OpArgSort, single(argSort)) }

// argSort sorts twice, as MIL specifies neither the order of equal elements nor the position of
// NaN. The first sort finds runs of equal elements. The second sorts distinct integers composed of
// run, NaN or Inf, and position.
func argSort(e *Emitter, n *ir.Node, in []Value) Value {
	a, dims := n.Attrs().(*ops.SortAttrs), whole(n.Input(0).Type())
	size := dims[a.Axis]
	if size > math.MaxInt16 {
		e.Fail(ir.Errorf(ir.ErrUnsupported, "a stable sort has %d elements; the limit is %d", size, math.MaxInt16))
		return Value{}
	}
	x := e.around(e.Whole(in[0]), dims, a.Axis)
	if x.Type.DType == mil.Bool {
		x = e.cast(x, mil.Int32)
	}
	var later mil.Ref // 1 for the later of the infinite: NaN, or Inf in descending order
	if x.Type.DType.IsFloat() {
		compare := "not_equal"
		if a.Descending {
			compare = "equal"
		}
		later = e.cast(e.op2(compare, x, x), mil.Int32)
		x = e.choose(e.op2("not_equal", x, x), e.number(x.Type.DType, math.Inf(1)), x)
	}
	order := e.Op("argsort", mil.Args{"x": x, "axis": 1, "ascending": !a.Descending})
	if size > 1 {
		key := e.op2("add", e.op2("mul", e.runs(e.at(x, order)), e.number(mil.Int32, float64(2*size))), order)
		if later.Valid() {
			key = e.op2("add", key, e.op2("mul", e.at(later, order), e.number(mil.Int32, float64(size))))
		}
		order = e.at(order, e.Op("argsort", mil.Args{"x": key, "axis": 1, "ascending": true}))
	}
	if a.First != 0 {
		order, _ = e.cut(order, order.Type.Dims, 1, 0, a.First, 1)
	}
	return e.value(order, whole(n.Types()[0]))
}

// at gathers from a tensor of three axes along the second one.
func (e *Emitter) at(x, places mil.Ref) mil.Ref {
	return e.Op("gather_along_axis", mil.Args{"x": x, "indices": places, "axis": 1})
}

// runs numbers the runs of equal elements along the second of three axes.
func (e *Emitter) runs(sorted mil.Ref) mil.Ref {
	dims := sorted.Type.Dims
	head, _ := e.cut(sorted, dims, 1, 0, dims[1]-1, 1)
	tail, rest := e.cut(sorted, dims, 1, 1, dims[1], 1)
	differs := e.cast(e.op2("not_equal", head, tail), mil.Int32)
	differs, _ = e.extend(differs, rest, 1, 1, 0, e.number(mil.Int32, 0))
	return e.Op("cumsum", mil.Args{"x": differs, "axis": 1, "exclusive": false, "reverse": false})
}
