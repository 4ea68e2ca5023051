package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// orderResults stores the results of attention, forward or backward, in the order of the axes in which
// they are read: the heads of a position side by side, where the next product reads them as one row. A
// library can then compute that product, and tensor maps can load its operand.
func (x placer) orderResults(g *Group) {
	if !withTensorCores || !x.options.TensorCores || g.Kind != AttentionKind {
		return
	}
	for _, m := range g.Members {
		for i, t := range m.Store {
			if v := m.Node.Result(i); t != nil && x.tensors[v] == t && t.Outer == nil && t.Port == nil {
				t.Order = x.readOrder(v)
			}
		}
	}
}

// readOrder returns the permutation by which users transpose v, if it keeps the last axis and all users
// that transpose v agree, and nil otherwise, or if v is read as bytes, whose order the reader expects to be
// row-major.
func (x placer) readOrder(v ir.Value) (order []int) {
	if !x.readByElement(v) {
		return nil
	}
	for _, u := range x.decided.uses[v.Node().ID()] {
		if u.Op() != ops.OpTranspose || u.Input(0) != v {
			continue
		}
		perm := u.Attrs().(*ops.TransposeAttrs).Perm
		if order != nil && !slices.Equal(order, perm) || perm[len(perm)-1] != len(perm)-1 {
			return nil
		}
		order = perm
	}
	return order
}

// readByElement reports whether all that reads a value are groups that address its elements, and not control
// flow, routines or the host.
func (x placer) readByElement(v ir.Value) bool {
	for _, o := range x.Graph.Outputs() {
		if o.Value == v {
			return false
		}
	}
	for _, u := range x.decided.uses[v.Node().ID()] {
		if !slices.Contains(u.Inputs(), v) {
			continue
		}
		if x.decided.virtual[u.ID()] {
			if !x.readByElement(u.Result(0)) {
				return false
			}
			continue
		}
		g := x.groups.of[u]
		if g == nil {
			return false
		}
		switch g.Kind {
		case MapKind, ReduceKind, ContractKind, AttentionKind:
		default:
			return false
		}
	}
	return true
}
