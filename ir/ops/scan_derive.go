package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// jvpScan makes one loop of the node and its derivative: each group of operands and
// results is followed by its tangents. A carry has a tangent if its initial value or its
// value after a step has one.
func jvpScan(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a, body := scanOf(n)
	moving := validity(t)
	outMoving := settle(moving[a.Consts:a.Consts+a.Carries], func() []bool { return tangentOutputs(b, body, moving) })
	inGroups, outGroups := []int{a.Consts, a.Carries, len(in) - a.Consts - a.Carries}, []int{a.Carries, len(out) - a.Carries}
	filled := make([]ir.Value, len(in))
	for _, i := range where(moving) {
		filled[i] = orZeros(b, t[i], in[i])
	}
	types := portTypes(body)
	joint := closed(b, body.Name(), weave(inGroups, moving, types, types), func(s *ir.Builder, ports []ir.Value) []ir.Value {
		values, tangents := unweave(inGroups, moving, ports)
		o, to := derive.JVP(s, body, values, tangents)
		for _, i := range where(outMoving) {
			to[i] = orZeros(s, to[i], o[i])
		}
		return weave(outGroups, outMoving, o, to)
	})
	consts, carries, _ := scanGroups(a, moving)
	attrs := &ScanAttrs{
		Consts: a.Consts + len(where(consts)), Carries: a.Carries + len(where(carries)), Length: a.Length, Reverse: a.Reverse,
	}
	results := b.AddNode(OpScan, attrs, []*ir.Graph{joint}, weave(inGroups, moving, in, filled)...)
	if b.Err() != nil {
		return make([]ir.Value, len(out))
	}
	values, tangents := unweave(outGroups, outMoving, results)
	copy(out, values) // the loop computes the primal results too
	return tangents
}

// weave appends to the values of each group their tangents, if there.
func weave[T any](groups []int, there []bool, values, tangents []T) []T {
	var out []T
	start := 0
	for _, size := range groups {
		end := start + size
		out = append(out, values[start:end]...)
		out = append(out, pick(tangents[start:end], where(there[start:end]))...)
		start = end
	}
	return out
}

// unweave is the inverse of [weave].
func unweave(groups []int, there []bool, list []ir.Value) (values, tangents []ir.Value) {
	tangents = make([]ir.Value, len(there))
	start := 0
	for _, size := range groups {
		values = append(values, list[:size]...)
		list = list[size:]
		for _, i := range where(there[start : start+size]) {
			tangents[start+i], list = list[0], list[1:]
		}
		start += size
	}
	return values, tangents
}

// settle iterates outputs to a fixed point: a property of a carry after a step holds
// before the next one. It returns the property of each output.
func settle(carries []bool, outputs func() []bool) []bool {
	for {
		out := outputs()
		same := true
		for i := range carries {
			if out[i] && !carries[i] {
				carries[i], same = true, false
			}
			out[i] = carries[i]
		}
		if same {
			return out
		}
	}
}

func partialScan(b *ir.Builder, n *ir.Node, in []ir.Value, unknown []bool, keep ir.Keeper) ([]ir.Value, []bool) {
	a, _ := scanOf(n)
	outUnknown := make([]bool, n.NumResults())
	out, l := splitScan(b, n, in, unknown, keep)
	if b.Err() != nil || len(l.body.Outputs()) == 0 { // nothing is unknown
		return out, outUnknown
	}
	consts, carries, xs := scanGroups(a, in)
	attrs := &ScanAttrs{
		Consts: len(l.fixed) + len(l.consts), Carries: len(l.carries), Length: a.Length, Reverse: a.Reverse,
	}
	results := b.AddNode(OpScan, attrs, []*ir.Graph{l.body},
		slices.Concat(l.fixed, pick(consts, l.consts), pick(carries, l.carries), l.stepped, pick(xs, l.xs))...)
	if b.Err() != nil {
		return out, outUnknown
	}
	for i, c := range l.outCarries {
		out[c], outUnknown[c] = results[i], true
	}
	for i, y := range l.outYs {
		out[a.Carries+y], outUnknown[a.Carries+y] = results[len(l.carries)+i], true
	}
	return out, outUnknown
}

