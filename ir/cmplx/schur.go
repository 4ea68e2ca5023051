package cmplx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// schur returns a triangular t and a unitary z with x = z·t·zᴴ, for elements up to 1: by Householder's
// reduction to Hessenberg form, and the QR algorithm with Wilkinson's shifts (Golub and Van Loan, Matrix
// Computations, chapter 7).
func schur(b *ir.Builder, x ir.Value) (t, z ir.Value) {
	z = keep(b, onDiagonal(b, x), ops.OnesLike(b, x))
	n := sizeOf(x)
	if n < 2 {
		return x, z
	}
	if n > 2 {
		x, z = hessenberg(b, x, z, n)
	}
	x, first, last := deflated(b, x)
	columns := ops.MoveAxis(b, z, -1, 0)
	out := ops.WhileLoop(b, ops.While{
		Carries: []ir.Value{ops.Const(b, ir.I32, 0), first, last, x, columns}, MaxSteps: 30 * n,
		Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value {
			return ops.Any(b, ops.Gt(b, c[2], ops.ZerosLike(b, c[2])))
		},
		Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
			step := ops.Add(b, c[0], ops.OnesLike(b, c[0]))
			h, columns := qrStep(b, step, c[1], c[2], c[3], c[4])
			h, first, last := deflated(b, h)
			return []ir.Value{step, first, last, h, columns}
		},
	})
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	return out[3], ops.MoveAxis(b, out[4], 0, -1)
}

// hessenberg returns zᴴ·x·z, which is 0 below the first subdiagonal, and z, from that of before.
func hessenberg(b *ir.Builder, x, z ir.Value, n int) (h, by ir.Value) {
	out, _ := ops.Scan(b, ops.Loop{
		Carries: []ir.Value{x, z}, Xs: []ir.Value{ops.Iota(b, ir.I32, 0, ir.N(n-2))},
		Body: func(b *ir.Builder, _, c, xs []ir.Value) (next, ys []ir.Value) {
			x, k := c[0], xs[0]
			i, j := positions(b, x)
			column := ops.KeepDims(b, ops.ReduceSum, keep(b, ops.And(b, ops.Eq(b, j, k), ops.Gt(b, i, k)), x), -1)
			below := ops.Add(b, k, ops.OnesLike(b, k))
			isHead := ops.Eq(b, ops.Iota(b, ir.I32, column.Rank()-2, column.Shape()...), below)
			head := ops.KeepDims(b, ops.ReduceSum, keep(b, isHead, column), -2)
			length := ops.Sqrt(b, ops.KeepDims(b, ops.ReduceSum, squares(b, column), -2))
			grown := ops.Mul(b, phase(b, head), complexOf(b, length))
			u := ops.Add(b, column, ops.Mul(b, grown, keep(b, isHead, ops.OnesLike(b, column))))
			half := ops.Mul(b, length, ops.Add(b, length, size(b, head))) // of |u|²
			none := ops.Eq(b, half, ops.ZerosLike(b, half))
			scale := complexOf(b, ops.Select(b, none, ops.ZerosLike(b, half), ops.Reciprocal(b, ops.Select(b, none, ops.OnesLike(b, half), half))))
			across := ops.Conj(b, ops.MoveAxis(b, u, -1, -2))
			left := ops.KeepDims(b, ops.ReduceSum, ops.Mul(b, ops.Conj(b, u), x), -2)
			x = ops.Sub(b, x, ops.Mul(b, ops.Mul(b, scale, u), left))
			right := func(m ir.Value) ir.Value {
				sums := ops.KeepDims(b, ops.ReduceSum, ops.Mul(b, m, ops.MoveAxis(b, u, -1, -2)), -1)
				return ops.Sub(b, m, ops.Mul(b, ops.Mul(b, scale, sums), across))
			}
			return []ir.Value{right(x), right(c[1])}, nil
		},
	})
	return out[0], out[1]
}

