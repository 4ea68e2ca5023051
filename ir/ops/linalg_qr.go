package ops

import (
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
		body:   householderBody,
		noGrad: "differentiate qr instead",
	})
}

// Householder returns the packed QR factorisation of matrices, as LAPACK's geqrf: the
// upper triangles with the reflection vectors below them, and the factors τ.
func Householder(b *ir.Builder, x ir.Value) (packed, tau ir.Value) {
	return two(b.Add(OpHouseholder, nil, x))
}

// householderBody reflects one column after another, or, if a matrix exceeds the kernel's
// maximum size, a panel of columns.
func householderBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	rows, cols := matrixDims(in[0])
	k := min(rows, cols)
	if k == 0 {
		return []ir.Value{in[0], Zeros(b, in[0].DType(), n.Types()[1].Shape...)}
	}
	if width := panelWidth(in[0].DType(), rows); width < k && !fitsRegisters(in[0].DType(), rows, cols, maxHouseholderRows) {
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

// OpQR is the QR factorisation.
const OpQR ir.Op = "qr"

// FullAttrs choose full (square) or reduced factors.
type FullAttrs struct{ Full bool }

// Visit shows the attributes.
func (a *FullAttrs) Visit(v ir.AttrVisitor) { v.Bool("full", &a.Full) }

func isFull(n *ir.Node) bool { return n.Attrs().(*FullAttrs).Full }

func init() {
	defineMatrixOp(matrixOp{
		op: OpQR, routine: true, newAttrs: func() ir.Attrs { return &FullAttrs{} },
		doc: "The QR factorisation: q with orthonormal columns and upper triangular r with q·r = x, by Householder reflections with LAPACK's signs: r has a negative " +
			"diagonal element where x has a positive one, and that of x where the rest of the column is 0. For m by n elements and k = min(m, n), q is m by k and r k by n; " +
			"with full they are m by m and m by n. A full factor of more rows than columns has no derivative, and where the first k columns are linearly " +
			"dependent the derivative is infinite or NaN.",
		constraints: []string{"the matrices have no symbolic size"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			rows, cols, err := sizedMatrix(in[0])
			k := min(rows, cols)
			if isFull(n) {
				k = rows
			}
			d := n.Input(0).DType()
			return []ir.Type{trailing(d, ir.N(rows), ir.N(k)), trailing(d, ir.N(k), ir.N(cols))}, err
		},
		body: qrBody,
		jvp:  jvpQR,
	})
}

// QR returns the QR factorisation of matrices, [..., m, n] of f32 or f64: q with
// orthonormal columns, [..., m, k], and upper triangular r, [..., k, n], with q·r = x and
// k = min(m, n); if full, q is [..., m, m] and r [..., m, n].
func QR(b *ir.Builder, x ir.Value, full bool) (q, r ir.Value) {
	return two(b.Add(OpQR, &FullAttrs{full}, x))
}

// qrBody unpacks r and the reflections from the result of [Householder], and accumulates q
// as householderPanels does. x is scaled so that no square overflows.
func qrBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	rows, cols := matrixDims(in[0])
	if rows*cols == 0 {
		return emptyFactors(b, n)
	}
	x, size := scaledMatrix(b, in[0])
	packed, tau := Householder(b, x)
	width := min(rows, cols)
	if isFull(n) {
		width = rows
	}
	r := Mul(b, Triu(b, SliceAxis(b, packed, -2, ir.N(0), ir.N(width)), 0), size)
	return []ir.Value{reflected(b, reflectors(b, packed), tau, width), r}
}

// maxReflectors is the number of reflections whose product is made at once, of all rows. More of them are halved,
// since the second half keeps the first rows and columns: 2.3·n³ operations instead of 5·n³.
var maxReflectors = 2048 // constant but in tests

