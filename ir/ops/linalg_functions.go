package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/derive"
)

// Functions of matrices.
const (
	OpMatrixPower ir.Op = "matrix_power"
	OpExpm        ir.Op = "expm"
	OpSPDSqrtm    ir.Op = "spd_sqrtm"
	OpSPDLogm     ir.Op = "spd_logm"
	OpLyapunov    ir.Op = "lyapunov"
)

// MatrixPowerAttrs hold an exponent.
type MatrixPowerAttrs struct{ Exponent int }

// Visit shows the attributes.
func (a *MatrixPowerAttrs) Visit(v ir.AttrVisitor) { v.Int("exponent", &a.Exponent) }

func init() {
	squares := append([]string{}, matrixConstraints...)
	squares = append(squares, "the matrices are square and have no symbolic size")
	defineComposite(composite{
		op: OpMatrixPower, doc: "Powers of square matrices by repeated squaring; those of the inverse for a negative exponent, and identity matrices for 0.",
		types: floats, constraints: squares, check: checkSizedSquare, newAttrs: func() ir.Attrs { return &MatrixPowerAttrs{1} },
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return matrixPower(b, in[0], n.Attrs().(*MatrixPowerAttrs).Exponent)
		},
		samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			var out []ir.Sample
			for _, p := range []int{0, 1, 2, 5, -2} {
				a := &MatrixPowerAttrs{p}
				out = append(out, ir.Sample{Name: ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{dominant(uint64(p+9), ir.F32, 2, 3, 3)}})
			}
			return append(out, ir.Sample{Name: "empty", Attrs: &MatrixPowerAttrs{3}, In: []*ir.Array{ir.NewArray(ir.F32, 0, 0)}})
		},
	})
	defineComposite(composite{
		op: OpExpm, doc: "The exponentials of square matrices, by a Padé approximant of degree 13 of x/2ˢ that is squared s times, 16 times at most: NaN where the largest sum of absolute values in a column is more than 3.5e5.",
		types: floats, constraints: squares, check: checkSizedSquare, body: expmBody,
		samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			large := dominant(5, ir.F32, 3, 3)
			for i := range large.F {
				large.F[i] *= -8
			}
			out := matrixSamples(general, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 2, 2})
			return append(out, ir.Sample{Name: "squared often", In: []*ir.Array{large}})
		},
	})
	defineComposite(composite{
		op: OpSPDSqrtm, doc: "The symmetric positive definite square roots of the symmetric parts of matrices. NaN where an eigenvalue is negative; the derivative is infinite where one is 0, and right where several are equal.",
		types: floats, constraints: squares, check: checkSizedSquare,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return spectral(b, in[0], Sqrt) },
		// y·dy + dy·y = dx
		jvp: func(b *ir.Builder, _ *ir.Node, _, out, t []ir.Value) []ir.Value {
			return []ir.Value{Lyapunov(b, out[0], symmetricPart(b, t[0]))}
		},
		samples: spdSamples,
	})
	defineComposite(composite{
		op: OpSPDLogm, doc: "The logarithms of the symmetric parts of matrices, which are to be positive definite: NaN where an eigenvalue is negative. Derivatives are right where several are equal.",
		types: floats, constraints: squares, check: checkSizedSquare,
		body:    func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return spectral(b, in[0], Log) },
		jvp:     jvpLogm,
		samples: spdSamples,
	})
	defineMatrixOp(lyapunov())
}

// MatrixPower returns the powers of square matrices.
func MatrixPower(b *ir.Builder, x ir.Value, exponent int) ir.Value {
	return b.Add1(OpMatrixPower, &MatrixPowerAttrs{exponent}, x)
}

// Expm returns the exponentials of square matrices.
func Expm(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpExpm, nil, x) }

// SPDSqrtm returns the square roots of symmetric positive definite matrices.
func SPDSqrtm(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSPDSqrtm, nil, x) }

// SPDLogm returns the logarithms of symmetric positive definite matrices.
func SPDLogm(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSPDLogm, nil, x) }

// Lyapunov solves a·x + x·a = c for symmetric positive definite a; the axes of
// both before the last two are broadcast against each other.
func Lyapunov(b *ir.Builder, a, c ir.Value) ir.Value {
	in := broadcastLead(b, OpLyapunov, a, c)
	return b.Add1(OpLyapunov, nil, in...)
}