// deflated sets negligible elements below the diagonal to 0, and returns the first and the last row, i32, of the
// last block that is not triangular; the last is 0 if there is none.
func deflated(b *ir.Builder, h ir.Value) (out, first, last ir.Value) {
	i, j := positions(b, h)
	h = keep(b, ops.Le(b, i, ops.Add(b, j, ops.OnesLike(b, j))), h)
	w, below := size(b, ops.Diagonal(b, h, 0)), size(b, ops.Diagonal(b, h, -1))
	n := sizeOf(w)
	eps := h.DType().Real().Epsilon()
	around := ops.Add(b, ops.SliceAxis(b, w, -1, ir.N(0), ir.N(n-1)), ops.SliceAxis(b, w, -1, ir.N(1), ir.N(n-1)))
	bound := ops.Mul(b, ops.Max(b, around, ops.ConstLike(b, around, eps)), ops.ConstLike(b, around, eps))
	isSmall := ops.Le(b, below, bound)
	row := ops.Add(b, ops.Iota(b, ir.I32, isSmall.Rank()-1, isSmall.Shape()...), ops.Const(b, ir.I32, 1))
	last = ops.ReduceMax(b, keep(b, ops.Not(b, isSmall), row), -1)
	before := ops.Le(b, row, ops.ExpandDims(b, last, -1))
	first = ops.ReduceMax(b, keep(b, ops.And(b, isSmall, before), row), -1)

	// isSmall is of the rows from 1.
	start := ops.SliceAxis(b, isSmall, -1, ir.N(0), ir.N(1))
	small := ops.Concatenate(b, -1, start, isSmall)
	gone := ops.And(b, ops.Gt(b, i, j), ops.BroadcastTo(b, ops.ExpandDims(b, small, -1), h.Shape()))
	return ops.Select(b, gone, ops.ZerosLike(b, h), h), first, last
}

// qrStep is a step of the QR algorithm: with q·r = h − s·1 for a shift s it returns r·q + s·1 and the columns of z·q.
// The first axis of columns is that of the columns of z. q changes the rows from first to last alone.
func qrStep(b *ir.Builder, step, first, last, h, columns ir.Value) (nextH, nextColumns ir.Value) {
	n := sizeOf(h)
	s := shift(b, step, last, h)
	diagonal := ops.Mul(b, s, complexOf(b, ops.Convert(b, onDiagonal(b, h), h.DType().Real())))
	rows := ops.MoveAxis(b, ops.Sub(b, h, diagonal), -2, 0)
	head := func(x ir.Value) ir.Value { return ops.Squeeze(b, ops.SliceAxis(b, x, 0, ir.N(0), ir.N(1)), 0) }
	tail := func(x ir.Value) ir.Value { return ops.SliceAxis(b, x, 0, ir.N(1), ir.N(n-1)) }
	// The rotation of rows k and k+1 is [[ā, b̄], [−b, a]].
	carry, ys := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{first, last}, Carries: []ir.Value{head(rows)}, Xs: []ir.Value{tail(rows), ops.Iota(b, ir.I32, 0, ir.N(n-1))},
		Body: func(b *ir.Builder, bounds, c, xs []ir.Value) (next, ys []ir.Value) {
			upper, lower, k := c[0], xs[0], xs[1]
			here := ops.Eq(b, ops.Iota(b, ir.I32, upper.Rank()-1, upper.Shape()...), k)
			at := func(x ir.Value) ir.Value { return ops.KeepDims(b, ops.ReduceSum, keep(b, here, x), -1) }
			f, g := at(upper), at(lower)
			r := ops.Hypot(b, size(b, f), size(b, g))
			inside := ops.And(b, ops.Ge(b, k, bounds[0]), ops.Lt(b, k, bounds[1]))
			rotates := ops.And(b, ops.ExpandDims(b, inside, -1), ops.Gt(b, r, ops.ZerosLike(b, r)))
			r = complexOf(b, ops.Select(b, rotates, r, ops.OnesLike(b, r)))
			cos, sin := ops.Select(b, rotates, ops.Div(b, f, r), ops.OnesLike(b, f)), keep(b, rotates, ops.Div(b, g, r))
			top := ops.Add(b, ops.Mul(b, ops.Conj(b, cos), upper), ops.Mul(b, ops.Conj(b, sin), lower))
			bottom := ops.Sub(b, ops.Mul(b, cos, lower), ops.Mul(b, sin, upper))
			return []ir.Value{bottom}, []ir.Value{top, cos, sin}
		},
	})
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	r := ops.Concatenate(b, 0, ys[0], ops.ExpandDims(b, carry[0], 0))
	r = ops.MoveAxis(b, ops.MoveAxis(b, r, 0, -1), -2, 0)
	both := ops.Concatenate(b, -1, r, columns)
	carry, rotated := ops.Scan(b, ops.Loop{
		Carries: []ir.Value{head(both)}, Xs: []ir.Value{tail(both), ys[1], ys[2]},
		Body: func(b *ir.Builder, _, c, xs []ir.Value) (next, ys []ir.Value) {
			left, right, cos, sin := c[0], xs[0], xs[1], xs[2]
			y := ops.Add(b, ops.Mul(b, left, cos), ops.Mul(b, right, sin))
			return []ir.Value{ops.Sub(b, ops.Mul(b, right, ops.Conj(b, cos)), ops.Mul(b, left, ops.Conj(b, sin)))}, []ir.Value{y}
		},
	})
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	both = ops.Concatenate(b, 0, rotated[0], ops.ExpandDims(b, carry[0], 0))
	h = ops.MoveAxis(b, ops.SliceAxis(b, both, -1, ir.N(0), ir.N(n)), 0, -1)
	return ops.Add(b, h, diagonal), ops.SliceAxis(b, both, -1, ir.N(n), ir.N(n))
}

