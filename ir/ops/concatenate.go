package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpConcatenate joins values along an axis.
const OpConcatenate ir.Op = "concatenate"

func init() {
	define(&ir.Def{
		Op: OpConcatenate, Doc: "The concatenation of the operands along an axis.",
		Operands: []string{"operands..."}, NewAttrs: func() ir.Attrs { return &AxisAttrs{} },
		Constraints: numbered(
			"there is at least one operand, of rank 1 or more; all have one element type, which is "+plain.String(),
			"the operands have one shape except along axis, along which the result has the sum of their sizes",
		),
		Infer: inferConcatenate,
		Eval:  evalConcatenate,
		JVP: func(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
			if !slices.ContainsFunc(t, ir.Value.Valid) {
				return []ir.Value{{}}
			}
			full := make([]ir.Value, len(t))
			for i := range t {
				full[i] = orZeros(b, t[i], in[i])
			}
			return b.Add(OpConcatenate, n.Attrs(), full...)
		},
		Transpose: transposeEach(func(b *ir.Builder, n *ir.Node, operand int, _ []ir.Value, ct ir.Value) ir.Value {
			axis, start := n.Attrs().(*AxisAttrs).Axis, ir.N(0)
			for _, v := range n.Inputs()[:operand] {
				start = start.Add(v.Dim(axis))
			}
			return SliceAxis(b, ct, axis, start, n.Input(operand).Dim(axis))
		}),
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
			front := make([]ir.Value, len(in))
			for i, x := range in {
				front[i] = BatchAt(b, x, axes[i], 0, size)
			}
			return []ir.Value{Concatenate(b, n.Attrs().(*AxisAttrs).Axis+1, front...)}, []int{0}
		},
		Lower: &ir.MapLowering{Element: concatenateElement},
	})
}

func inferConcatenate(n *ir.Node) ([]ir.Type, error) {
	axis := n.Attrs().(*AxisAttrs).Axis
	if len(n.Inputs()) == 0 {
		return nil, ir.Shapef("there is nothing to concatenate")
	}
	first := n.Input(0).Type()
	if err := plain.check(first.DType); err != nil {
		return nil, err
	}
	if err := checkAxes([]int{axis}, first.Shape.Rank()); err != nil {
		return nil, err
	}
	shape := first.Shape.Clone()
	shape[axis] = ir.N(0)
	for i, v := range n.Inputs() {
		if v.DType() != first.DType {
			return nil, ir.DTypef("operand %d is %s, not %s as operand 0 is", i, v.DType(), first.DType)
		}
		if v.Rank() != len(shape) {
			return nil, ir.Shapef("operand %d is %s, operand 0 is %s", i, v.Type(), first)
		}
		for a, d := range v.Shape() {
			if a != axis && d != shape[a] {
				return nil, ir.Shapef("operand %d is %s, operand 0 is %s: they differ along axis %d", i, v.Type(), first, a)
			}
		}
		shape[axis] = shape[axis].Add(v.Dim(axis))
	}
	return []ir.Type{{DType: first.DType, Shape: shape}}, nil
}

func evalConcatenate(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	axis, start := n.Attrs().(*AxisAttrs).Axis, 0
	for _, x := range in {
		positions(x.Dims, func(i int, at []int) {
			at[axis] += start
			copyElement(out, offset(out.Dims, at), x, i)
			at[axis] -= start
		})
		start += x.Dims[axis]
	}
	return []*ir.Array{out}, nil
}

// concatenateElement selects among one load from each operand, with positions clamped to
// the operand.
func concatenateElement(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
	axis := n.Attrs().(*AxisAttrs).Axis
	end, _ := n.Types()[0].Shape[axis].Const()
	var chosen scalar.Expr
	for k := len(n.Inputs()) - 1; k >= 0; k-- {
		size, _ := n.Input(k).Dim(axis).Const()
		start := end - size
		if size > 0 {
			from := slices.Clone(at)
			from[axis] = scalar.Clamp(scalar.Sub(at[axis], loop.Int(start)), loop.Int(0), loop.Int(size-1))
			element := load(k, from)
			if chosen != nil {
				element = scalar.Select(scalar.Lt(at[axis], loop.Int(end)), element, chosen)
			}
			chosen = element
		}
		end = start
	}
	if chosen == nil {
		return scalar.Const(n.Types()[0].DType, 0) // of an empty result
	}
	return chosen
}

// Concatenate returns the concatenation of the operands, of one type and at least one,
// along axis, which may count from the last.
func Concatenate(b *ir.Builder, axis int, in ...ir.Value) ir.Value {
	if len(in) > 0 {
		axis = fromFront([]int{axis}, in[0].Rank())[0]
	}
	return b.Add1(OpConcatenate, &AxisAttrs{axis}, in...)
}
