package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// jvpAssociativeScan differentiates y[i] = combine(y[i−1], x[i]): the tangent is a linear
// recurrence with the derivatives of the operator, from the tangent of the first element.
func jvpAssociativeScan(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	var real []int // the operands that have a tangent
	for i, v := range in {
		if derive.Differentiable(v.DType()) {
			real = append(real, i)
		}
	}
	tangents := make([]ir.Value, len(in))
	if !slices.ContainsFunc(t, ir.Value.Valid) || b.Err() != nil {
		return tangents
	}
	if odd := slices.IndexFunc(real, func(i int) bool { return in[i].DType() != in[real[0]].DType() }); odd >= 0 || len(real) > maxRecurrence {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "there is a derivative of at most %d operands of float or complex elements, all of one type", maxRecurrence)))
		return tangents
	}
	a := n.Attrs().(*AssociativeAttrs)
	run := CumSumAttrs{Axis: a.Axis, Reverse: a.Reverse}
	back := run
	back.Reverse = !back.Reverse
	runs := make([]ir.Value, 0, 2*len(in))
	for _, y := range out {
		runs = append(runs, behind(b, y, back))
	}
	runs = append(runs, in...)
	place := Iota(b, ir.I32, a.Axis, in[0].Shape()...)
	if a.Reverse {
		place = Reverse(b, place, a.Axis)
	}
	isFirst := Eq(b, place, ConstLike(b, place, 0))
	x, y := make([]ir.Value, len(real)*len(real)), make([]ir.Value, len(real))
	for j, from := range real {
		onward := slopesOfCombine(b, n.Subgraphs()[0], runs, from)
		own := slopesOfCombine(b, n.Subgraphs()[0], runs, len(in)+from)
		for i, to := range real {
			x[i*len(real)+j] = Select(b, isFirst, ZerosLike(b, onward[to]), onward[to])
			if !t[from].Valid() {
				continue
			}
			same := ConstLike(b, own[to], 0)
			if i == j {
				same = OnesLike(b, own[to])
			}
			y[i] = addTangents(b, y[i], scale(b, t[from], Select(b, isFirst, same, own[to])))
		}
	}
	for i := range y {
		y[i] = orZeros(b, y[i], in[real[i]])
	}
	for i, v := range LinearRecurrences(b, x, y, run) {
		tangents[real[i]] = v
	}
	return tangents
}

// behind returns for each element the previous one in scan order, for any element type.
func behind(b *ir.Builder, x ir.Value, a CumSumAttrs) ir.Value {
	if x.DType().IsBool() {
		return Convert(b, ahead(b, Convert(b, x, ir.I32), a), ir.Bool)
	}
	return ahead(b, x, a)
}

// slopesOfCombine returns the derivatives of the outputs of a graph of scalars by one
// port, at all elements of the given values.
func slopesOfCombine(b *ir.Builder, g *ir.Graph, at []ir.Value, by int) []ir.Value {
	types := portTypes(g)
	slopes := closed(b, "slopes", types, func(b *ir.Builder, v []ir.Value) []ir.Value {
		t := make([]ir.Value, len(v))
		t[by] = OnesLike(b, v[by])
		out, tangents := derive.JVP(b, g, v, t)
		for i := range out {
			tangents[i] = orZeros(b, tangents[i], out[i])
		}
		return tangents
	})
	if b.Err() != nil {
		return make([]ir.Value, len(types)/2)
	}
	return everywhere(b, slopes, at)
}

// everywhere maps a graph of scalars over all elements of values of one shape.
func everywhere(b *ir.Builder, g *ir.Graph, at []ir.Value) []ir.Value {
	shape := at[0].Shape()
	flat := make([]ir.Value, len(at))
	for i, v := range at {
		flat[i] = Reshape(b, v, shape.Size())
	}
	values, axes := derive.Batch(b, g, flat, slices.Repeat([]int{0}, len(flat)), shape.Size())
	for i, v := range values {
		if axes[i] < 0 {
			values[i] = BroadcastTo(b, v, shape)
		} else {
			values[i] = Reshape(b, v, shape...)
		}
	}
	return values
}
