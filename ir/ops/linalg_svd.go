package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// OpSVD is the singular value decomposition.
const OpSVD ir.Op = "svd"

func init() {
	defineMatrixOp(matrixOp{
		op: OpSVD, routine: true, newAttrs: func() ir.Attrs { return &FullAttrs{} },
		doc: "The singular value decomposition u·diag(s)·vt = x: the singular values s in descending order, the columns of u and the rows of vt orthonormal. For a row v of vt " + vectorSigns +
			". For m by n elements and k = min(m, n), u is m by k and vt k by n; with full they are square. Vectors of repeated or zero singular values and those beyond k are not unique: " +
			"derivatives of u and vt are infinite there, and full factors of rectangular matrices have none. First derivatives of functions of s alone are finite; at 0 those of s are one-sided.",
		constraints: []string{"the matrices have no symbolic size"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			rows, cols, err := sizedMatrix(in[0])
			k := min(rows, cols)
			u, v := k, k
			if isFull(n) {
				u, v = rows, cols
			}
			d := n.Input(0).DType()
			return []ir.Type{trailing(d, ir.N(rows), ir.N(u)), trailing(d, ir.N(k)), trailing(d, ir.N(v), ir.N(cols))}, err
		},
		meaning: func(n *ir.Node, in []matrix) []matrix {
			if !withReferences {
				return nil
			}
			return plainSVD(in[0], isFull(n))
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value { return svdBody(b, n, in[0]) },
		jvp:  jvpSVD,
	})
}

// SVD returns the singular value decomposition u·diag(s)·vt = x of matrices, [..., m, n]
// of f32 or f64: the singular values s, [..., k], in descending order for k = min(m, n),
// u, [..., m, k], and vt, [..., k, n]; if full, u is [..., m, m] and vt [..., n, n].
func SVD(b *ir.Builder, x ir.Value, full bool) (u, s, vt ir.Value) {
	out := several(3, b.Add(OpSVD, &FullAttrs{full}, x))
	return out[0], out[1], out[2]
}

func plainSVD(x matrix, full bool) []matrix {
	if x.rows < x.cols {
		f := plainSVD(x.transposed(), full)
		v, u := f[0].clone(), f[2].transposed()
		orient(v.block(v.rows, u.cols), u)
		orient(v)
		return []matrix{u, f[1], v.transposed()}
	}
	turned, v := orthogonaliseColumns(x.clone())
	s := newMatrix(1, x.cols)
	for j := range s.x {
		s.x[j] = turned.columnNorm(j)
	}
	order := counting(0, x.cols)
	slices.SortStableFunc(order, func(i, j int) int { return boolInt(s.x[i] < s.x[j]) - boolInt(s.x[i] > s.x[j]) })
	turned, v = turned.columns(order), v.columns(order)
	// the columns of turned are orthogonal: q has them normalised, and vectors for zero
	// singular values too
	u, r := plainQR(turned)
	for j := range x.cols {
		if r.at(j, j) < 0 {
			for i := range u.rows {
				u.set(i, j, -u.at(i, j))
			}
		}
	}
	if orient(v, u); !full {
		u = u.block(u.rows, x.cols)
	}
	return []matrix{u, {1, x.cols, pick(s.x, order)}, v.transposed()}
}

// svdBody orthogonalises the rows of the transpose: their norms are the singular values,
// and a QR factorisation normalises them, and completes them for zero singular values. The
// rotations applied to an identity give the vectors of the other side.
func svdBody(b *ir.Builder, n *ir.Node, x ir.Value) []ir.Value {
	rows, cols := matrixDims(x)
	if rows*cols == 0 {
		return emptyFactors(b, n)
	}
	wide := rows < cols
	if wide {
		x = adjoint(b, x)
		rows, cols = cols, rows
	}
	x, size := scaledMatrix(b, x)
	unit := identityLike(b, Zeros(b, x.DType(), append(leadOf(x), ir.N(cols), ir.N(cols))...))
	turned := Jacobi(b, Concatenate(b, -1, adjoint(b, x), unit), JacobiAttrs{Length: rows})
	lines := SliceAxis(b, turned, -1, ir.N(0), ir.N(rows))
	s := Sqrt(b, ReduceSum(b, Mul(b, lines, lines), -1))
	order := ArgSort(b, s, SortAttrs{Axis: -1, Descending: true})
	s, turned = takeOrder(b, s, order, s.Rank()-1), takeRows(b, turned, order)
	v := adjoint(b, SliceAxis(b, turned, -1, ir.N(rows), ir.N(cols)))
	u, r := QR(b, adjoint(b, SliceAxis(b, turned, -1, ir.N(0), ir.N(rows))), isFull(n))
	down := Diagonal(b, r, 0)
	one := OnesLike(b, down)
	u = signedColumns(b, u, Select(b, Lt(b, down, ZerosLike(b, down)), Neg(b, one), one))
	s = Mul(b, s, Squeeze(b, size, -1))
	if wide {
		u, v = v, u
	}
	signs := columnSigns(b, v)
	if wide { // v has more columns than u if full
		u = signedColumns(b, u, SliceAxis(b, signs, -1, ir.N(0), ir.N(cols)))
	} else {
		u = signedColumns(b, u, signs)
	}
	return []ir.Value{u, s, adjoint(b, signedColumns(b, v, signs))}
}

// signedColumns multiplies the first columns of x by signs.
func signedColumns(b *ir.Builder, x, signs ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	_, cols := matrixDims(x)
	count, _ := signs.Dim(-1).Const()
	if count < cols {
		high := make([]int, signs.Rank())
		high[signs.Rank()-1] = cols - count
		signs = Pad(b, signs, Const(b, signs.DType(), 1), make([]int, signs.Rank()), high, nil)
	}
	return Mul(b, x, row(b, signs))
}

// jvpSVD: with e = uᵀ·dx·v, ds is the diagonal of e; du and dv rotate the vectors within
// their span by e over the gaps of s², and out of it by e over s (Giles, as for eigh;
// Townsend, "Differentiating the singular value decomposition", 2016).
func jvpSVD(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	rows, cols := matrixDims(in[0])
	if isFull(n) && rows != cols {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "full factors of %d rows and %d columns have no derivative", rows, cols)))
		return make([]ir.Value, 3)
	}
	u, s, vt := out[0], out[1], out[2]
	v := adjoint(b, vt)
	e := MatMul(b, adjoint(b, u), MatMul(b, t[0], v))
	across := adjoint(b, e)
	sr, sc := row(b, s), column(b, s)
	gaps := gapsInverse(b, Mul(b, Sub(b, sr, sc), Add(b, sr, sc)))
	turn := func(x, y ir.Value) ir.Value { return MulZero(b, Add(b, Mul(b, x, sr), Mul(b, y, sc)), gaps) }
	du := MatMul(b, u, turn(e, across))
	dv := MatMul(b, v, turn(across, e))
	beyond := func(dx, base, other ir.Value) ir.Value {
		image := MatMul(b, dx, other)
		rest := Sub(b, image, MatMul(b, base, MatMul(b, adjoint(b, base), image)))
		return MulZero(b, rest, Div(b, OnesLike(b, sr), sr))
	}
	if rows > cols {
		du = Add(b, du, beyond(t[0], u, v))
	}
	if rows < cols {
		dv = Add(b, dv, beyond(adjoint(b, t[0]), v, u))
	}
	return []ir.Value{du, Diagonal(b, e, 0), adjoint(b, dv)}
}
