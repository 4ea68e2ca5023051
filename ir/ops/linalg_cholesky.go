package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// OpCholesky is the Cholesky factorisation.
const OpCholesky ir.Op = "cholesky"

// matrixBlock is the number of columns factored, or rows solved, before the trailing
// matrix is updated by a product.
const matrixBlock = 64

func init() {
	defineMatrixOp(matrixOp{
		op: OpCholesky, kernels: choleskyKernels,
		doc: "The Cholesky factor: the lower triangular l with a positive diagonal and l·lᵀ = (x + xᵀ)/2. " +
			"All elements are NaN if that matrix is not positive definite.",
		constraints: []string{"the matrices are square"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			return []ir.Type{trailing(n.Input(0).DType(), in[0].rows, in[0].cols)}, squareMatrix(in[0])
		},
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value {
			return []ir.Value{choleskyBody(b, symmetricPart(b, in[0]))}
		},
		jvp: jvpCholesky,
	})
}

// Cholesky returns the lower triangular l with l·lᵀ = x for symmetric positive definite
// matrices x, [..., n, n] of f32 or f64. All elements of l are NaN if x is not positive
// definite.
func Cholesky(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpCholesky, nil, x) }

// jvpCholesky is dL = L·φ(L⁻¹ dA L⁻ᵀ), where φ takes the lower triangle and half
// of the diagonal (Murray, "Differentiation of the Cholesky decomposition", 2016).
func jvpCholesky(b *ir.Builder, _ *ir.Node, _, out, t []ir.Value) []ir.Value {
	l := out[0]
	left := TriangularSolve(b, l, symmetricPart(b, t[0]), TriangularAttrs{LeftSide: true, Lower: true})
	both := TriangularSolve(b, l, left, TriangularAttrs{Lower: true, TransposeA: true})
	row, col := places(b, both)
	half := Mul(b, both, ConstLike(b, both, 0.5))
	phi := Select(b, Eq(b, row, col), half, orZero(b, Gt(b, row, col), both))
	return []ir.Value{MatMul(b, l, phi)}
}

// choleskyBody factors small matrices column by column, larger ones by halves and panels.
func choleskyBody(b *ir.Builder, x ir.Value) ir.Value {
	n, _ := matrixDims(x)
	if n <= maxCholesky {
		return checkedFactor(b, choleskyColumns(b, x))
	}
	return checkedFactor(b, choleskyHalves(b, x, max(maxPanels*matrixBlock, n/maxBlocks)))
}

// choleskyPanels factors panels of columns in a loop: it factors the panel's triangle, solves for the
// rows below and updates the trailing matrix by their product (right-looking).
func choleskyPanels(b *ir.Builder, x ir.Value) ir.Value {
	n, _ := matrixDims(x)
	size, at := roundUp(n, matrixBlock), x.Rank()-2
	_, ys := Scan(b, Loop{
		Carries: []ir.Value{padIdentity(b, x, size)}, Xs: []ir.Value{steps(b, size/matrixBlock)},
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			p := panelOf(b, carries[0], xs[0], matrixBlock)
			triangle := Cholesky(b, sliceMatrix(b, p.live, matrixBlock, matrixBlock))
			l := p.back(TriangularSolve(b, triangle, p.live, TriangularAttrs{Lower: true, TransposeA: true}), at)
			i, j := places(b, l)
			l = orZero(b, Ge(b, i, Add(b, j, p.first)), l)
			return []ir.Value{Sub(b, carries[0], MatMul(b, l, adjoint(b, l)))}, []ir.Value{l}
		},
	})
	if b.Err() != nil {
		return ir.Value{}
	}
	return sliceMatrix(b, mergeAxes(b, MoveAxis(b, ys[0], 0, at+1), at+1), n, n)
}

// checkedFactor returns the factors l, and NaN for those whose diagonal is not positive.
func checkedFactor(b *ir.Builder, l ir.Value) ir.Value {
	diagonal := Diagonal(b, l, 0)
	good := row(b, column(b, All(b, Gt(b, diagonal, ZerosLike(b, diagonal)), -1)))
	return Select(b, BroadcastTo(b, good, l.Shape()), l, ConstLike(b, l, math.NaN()))
}

// maxPanels is the number of panels that a loop factors one by one: each step updates the whole matrix.
// Larger matrices are halved, which updates every element once in each halving.
const maxPanels = 8

