package passes

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func sliceIdentities() map[ir.Op][]identity {
	return map[ir.Op][]identity{
		ops.OpSlice:       {sliceAll, sliceSlice, sliceOfPad, sliceOfConcatenate},
		ops.OpPad:         {padNothing, padOfSplat, padPad},
		ops.OpConcatenate: {concatenateOne, dropEmpty, concatenateSplats, flattenConcatenate, joinSlices},
	}
}

func sliceOf(n *ir.Node) *ops.SliceAttrs { return n.Attrs().(*ops.SliceAttrs) }

func isOnes(s []int) bool  { return !slices.ContainsFunc(s, func(x int) bool { return x != 1 }) }
func isZeros(s []int) bool { return !slices.ContainsFunc(s, func(x int) bool { return x != 0 }) }

func areZero(s []ir.Dim) bool {
	return !slices.ContainsFunc(s, func(d ir.Dim) bool { return !d.Is(0) })
}

// sliceAll: a slice of the whole operand is the operand.
func sliceAll(s site) ir.Value {
	a := sliceOf(s.n)
	if areZero(a.Start) && isOnes(a.Stride) && s.in[0].Shape().Equal(a.Size) {
		return s.in[0]
	}
	return ir.Value{}
}

func sliceSlice(s site) ir.Value {
	x, ok := operandOf(s.in[0], ops.OpSlice)
	if !ok {
		return ir.Value{}
	}
	inner, outer := sliceOf(s.in[0].Node()), sliceOf(s.n)
	start, stride := slices.Clone(inner.Start), slices.Clone(inner.Stride)
	for i := range start {
		start[i] = start[i].Add(outer.Start[i].Mul(ir.N(stride[i])))
		stride[i], ok = ir.N(stride[i]).Mul(ir.N(outer.Stride[i])).Const()
		if !start[i].Valid() || !ok || stride[i] > math.MaxInt32 {
			return ir.Value{}
		}
	}
	return ops.Slice(s.b, x, start, outer.Size, stride)
}

// sliceOfPad: a slice that removes the padding is the operand of the pad.
func sliceOfPad(s site) ir.Value {
	x, ok := operandOf(s.in[0], ops.OpPad)
	if !ok {
		return ir.Value{}
	}
	a, p := sliceOf(s.n), s.in[0].Node().Attrs().(*ops.PadAttrs)
	for i, between := range p.Interior {
		if a.Start[i] != p.Low[i] || a.Size[i] != x.Dim(i) || a.Stride[i] != between+1 {
			return ir.Value{}
		}
	}
	return x
}

// sliceOfConcatenate slices the operand of the concatenation that holds all elements.
func sliceOfConcatenate(s site) ir.Value {
	n := s.in[0].Node()
	if n.Op() != ops.OpConcatenate {
		return ir.Value{}
	}
	a, axis := sliceOf(s.n), n.Attrs().(*ops.AxisAttrs).Axis
	first, okFirst := a.Start[axis].Const()
	count, okCount := a.Size[axis].Const()
	if !okFirst || !okCount || count == 0 {
		return ir.Value{}
	}
	last := first + (count-1)*a.Stride[axis]
	for _, x := range n.Inputs() {
		size, known := x.Dim(axis).Const()
		switch {
		case !known || first < 0:
			return ir.Value{}
		case last < size:
			start := slices.Clone(a.Start)
			start[axis] = ir.N(first)
			return ops.Slice(s.b, x, start, a.Size, a.Stride)
		}
		first, last = first-size, last-size
	}
	return ir.Value{}
}

func padOf(n *ir.Node) *ops.PadAttrs { return n.Attrs().(*ops.PadAttrs) }

func padNothing(s site) ir.Value {
	if a := padOf(s.n); areZero(a.Low) && areZero(a.High) && isZeros(a.Interior) {
		return s.in[0]
	}
	return ir.Value{}
}

