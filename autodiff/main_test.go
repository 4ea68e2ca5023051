package autodiff_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
)

func build(t *testing.T, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build("f", f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// must fails the test where a transform did not work.
func must(t *testing.T, g *ir.Graph, err error) *ir.Graph {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

type values = map[string]*ir.Array

// eval returns the outputs of g by name, computed in float64; states are left
// out where a plain output has their name.
func eval(t *testing.T, g *ir.Graph, in values) values {
	t.Helper()
	out, err := ir.Eval(g, in, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	byName := values{}
	for i, o := range g.Outputs() {
		if _, ok := byName[o.Name]; !ok || !o.State {
			byName[o.Name] = out[i]
		}
	}
	return byName
}

func num(x float64) *ir.Array { return ir.Float(ir.F64, x) }

func vec(x ...float64) *ir.Array { return ir.Floats(ir.F64, x, len(x)) }

// same reports whether two numbers are equal to a relative error; infinities
// and NaNs only to their like.
func same(got, want, tol float64) bool {
	if math.IsNaN(want) || math.IsInf(want, 0) {
		return got == want || math.IsNaN(got) && math.IsNaN(want)
	}
	return math.Abs(got-want) <= tol*max(1, math.Abs(want))
}

func checkFloats(t *testing.T, what string, got *ir.Array, want []float64, tol float64) {
	t.Helper()
	if got == nil || len(got.F) != len(want) {
		t.Fatalf("%s: got %v, want %d numbers", what, got, len(want))
	}
	for i := range want {
		if !same(got.F[i], want[i], tol) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got.F[i], want[i])
		}
	}
}

// wave returns numbers that look random and are the same everywhere:
// 0.8·sin(seed + 0.7·i).
func wave(seed float64, dims ...int) *ir.Array {
	a := ir.NewArray(ir.F64, dims...)
	for i := range a.F {
		a.F[i] = 0.8 * math.Sin(seed+0.7*float64(i))
	}
	return a
}
