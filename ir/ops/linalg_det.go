package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

func defineDeterminant() {
	squares := squareConstraints()
	defineComposite(composite{
		op: OpDet, doc: "The determinants of square matrices. Derivatives of all orders are finite at singular matrices of any rank; for their cost see cofactor.",
		types: floats, constraints: squares, check: checkSizedSquare,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			lu, pivots, _ := LU(b, in[0])
			return Mul(b, exchangeSign(b, pivots, in[0].DType()), ReduceProd(b, Diagonal(b, lu, 0), -1))
		},
		jvp: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			return []ir.Value{ReduceSum(b, Mul(b, t[0], Cofactor(b, in[0])), -2, -1)}
		},
	})
	defineComposite(composite{
		op: OpCofactor, operands: []string{"x", "along..."},
		doc: "The cofactor matrices of square matrices x, which are the gradients of the determinants; with further matrices, the directional derivative along " +
			"all of them, for singular matrices of any rank too. The derivative along " +
			"one matrix takes O(n³) operations, as the cofactors do; each further one multiplies that by n².",
		types: floats, constraints: append(squares, "all matrices have one type"),
		check: func(n *ir.Node) error {
			for i, v := range n.Inputs()[1:] {
				if x := n.Input(0).Type(); !v.Type().Equal(x) {
					return ir.Shapef("along %d is %s and x is %s", i, v.Type(), x)
				}
			}
			return checkSizedSquare(n)
		},
		body: cofactorBody, jvp: jvpCofactor,
	})
}

// checkSizedSquare refuses operands that are not square matrices of constant size.
func checkSizedSquare(n *ir.Node) error {
	if err := checkSquare(n); err != nil {
		return err
	}
	return checkSized(n)
}

// Det returns the determinants [...] of square matrices, [..., n, n] of f32 or f64.
func Det(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpDet, nil, x) }

// Cofactor returns the cofactor matrices of square matrices, the gradients of their
// determinants; with further matrices of the same type, the directional derivative along
// all of these.
func Cofactor(b *ir.Builder, x ir.Value, along ...ir.Value) ir.Value {
	return b.Add1(OpCofactor, nil, slices.Concat([]ir.Value{x}, along)...)
}

// jvpCofactor uses the symmetry of higher derivatives of the determinant: each is linear
// in its directions, and self-adjoint.
func jvpCofactor(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
	var sum ir.Value
	for i, tangent := range t {
		if !tangent.Valid() {
			continue
		}
		fixed := in
		if i > 0 {
			fixed = slices.Delete(slices.Clone(in), i, i+1)
		}
		types := append(typesOf(fixed), tangent.Type())
		g := closed(b, "cofactor_tangent", types, func(s *ir.Builder, p []ir.Value) []ir.Value {
			return []ir.Value{Cofactor(s, p[0], p[1:]...)}
		})
		sum = addTangents(b, sum, LinearCall(b, g, g, fixed, []ir.Value{tangent})[0])
	}
	return []ir.Value{sum}
}

func cofactorBody(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
	switch rows, _ := matrixDims(in[0]); {
	case rows == 0:
		return in[0]
	case len(in) > 2:
		return cofactorByMinors(b, in)
	}
	u, s, vt := SVD(b, in[0], false)
	before := CumProd(b, s, CumSumAttrs{Axis: -1, Exclusive: true})
	after := CumProd(b, s, CumSumAttrs{Axis: -1, Exclusive: true, Reverse: true})
	var y ir.Value
	if len(in) == 1 {
		y = Mul(b, u, row(b, Mul(b, before, after)))
	} else {
		pairs := productsWithoutPairs(b, s, before, after)
		moved := MatMul(b, MatMul(b, adjoint(b, u), in[1]), adjoint(b, vt))
		y = MatMul(b, u, secondOfDiagonal(b, pairs, moved))
	}
	sign := row(b, column(b, Mul(b, Det(b, u), Det(b, vt))))
	return Mul(b, sign, MatMul(b, y, vt))
}

// productsWithoutPairs returns for each pair of singular values the product of all others,
// and 0 on the diagonal, from prefix and suffix products, without division.
func productsWithoutPairs(b *ir.Builder, s, before, after ir.Value) ir.Value {
	n := s.Dim(-1)
	across := BroadcastTo(b, row(b, s), append(s.Shape().Clone(), n))
	i, j := places(b, across)
	upper := Lt(b, i, j)
	between := CumProd(b, Select(b, upper, across, OnesLike(b, across)), CumSumAttrs{Axis: -1, Exclusive: true})
	half := orZero(b, upper, Mul(b, Mul(b, column(b, before), between), row(b, after)))
	return Add(b, half, adjoint(b, half))
}

// secondOfDiagonal returns the gradient of the second-order term in m of the determinant
// of a diagonal matrix, Σ p[i,k]·(m[i,i]·m[k,k] - m[i,k]·m[k,i]) over pairs, where p[i,k]
// is the product of the diagonal without elements i and k.
func secondOfDiagonal(b *ir.Builder, p, m ir.Value) ir.Value {
	trace := MatMul(b, p, column(b, Diagonal(b, m, 0)))
	return Sub(b, Diag(b, Squeeze(b, trace, -1), 0), Mul(b, p, adjoint(b, m)))
}

// cofactorByMinors differentiates each cofactor, a signed minor, by the op for the minors
// and one direction less.
func cofactorByMinors(b *ir.Builder, in []ir.Value) ir.Value {
	minors := make([]ir.Value, len(in))
	for i, x := range in {
		minors[i] = minorsOf(b, x)
	}
	last := len(in) - 1
	d := ReduceSum(b, Mul(b, minors[last], Cofactor(b, minors[0], minors[1:last]...)), -2, -1)
	i, j := places(b, d)
	odd := Ne(b, And(b, Add(b, i, j), OnesLike(b, i)), ZerosLike(b, i))
	return Select(b, odd, Neg(b, d), d)
}

// minorsOf returns for each element the matrix without its row and column, [..., n, n,
// n-1, n-1].
func minorsOf(b *ir.Builder, x ir.Value) ir.Value {
	n, _ := matrixDims(x)
	place := Iota(b, ir.I32, 1, ir.Dims(n, n-1)...)
	passed := Convert(b, Ge(b, place, Iota(b, ir.I32, 0, ir.Dims(n, n-1)...)), ir.I32)
	others := Add(b, place, passed)
	rank := x.Rank()
	x = Take(b, x, others, rank-1, OutsideClip) // [..., n, n, n-1]
	x = Take(b, x, others, rank-2, OutsideClip) // [..., n, n-1, n, n-1]
	return SwapAxes(b, x, rank-1, rank)
}