// padOfSplat: a splat padded with its element is a splat.
func padOfSplat(s site) ir.Value {
	x, okX := literalOf(s.in[0])
	value, okValue := literalOf(s.in[1])
	if okX && okValue && string(x) == string(value) {
		return spread(s, s.in[1])
	}
	return ir.Value{}
}

// padPad: two paddings with one value are one.
func padPad(s site) ir.Value {
	x, ok := operandOf(s.in[0], ops.OpPad)
	if !ok || s.in[0].Node().Input(1) != s.in[1] {
		return ir.Value{}
	}
	inner, outer := padOf(s.in[0].Node()), padOf(s.n)
	if !isZeros(inner.Interior) || !isZeros(outer.Interior) {
		return ir.Value{}
	}
	low, high := slices.Clone(inner.Low), slices.Clone(inner.High)
	for i := range low {
		low[i], high[i] = low[i].Add(outer.Low[i]), high[i].Add(outer.High[i])
	}
	return ops.PadDims(s.b, x, s.in[1], low, high, outer.Interior)
}

func axisOf(n *ir.Node) int { return n.Attrs().(*ops.AxisAttrs).Axis }

func concatenateOne(s site) ir.Value {
	if len(s.in) == 1 {
		return s.in[0]
	}
	return ir.Value{}
}

func dropEmpty(s site) ir.Value {
	axis := axisOf(s.n)
	full := slices.DeleteFunc(slices.Clone(s.in), func(v ir.Value) bool { return v.Dim(axis).Is(0) })
	if len(full) == 0 || len(full) == len(s.in) {
		return ir.Value{}
	}
	return ops.Concatenate(s.b, axis, full...)
}

func concatenateSplats(s site) ir.Value {
	first, ok := literalOf(s.in[0])
	for _, v := range s.in {
		x, known := literalOf(v)
		ok = ok && known && string(x) == string(first)
	}
	if !ok {
		return ir.Value{}
	}
	return spread(s, s.in[0])
}

// flattenConcatenate: nested concatenations along one axis are one.
func flattenConcatenate(s site) ir.Value {
	axis := axisOf(s.n)
	var parts []ir.Value
	for _, v := range s.in {
		if n := v.Node(); n.Op() == ops.OpConcatenate && axisOf(n) == axis {
			parts = append(parts, n.Inputs()...)
			continue
		}
		parts = append(parts, v)
	}
	if len(parts) == len(s.in) {
		return ir.Value{}
	}
	return ops.Concatenate(s.b, axis, parts...)
}

// joinSlices: concatenated adjacent slices of one value are one slice of it.
func joinSlices(s site) ir.Value {
	axis := axisOf(s.n)
	parts := []ir.Value{s.in[0]}
	for _, v := range s.in[1:] {
		last := len(parts) - 1
		if joined := join(s.b, parts[last], v, axis); joined.Valid() {
			parts[last] = joined
		} else {
			parts = append(parts, v)
		}
	}
	if len(parts) == len(s.in) {
		return ir.Value{}
	}
	return ops.Concatenate(s.b, axis, parts...)
}

func join(b *ir.Builder, v, w ir.Value, axis int) ir.Value {
	x, okX := operandOf(v, ops.OpSlice)
	y, okY := operandOf(w, ops.OpSlice)
	if !okX || !okY || x != y {
		return ir.Value{}
	}
	p, q := sliceOf(v.Node()), sliceOf(w.Node())
	if !isOnes(p.Stride) || !isOnes(q.Stride) {
		return ir.Value{}
	}
	for i := range p.Start {
		if i != axis && p.Start[i] != q.Start[i] {
			return ir.Value{}
		}
	}
	if p.Start[axis].Add(p.Size[axis]) != q.Start[axis] {
		return ir.Value{}
	}
	size := slices.Clone(p.Size)
	size[axis] = size[axis].Add(q.Size[axis])
	return ops.Slice(b, x, p.Start, size, p.Stride)
}