// transposeScan runs the steps in reverse order. Its carries are the cotangents of the
// carries and the accumulated cotangents of the linear constants; cotangents of slices are
// stacked.
func transposeScan(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	a, _ := scanOf(n)
	back := make([]ir.Value, len(in))
	_, l := splitScan(b, n, in, linear, nil)
	if b.Err() != nil {
		return back
	}
	cts := pick(ct[a.Carries:], l.outYs)
	given := where(validity(cts)) // zero cotangents need not be stacked
	var xsMoving []int
	body := closed(b, l.body.Name(),
		slices.Concat(typesOf(l.fixed), l.carryTypes, l.constTypes, l.steppedTypes(), pick(l.yTypes, given)),
		func(s *ir.Builder, ports []ir.Value) []ir.Value {
			var out []ir.Value
			out, xsMoving = l.transposedStep(s, ports, given)
			return out
		})
	if b.Err() != nil || len(body.Outputs()) == 0 {
		return back
	}
	operands := slices.Clone(l.fixed)
	for i, c := range l.carries {
		operands = append(operands, orZerosOf(b, ct[c], l.carryTypes[i]))
	}
	for _, t := range l.constTypes {
		operands = append(operands, Zeros(b, t.DType, t.Shape...))
	}
	attrs := &ScanAttrs{
		Consts: len(l.fixed), Carries: len(l.carries) + len(l.consts), Length: a.Length, Reverse: !a.Reverse,
	}
	results := b.AddNode(OpScan, attrs, []*ir.Graph{body}, slices.Concat(operands, l.stepped, pick(cts, given))...)
	if b.Err() != nil {
		return back
	}
	for i, c := range l.carries {
		back[a.Consts+c] = results[i]
	}
	for i, c := range l.consts {
		back[c] = results[len(l.carries)+i]
	}
	for i, x := range xsMoving {
		back[a.Consts+a.Carries+l.xs[x]] = results[attrs.Carries+i]
	}
	return back
}

// transposedStep is a step of the transposed loop. Its ports are the loop-invariant
// residuals, the cotangents of carries, the accumulated cotangents of constants, the
// residuals of the step and the given cotangents of stacked values. It returns the next
// carries, the next sums, and the nonzero cotangents of slices with their indices.
func (l *linearScan) transposedStep(b *ir.Builder, ports []ir.Value, given []int) ([]ir.Value, []int) {
	next := func(n int) []ir.Value {
		list := ports[:n]
		ports = ports[n:]
		return list
	}
	fixed, carries := next(len(l.fixed)), next(len(l.carries))
	sums, stepped := next(len(l.consts)), next(len(l.stepped))
	ys := make([]ir.Value, len(l.outYs))
	for i, y := range given {
		ys[y] = ports[i]
	}
	none := func(n int) []ir.Value { return make([]ir.Value, n) }
	in := slices.Concat(fixed, none(len(l.consts)+len(l.carries)), stepped, none(len(l.xs)))
	back := derive.Transpose(b, l.body, not(validity(in)), in, slices.Concat(carries, ys))
	if b.Err() != nil {
		return nil, nil
	}
	back = back[len(fixed):]
	out := make([]ir.Value, 0, len(back))
	for i, c := range back[len(l.consts) : len(l.consts)+len(l.carries)] {
		out = append(out, orZerosOf(b, c, l.carryTypes[i]))
	}
	for i, c := range back[:len(l.consts)] {
		out = append(out, addTangents(b, sums[i], c))
	}
	xs := back[len(l.consts)+len(l.carries)+len(stepped):]
	moving := where(validity(xs))
	return append(out, pick(xs, moving)...), moving
}

func (l *linearScan) steppedTypes() []ir.Type {
	out := typesOf(l.stepped)
	for i, t := range out {
		out[i].Shape = t.Shape[1:]
	}
	return out
}

// orZerosOf returns v, or zeros of type t if v is the zero Value.
func orZerosOf(b *ir.Builder, v ir.Value, t ir.Type) ir.Value {
	if v.Valid() {
		return v
	}
	return Zeros(b, t.DType, t.Shape...)
}
