package irtest

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Derivatives is a function of one number with its derivatives in closed form.
type Derivatives struct {
	Name string
	F    func(b *ir.Builder, x ir.Value) ir.Value
	// Of returns the value and the first four derivatives at x.
	Of func(x float64) [5]float64
}

// DerivativePoints are the points at which [ClosedForms] are evaluated: ordinary points,
// and 0, where the derivatives of relu are 0 by convention.
var DerivativePoints = []float64{-2.3, -1, -0.4, 0, 0.3, 1, 1.9}

// DerivativeTolerance returns the tolerance for a derivative of the given order, 1 to 4,
// on any device.
func DerivativeTolerance(d ir.DType, order int) Tolerance {
	switch {
	case d == ir.F64:
		return Tolerance{Abs: 1e-10, Rel: 1e-10}
	case order <= 2:
		return Tolerance{Abs: 1e-5, Rel: 1e-5}
	}
	return Tolerance{Abs: 1e-3, Rel: 1e-3}
}

// ClosedForms returns building blocks of activations.
func ClosedForms() []Derivatives {
	return []Derivatives{
		{"cube", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Mul(b, x, ops.Mul(b, x, x)) }, func(x float64) [5]float64 {
			return [5]float64{x * x * x, 3 * x * x, 6 * x, 6, 0}
		}},
		{"relu", ops.Relu, func(x float64) [5]float64 {
			if x <= 0 {
				return [5]float64{}
			}
			return [5]float64{x, 1}
		}},
		{"tanh", ops.Tanh, tanhDerivatives},
		{"gelu", ops.Gelu, geluDerivatives},
		{"gelu_tanh", ops.GeluTanh, geluTanhDerivatives},
		{"silu", ops.Silu, func(x float64) [5]float64 {
			s := sigmoidDerivatives(x)
			return [5]float64{x * s[0], s[0] + x*s[1], 2*s[1] + x*s[2], 3*s[2] + x*s[3], 4*s[3] + x*s[4]}
		}},
		{"softplus", ops.Softplus, func(x float64) [5]float64 {
			s := sigmoidDerivatives(x)
			return [5]float64{math.Log1p(math.Exp(-math.Abs(x))) + max(x, 0), s[0], s[1], s[2], s[3]}
		}},
		{"erf", ops.Erf, func(x float64) [5]float64 {
			d := 2 / math.Sqrt(math.Pi) * math.Exp(-x*x)
			return [5]float64{math.Erf(x), d, -2 * x * d, (4*x*x - 2) * d, (12*x - 8*x*x*x) * d}
		}},
	}
}

func tanhDerivatives(x float64) [5]float64 {
	u := math.Tanh(x)
	s := 1 - u*u
	return [5]float64{u, s, -2 * u * s, (6*u*u - 2) * s, (16*u - 24*u*u*u) * s}
}

func sigmoidDerivatives(x float64) [5]float64 {
	s := 1 / (1 + math.Exp(-x))
	d := s * (1 - s)
	return [5]float64{s, d, d * (1 - 2*s), d * (1 - 6*s + 6*s*s), d * (1 - 2*s) * (1 - 12*s + 12*s*s)}
}

// geluDerivatives are those of x·Φ(x), with the density φ: Φ + xφ, (2 − x²)φ,
// (x³ − 4x)φ, (−x⁴ + 7x² − 4)φ.
func geluDerivatives(x float64) [5]float64 {
	cdf, pdf := 0.5*math.Erfc(-x/math.Sqrt2), math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	q := x * x
	return [5]float64{x * cdf, cdf + x*pdf, (2 - q) * pdf, x * (q - 4) * pdf, (-q*q + 7*q - 4) * pdf}
}

// geluTanhDerivatives are those of x(1 + tanh u)/2 with u = √(2/π)(x + 0.044715x³), by
// Faà di Bruno's formula.
func geluTanhDerivatives(x float64) [5]float64 {
	c := math.Sqrt(2 / math.Pi)
	u1, u2, u3 := c*(1+0.134145*x*x), c*0.26829*x, c*0.26829
	t := tanhDerivatives(c * (x + 0.044715*x*x*x))
	h := [5]float64{
		t[0],
		t[1] * u1,
		t[2]*u1*u1 + t[1]*u2,
		t[3]*u1*u1*u1 + 3*t[2]*u1*u2 + t[1]*u3,
		t[4]*u1*u1*u1*u1 + 6*t[3]*u1*u1*u2 + t[2]*(3*u2*u2+4*u1*u3),
	}
	return [5]float64{x * (1 + h[0]) / 2, (1 + h[0] + x*h[1]) / 2, (2*h[1] + x*h[2]) / 2, (3*h[2] + x*h[3]) / 2, (4*h[3] + x*h[4]) / 2}
}
