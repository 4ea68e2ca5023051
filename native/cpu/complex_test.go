package cpu_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestComplexMaps compares maps of complex numbers, with infinities, zeros, NaN and odd sizes, with Go's arithmetic.
func TestComplexMaps(t *testing.T) {
	parts := []float64{0, math.Copysign(0, -1), 1, -2.5, 3e-20, math.Inf(1), math.Inf(-1), math.NaN(), 7e9}
	n := len(parts) * len(parts)
	everyLevel(t, func(t *testing.T) {
		for _, d := range []ir.DType{ir.C64, ir.C128} {
			for _, size := range []int{1, 5, 19, n * n} {
				x, y := ir.NewArray(d, size), ir.NewArray(d, size)
				for i := range size {
					x.C[i] = complex(parts[i%9], parts[i/9%9])
					y.C[i] = complex(parts[(i/n+i)%9], parts[i/n/9%9])
				}
				x.Round()
				y.Round()
				g := build(t, func(b *ir.Builder) {
					x, y := b.Input("x", d, ir.N(size)), b.Input("y", d, ir.N(size))
					b.Output("quotient", ops.Div(b, x, y))
					b.Output("sum", ops.Add(b, x, y))
					b.Output("square", ops.Mul(b, ops.Conj(b, y), y))
					b.Output("product of numbers other than 0", ops.MulZero(b, x, y))
					b.Output("scaled", ops.Complex(b, ops.Imag(b, x), ops.Add(b, ops.Real(b, y), ops.Convert(b, ops.Iota(b, ir.I32, 0, ir.N(size)), ops.Real(b, y).DType()))))
				})
				r, err := compileGraphs(t, ir.Entry{Name: "run", Graph: g}).Run(t.Context(), "run", map[string]native.Tensor{"x": native.FromArray(x), "y": native.FromArray(y)})
				if err != nil {
					t.Fatal(err)
				}
				out, err := r.Wait(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got := map[string]*ir.Array{}
				for name := range out {
					if got[name], err = out[name].Array(); err != nil {
						t.Fatal(err)
					}
				}
				for i := range size {
					a, b := x.C[i], y.C[i]
					for name, want := range map[string]complex128{
						"quotient": a / b, "sum": a + b, "product of numbers other than 0": productOrZero(a, b), "square": cmplx.Conj(b) * b, "scaled": complex(imag(a), real(b)+float64(i)),
					} {
						got := got[name].C[i]
						if !sameNumber(real(got), real(want)) || !sameNumber(imag(got), imag(want)) {
							t.Errorf("%s of %v and %v of %d %s: %v, not %v", name, a, b, size, d, got, want)
						}
					}
				}
			}
		}
	})
}

func productOrZero(a, b complex128) complex128 {
	if a == 0 || b == 0 {
		return 0
	}
	return a * b
}

// sameNumber compares parts of results of f32 or wider numbers, NaN with NaN.
func sameNumber(got, want float64) bool {
	return fmt.Sprint(got) == fmt.Sprint(want) || got == want || math.Abs(got-want) <= 1e-5*math.Abs(want) ||
		math.Abs(want) > math.MaxFloat32 && math.IsInf(got, 0) || math.Abs(want) < 1e-37 && math.Abs(got) < 1e-37
}
