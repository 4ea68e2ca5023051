package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

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
		meaning: func(n *ir.Node, in []matrix) []matrix {
			if !withReferences {
				return nil
			}
			q, r := plainQR(in[0].clone())
			k := min(r.rows, r.cols)
			if isFull(n) {
				k = r.rows
			}
			return []matrix{q.block(q.rows, k), r.block(k, r.cols)}
		},
		body: qrBody,
		jvp:  jvpQR,
	})
}

// QR returns the QR factorisation of matrices, [..., m, n] of f32 or f64: q with
// orthonormal columns, [..., m, k], and upper triangular r, [..., k, n], with q·r = x and
// k = min(m, n); if full, q is [..., m, m] and r [..., m, n].
func QR(b *ir.Builder, x ir.Value, full bool) (q, r ir.Value) {
	out := several(2, b.Add(OpQR, &FullAttrs{full}, x))
	return out[0], out[1]
}

// plainQR returns full factors.
func plainQR(r matrix) (q, _ matrix) {
	q = identity(r.rows)
	for j := range min(r.rows, r.cols) {
		below := 0.0
		for i := j + 1; i < r.rows; i++ {
			below = math.Hypot(below, r.at(i, j))
		}
		if below == 0 {
			continue
		}
		end := -math.Copysign(math.Hypot(r.at(j, j), below), r.at(j, j))
		v := newMatrix(r.rows, 1)
		for i := j; i < r.rows; i++ {
			v.x[i] = r.at(i, j) / (r.at(j, j) - end)
		}
		v.x[j] = 1
		scale := (end - r.at(j, j)) / end
		reflect(r, v, scale)
		turned := q.transposed()
		reflect(turned, v, scale)
		q = turned.transposed()
		for i := j + 1; i < r.rows; i++ {
			r.set(i, j, 0)
		}
	}
	return q, r
}

// reflect subtracts scale·v·vᵀ·m from m.
func reflect(m, v matrix, scale float64) {
	along := v.transposed().times(m)
	for i := range m.rows {
		for c := range m.cols {
			m.set(i, c, m.at(i, c)-scale*v.x[i]*along.x[c])
		}
	}
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
	v, width := reflectors(b, packed), min(rows, cols)
	if isFull(n) {
		width = rows
	}
	top := adjoint(b, SliceAxis(b, v, -2, ir.N(0), ir.N(width)))
	between := Mul(b, column(b, tau), MatMul(b, adjoint(b, v), v))
	t := TriangularSolve(b, between, Mul(b, column(b, tau), top), TriangularAttrs{LeftSide: true, UnitDiagonal: true})
	q := MatMul(b, v, t)
	r := Mul(b, Triu(b, SliceAxis(b, packed, -2, ir.N(0), ir.N(width)), 0), size)
	return []ir.Value{Sub(b, identityLike(b, q), q), r}
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

// jvpQR is, for the leading square block of r, dq = q·(ω - qᵀ·d) + d and
// dr = (qᵀ·d - ω)·r with d = dx·r⁻¹, where ω is skew and has the lower triangle
// of qᵀ·d (Walter and Lehmann, "Algorithmic differentiation of linear algebra
// functions", 2010). Columns beyond it follow from r = qᵀ·x.
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
	turned := MatMul(b, adjoint(b, q), d)
	lower := Tril(b, turned, -1)
	rest := Sub(b, turned, Sub(b, lower, adjoint(b, lower)))
	dq := Sub(b, d, MatMul(b, q, rest))
	dr := MatMul(b, rest, r)
	if cols > k {
		beyond := func(x ir.Value) ir.Value { return SliceAxis(b, x, -1, ir.N(k), ir.N(cols-k)) }
		more := Add(b, MatMul(b, adjoint(b, dq), beyond(in[0])), MatMul(b, adjoint(b, q), beyond(t[0])))
		dr = Concatenate(b, -1, dr, more)
	}
	return []ir.Value{dq, dr}
}
