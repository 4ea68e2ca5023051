package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// OpEigh is the eigendecomposition of symmetric matrices.
const OpEigh ir.Op = "eigh"

// vectorSigns is the sign convention of singular vectors and eigenvectors.
const vectorSigns = "the sum of vᵢ/(i+√2) over its elements, counted from 0, is not negative"

func init() {
	defineMatrixOp(matrixOp{
		op: OpEigh, routine: true,
		doc: "The eigenvalues w of the symmetric part (x + xᵀ)/2 in ascending order, and the eigenvectors as the columns of v. An eigenvector v has length 1, and " +
			vectorSigns + ". The eigenvectors of a repeated eigenvalue are not unique and have infinite derivatives; first derivatives of functions of w alone are finite.",
		constraints: []string{"the matrices are square and have no symbolic size"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			if err := squareMatrix(in[0]); err != nil {
				return nil, err
			}
			rows, _, err := sizedMatrix(in[0])
			d := n.Input(0).DType()
			return []ir.Type{trailing(d, ir.N(rows)), trailing(d, ir.N(rows), ir.N(rows))}, err
		},
		meaning: func(_ *ir.Node, in []matrix) []matrix {
			if !withReferences {
				return nil
			}
			return plainEigh(in[0].symmetric())
		},
		body: eighBody,
		jvp:  jvpEigh,
	})
}

// Eigh returns the eigenvalues w, [..., n], of symmetric matrices, [..., n, n] of f32 or
// f64, in ascending order, and their eigenvectors as the columns of v, [..., n, n]. Only
// the symmetric part of x is used.
func Eigh(b *ir.Builder, x ir.Value) (w, v ir.Value) {
	out := several(2, b.Add(OpEigh, nil, x))
	return out[0], out[1]
}

// plainEigh orthogonalises the columns of a + c, where the shift c makes it positive
// definite: they become eigenvectors times shifted eigenvalues.
func plainEigh(a matrix) []matrix {
	n := a.rows
	c := 0.0
	for j := range n {
		c += 2 * a.columnNorm(j)
	}
	shifted := a.clone()
	for i := range n {
		shifted.set(i, i, a.at(i, i)+c)
	}
	_, v := orthogonaliseColumns(shifted)
	w, image := newMatrix(1, n), a.times(v)
	for j := range n {
		for i := range n {
			w.x[j] += v.at(i, j) * image.at(i, j)
		}
	}
	order := counting(0, n)
	slices.SortStableFunc(order, func(i, j int) int { return boolInt(w.x[i] > w.x[j]) - boolInt(w.x[i] < w.x[j]) })
	v = v.columns(order)
	orient(v)
	return []matrix{{1, n, pick(w.x, order)}, v}
}

// eighBody orthogonalises the rows of a shifted matrix: they become eigenvectors times
// eigenvalues away from 0. The scaled x has a largest element of 1, unless it is 0, to
// which the shift is added too.
func eighBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	size, _ := matrixDims(in[0])
	if size == 0 {
		return emptyFactors(b, n)
	}
	x, scale := scaledMatrix(b, symmetricPart(b, in[0]))
	length := Sqrt(b, ReduceSum(b, Mul(b, x, x), -2, -1))
	length = Mul(b, Max(b, length, OnesLike(b, length)), ConstLike(b, length, 1.5))
	shifted := Add(b, x, Mul(b, identityLike(b, x), row(b, column(b, length))))
	vt := Jacobi(b, shifted, JacobiAttrs{Length: size})
	vt = Div(b, vt, column(b, Sqrt(b, ReduceSum(b, Mul(b, vt, vt), -1))))
	w := ReduceSum(b, Mul(b, vt, MatMul(b, vt, x)), -1)
	order := ArgSort(b, w, SortAttrs{Axis: -1})
	v := adjoint(b, takeRows(b, vt, order))
	w = Mul(b, takeOrder(b, w, order, w.Rank()-1), Squeeze(b, scale, -1))
	return []ir.Value{w, Mul(b, v, row(b, columnSigns(b, v)))}
}

// jvpEigh: with e = vᵀ·dx·v, dw is the diagonal of e and dv = v·(f∘e), where
// f[i,j] = 1/(w[j] - w[i]) off the diagonal (Giles, "An extended collection of
// matrix derivative results", 2008).
func jvpEigh(b *ir.Builder, _ *ir.Node, _, out, t []ir.Value) []ir.Value {
	w, v := out[0], out[1]
	e := MatMul(b, adjoint(b, v), MatMul(b, symmetricPart(b, t[0]), v))
	f := gapsInverse(b, Sub(b, row(b, w), column(b, w)))
	return []ir.Value{Diagonal(b, e, 0), MatMul(b, v, MulZero(b, e, f))}
}

// gapsInverse returns 1/x off the diagonal and 0 on it.
func gapsInverse(b *ir.Builder, x ir.Value) ir.Value {
	i, j := places(b, x)
	own := Eq(b, i, j)
	one := OnesLike(b, x)
	return Select(b, own, ZerosLike(b, x), Div(b, one, Select(b, own, one, x)))
}
