package passes

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func dotIdentities() map[ir.Op][]identity {
	return map[ir.Op][]identity{ops.OpDotGeneral: {dotOfTransposed}}
}

func dotOf(n *ir.Node) *ops.DotAttrs { return n.Attrs().(*ops.DotAttrs) }

// dotOfTransposed folds the transposition of an operand into the axes of the product,
// unless that changes the order of its free axes, and so of the result's axes.
func dotOfTransposed(s site) ir.Value {
	a := *dotOf(s.n)
	x, movedX := untransposed(s.in[0], &a.LhsBatch, &a.LhsContract)
	y, movedY := untransposed(s.in[1], &a.RhsBatch, &a.RhsContract)
	if !movedX && !movedY {
		return ir.Value{}
	}
	return ops.DotGeneral(s.b, x, y, a)
}

func untransposed(v ir.Value, batch, contract *[]int) (ir.Value, bool) {
	x, ok := operandOf(v, ops.OpTranspose)
	if !ok {
		return v, false
	}
	perm := permOf(v.Node())
	free := permute.Pick(perm, without(len(perm), slices.Concat(*batch, *contract)))
	if !slices.IsSorted(free) {
		return v, false
	}
	*batch, *contract = permute.Pick(perm, *batch), permute.Pick(perm, *contract)
	return x, true
}

// transposeOfDot: (A·B)ᵀ = Bᵀ·Aᵀ, so a transposition that exchanges the free axes of
// both operands exchanges the operands. The product must have no other user, or it would
// be computed twice.
func transposeOfDot(s site) ir.Value {
	n := s.in[0].Node()
	if n.Op() != ops.OpDotGeneral || s.n.Input(0).Node().Op() != ops.OpDotGeneral || !s.sole(0) {
		return ir.Value{}
	}
	a := dotOf(n)
	batch, left := len(a.LhsBatch), n.Input(0).Rank()-len(a.LhsBatch)-len(a.LhsContract)
	perm := permOf(s.n)
	var traded []int
	for i := range perm {
		switch right := len(perm) - batch - left; {
		case i < batch:
			traded = append(traded, i)
		case i < batch+right:
			traded = append(traded, i+left)
		default:
			traded = append(traded, i-right)
		}
	}
	if !slices.Equal(perm, traded) {
		return ir.Value{}
	}
	return ops.DotGeneral(s.b, n.Input(1), n.Input(0), ops.DotAttrs{
		LhsContract: a.RhsContract, RhsContract: a.LhsContract, LhsBatch: a.RhsBatch, RhsBatch: a.LhsBatch,
	})
}