// choleskyHalves factors the first half of the columns of symmetric matrices, then what remains of
// the second, down to panels of at most the given columns.
func choleskyHalves(b *ir.Builder, x ir.Value, atMost int) ir.Value {
	n, _ := matrixDims(x)
	if n <= atMost {
		return choleskyPanels(b, x)
	}
	half := roundUp(n/2, matrixBlock)
	first := choleskyHalves(b, partOf(b, x, 0, half, 0, half), atMost)
	below := TriangularSolve(b, first, partOf(b, x, half, n-half, 0, half), TriangularAttrs{Lower: true, TransposeA: true})
	rest := Sub(b, partOf(b, x, half, n-half, half, n-half), MatMul(b, below, adjoint(b, below)))
	top := Concatenate(b, -1, first, ZerosLike(b, adjoint(b, below)))
	return Concatenate(b, -2, top, Concatenate(b, -1, below, choleskyHalves(b, rest, atMost)))
}

// choleskyColumns factors column by column: from each it subtracts its projection on the earlier
// ones, which makes it that of the factor times its diagonal element.
func choleskyColumns(b *ir.Builder, x ir.Value) ir.Value {
	n, _ := matrixDims(x)
	x = repeated(b, n, x, nil, func(b *ir.Builder, k, x ir.Value, _ []ir.Value) ir.Value {
		below := element(b, x, k, -1)
		pivot := row(b, column(b, element(b, below, k, -1)))
		outer := Div(b, Mul(b, column(b, below), row(b, below)), pivot)
		i, j := places(b, outer)
		return Sub(b, x, orZero(b, And(b, Gt(b, i, k), Gt(b, j, k)), outer))
	})
	return Tril(b, Div(b, x, row(b, Sqrt(b, Diagonal(b, x, 0)))), 0)
}

// padIdentity extends square matrices by an identity block.
func padIdentity(b *ir.Builder, x ir.Value, n int) ir.Value {
	size, _ := matrixDims(x)
	if size == n {
		return x
	}
	more := padMatrix(b, x, n, n)
	i, j := places(b, more)
	return Select(b, And(b, Eq(b, i, j), Ge(b, i, int32Like(b, i, size))), OnesLike(b, more), more)
}

// padMatrix pads matrices with zero rows and columns.
func padMatrix(b *ir.Builder, x ir.Value, rows, cols int) ir.Value {
	m, n := matrixDims(x)
	low, high := make([]int, x.Rank()), make([]int, x.Rank())
	high[x.Rank()-2], high[x.Rank()-1] = rows-m, cols-n
	return Pad(b, x, Zeros(b, x.DType()), low, high, nil)
}

// sliceMatrix returns the first rows and columns of matrices.
func sliceMatrix(b *ir.Builder, x ir.Value, rows, cols int) ir.Value {
	return SliceAxis(b, SliceAxis(b, x, -2, ir.N(0), ir.N(rows)), -1, ir.N(0), ir.N(cols))
}

// Functions of symmetric positive definite matrices.
const (
	OpSPDSqrtm ir.Op = "spd_sqrtm"
	OpSPDLogm  ir.Op = "spd_logm"
	OpLyapunov ir.Op = "lyapunov"
)

// squareConstraints hold for functions of square matrices.
func squareConstraints() []string {
	return append(slices.Clone(matrixConstraints), "the matrices are square and have no symbolic size")
}

func init() {
	squares := squareConstraints()
	defineComposite(composite{
		op: OpSPDSqrtm, doc: "The symmetric positive definite square roots of the symmetric parts of matrices, NaN if an eigenvalue is negative. The derivative is infinite if an eigenvalue is 0, and finite for repeated eigenvalues.",
		types: floats, constraints: squares, check: checkSizedSquare,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return spectral(b, in[0], Sqrt) },
		// y·dy + dy·y = dx
		jvp: func(b *ir.Builder, _ *ir.Node, _, out, t []ir.Value) []ir.Value {
			return []ir.Value{Lyapunov(b, out[0], symmetricPart(b, t[0]))}
		},
	})
	defineComposite(composite{
		op: OpSPDLogm, doc: "The matrix logarithms of the symmetric parts of matrices, which must be positive definite: NaN if an eigenvalue is negative. Derivatives are finite for repeated eigenvalues.",
		types: floats, constraints: squares, check: checkSizedSquare,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return spectral(b, in[0], Log) },
		jvp:  jvpLogm,
	})
	defineMatrixOp(lyapunov())
}

// SPDSqrtm returns the square roots of symmetric positive definite matrices, [..., n, n]
// of f32 or f64; NaN if an eigenvalue is negative.
func SPDSqrtm(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSPDSqrtm, nil, x) }

