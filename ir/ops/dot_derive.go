package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// transposeDot contracts the cotangent with the other operand over the other operand's
// free axes. The contraction has the batch axes, the free axes and the contracted axes of
// the operand whose cotangent is computed, in this order.
func transposeDot(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	a := n.Attrs().(*DotAttrs)
	d := dotDimsOf(a, n.Input(0).Shape(), n.Input(1).Shape())
	nb, nl := len(a.LhsBatch), len(d.lhsFree)
	if !ct[0].Valid() || !onlyLinear(b, n, linear, 0, 1) {
		return make([]ir.Value, 2)
	}
	batch := counting(0, nb)
	ctLhs, ctRhs := counting(nb, nl), counting(nb+nl, len(d.rhsFree))
	out := make([]ir.Value, 2)
	if linear[0] {
		g := DotGeneral(b, ct[0], in[1], DotAttrs{LhsContract: ctRhs, RhsContract: d.rhsFree, LhsBatch: batch, RhsBatch: a.RhsBatch})
		out[0] = placeAxes(b, g, slices.Concat(a.LhsBatch, d.lhsFree, alongside(a.RhsContract, a.LhsContract)))
	}
	if linear[1] {
		// With lhs first a plain matrix product needs no transpose of its result.
		g := DotGeneral(b, in[0], ct[0], DotAttrs{LhsContract: d.lhsFree, RhsContract: ctLhs, LhsBatch: a.LhsBatch, RhsBatch: batch})
		out[1] = placeAxes(b, g, slices.Concat(a.RhsBatch, alongside(a.LhsContract, a.RhsContract), d.rhsFree))
	}
	return out
}

// alongside returns values permuted by the order that sorts keys.
func alongside(keys, values []int) []int {
	sorted := slices.Sorted(slices.Values(keys))
	out := make([]int, len(keys))
	for i, k := range keys {
		out[slices.Index(sorted, k)] = values[i]
	}
	return out
}

// bilinearJVP is the JVP rule of an op that is linear in each of two operands.
func bilinearJVP(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	var terms [2]ir.Value
	if t[0].Valid() {
		terms[0] = b.Add1(n.Op(), n.Attrs(), t[0], in[1])
	}
	if t[1].Valid() {
		terms[1] = b.Add1(n.Op(), n.Attrs(), in[0], t[1])
	}
	return []ir.Value{addTangents(b, terms[0], terms[1])}
}

// batchDot makes the batch axis another batch axis of the contraction where both operands
// have it, and a free axis where only one has.
func batchDot(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
	a := n.Attrs().(*DotAttrs)
	d := DotAttrs{
		LhsContract: shiftedBy(a.LhsContract, axes[0]), LhsBatch: shiftedBy(a.LhsBatch, axes[0]),
		RhsContract: shiftedBy(a.RhsContract, axes[1]), RhsBatch: shiftedBy(a.RhsBatch, axes[1]),
	}
	if axes[0] >= 0 && axes[1] >= 0 {
		d.LhsBatch, d.RhsBatch = slices.Concat([]int{axes[0]}, d.LhsBatch), slices.Concat([]int{axes[1]}, d.RhsBatch)
		return []ir.Value{DotGeneral(b, in[0], in[1], d)}, []int{0}
	}
	free := dotDimsOf(&d, in[0].Shape(), in[1].Shape())
	at := len(d.LhsBatch)
	if axes[0] >= 0 {
		at += slices.Index(free.lhsFree, axes[0])
	} else {
		at += len(free.lhsFree) + slices.Index(free.rhsFree, axes[1])
	}
	return []ir.Value{DotGeneral(b, in[0], in[1], d)}, []int{at}
}
