package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// What eigenvectors and singular vectors share: the choice of their signs, and the plain
// meaning by which they are found.

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

// plainTurn turns the columns of a matrix until they are orthogonal, in the order of
// the textbooks, and returns them and the orthogonal matrix by which that is done.
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
