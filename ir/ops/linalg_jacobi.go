package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Jacobi's method with rotations of columns, for eigenvalues and singular values
// (Demmel and Veselić, "Jacobi's method is more accurate than QR", 1992). In a
// round every column is turned together with one other; a sweep is as many rounds
// as bring each two together once. Rounds go by two kernels whatever the size.

// jacobiSweeps are enough for the elements of f64: each sweep squares what is
// left over once little is, and it takes some log₂ n sweeps to get there.
func jacobiSweeps(n int) int { return 6 + int(math.Ceil(math.Log2(float64(n+1)))) }

// turnColumns turns the columns of matrices x until each two are orthogonal, and
// returns them and the orthogonal matrices by which that is done. Where the
// number of columns n is odd both have one column more, 0 in x and a unit vector.
func turnColumns(b *ir.Builder, x ir.Value) (turned, by ir.Value) {
	rows, cols := matrixDims(x)
	even := cols + cols%2
	lead := leadOf(x)
	unit := identityLike(b, Zeros(b, x.DType(), append(lead, ir.N(even), ir.N(even))...))
	both := Concatenate(b, -2, padMatrix(b, x, rows, even), unit)
	rounds := jacobiSweeps(cols) * (even - 1)
	both = repeated(b, rounds, both, nil, func(b *ir.Builder, k, both ir.Value, _ []ir.Value) ir.Value {
		with := partners(b, k, even)
		other := Take(b, both, with, -1, OutsideClip)
		cos, sin := rotation(b, SliceAxis(b, both, -2, ir.N(0), ir.N(rows)), SliceAxis(b, other, -2, ir.N(0), ir.N(rows)), with)
		return Sub(b, Mul(b, both, row(b, cos)), Mul(b, other, row(b, sin)))
	})
	return SliceAxis(b, both, -2, ir.N(0), ir.N(rows)), SliceAxis(b, both, -2, ir.N(rows), ir.N(even))
}

// partners returns for each of an even number of columns the one that it is
// turned with in round k: the last column stays where it is while the others go
// round, as players in a tournament do.
func partners(b *ir.Builder, k ir.Value, n int) ir.Value {
	i := steps(b, n)
	number := func(v int) ir.Value { return int32Like(b, i, v) }
	k = Rem(b, k, int32Like(b, k, max(n-1, 1)))
	across := Rem(b, Add(b, Sub(b, Add(b, k, k), i), number(n-1)), number(max(n-1, 1)))
	across = Select(b, Eq(b, across, i), number(n-1), across)
	return Select(b, Eq(b, i, number(n-1)), k, across)
}

// rotation returns the cosine and the sine for each column x[i] and the column
// y[i] = x[with[i]] for which cos·x - sin·y is orthogonal to what becomes of y in
// the same way: the smaller of the two angles.
func rotation(b *ir.Builder, x, y, with ir.Value) (cos, sin ir.Value) {
	dot := func(p, q ir.Value) ir.Value { return ReduceSum(b, Mul(b, p, q), -2) }
	own, across := dot(x, x), dot(x, y)
	other := Take(b, own, with, -1, OutsideClip)
	one := OnesLike(b, own)
	still := Eq(b, across, ZerosLike(b, across))
	zeta := Div(b, Sub(b, other, own), Select(b, still, one, Add(b, across, across)))
	first := Lt(b, Iota(b, ir.I32, 0, with.Shape()...), with)
	positive := Or(b, Gt(b, zeta, ZerosLike(b, zeta)), And(b, Eq(b, zeta, ZerosLike(b, zeta)), first))
	size := Add(b, Abs(b, zeta), Hypot(b, zeta, one))
	tan := Div(b, Select(b, positive, one, Neg(b, one)), size)
	tan = Select(b, still, ZerosLike(b, tan), tan)
	cos = Div(b, one, Hypot(b, tan, one))
	return cos, Mul(b, tan, cos)
}

// signWeights returns the numbers 1/(i+√2) by which the sign of a vector is
// chosen: their product with it is to be positive. No vector of whole numbers is
// near to having none.
func signWeights(b *ir.Builder, x ir.Value) ir.Value {
	i, _ := places(b, x)
	return Div(b, OnesLike(b, x), Add(b, Convert(b, i, x.DType()), ConstLike(b, x, math.Sqrt2)))
}

// columnSigns returns -1 or 1 for each column, by which it is to be multiplied.
func columnSigns(b *ir.Builder, x ir.Value) ir.Value {
	sum := ReduceSum(b, Mul(b, x, signWeights(b, x)), -2)
	one := OnesLike(b, sum)
	return Select(b, Lt(b, sum, ZerosLike(b, sum)), Neg(b, one), one)
}

// takeColumns returns columns of matrices in the order of a vector of each.
func takeColumns(b *ir.Builder, x, order ir.Value) ir.Value {
	return adjoint(b, takeRows(b, adjoint(b, x), order))
}

// plainTurn is turnColumns for one matrix, by the order of the textbooks.
func plainTurn(x matrix) (turned, by matrix) {
	by = identity(x.cols)
	for range 60 {
		still := true
		for p := range x.cols {
			for q := p + 1; q < x.cols; q++ {
				still = turnPair(x, by, p, q) && still
			}
		}
		if still {
			break
		}
	}
	return x, by
}

// turnPair makes two columns of x orthogonal, and reports whether they were.
func turnPair(x, by matrix, p, q int) bool {
	a, c, d := x.columnsDot(p, p), x.columnsDot(q, q), x.columnsDot(p, q)
	if math.Abs(d) <= 1e-17*math.Sqrt(a*c) {
		return true
	}
	zeta := (c - a) / (2 * d)
	tan := math.Copysign(1/(math.Abs(zeta)+math.Hypot(1, zeta)), zeta)
	cos := 1 / math.Hypot(1, tan)
	for _, m := range []matrix{x, by} {
		for i := range m.rows {
			u, v := m.at(i, p), m.at(i, q)
			m.set(i, p, cos*(u-tan*v))
			m.set(i, q, cos*(tan*u+v))
		}
	}
	return false
}

// orient multiplies columns by -1 where their sign is not the one chosen, in all
// of the matrices.
func orient(x matrix, more ...matrix) {
	for j := range x.cols {
		sum := 0.0
		for i := range x.rows {
			sum += x.at(i, j) / (float64(i) + math.Sqrt2)
		}
		if sum >= 0 {
			continue
		}
		for _, m := range append(more, x) {
			for i := range m.rows {
				m.set(i, j, -m.at(i, j))
			}
		}
	}
}