// reflected returns the first width columns of the product of reflections with the columns of v.
func reflected(b *ir.Builder, v, tau ir.Value, width int) ir.Value {
	rows, k := matrixDims(v)
	if k <= maxReflectors {
		q := reflections(b, v, tau, adjoint(b, SliceAxis(b, v, -2, ir.N(0), ir.N(width))))
		return Sub(b, identityLike(b, q), q)
	}
	half := roundUp(k/2, matrixBlock)
	first, firstTau := partOf(b, v, 0, rows, 0, half), SliceAxis(b, tau, -1, ir.N(0), ir.N(half))
	rest := reflected(b, partOf(b, v, half, rows-half, half, k-half), SliceAxis(b, tau, -1, ir.N(half), ir.N(k-half)), width-half)
	top := adjoint(b, partOf(b, v, 0, half, 0, half))
	right := MatMul(b, adjoint(b, partOf(b, v, half, rows-half, 0, half)), rest)
	moved := reflections(b, first, firstTau, Concatenate(b, -1, top, right))
	head, tail := partOf(b, moved, 0, half, 0, width), partOf(b, moved, half, rows-half, 0, width)
	left := partOf(b, tail, 0, rows-half, 0, half)
	tail = Concatenate(b, -1, Neg(b, left), Sub(b, rest, partOf(b, tail, 0, rows-half, half, width-half)))
	return Concatenate(b, -2, Sub(b, identityLike(b, head), head), tail)
}

// reflections returns v·t·y for the product 1 - v·t·vᵀ of reflections, see [householderPanels].
func reflections(b *ir.Builder, v, tau, y ir.Value) ir.Value {
	between := Mul(b, column(b, tau), MatMul(b, adjoint(b, v), v))
	t := TriangularSolve(b, between, Mul(b, column(b, tau), y), TriangularAttrs{LeftSide: true, UnitDiagonal: true})
	return MatMul(b, v, t)
}

// emptyFactors returns the factors of matrices without elements: blocks of identity
// matrices.
func emptyFactors(b *ir.Builder, n *ir.Node) []ir.Value {
	out := make([]ir.Value, n.NumResults())
	for i, t := range n.Types() {
		out[i] = Zeros(b, t.DType, t.Shape...)
		if len(t.Shape) == n.Input(0).Rank() {
			out[i] = identityLike(b, out[i])
		}
	}
	return out
}

// scaledMatrix returns matrices divided by their largest magnitude, and that magnitude, 1
// in place of 0.
func scaledMatrix(b *ir.Builder, x ir.Value) (scaled, size ir.Value) {
	size = row(b, column(b, ReduceMax(b, Abs(b, x), -2, -1)))
	size = Select(b, Eq(b, size, ZerosLike(b, size)), OnesLike(b, size), size)
	return Div(b, x, size), size
}

// jvpQR is, for the leading square block of r, dq = q·(ω - qᵀ·d) + d and dr = (qᵀ·d - ω)·r with d =
// dx·r⁻¹. ω is skew and has the lower triangle of qᵀ·d (Walter and Lehmann, "Algorithmic
// differentiation of linear algebra functions", 2010). Columns beyond it follow from r = qᵀ·x.
func jvpQR(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	rows, cols := matrixDims(in[0])
	if isFull(n) && rows > cols {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "full factors of %d rows and %d columns have no derivative", rows, cols)))
		return make([]ir.Value, 2)
	}
	k := min(rows, cols)
	q := out[0]
	first := func(x ir.Value) ir.Value { return SliceAxis(b, x, -1, ir.N(0), ir.N(k)) }
	r := first(out[1])
	d := TriangularSolve(b, r, first(t[0]), TriangularAttrs{})
	projected := MatMul(b, adjoint(b, q), d)
	lower := Tril(b, projected, -1)
	rest := Sub(b, projected, Sub(b, lower, adjoint(b, lower)))
	dq := Sub(b, d, MatMul(b, q, rest))
	dr := MatMul(b, rest, r)
	if cols > k {
		beyond := func(x ir.Value) ir.Value { return SliceAxis(b, x, -1, ir.N(k), ir.N(cols-k)) }
		more := Add(b, MatMul(b, adjoint(b, dq), beyond(in[0])), MatMul(b, adjoint(b, q), beyond(t[0])))
		dr = Concatenate(b, -1, dr, more)
	}
	return []ir.Value{dq, dr}
}
