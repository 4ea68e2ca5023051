package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

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
		transpose: func(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
			out := make([]ir.Value, 2)
			if onlyLinear(b, n, linear, 1) && ct[0].Valid() {
				out[1] = Lyapunov(b, in[0], ct[0])
			}
			return out
		},
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
