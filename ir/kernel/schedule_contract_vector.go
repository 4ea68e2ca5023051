package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// soleReader reports whether an operand of a contraction is one tensor as it is
// stored, which nothing else in the group touches: an array is of vectors in the
// whole kernel or not at all.
func (te *tileEmitter) soleReader(operand int) bool {
	t := te.storedOperand(operand)
	if t == nil || t == te.storedOperand(1-operand) || t.Len()%4 != 0 {
		return false
	}
	touches := func(other *Tensor) bool {
		root, _ := other.resolve(te.p.depth(), integer(0))
		return root == t
	}
	for _, m := range te.g.Members {
		if slices.ContainsFunc(m.Store, func(s *Tensor) bool { return s != nil && touches(s) }) {
			return false
		}
		for _, v := range te.p.readsOfNode(m.Node) {
			if x := te.p.tensors[v]; m != te.g.Members[0] && x != nil && touches(x) {
				return false
			}
		}
	}
	return true
}

// storedOperand returns the tensor that holds all of an operand that a contraction
// reads, nil where it reads more, or computes with it.
func (te *tileEmitter) storedOperand(operand int) *Tensor {
	var found []*Tensor
	rd := te.reader()
	rd.note = func(v ir.Value, _ ir.Index) { found = append(found, te.p.tensors[v]) }
	x := te.c.factor(operand, te.batch, coords("f", te.side[operand].free), coords("k", te.c.K), rd.operand(te.c.n))
	if len(found) != 1 || found[0] == nil || x.Op != scalar.OpLoad {
		return nil
	}
	root, _ := found[0].resolve(te.p.depth(), integer(0))
	return root
}

// loadVector loads four values at once where they lie side by side, at a multiple
// of four, and names them.
func (te *tileEmitter) loadVector(values []scalar.Expr) bool {
	first := values[0]
	if first.Op != scalar.OpLoad {
		return false
	}
	for j, x := range values {
		if x.Op != scalar.OpLoad || x.Ref != first.Ref {
			return false
		}
		if n, ok := te.Simplify(scalar.Sub(x.Args[0], first.Args[0])).IntConst(); !ok || n != int64(j) {
			return false
		}
	}
	if rest, ok := te.Simplify(scalar.Mod(first.Args[0], integer(4))).IntConst(); !ok || rest != 0 {
		return false
	}
	names := make([]string, 4)
	for j := range names {
		names[j] = te.name("x")
		values[j] = scalar.FreeVar(names[j], first.Type)
	}
	at := te.Simplify(scalar.FloorDiv(first.Args[0], integer(4)))
	te.body = append(te.body, &LoadVec{names, first.Ref, at})
	te.wide[first.Ref] = true
	return true
}
