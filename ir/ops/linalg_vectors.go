package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Shared by eigenvectors and singular vectors: the sign convention, and the reference
// implementation.

// signWeights returns the weights 1/(i+√2) of the sign convention: the weighted sum of a
// vector is not negative. It is far from 0 for vectors of small integers.
func signWeights(b *ir.Builder, x ir.Value) ir.Value {
	i, _ := places(b, x)
	return Div(b, OnesLike(b, x), Add(b, Convert(b, i, x.DType()), ConstLike(b, x, math.Sqrt2)))
}

// columnSigns returns the factor -1 or 1 of each column.
func columnSigns(b *ir.Builder, x ir.Value) ir.Value {
	sum := ReduceSum(b, Mul(b, x, signWeights(b, x)), -2)
	one := OnesLike(b, sum)
	return Select(b, Lt(b, sum, ZerosLike(b, sum)), Neg(b, one), one)
}

// orthogonaliseColumns orthogonalises the columns of a matrix in cyclic order, and returns them and
// the orthogonal matrix of the rotations.
func orthogonaliseColumns(x matrix) (turned, by matrix) {
	by = identity(x.cols)
	for range 60 {
		still := true
		for p := range x.cols {
			for q := p + 1; q < x.cols; q++ {
				still = orthogonalisePair(x, by, p, q) && still
			}
		}
		if still {
			break
		}
	}
	return x, by
}

// orthogonalisePair makes two columns of x orthogonal, and reports whether they already were.
func orthogonalisePair(x, by matrix, p, q int) bool {
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

// orient negates the columns that violate the sign convention, in all matrices.
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
