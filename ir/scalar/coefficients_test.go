package scalar

import (
	"math"
	"testing"
)

// TestCoefficientsAreOfTheFormsTheyAreGivenWith evaluates in f64 the forms that the
// comment of Coefficients promises to backends.
func TestCoefficientsAreOfTheFormsTheyAreGivenWith(t *testing.T) {
	at := func(c []float64, x float64) (sum float64) {
		for i := len(c) - 1; i >= 0; i-- {
			sum = sum*x + c[i]
		}
		return sum
	}
	const near, far = 0, 1
	for _, form := range []struct {
		name     string
		op       Op
		part     int
		from, to float64
		value    func(c []float64, x float64) float64
		want     func(x float64) float64
	}{
		{"tanh near 0", OpTanh, near, -0.6, 0.6, func(c []float64, x float64) float64 { return x + x*x*x*at(c, x*x) }, math.Tanh},
		{"erf near 0", OpErf, near, -0.92, 0.92, func(c []float64, x float64) float64 { return x + x*at(c, x*x) }, math.Erf},
		{"erf", OpErf, far, 0.92, 3.95, func(c []float64, x float64) float64 { return 1 - math.Exp2(at(c, x)) }, math.Erf},
		{"erfc", OpErfc, far, 0.75, 10, func(c []float64, x float64) float64 {
			return math.Exp(-x*x) * 2 / (x + 2) * at(c, 2/(x+2))
		}, math.Erfc},
		{"2^r", OpPow, near, -0.502, 0.502, func(c []float64, x float64) float64 { return 1 + x*at(c, x) }, math.Exp2},
	} {
		n, f := Coefficients(form.op)
		c := [][]float64{near: n, far: f}[form.part]
		for i := range 1001 {
			x := form.from + (form.to-form.from)*float64(i)/1000
			got, want := form.value(c, x), form.want(x)
			if e := math.Abs(got - want); !(e <= 0x1p-25*math.Abs(want)) { // a quarter of the last place of an f32
				t.Fatalf("%s of %v is %v, not %v", form.name, x, got, want)
			}
		}
	}
}
