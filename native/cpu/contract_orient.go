package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/scalar"
)

// shortRow is the fewest columns that are worth a product of their own.
const shortRow = 64

// orient turns a contraction so that its products come out as the result is laid
// out, where it can: rows and columns change places, and an axis of the columns
// between which the rows lie, as images are between which channels lie, becomes
// one of the batch.
func orient(code *group.Code, k *group.Contract) {
	if len(code.Rows) == 0 {
		return
	}
	as := map[string]scalar.Expr{}
	for i, v := range code.Outer {
		as[v.Name] = k.Outer[i]
	}
	offset := scalar.Simplify(scalar.Substitute(code.Rows[0].Offset, func(n scalar.Expr) (scalar.Expr, bool) {
		v, ok := as[n.Name]
		return v, ok && n.Op == scalar.OpVar
	}))
	step := affineOf(offset)
	if sideBySide(step, k.MAt) && !sideBySide(step, k.NAt) {
		k.A, k.B, k.M, k.N, k.MAt, k.NAt = k.B, k.A, k.N, k.M, k.NAt, k.MAt
	}
	fits := func() bool { return scalar.Equal(scalar.Simplify(linear(inOrder(k))), offset) }
	if len(k.N) < 2 || product(k.N[1:]) < shortRow || fits() {
		return
	}
	batch, batchAt, n, nAt := k.Batch, k.BatchAt, k.N, k.NAt
	k.Batch, k.BatchAt = append(slices.Clone(batch), n[0]), append(slices.Clone(batchAt), nAt[0])
	k.N, k.NAt = n[1:], nAt[1:]
	if !fits() {
		k.Batch, k.BatchAt, k.N, k.NAt = batch, batchAt, n, nAt
	}
}

// inOrder returns the sizes and coordinates of batch, rows and columns.
func inOrder(k *group.Contract) ([]int, ir.Index) {
	return slices.Concat(k.Batch, k.M, k.N), slices.Concat(k.BatchAt, k.MAt, k.NAt)
}

// sideBySide reports whether an offset grows by one with the last coordinate of a
// space.
func sideBySide(offset affine, at ir.Index) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i].Op == scalar.OpVar {
			return offset.coef(at[i].Name) == 1
		}
	}
	return false
}
