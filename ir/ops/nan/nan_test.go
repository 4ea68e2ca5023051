package nan_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops/nan"
)

// TestEveryOpHasOneNaNRule checks that the table has each op once, and no other.
func TestEveryOpHasOneNaNRule(t *testing.T) {
	seen := map[string]int{}
	for _, c := range nan.Conventions() {
		seen[string(c.Op)]++
		if d, ok := ir.Lookup(c.Op); !ok || d.Samples == nil {
			t.Errorf("%s is no op with samples", c.Op)
		}
		if c.Rule == nan.Answered && c.Note == "" {
			t.Errorf("%s is answered, and no note says what", c.Op)
		}
	}
	for _, op := range ir.Ops() {
		if d, _ := ir.Lookup(op); d.Samples != nil && seen[string(op)] != 1 {
			t.Errorf("%s has %d rules", op, seen[string(op)])
		}
	}
}

// TestOpsFollowTheirNaNRule puts a NaN at either end and in the middle of each operand of floats,
// and compares with the results without it, by the reference of an op and by its body.
func TestOpsFollowTheirNaNRule(t *testing.T) {
	for _, c := range nan.Conventions() {
		d, ok := ir.Lookup(c.Op)
		if !ok {
			continue
		}
		changed, floats := false, false
		for _, s := range d.Samples() {
			if size(s) > 1500 {
				continue
			}
			var clean [][]*ir.Array
			for i, a := range s.In {
				if a.Len() == 0 || a.F == nil && a.C == nil {
					continue
				}
				floats = true
				if clean == nil {
					clean = bothWays(t, c.Op, s)
				}
				for _, at := range []int{0, a.Len() / 2, a.Len() - 1} {
					hurt := nan.With(s, i, at)
					for way, out := range bothWays(t, c.Op, hurt) {
						place := fmt.Sprintf("%s %s of operand %d, element %d, way %d", c.Op, hurt.Name, i, at, way)
						changed = check(t, place, c, i, out, clean[way]) || changed
					}
				}
			}
		}
		if floats == (c.Rule == nan.NoFloats) {
			t.Errorf("%s has operands of floats: %t, and its rule is %q", c.Op, floats, c.Rule)
		}
		if floats && !changed {
			t.Errorf("%s: no sample shows what NaN does", c.Op)
		}
	}
}

// check holds results with a NaN among the operands to the rule, and reports whether they
// differ from those without it.
func check(t *testing.T, place string, c nan.Convention, operand int, out, clean []*ir.Array) (changed bool) {
	t.Helper()
	shown, other := false, ""
	for r, a := range out {
		for i := range a.Len() {
			x, y := element(a, i), element(clean[r], i)
			switch {
			case x == y || cmplx.IsNaN(x) && cmplx.IsNaN(y):
			case cmplx.IsNaN(x):
				shown = true
			default:
				other = fmt.Sprintf("result %d, element %d is %v, without NaN %v", r, i, x, y)
			}
		}
	}
	signOnly := c.Op == "copysign" && operand == 1
	switch {
	case other != "" && !signOnly && (c.Rule == nan.Moved || c.Rule == nan.Shows):
		t.Errorf("%s: %s", place, other)
	case other != "" && !shown && c.Rule == nan.Spoils:
		t.Errorf("%s: no NaN, but %s", place, other)
	}
	return shown || other != ""
}

func element(a *ir.Array, i int) complex128 {
	if a.C != nil {
		return a.C[i]
	}
	return complex(a.Float(i), 0)
}

func size(s ir.Sample) (n int) {
	for _, a := range s.In {
		n += a.Len()
	}
	return n
}

// bothWays returns the results of a sample by the reference implementation of the op and by its body.
func bothWays(t *testing.T, op ir.Op, s ir.Sample) [][]*ir.Array {
	t.Helper()
	g, _, err := irtest.SampleGraph(op, s)
	if err != nil {
		t.Fatal(op, err)
	}
	body, err := passes.Run(g, passes.Options{})
	if err != nil {
		t.Fatal(op, err)
	}
	out := make([][]*ir.Array, 2)
	for i, way := range []*ir.Graph{g, body} {
		if out[i], err = ir.Eval(way, irtest.SampleInputs(s), ir.EvalOptions{}); err != nil {
			t.Fatalf("%s %s: %v", op, s.Name, err)
		}
	}
	return out
}

// TestNaNCases runs the cases of the table.
func TestNaNCases(t *testing.T) {
	for _, c := range nan.Conventions() {
		for _, s := range c.Cases {
			for way, out := range bothWays(t, c.Op, s.Sample) {
				for r, want := range s.Want {
					if got := numbers(out[r]); !same(got, want) {
						t.Errorf("%s, way %d: result %d is %v, want %v", c.Op, way, r, got, want)
					}
				}
			}
		}
	}
}

func numbers(a *ir.Array) []float64 {
	out := make([]float64, a.Len())
	for i := range out {
		out[i] = a.Float(i)
	}
	return out
}

func same(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !(math.IsNaN(a[i]) && math.IsNaN(b[i])) {
			return false
		}
	}
	return true
}
