package ops

import (
	"math/cmplx"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Complex numbers and their parts. The pairing of cotangents and tangents is the real part
// of Σ x·y, without a conjugate: the gradient of a real function of a + b·i is ∂/∂a −
// i·∂/∂b, as in JAX.
const (
	OpComplex ir.Op = "complex"
	OpReal    ir.Op = "real"
	OpImag    ir.Op = "imag"
	OpConj    ir.Op = "conj"
)

func init() {
	defineComplex()
	defineParts()
	defineUnary(unary{
		op: OpConj, doc: "The complex conjugate of x.", types: complexes, scalar: scalar.Conj,
		reference: scalarReference{complex: func(x []complex128) complex128 { return cmplx.Conj(x[0]) }},
		linear:    Conj,
	})
}

func defineComplex() {
	define(&ir.Def{
		Op: OpComplex, Doc: "re + im·i.", Operands: []string{"re", "im"},
		Constraints: numbered(
			"both operands are f32, or both f64; the result is c64 or c128",
			"the operands have one shape, which is that of the result",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, floats)
			if err != nil {
				return nil, err
			}
			if t.DType.Complex() == 0 {
				return nil, ir.DTypef("the parts are %s, not f32 or f64", t.DType)
			}
			return []ir.Type{{DType: t.DType.Complex(), Shape: t.Shape}}, nil
		},
		Eval: evalResult(func(n *ir.Node, in []*ir.Array, out *ir.Array) {
			for i := range out.C {
				out.C[i] = complex(in[0].F[i], in[1].F[i])
			}
		}),
		JVP: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			return []ir.Value{Complex(b, orZeros(b, t[0], in[0]), orZeros(b, t[1], in[1]))}
		},
		Transpose: transposeEach(func(b *ir.Builder, _ *ir.Node, operand int, _ []ir.Value, ct ir.Value) ir.Value {
			if operand == 0 {
				return Real(b, ct)
			}
			return Neg(b, Imag(b, ct))
		}),
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return scalar.MakeComplex(x[0], x[1]) },
	})
}

func defineParts() {
	definePart(OpReal, "The real part of x.", scalar.Real,
		func(z complex128) float64 { return real(z) },
		func(b *ir.Builder, ct ir.Value) ir.Value { return Complex(b, ct, ZerosLike(b, ct)) })
	definePart(OpImag, "The imaginary part of x.", scalar.Imag,
		func(z complex128) float64 { return imag(z) },
		func(b *ir.Builder, ct ir.Value) ir.Value { return Complex(b, ZerosLike(b, ct), Neg(b, ct)) })
}

// definePart defines an op from a complex to a real number.
func definePart(op ir.Op, doc string, body func(scalar.Expr) scalar.Expr, part func(complex128) float64, transpose func(b *ir.Builder, ct ir.Value) ir.Value) {
	define(&ir.Def{
		Op: op, Doc: doc, Operands: []string{"x"},
		Constraints: numbered(
			"the operand is c64 or c128; the result is f32 or f64",
			"the result has the shape of the operand",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, complexes)
			return []ir.Type{{DType: t.DType.Real(), Shape: t.Shape}}, err
		},
		Eval: evalResult(func(n *ir.Node, in []*ir.Array, out *ir.Array) {
			for i := range out.F {
				out.F[i] = part(in[0].C[i])
			}
		}),
		JVP: linearJVP,
		Transpose: transposeEach(func(b *ir.Builder, _ *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return transpose(b, ct)
		}),
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return body(x[0]) },
	})
}

// Complex returns re + im·i, of two values of type f32 or f64.
func Complex(b *ir.Builder, re, im ir.Value) ir.Value {
	return broadcasting(b, OpComplex, re, im)
}

// Real returns the real part of a complex value.
func Real(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpReal, nil, x) }

// Imag returns the imaginary part of a complex value.
func Imag(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpImag, nil, x) }

// Conj returns the complex conjugate of x.
func Conj(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpConj, nil, x) }
