package cmplx_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/cmplx"
	"github.com/rlx-go/rlx/ir/ops"
)

// functions are those of the cases of ir/irtest/cases/functions.json: PyTorch's and NumPy's, of the parts
// of complex numbers.
var functions = map[string]functiontest.Function{
	"abs": ofReal(cmplx.Abs), "abs edges": ofReal(cmplx.Abs), "angle": ofReal(cmplx.Angle), "angle edges": ofReal(cmplx.Angle),
	"exp": of(cmplx.Exp), "exp edges": of(cmplx.Exp), "log": of(cmplx.Log), "sqrt": of(cmplx.Sqrt), "sqrt edges": of(cmplx.Sqrt),
	"sin": of(cmplx.Sin), "cos": of(cmplx.Cos), "sinh": of(cmplx.Sinh), "cosh": of(cmplx.Cosh),
	"pow": ofTwo(cmplx.Pow), "mul": ofTwo(ops.Mul), "div": ofTwo(ops.Div),
	"eig": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return bothParts(b, in["x"])
	},
	"eig complex": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return bothParts(b, ops.Complex(b, in["re"], in["im"]))
	},
	"eigvals": eigvals, "eigvals edges": eigvals,
	"polar": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return split(b, cmplx.Polar(b, in["r"], in["theta"]))
	},
}

func eigvals(b *ir.Builder, in map[string]ir.Value) []ir.Value {
	return split(b, cmplx.Eigvals(b, in["x"]))
}

func bothParts(b *ir.Builder, x ir.Value) []ir.Value {
	w, v := cmplx.Eig(b, x)
	return append(split(b, w), split(b, v)...)
}

func ofReal(f func(b *ir.Builder, z ir.Value) ir.Value) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{f(b, ops.Complex(b, in["re"], in["im"]))}
	}
}

func of(f func(b *ir.Builder, z ir.Value) ir.Value) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return split(b, f(b, ops.Complex(b, in["re"], in["im"])))
	}
}

func ofTwo(f func(b *ir.Builder, z, w ir.Value) ir.Value) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return split(b, f(b, ops.Complex(b, in["re"], in["im"]), ops.Complex(b, in["re2"], in["im2"])))
	}
}

func split(b *ir.Builder, z ir.Value) []ir.Value { return []ir.Value{ops.Real(b, z), ops.Imag(b, z)} }

func TestValuesAreThoseOfPyTorchAndNumPy(t *testing.T) {
	functiontest.Run(t, "../irtest/cases/functions.json", "cmplx.", functions)
}
