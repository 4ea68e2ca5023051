package plain_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/ir/scalar/plain"
)

// The rules give what package math does, to a few units of f32.
func TestRules(t *testing.T) {
	x, y := scalar.Arg(0, dtype.F32), scalar.Arg(1, dtype.F32)
	points := []float64{-30, -2.5, -1, -0.75, -1e-3, -1e-6, 0, 1e-6, 1e-3, 0.25, 0.75, 1, 2.5, 30, math.Inf(1), math.NaN()}
	for name, c := range map[string]struct {
		rule scalar.Expr
		want func(a, b float64) float64
	}{
		"trunc": {plain.Trunc(x), func(a, _ float64) float64 { return math.Trunc(a) }},
		"expm1": {plain.Expm1(x), func(a, _ float64) float64 { return math.Expm1(a) }},
		"log1p": {plain.Log1p(x), func(a, _ float64) float64 { return math.Log1p(a) }},
		"erfc":  {plain.Erfc(x), func(a, _ float64) float64 { return math.Erfc(a) }},
		"atan2": {plain.Atan2(x, y), math.Atan2},
		"mul zero": {plain.MulZero(x, y), func(a, b float64) float64 {
			if a == 0 || b == 0 {
				return 0
			}
			return a * b
		}},
	} {
		for _, a := range points {
			for _, b := range points {
				a, b := float64(float32(a)), float64(float32(b))
				got, err := scalar.Eval(c.rule, &scalar.Env{Args: []scalar.Value{{F: a}, {F: b}}})
				if err != nil {
					t.Fatal(err)
				}
				want := c.want(a, b)
				if want == 0 || math.IsInf(want, 0) || math.IsNaN(want) {
					if got.F != want && !(math.IsNaN(got.F) && math.IsNaN(want)) && math.Abs(got.F-want) > 1e-37 {
						t.Errorf("%s of %v and %v is %v, want %v", name, a, b, got.F, want)
					}
				} else if math.Abs(got.F-want) > 2e-6*math.Abs(want)+1e-37 {
					t.Errorf("%s of %v and %v is %v, want %v", name, a, b, got.F, want)
				}
			}
		}
	}
}
