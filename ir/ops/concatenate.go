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
		Eval:  evalResult(evalConcatenate),
		JVP: func(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
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
			return nil, notAsFirst(n, i, v.DType(), first.DType)
		}
		if v.Rank() != len(shape) {
			return nil, ir.Shapef("operand %d is %s, not of rank %d as operand 0 is", i, v.Type(), len(shape))
		}
		for a, d := range v.Shape() {
			if a != axis && d != shape[a] {
				return nil, ir.Shapef("operand %d is %s, not of size %s along axis %d as operand 0 is", i, v.Type(), shape[a], a)
			}
		}
		shape[axis] = shape[axis].Add(v.Dim(axis))
	}
	return []ir.Type{{DType: first.DType, Shape: shape}}, nil
}

func evalConcatenate(n *ir.Node, in []*ir.Array, out *ir.Array) {
	axis, start := n.Attrs().(*AxisAttrs).Axis, 0
	for _, x := range in {
		positions(x.Dims, func(i int, at []int) {
			at[axis] += start
			copyElement(out, offset(out.Dims, at), x, i)
			at[axis] -= start
		})
		start += x.Dims[axis]
	}
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

// OpStack joins values along a new axis.
const OpStack ir.Op = "stack"

func init() {
	defineComposite(composite{
		op: OpStack, doc: "The operands stacked along a new axis of the result.",
		constraints: []string{"there is at least one operand; all have one type", "axis is an axis of the result"},
		operands:    []string{"operands..."}, types: plain, newAttrs: func() ir.Attrs { return &AxisAttrs{} },
		check: func(n *ir.Node) error {
			_, err := sameTypes(n, plain)
			return err
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			axis, parts := n.Attrs().(*AxisAttrs).Axis, make([]ir.Value, len(in))
			for i, x := range in {
				parts[i] = ExpandDims(b, x, axis)
			}
			return Concatenate(b, axis, parts...)
		},
	})
}

// Stack returns the operands, of one type and shape, stacked along a new axis; axis is its
// position in the result and may count from the last.
func Stack(b *ir.Builder, axis int, in ...ir.Value) ir.Value {
	if len(in) > 0 {
		axis = fromFront([]int{axis}, in[0].Rank()+1)[0]
	}
	if b.Err() == nil && len(in) == 0 {
		b.Failf(OpStack, nil, ir.Shapef("there is nothing to stack"))
	}
	return b.Add1(OpStack, &AxisAttrs{axis}, in...)
}

// Unstack returns the slices of x along axis, of constant size, without that axis.
func Unstack(b *ir.Builder, x ir.Value, axis int) []ir.Value {
	n, ok := sizeOf(b, OpSlice, x, axis)
	if !ok {
		return nil
	}
	parts := SplitEvenly(b, x, axis, n)
	for i, p := range parts {
		parts[i] = Squeeze(b, p, axis)
	}
	return parts
}

// Split returns consecutive slices of x along axis with the given sizes, which add up to
// the size of the axis. (Random keys are split by [SplitKey].)
func Split(b *ir.Builder, x ir.Value, axis int, sizes ...ir.Dim) []ir.Value {
	if b.Err() != nil {
		return make([]ir.Value, len(sizes))
	}
	parts, start := make([]ir.Value, len(sizes)), ir.N(0)
	for i, size := range sizes {
		parts[i] = SliceAxis(b, x, axis, start, size)
		start = start.Add(size)
	}
	if at := fromFront([]int{axis}, x.Rank())[0]; b.Err() == nil && len(sizes) > 0 && x.Dim(at) != start {
		b.Failf(OpSlice, []ir.Value{x}, ir.Shapef("parts of %s make up %s elements of axis %d, of size %s", ir.Shape(sizes), start, at, x.Dim(at)))
	}
	return parts
}

// maxParts bounds the number of parts of a split: each is a node.
const maxParts = 1 << 16

// SplitEvenly returns n equal consecutive slices of x along axis, whose size is a multiple
// of n. n is at most 65,536.
func SplitEvenly(b *ir.Builder, x ir.Value, axis, n int) []ir.Value {
	none := make([]ir.Value, min(max(n, 0), maxParts))
	if b.Err() != nil {
		return none
	}
	at := fromFront([]int{axis}, x.Rank())[0]
	err := checkAxes([]int{at}, x.Rank())
	if err == nil && (n < 1 || n > maxParts) {
		err = ir.Attrf("%d parts: there can be 1 to %d", n, maxParts)
	}
	var each ir.Dim
	if err == nil {
		if each, err = x.Dim(at).Div(ir.N(n)); err != nil {
			err = ir.Shapef("axis %d of size %s does not divide into %d parts", at, x.Dim(at), n)
		}
	}
	if err != nil {
		b.Failf(OpSlice, []ir.Value{x}, err)
		return none
	}
	return Split(b, x, at, slices.Repeat([]ir.Dim{each}, n)...)
}

// sizeOf returns the constant size of an axis, which may count from the last. op names the
// op in an error.
func sizeOf(b *ir.Builder, op ir.Op, x ir.Value, axis int) (int, bool) {
	if b.Err() != nil {
		return 0, false
	}
	at := fromFront([]int{axis}, x.Rank())[0]
	err := checkAxes([]int{at}, x.Rank())
	if err == nil {
		if n, ok := x.Dim(at).Const(); ok {
			return n, true
		}
		err = ir.Shapef("axis %d has the symbolic size %s", at, x.Dim(at))
	}
	b.Failf(op, []ir.Value{x}, err)
	return 0, false
}
