package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// OpHouseholder is the packed QR factorisation by Householder reflections (LAPACK's geqrf).
const OpHouseholder ir.Op = "householder"

func init() {
	defineMatrixOp(matrixOp{
		op: OpHouseholder, kernels: householderKernels,
		doc: "The Householder reflections 1 - τ·v·vᵀ that make x upper triangular, one for each column: the triangle, below it the vectors v, whose elements " +
			"on the diagonal are 1, and τ. It is geqrf of LAPACK and of JAX, with its signs. The squares of elements must not overflow.",
		constraints: []string{"the matrices have no symbolic size"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			rows, cols, err := sizedMatrix(in[0])
			d := n.Input(0).DType()
			return []ir.Type{trailing(d, ir.N(rows), ir.N(cols)), trailing(d, ir.N(min(rows, cols)))}, err
		},
		meaning: func(_ *ir.Node, in []matrix) []matrix {
			if !withReferences {
				return nil
			}
			return plainHouseholder(in[0].clone())
		},
		body:   householderBody,
		noGrad: "differentiate qr instead",
	})
}

// Householder returns the packed QR factorisation of matrices, as LAPACK's geqrf: the
// upper triangles with the reflection vectors below them, and the factors τ.
func Householder(b *ir.Builder, x ir.Value) (packed, tau ir.Value) {
	out := several(2, b.Add(OpHouseholder, nil, x))
	return out[0], out[1]
}

func plainHouseholder(x matrix) []matrix {
	tau := newMatrix(1, min(x.rows, x.cols))
	for j := range tau.x {
		below := 0.0
		for i := j + 1; i < x.rows; i++ {
			below = math.Hypot(below, x.at(i, j))
		}
		if below == 0 {
			continue
		}
		head := x.at(j, j)
		end := -math.Copysign(math.Hypot(head, below), head)
		v := newMatrix(x.rows, 1)
		v.x[j] = 1
		for i := j + 1; i < x.rows; i++ {
			v.x[i] = x.at(i, j) / (head - end)
		}
		tau.x[j] = (end - head) / end
		for c := j; c < x.cols; c++ {
			along := 0.0
			for i := j; i < x.rows; i++ {
				along += v.x[i] * x.at(i, c)
			}
			for i := j; i < x.rows; i++ {
				x.set(i, c, x.at(i, c)-tau.x[j]*along*v.x[i])
			}
		}
		for i := j + 1; i < x.rows; i++ {
			x.set(i, j, v.x[i])
		}
	}
	return []matrix{x, tau}
}

// householderBody reflects one column after another, or, if a matrix exceeds the kernel's
// maximum size, a panel of columns.
func householderBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	rows, cols := matrixDims(in[0])
	k := min(rows, cols)
	if k == 0 {
		return []ir.Value{in[0], Zeros(b, in[0].DType(), n.Types()[1].Shape...)}
	}
	if width := panelWidth(in[0].DType(), rows); width < k {
		return householderPanels(b, in[0], width)
	}
	carries, ys := Scan(b, Loop{
		Carries: []ir.Value{in[0]}, Xs: []ir.Value{steps(b, k)},
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			x, k := carries[0], xs[0]
			v, tau := reflection(b, element(b, x, k, -1), k)
			reflected := Sub(b, x, Mul(b, column(b, Mul(b, v, tau)), MatMul(b, row(b, v), x)))
			i, j := places(b, x)
			own := And(b, Eq(b, j, k), Gt(b, i, k))
			keeps := Select(b, own, BroadcastTo(b, column(b, v), x.Shape()), Select(b, Ge(b, j, k), reflected, x))
			return []ir.Value{keeps}, []ir.Value{tau}
		},
	})
	if b.Err() != nil {
		return make([]ir.Value, 2)
	}
	return []ir.Value{carries[0], Squeeze(b, MoveAxis(b, ys[0], 0, -2), -1)}
}

// householderPanels triangularises a panel of columns in each step and applies its
// reflections to the trailing columns by two products. The product of the reflections is 1
// - v·t·vᵀ with 1/t = 1/τ + the upper triangle of vᵀ·v (Schreiber and Van Loan, "A storage
// efficient WY representation", 1989), and the inverse of that is its transpose.
func householderPanels(b *ir.Builder, x ir.Value, width int) []ir.Value {
	rows, cols := matrixDims(x)
	at, k := x.Rank()-2, min(rows, cols)
	carries, ys := Scan(b, Loop{
		Carries: []ir.Value{padMatrix(b, x, roundUp(rows, width), roundUp(cols, width))},
		Xs:      []ir.Value{steps(b, roundUp(k, width)/width)},
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			x := carries[0]
			p := panelOf(b, x, xs[0], width)
			packed, tau := Householder(b, p.live)
			v := reflectors(b, packed)
			between := Mul(b, column(b, tau), MatMul(b, adjoint(b, v), v))
			v = p.back(v, at)
			along := TriangularSolve(b, between, MatMul(b, adjoint(b, v), x), TriangularAttrs{LeftSide: true, TransposeA: true, UnitDiagonal: true})
			rest := Sub(b, x, MatMul(b, v, Mul(b, column(b, tau), along)))
			return []ir.Value{p.replace(x, p.back(packed, at), rest)}, []ir.Value{tau}
		},
	})
	if b.Err() != nil {
		return make([]ir.Value, 2)
	}
	tau := mergeAxes(b, MoveAxis(b, ys[0], 0, at), at)
	return []ir.Value{sliceMatrix(b, carries[0], rows, cols), SliceAxis(b, tau, -1, ir.N(0), ir.N(k))}
}

// reflectors unpacks the reflection vectors, as columns, from the result of [Householder].
func reflectors(b *ir.Builder, packed ir.Value) ir.Value {
	rows, cols := matrixDims(packed)
	v := Tril(b, sliceMatrix(b, packed, rows, min(rows, cols)), -1)
	return Add(b, v, identityLike(b, v))
}

// reflection returns the v and τ that reflect vectors to multiples of unit vector k; v is
// 0 before element k. τ, along an axis of size 1, is 0 if the vector is already a
// multiple.
func reflection(b *ir.Builder, x, k ir.Value) (v, tau ir.Value) {
	place := Iota(b, ir.I32, -1, x.Shape()...)
	below := orZero(b, Gt(b, place, k), x)
	rest := column(b, ReduceSum(b, Mul(b, below, below), -1))
	head := column(b, element(b, x, k, -1))
	zero := ZerosLike(b, head)
	size := Sqrt(b, Add(b, Mul(b, head, head), rest))
	end := Select(b, Lt(b, head, zero), size, Neg(b, size))
	still := Le(b, rest, ConstLike(b, rest, tiny(x.DType())))
	one := OnesLike(b, head)
	v = orZero(b, Not(b, still), Div(b, below, Select(b, still, one, Sub(b, head, end))))
	v = Select(b, Eq(b, place, k), one, v)
	return v, Select(b, still, zero, Div(b, Sub(b, end, head), Select(b, still, one, end)))
}

// tiny returns a sum of squares that is negligible relative to 1 and below which sums are
// inexact, since terms may be subnormal.
func tiny(d ir.DType) float64 {
	if d == ir.F64 {
		return 0x1p-1022 / 0x1p-52
	}
	return 0x1p-126 / 0x1p-23
}
