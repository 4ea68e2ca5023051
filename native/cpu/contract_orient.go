package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// shortRow is the fewest columns that are worth a product of their own.
const shortRow = 64

// orient turns a contraction so that its products come out as the result is laid
// out, where it can: rows and columns change places, and an axis of the columns
// between which the rows lie, as images are between which channels lie, becomes
// one of the batch.
func orient(code *fusion.Code, k *fusion.Contract) {
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
func inOrder(k *fusion.Contract) ([]int, ir.Index) {
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

// turns reports whether a contraction takes less packing with its factors in each
// other's place: left ones are read where they lie, however their elements are found,
// but right ones are packed unless their columns lie side by side in long stretches. In
// the gradient of a convolution's filters the right factor is the windows of all images.
// The result is then written twice, so that sums must be longer than it is wide.
func (x *contraction) turns() bool {
	return x.b.colAt != nil && simd.ReadsGathered() && !x.b.longStretches() && x.m <= x.n && x.k >= 4*x.n
}

// longStretches reports whether the columns of a matrix with tables lie side by side in
// stretches worth reading in place.
func (m *matrix) longStretches() bool { return simd.Stretches(m.colAt)*narrow <= len(m.colAt) }

// turn makes the transposed product of a contraction: its right factor becomes the left
// one.
func (x *contraction) turn(k *fusion.Contract) {
	x.m, x.n = x.n, x.m
	x.a, x.b = x.b.transposed(), x.a.transposed()
	k.M, k.N, k.MAt, k.NAt = k.N, k.M, k.NAt, k.MAt
}

func (m matrix) transposed() matrix {
	m.row, m.col, m.rowAt, m.colAt = m.col, m.row, m.colAt, m.rowAt
	return m
}
