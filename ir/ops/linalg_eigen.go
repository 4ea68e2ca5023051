package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// OpJacobi orthogonalises the rows of matrices by one-sided Jacobi rotations, for
// eigenvalues and singular values (Demmel and Veselić, "Jacobi's method is more accurate
// than QR", 1992).
const OpJacobi ir.Op = "jacobi"

// JacobiAttrs describe the orthogonalisation.
type JacobiAttrs struct {
	// Length is the number of leading elements of each row that become orthogonal; the
	// rotations are applied to the others too. [Jacobi] takes 0 for all.
	Length int
	// Sweeps is the maximum number of sweeps; 0 is enough for convergence.
	Sweeps int
}

// Visit shows the attributes.
func (a *JacobiAttrs) Visit(v ir.AttrVisitor) {
	v.Int("length", &a.Length)
	v.Int("sweeps", &a.Sweeps)
}

// Complete sets the default: whole rows.
func (a *JacobiAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if len(in) > 0 && len(in[0].Shape) > 0 && !given("length") {
		a.Length, _ = in[0].Shape[len(in[0].Shape)-1].Const()
	}
}

func init() {
	defineMatrixOp(matrixOp{
		op: OpJacobi, kernels: jacobiKernels, newAttrs: func() ir.Attrs { return &JacobiAttrs{} },
		doc: "v·x for an orthogonal v that makes the first length elements of the rows mutually orthogonal, by one-sided Jacobi rotations of " +
			"pairs of rows. The order of the rows is unspecified. The squares of elements must not overflow. The bodies of eigh and svd use it.",
		constraints: []string{"the matrices have no symbolic size, and rows of length elements or more", "sweeps is not negative"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			a := n.Attrs().(*JacobiAttrs)
			_, cols, err := sizedMatrix(in[0])
			if err == nil && (a.Length < 0 || a.Length > cols || a.Sweeps < 0) {
				err = ir.Attrf("length is %d and sweeps %d: sweeps must not be negative, and length in [0, %d], the elements of a row", a.Length, a.Sweeps, cols)
			}
			return []ir.Type{trailing(n.Input(0).DType(), in[0].rows, in[0].cols)}, err
		},
		body:   jacobiBody,
		noGrad: "eigh and svd have derivatives of their own",
	})
}

// Jacobi returns v·x for an orthogonal v that makes the first a.Length elements of the
// rows of x mutually orthogonal.
func Jacobi(b *ir.Builder, x ir.Value, a JacobiAttrs) ir.Value {
	a.Complete([]ir.Type{x.Type()}, func(string) bool { return a.Length != 0 })
	return b.Add1(OpJacobi, &a, x)
}

// jacobiSweeps returns a number of sweeps that is enough for f64: convergence is quadratic
// after about log₂ n sweeps, and a few more for rows of very different lengths.
func jacobiSweeps(n int) int { return 8 + int(math.Ceil(math.Log2(float64(n+1)))) }

func (a *JacobiAttrs) sweeps(rows int) int {
	if a.Sweeps > 0 {
		return a.Sweeps
	}
	return jacobiSweeps(rows)
}

// jacobiBody rotates disjoint pairs of rows in a round; a sweep is the rounds that pair
// every two rows once. A round takes two kernels for any size.
func jacobiBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a, x := n.Attrs().(*JacobiAttrs), in[0]
	rows, cols := matrixDims(x)
	if rows < 2 || cols == 0 {
		return in[:1]
	}
	if rows > maxJacobi {
		return []ir.Value{jacobiBlocks(b, x, a)}
	}
	even := rows + rows%2
	x = repeated(b, a.sweeps(rows)*(even-1), padMatrix(b, x, even, cols), nil, func(b *ir.Builder, k, x ir.Value, _ []ir.Value) ir.Value {
		with := partners(b, k, even)
		other := Take(b, x, with, -2, OutsideClip)
		cos, sin := rotation(b, SliceAxis(b, x, -1, ir.N(0), ir.N(a.Length)), SliceAxis(b, other, -1, ir.N(0), ir.N(a.Length)), with)
		return Sub(b, Mul(b, x, column(b, cos)), Mul(b, other, column(b, sin)))
	})
	return []ir.Value{SliceAxis(b, x, -2, ir.N(0), ir.N(rows))}
}

// jacobiBlocks pairs blocks of rows as a sweep pairs rows: two blocks are multiplied by
// the orthogonal matrix that orthogonalises their Gram matrix, which is small. Paired
// blocks are adjacent, and all but the first rotate after each round, back to their
// initial order at the end of a sweep.
func jacobiBlocks(b *ir.Builder, x ir.Value, a *JacobiAttrs) ir.Value {
	const block = maxJacobi / 4
	rows, cols := matrixDims(x)
	high, at := roundUp(rows, 2*block), x.Rank()-2
	pairs := high / (2 * block)
	x = repeated(b, a.sweeps(rows)*(2*pairs-1), padMatrix(b, x, high, cols), nil, func(b *ir.Builder, _, x ir.Value, _ []ir.Value) ir.Value {
		x = splitAxis(b, x, at, ir.N(pairs))
		head := SliceAxis(b, x, -1, ir.N(0), ir.N(a.Length))
		products := MatMul(b, head, adjoint(b, head))
		both := Jacobi(b, Concatenate(b, -1, products, identityLike(b, products)), JacobiAttrs{Length: 2 * block, Sweeps: 1})
		x = MatMul(b, SliceAxis(b, both, -1, ir.N(2*block), ir.N(2*block)), x)
		x = splitAxis(b, mergeAxes(b, x, at), at, ir.N(2*pairs))
		return mergeAxes(b, Take(b, x, nextBlocks(b, 2*pairs), at, OutsideClip), at)
	})
	return SliceAxis(b, x, -2, ir.N(0), ir.N(rows))
}