func matrixPower(b *ir.Builder, x ir.Value, p int) ir.Value {
	if p < 0 {
		x = Inv(b, x)
	}
	var out ir.Value
	for rest := uint(max(p, -p)); rest > 0; rest >>= 1 {
		switch {
		case rest&1 != 0 && out.Valid():
			out = MatMul(b, out, x)
		case rest&1 != 0:
			out = x
		}
		if rest > 1 {
			x = MatMul(b, x, x)
		}
	}
	if p == 0 {
		return identityLike(b, x)
	}
	return out
}

// Of the Padé approximant of degree 13 (Higham, "The scaling and squaring method
// for the matrix exponential revisited", 2005): the greatest norm for which it is
// exact in f64, and its coefficients.
const padeNorm = 5.371920351148152

var pade = [14]float64{
	64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
	670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
}

const maxSquarings = 16

func expmBody(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
	x := in[0]
	if rows, _ := matrixDims(x); rows == 0 {
		return x
	}
	norm := StopGradient(b, matrixNorm(b, x, NormColumns))
	times := Ceil(b, Log2(b, Div(b, norm, ConstLike(b, norm, padeNorm))))
	times = row(b, column(b, Clamp(b, times, Zeros(b, x.DType()), Const(b, x.DType(), maxSquarings))))
	y := padeExp(b, Mul(b, x, Exp2(b, Neg(b, times))))
	y = repeated(b, maxSquarings, y, []ir.Value{times}, func(b *ir.Builder, k, y ir.Value, consts []ir.Value) ir.Value {
		more := Lt(b, Convert(b, k, y.DType()), consts[0])
		return Select(b, more, MatMul(b, y, y), y)
	})
	near := Le(b, norm, ConstLike(b, norm, padeNorm*(1<<maxSquarings)))
	return Select(b, row(b, column(b, near)), y, Const(b, x.DType(), math.NaN()))
}

// padeExp is (v - u)⁻¹·(v + u), where u has the odd powers of x and v the even
// ones. All are divided by the first coefficient, so that f32 holds them.
func padeExp(b *ir.Builder, x ir.Value) ir.Value {
	x2 := MatMul(b, x, x)
	x4 := MatMul(b, x2, x2)
	x6 := MatMul(b, x4, x2)
	powers := []ir.Value{identityLike(b, x), x2, x4, x6}
	sum := func(first, from int) ir.Value { // of x⁶ and less, with every other coefficient from first on
		var out ir.Value
		for i := from; i < len(powers); i++ {
			out = addTangents(b, out, Mul(b, powers[i], ConstLike(b, x, pade[first+2*(i-from)]/pade[0])))
		}
		return out
	}
	u := MatMul(b, x, Add(b, MatMul(b, x6, sum(9, 1)), sum(1, 0)))
	v := Add(b, MatMul(b, x6, sum(8, 1)), sum(0, 0))
	return Solve(b, Sub(b, v, u), Add(b, v, u), SolveAttrs{})
}

// spectral applies a function to the eigenvalues of symmetric matrices.
func spectral(b *ir.Builder, x ir.Value, f func(b *ir.Builder, w ir.Value) ir.Value) ir.Value {
	w, v := Eigh(b, x)
	return MatMul(b, Mul(b, v, row(b, f(b, w))), adjoint(b, v))
}

// lyapunov has the derivative x' of a·x' + x'·a = c' - a'·x - x·a'.
func lyapunov() matrixOp {
	return matrixOp{
		op: OpLyapunov, operands: []string{"a", "c"},
		doc:         "The x for which a·x + x·a = c, where a is the symmetric part of the matrix given and is to be positive definite.",
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
		samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			var out []ir.Sample
			for _, dims := range [][]int{{3, 3}, {1, 1}, {0, 0}, {2, 2, 2}} {
				out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{positive(1, ir.F32, dims...), general(2, ir.F32, dims...)}})
			}
			return loosely(out)
		},
	}
}

// jvpLogm differentiates log x = 2⁵·log(x^(1/2⁵)) by way of [logmByRoots]: unlike
// the eigenvectors, roots have derivatives where eigenvalues are equal.
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

// Of [logmByRoots]: how many roots are taken, and how many terms of the series of
// artanh are needed then for matrices of a condition number up to 1e12.
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

func spdSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	return loosely(matrixSamples(positive, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 2, 2}))
}
