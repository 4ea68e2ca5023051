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
		meaning: func(n *ir.Node, in []matrix) []matrix {
			if !withReferences {
				return nil
			}
			return []matrix{plainJacobi(in[0].clone(), *n.Attrs().(*JacobiAttrs))}
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
	next := table(b, ir.I32, 2*pairs)
	if next == nil {
		return ir.Value{}
	}
	for p := range pairs { // the upper blocks of pairs move to the right, the lower ones to the left
		next.I[2*p], next.I[2*p+1] = int64(2*p-2), int64(2*p+3)
	}
	next.I[0], next.I[2*pairs-1] = 0, int64(2*pairs-2)
	next.I[2] = 1
	x = repeated(b, a.sweeps(rows)*(2*pairs-1), padMatrix(b, x, high, cols), nil, func(b *ir.Builder, _, x ir.Value, _ []ir.Value) ir.Value {
		x = splitAxis(b, x, at, ir.N(pairs))
		head := SliceAxis(b, x, -1, ir.N(0), ir.N(a.Length))
		products := MatMul(b, head, adjoint(b, head))
		both := Jacobi(b, Concatenate(b, -1, products, identityLike(b, products)), JacobiAttrs{Length: 2 * block, Sweeps: 1})
		x = MatMul(b, SliceAxis(b, both, -1, ir.N(2*block), ir.N(2*block)), x)
		x = splitAxis(b, mergeAxes(b, x, at), at, ir.N(2*pairs))
		return mergeAxes(b, Take(b, x, Literal(b, next), at, OutsideClip), at)
	})
	return SliceAxis(b, x, -2, ir.N(0), ir.N(rows))
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

// plainJacobi rotates the same pairs one after the other.
func plainJacobi(x matrix, a JacobiAttrs) matrix {
	others := x.rows + x.rows%2 - 1
	for k := range a.sweeps(x.rows) * max(others, 0) {
		for i := range x.rows {
			j := (2*k%others - i + others) % others
			if i == j || i == others {
				j = others
			}
			if i < j && j < x.rows {
				orthogonaliseRows(x, i, j, a.Length)
			}
		}
	}
	return x
}

// orthogonaliseRows makes the first length elements of two rows orthogonal.
func orthogonaliseRows(x matrix, i, j, length int) {
	var own, other, across float64
	for c := range length {
		own += x.at(i, c) * x.at(i, c)
		other += x.at(j, c) * x.at(j, c)
		across += x.at(i, c) * x.at(j, c)
	}
	if math.Abs(across) <= 0x1p-52*math.Sqrt(own*other) {
		return
	}
	zeta := (other - own) / (2 * across)
	tan := 1 / (math.Abs(zeta) + math.Hypot(1, zeta))
	if zeta < 0 {
		tan = -tan
	}
	cos := 1 / math.Hypot(1, tan)
	for c := range x.cols {
		u, v := x.at(i, c), x.at(j, c)
		x.set(i, c, cos*(u-tan*v))
		x.set(j, c, cos*(tan*u+v))
	}
}
