package passes

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func reductionIdentities() map[ir.Op][]identity {
	return map[ir.Op][]identity{
		ops.OpReduceSum:  {reduceOne, sumOfRepeated},
		ops.OpReduceProd: {reduceOne},
		ops.OpReduceMax:  {reduceOne, extremumOfRepeated, reduceTwice},
		ops.OpReduceMin:  {reduceOne, extremumOfRepeated, reduceTwice},
		ops.OpDimSize:    {knownSize},
	}
}

// reduceOne: a reduction over axes of size 1 is a reshape, but a sum, which starts from
// 0, turns −0 into 0.
func reduceOne(s site) ir.Value {
	x := s.in[0]
	if x.DType().IsComplex() || s.n.Op() == ops.OpReduceSum && !hasNoNegativeZero(x) {
		return ir.Value{}
	}
	for _, a := range axesOf(s.n) {
		if !x.Dim(a).Is(1) {
			return ir.Value{}
		}
	}
	return ops.Reshape(s.b, x, s.n.Types()[0].Shape...)
}

// reduceTwice: the extremum of extrema is one reduction. Sums of sums are not merged,
// because each rounds its result.
func reduceTwice(s site) ir.Value {
	x, ok := operandOf(s.in[0], s.n.Op())
	if !ok {
		return ir.Value{}
	}
	inner := axesOf(s.in[0].Node())
	kept := without(x.Rank(), inner)
	axes := slices.Concat(inner, permute.Pick(kept, axesOf(s.n)))
	slices.Sort(axes)
	return s.b.Add1(s.n.Op(), &ops.AxesAttrs{Axes: axes}, x)
}

// without returns the axes of a value of the given rank except those listed.
func without(rank int, axes []int) []int {
	var out []int
	for a := range rank {
		if !slices.Contains(axes, a) {
			out = append(out, a)
		}
	}
	return out
}

// extremumOfRepeated: the extremum over a broadcast axis is the element.
func extremumOfRepeated(s site) ir.Value {
	once, rest, _ := unrepeat(s)
	if !once.Valid() {
		return ir.Value{}
	}
	if len(rest) == 0 {
		return once
	}
	return s.b.Add1(s.n.Op(), &ops.AxesAttrs{Axes: rest}, once)
}

// sumOfRepeated: a sum of n copies is n times the element, rounded once; n must
// be exact in the element type.
func sumOfRepeated(s site) ir.Value {
	d := s.in[0].DType()
	if !d.IsInteger() && !d.IsFloat() || !hasNoNegativeZero(s.in[0]) {
		return ir.Value{}
	}
	once, rest, count := unrepeat(s)
	exact := d.IsInteger() && float64(count) == float64(d.Wrap(int64(count))) ||
		d.IsFloat() && float64(count)*d.Epsilon() <= 2 && float64(count) <= d.MaxFloat()
	if !once.Valid() || len(rest) > 0 || !exact || count > math.MaxInt32 {
		return ir.Value{}
	}
	return ops.Mul(s.b, once, ops.ConstLike(s.b, once, float64(count)))
}

// unrepeat finds the reduced axes along which the operand is a broadcast. It returns the
// operand without them, its axes that remain to be reduced, and the number of copies of
// each element, at least one. It returns the zero Value if there are no such axes.
func unrepeat(s site) (once ir.Value, rest []int, count int) {
	x, ok := operandOf(s.in[0], ops.OpBroadcastInDim)
	if !ok {
		return ir.Value{}, nil, 0
	}
	axes, shape := broadcastAxes(s.in[0].Node()), s.in[0].Shape()
	var gone []int
	count = 1
	for _, a := range axesOf(s.n) {
		i := slices.Index(axes, a)
		size, known := shape[a].Const()
		if known && size > 0 && (i < 0 || x.Dim(i).Is(1)) {
			gone, count = append(gone, a), count*size
		}
	}
	if len(gone) == 0 {
		return ir.Value{}, nil, 0
	}
	kept := without(len(shape), gone)
	for _, a := range axesOf(s.n) {
		if i := slices.Index(kept, a); i >= 0 {
			rest = append(rest, i)
		}
	}
	return dropRepeated(s.b, x, axes, shape, kept), rest, count
}

// dropRepeated broadcasts x to the kept axes of a shape.
func dropRepeated(b *ir.Builder, x ir.Value, axes []int, shape ir.Shape, kept []int) ir.Value {
	var from ir.Shape
	var to []int
	for i, a := range axes {
		if at := slices.Index(kept, a); at >= 0 {
			from, to = append(from, x.Dim(i)), append(to, at)
		}
	}
	return ops.BroadcastInDim(b, ops.Reshape(b, x, from...), permute.Pick(shape, kept), to)
}

// knownSize: a constant size is a literal.
func knownSize(s site) ir.Value {
	a := s.n.Attrs().(*ops.DimSizeAttrs)
	n, ok := ir.Shape(a.Sizes).Size().Const()
	if !ok || !a.DType.IsFloat() && float64(n) != float64(a.DType.Wrap(int64(n))) {
		return ir.Value{}
	}
	return ops.Const(s.b, a.DType, float64(n))
}
