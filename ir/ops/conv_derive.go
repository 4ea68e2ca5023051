package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// transposeConv writes the transpose by either operand as a convolution again.
func transposeConv(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	out := make([]ir.Value, 2)
	if !ct[0].Valid() || !onlyLinear(b, n, linear, 0, 1) {
		return out
	}
	if linear[0] {
		out[0] = convLhs(b, n, in[1], ct[0])
	} else {
		out[1] = convRhs(b, n, in[0], ct[0])
	}
	return out
}

// convLhs is the transpose by lhs: the cotangent, dilated by the strides, is convolved
// with the reversed kernel, whose input and output features are swapped. Groups stay
// separate: their input features become output features, group after group.
func convLhs(b *ir.Builder, n *ir.Node, w, ct ir.Value) ir.Value {
	a := n.Attrs().(*ConvAttrs)
	t := ConvAttrs{
		Strides: a.LhsDilation, LhsDilation: a.Strides, RhsDilation: a.RhsDilation,
		Lhs: a.Out, Rhs: swapFirst(a.Rhs), Out: a.Lhs,
		FeatureGroups: a.FeatureGroups.Mul(a.BatchGroups), BatchGroups: ir.N(1),
	}
	for i := range a.Strides {
		in, window, out := convExtents(n, i)
		lo := window.Sub(ir.N(a.PadLo[i] + 1))
		t.PadLo = append(t.PadLo, constantOf(b, n, lo))
		t.PadHi = append(t.PadHi, constantOf(b, n, in.Add(window).Sub(ir.N(1)).Sub(out).Sub(lo)))
	}
	if !t.FeatureGroups.Is(1) {
		w = regroup(b, w, a.Rhs[0], a.Rhs[1], t.FeatureGroups)
	}
	x := ConvGeneral(b, ct, Reverse(b, w, a.Rhs[2:]...), t)
	if !a.BatchGroups.Is(1) {
		x = regroup(b, x, a.Lhs[1], a.Lhs[0], a.BatchGroups)
	}
	return x
}

// convRhs is the transpose by rhs: lhs is convolved with the cotangent, with strides and
// kernel dilation swapped. The batch is contracted, so it is the feature axis here.
// Feature groups become batch groups and vice versa.
func convRhs(b *ir.Builder, n *ir.Node, x, ct ir.Value) ir.Value {
	a := n.Attrs().(*ConvAttrs)
	t := ConvAttrs{
		Strides: a.RhsDilation, LhsDilation: a.LhsDilation, RhsDilation: a.Strides, PadLo: a.PadLo,
		Lhs: swapFirst(a.Lhs), Rhs: swapFirst(a.Out), Out: swapFirst(a.Rhs),
		FeatureGroups: a.BatchGroups, BatchGroups: a.FeatureGroups,
	}
	for i := range a.Strides {
		in, window, out := convExtents(n, i)
		t.PadHi = append(t.PadHi, constantOf(b, n, out.Sub(in).Add(window).Sub(ir.N(a.PadLo[i]+1))))
	}
	return ConvGeneral(b, x, ct, t)
}

// convExtents returns the extents along spatial axis i of lhs, rhs and the
// result, dilated by their dilations and the strides.
func convExtents(n *ir.Node, i int) (in, window, out ir.Dim) {
	a := n.Attrs().(*ConvAttrs)
	return dilated(n.Input(0).Dim(a.Lhs[i+2]), a.LhsDilation[i]),
		dilated(n.Input(1).Dim(a.Rhs[i+2]), a.RhsDilation[i]),
		dilated(n.Result(0).Dim(a.Out[i+2]), a.Strides[i])
}

// constantOf returns a padding as a number. It is constant even along a symbolic axis
// unless strides skip the end of the axis.
func constantOf(b *ir.Builder, n *ir.Node, d ir.Dim) int {
	const large = 1 << 30 // makes negative numbers valid sizes
	x, ok := d.Add(ir.N(large)).Const()
	if !ok {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "the padding of the transposed convolution, %s, depends on a symbolic size", d)))
	}
	return x - large
}

// swapFirst returns axes with the first two swapped.
func swapFirst(axes []int) []int {
	return slices.Concat([]int{axes[1], axes[0]}, axes[2:])
}

// regroup splits an axis into groups and concatenates them along another axis.
func regroup(b *ir.Builder, x ir.Value, from, to int, groups ir.Dim) ir.Value {
	return mergeAxes(b, MoveAxis(b, splitAxis(b, x, from, groups), from, to), to)
}

// batchConv folds the batch axis into another one: the batch of lhs, the output features
// of rhs, or, if both operands have it, the groups.
func batchConv(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	a := *n.Attrs().(*ConvAttrs)
	x, w := in[0], in[1]
	batch, feature, major := a.Out[0], a.Out[1], a.FeatureGroups.Mul(a.BatchGroups)
	one := ir.N(1)
	var y ir.Value
	switch {
	case axes[1] < 0:
		x = foldBatch(b, x, axes[0], a.Lhs[0], a.BatchGroups)
		y = unfoldBatch(b, ConvGeneral(b, x, w, a), batch, one, size)
	case axes[0] < 0:
		w = foldBatch(b, w, axes[1], a.Rhs[0], major)
		y = unfoldBatch(b, ConvGeneral(b, x, w, a), feature, major, size)
	default:
		along := a.Lhs[1]
		if a.BatchGroups.Is(1) {
			a.FeatureGroups = a.FeatureGroups.Mul(size)
		} else {
			along, a.BatchGroups = a.Lhs[0], a.BatchGroups.Mul(size)
		}
		x, w = foldBatch(b, x, axes[0], along, one), foldBatch(b, w, axes[1], a.Rhs[0], one)
		y = unfoldBatch(b, ConvGeneral(b, x, w, a), feature, one, size)
	}
	return []ir.Value{y}, []int{0}
}

// foldBatch merges the batch axis of x into another axis, inside the major part of that
// one. The axis is numbered as without the batch axis.
func foldBatch(b *ir.Builder, x ir.Value, batch, axis int, major ir.Dim) ir.Value {
	x = MoveAxis(b, x, batch, 0)
	if major.Is(1) {
		return mergeAxes(b, MoveAxis(b, x, 0, axis), axis)
	}
	x = MoveAxis(b, splitAxis(b, x, axis+1, major), 0, axis+1)
	return mergeAxes(b, mergeAxes(b, x, axis), axis)
}

// unfoldBatch is the inverse of [foldBatch]; the batch axis becomes the first.
func unfoldBatch(b *ir.Builder, x ir.Value, axis int, major, size ir.Dim) ir.Value {
	if major.Is(1) {
		return MoveAxis(b, splitAxis(b, x, axis, size), axis, 0)
	}
	x = splitAxis(b, splitAxis(b, x, axis, major), axis+1, size)
	return mergeAxes(b, MoveAxis(b, x, axis+1, 0), axis+1)
}
