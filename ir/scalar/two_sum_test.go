package scalar_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	. "github.com/rlx-go/rlx/ir/scalar"
)

// TestTwoSum checks in f64 that the sum and the error of f32 are exact together.
func TestTwoSum(t *testing.T) {
	a, b := FreeVar("a", dtype.F32), FreeVar("b", dtype.F32)
	sum, rest := TwoSum(a, b)
	for _, x := range [][2]float64{{1, 0x1p-30}, {1e8, 0.1}, {0.1, 1e8}, {-1e8, 3}, {1.5, -1.5}, {0x1p24, 1}, {-0.1, 0x1p-149}} {
		vars := map[string]Value{"a": {F: float64(float32(x[0]))}, "b": {F: float64(float32(x[1]))}}
		s, r := valueOf(t, sum, vars), valueOf(t, rest, vars)
		if want := vars["a"].F + vars["b"].F; s != float64(float32(want)) || s+r != want {
			t.Errorf("%v: %v and %v", x, s, r)
		}
	}
}

// TestCompensatedSumsThatAreNotFinite keeps infinities and NaN.
func TestCompensatedSumsThatAreNotFinite(t *testing.T) {
	a, b := FreeVar("a", dtype.F32), FreeVar("b", dtype.F32)
	e := Compensated(TwoSum(a, b))
	for _, x := range [][2]float64{{1, math.Inf(1)}, {math.Inf(-1), 1}, {math.MaxFloat32, math.MaxFloat32}, {math.Inf(1), math.Inf(-1)}, {math.NaN(), 1}} {
		got, want := valueOf(t, e, map[string]Value{"a": {F: x[0]}, "b": {F: x[1]}}), float64(float32(x[0])+float32(x[1]))
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%v: %v, want %v", x, got, want)
		}
	}
}

func valueOf(t *testing.T, e Expr, vars map[string]Value) float64 {
	t.Helper()
	v, err := Eval(e, &Env{Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	return v.F
}