// SPDLogm returns the matrix logarithms of symmetric positive definite matrices, [..., n,
// n] of f32 or f64; NaN if an eigenvalue is negative.
func SPDLogm(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSPDLogm, nil, x) }

// Lyapunov returns the solution x of a·x + x·a = c for symmetric positive definite a; the
// batch axes are broadcast.
func Lyapunov(b *ir.Builder, a, c ir.Value) ir.Value {
	in := broadcastLead(b, OpLyapunov, a, c)
	return b.Add1(OpLyapunov, nil, in...)
}

// spectral applies a function to the eigenvalues of symmetric matrices.
func spectral(b *ir.Builder, x ir.Value, f func(b *ir.Builder, w ir.Value) ir.Value) ir.Value {
	w, v := Eigh(b, x)
	return MatMul(b, Mul(b, v, row(b, f(b, w))), adjoint(b, v))
}

// lyapunov has the derivative x' with a·x' + x'·a = c' - a'·x - x·a'.
func lyapunov() matrixOp {
	return matrixOp{
		op: OpLyapunov, operands: []string{"a", "c"},
		doc:         "The solution x of the Lyapunov equation a·x + x·a = c, for the symmetric part a of the operand, which must be positive definite.",
		constraints: []string{"the matrices are square, of one size that is not symbolic"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			if in[0] != in[1] {
				return nil, ir.Shapef("a is %s by %s and c is %s by %s", in[0].rows, in[0].cols, in[1].rows, in[1].cols)
			}
			_, _, err := sizedMatrix(in[0])
			if err == nil {
				err = squareMatrix(in[0])
			}
			return []ir.Type{trailing(n.Input(0).DType(), in[0].rows, in[0].cols)}, err
		},
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value {
			w, v := Eigh(b, in[0])
			vt := adjoint(b, v)
			e := Div(b, MatMul(b, vt, MatMul(b, in[1], v)), Add(b, row(b, w), column(b, w)))
			return []ir.Value{MatMul(b, v, MatMul(b, e, vt))}
		},
		jvp: func(b *ir.Builder, _ *ir.Node, in, out, t []ir.Value) []ir.Value {
			rest := t[1]
			if t[0].Valid() {
				da := symmetricPart(b, t[0])
				rest = addTangents(b, rest, Neg(b, Add(b, MatMul(b, da, out[0]), MatMul(b, out[0], da))))
			}
			return []ir.Value{Lyapunov(b, in[0], rest)}
		},
		transpose: transposeOperand(1, func(b *ir.Builder, _ *ir.Node, in []ir.Value, ct ir.Value) ir.Value {
			return Lyapunov(b, in[0], ct)
		}),
	}
}

// jvpLogm differentiates log x = 2⁵·log(x^(1/2⁵)) by [logmByRoots]: unlike eigenvectors,
// roots are differentiable at repeated eigenvalues.
func jvpLogm(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	g, err := ir.Transform(string(OpSPDLogm), func(b *ir.Builder) {
		b.Output("log", logmByRoots(b, b.Port(ir.InputPort, "x", n.Input(0).Type())))
	})
	if err != nil {
		b.Fail(n.Fail(err))
		return make([]ir.Value, 1)
	}
	_, moved := derive.JVP(b, g, in, t)
	return moved
}

// The number of roots in [logmByRoots], and of terms of the artanh series for condition
// numbers up to 1e12.
const (
	logmRoots = 6
	logmTerms = 11
)

// logmByRoots is log x by the series of 2·artanh((y - 1)/(y + 1)) for the root y
// of x over its mean eigenvalue.
func logmByRoots(b *ir.Builder, x ir.Value) ir.Value {
	n, _ := matrixDims(x)
	y := symmetricPart(b, x)
	if n == 0 {
		return y
	}
	one := identityLike(b, x)
	mean := Trace(b, y, 0)
	mean = StopGradient(b, row(b, column(b, Div(b, mean, ConstLike(b, mean, float64(n))))))
	y = Div(b, y, mean)
	for range logmRoots {
		y = SPDSqrtm(b, y)
	}
	z := Solve(b, Add(b, y, one), Sub(b, y, one), SolveAttrs{})
	z2 := MatMul(b, z, z)
	sum := Mul(b, one, ConstLike(b, one, 1/float64(2*logmTerms+1)))
	for k := logmTerms - 1; k >= 0; k-- {
		sum = Add(b, MatMul(b, sum, z2), Mul(b, one, ConstLike(b, one, 1/float64(2*k+1))))
	}
	log := Mul(b, MatMul(b, sum, z), ConstLike(b, z, 2<<logmRoots))
	return Add(b, log, Mul(b, one, Log(b, mean)))
}