// nextBlocks returns for each of n ≥ 6 blocks the one that takes its place: the upper blocks of pairs move
// to the right, the lower ones to the left, and the first stays.
func nextBlocks(b *ir.Builder, n int) ir.Value {
	i := steps(b, n)
	number := func(v int) ir.Value { return int32Like(b, i, v) }
	isAt := func(v int) ir.Value { return Eq(b, i, number(v)) }
	next := Select(b, Eq(b, Rem(b, i, number(2)), number(0)), Sub(b, i, number(2)), Add(b, i, number(2)))
	next = Select(b, isAt(0), number(0), next)
	next = Select(b, isAt(2), number(1), next)
	return Select(b, isAt(n-1), number(n-2), next)
}

// partners returns for each of an even number of rows its partner in round k of a
// round-robin tournament: the last row stays while the others rotate.
func partners(b *ir.Builder, k ir.Value, n int) ir.Value {
	i := steps(b, n)
	number := func(v int) ir.Value { return int32Like(b, i, v) }
	k = Rem(b, k, int32Like(b, k, max(n-1, 1)))
	across := Rem(b, Add(b, Sub(b, Add(b, k, k), i), number(n-1)), number(max(n-1, 1)))
	across = Select(b, Eq(b, across, i), number(n-1), across)
	return Select(b, Eq(b, i, number(n-1)), k, across)
}

// rotation returns the cosine and sine, for each row x[i] and its partner y[i] =
// x[with[i]], of the rotation cos·x - sin·y that makes the pair orthogonal, by the smaller
// of the two angles.
func rotation(b *ir.Builder, x, y, with ir.Value) (cos, sin ir.Value) {
	dot := func(p, q ir.Value) ir.Value { return ReduceSum(b, Mul(b, p, q), -1) }
	own, across := dot(x, x), dot(x, y)
	other := Take(b, own, with, -1, OutsideClip)
	one := OnesLike(b, own)
	// pairs that are orthogonal up to rounding are unchanged: another rotation only adds
	// rounding errors
	small := Mul(b, Mul(b, Sqrt(b, own), Sqrt(b, other)), ConstLike(b, own, x.DType().Epsilon()))
	still := Le(b, Abs(b, across), small)
	zeta := Div(b, Sub(b, other, own), Select(b, still, one, Add(b, across, across)))
	first := Lt(b, Iota(b, ir.I32, 0, with.Shape()...), with)
	positive := Or(b, Gt(b, zeta, ZerosLike(b, zeta)), And(b, Eq(b, zeta, ZerosLike(b, zeta)), first))
	size := Add(b, Abs(b, zeta), Hypot(b, zeta, one))
	tan := Div(b, Select(b, positive, one, Neg(b, one)), size)
	tan = Select(b, still, ZerosLike(b, tan), tan)
	cos = Div(b, one, Hypot(b, tan, one))
	return cos, Mul(b, tan, cos)
}

// OpEigh is the eigendecomposition of symmetric matrices.
const OpEigh ir.Op = "eigh"

// vectorSignsDoc is the sign convention of singular vectors and eigenvectors.
const vectorSignsDoc = "the sum of vᵢ/(i+√2) over its elements, counted from 0, is not negative"

func init() {
	defineMatrixOp(matrixOp{
		op: OpEigh, routine: true,
		doc: "The eigenvalues w of the symmetric part (x + xᵀ)/2 in ascending order, and the eigenvectors as the columns of v. An eigenvector v has length 1, and " +
			vectorSignsDoc + ". The eigenvectors of a repeated eigenvalue are not unique and have infinite derivatives; first derivatives of functions of w alone are finite.",
		constraints: []string{"the matrices are square and have no symbolic size"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			if err := squareMatrix(in[0]); err != nil {
				return nil, err
			}
			rows, _, err := sizedMatrix(in[0])
			d := n.Input(0).DType()
			return []ir.Type{trailing(d, ir.N(rows)), trailing(d, ir.N(rows), ir.N(rows))}, err
		},
		body: eighBody,
		jvp:  jvpEigh,
	})
}

// Eigh returns the eigenvalues w, [..., n], of symmetric matrices, [..., n, n] of f32 or
// f64, in ascending order, and their eigenvectors as the columns of v, [..., n, n]. Only
// the symmetric part of x is used.
func Eigh(b *ir.Builder, x ir.Value) (w, v ir.Value) {
	return two(b.Add(OpEigh, nil, x))
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

// OpSVD is the singular value decomposition.
const OpSVD ir.Op = "svd"

func init() {
	defineMatrixOp(matrixOp{
		op: OpSVD, routine: true, newAttrs: func() ir.Attrs { return &FullAttrs{} },
		doc: "The singular value decomposition u·diag(s)·vt = x: the singular values s in descending order, the columns of u and the rows of vt orthonormal. For a row v of vt " + vectorSignsDoc +
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
	rotated := Jacobi(b, Concatenate(b, -1, adjoint(b, x), unit), JacobiAttrs{Length: rows})
	lines := SliceAxis(b, rotated, -1, ir.N(0), ir.N(rows))
	s := Sqrt(b, ReduceSum(b, Mul(b, lines, lines), -1))
	order := ArgSort(b, s, SortAttrs{Axis: -1, Descending: true})
	s, rotated = takeOrder(b, s, order, s.Rank()-1), takeRows(b, rotated, order)
	v := adjoint(b, SliceAxis(b, rotated, -1, ir.N(rows), ir.N(cols)))
	u, r := QR(b, adjoint(b, SliceAxis(b, rotated, -1, ir.N(0), ir.N(rows))), isFull(n))
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