// shift returns the eigenvalue of the last two rows of a block that is the nearest to its last element, [..., 1, 1].
// Each tenth step has an exceptional one, as there are matrices that no other changes.
func shift(b *ir.Builder, step, last, h ir.Value) ir.Value {
	i, j := positions(b, h)
	end := ops.ExpandDims(b, last, -2, -1)
	previous := ops.Sub(b, end, ops.OnesLike(b, end))
	at := func(row, column ir.Value) ir.Value {
		here := ops.And(b, ops.Eq(b, i, row), ops.Eq(b, j, column))
		return ops.KeepDims(b, ops.ReduceSum, keep(b, here, h), -2, -1)
	}
	p, q, r, s := at(previous, previous), at(previous, end), at(end, previous), at(end, end)
	number := func(x float64) ir.Value { return complexOf(b, ops.ConstLike(b, ops.Real(b, s), x)) }
	half := ops.Mul(b, ops.Sub(b, p, s), number(0.5))
	product := ops.Mul(b, q, r)
	root := Sqrt(b, ops.Add(b, ops.Mul(b, half, half), product))
	plus, minus := ops.Add(b, half, root), ops.Sub(b, half, root)
	under := ops.Select(b, ops.Gt(b, size(b, plus), size(b, minus)), plus, minus)
	none := ops.Eq(b, size(b, under), ops.ZerosLike(b, ops.Real(b, under)))
	usual := ops.Sub(b, s, keep(b, ops.Not(b, none), ops.Div(b, product, ops.Select(b, none, number(1), under))))
	exceptional := ops.Add(b, s, complexOf(b, ops.Mul(b, size(b, r), ops.ConstLike(b, ops.Real(b, r), 0.75))))
	ten := ops.ConstLike(b, step, 10)
	y := ops.Select(b, ops.Eq(b, ops.Rem(b, step, ten), ops.ZerosLike(b, step)), exceptional, usual)
	return keep(b, ops.Gt(b, end, ops.ZerosLike(b, end)), y)
}
