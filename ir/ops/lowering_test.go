package ops_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	_ "github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestLoweringsEqualReference computes every sample of every primitive from
// its Scalar rule or its Lowering, as written and simplified, and compares
// with Eval, which is written without either.
func TestLoweringsEqualReference(t *testing.T) {
	forEachSample(t, func(t *testing.T, d *ir.Def, s ir.Sample) {
		if d.IsComposite() {
			return
		}
		g, n, err := irtest.SampleGraph(d.Op, s)
		if err != nil {
			t.Fatal(err)
		}
		want, err := ir.Eval(g, irtest.SampleInputs(s), ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for name, rewrite := range map[string]func(scalar.Expr) scalar.Expr{"plain": nil, "simplified": scalar.Simplify} {
			got, err := irtest.EvalLowering(n, s.In, rewrite)
			if errors.Is(err, ir.ErrUnsupported) {
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range want {
				if at, ok := firstDifference(want[i], got[i], tolerance(want[i].DType)); !ok {
					t.Errorf("%s: result %d differs at element %d: lowering %v, reference %v",
						name, i, at, text(got[i], at), text(want[i], at))
				}
			}
		}
	})
}

// forEachSample runs f as a subtest for all samples of all ops.
func forEachSample(t *testing.T, f func(t *testing.T, d *ir.Def, s ir.Sample)) {
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			for _, s := range d.Samples() {
				t.Run(s.Name, func(t *testing.T) { f(t, d, s) })
			}
		})
	}
}

// tolerance is the error of a lowering that is allowed, relative to the largest number
// around: its sums are rounded at each step, those of Eval at the end.
func tolerance(d ir.DType) float64 {
	if eps := d.Epsilon(); eps != 0 {
		return 64 * eps
	}
	return 0
}

// firstDifference compares two arrays and returns where they first differ by
// more than the tolerance, relative to the largest finite magnitude in want,
// and whether they do not.
func firstDifference(want, got *ir.Array, tol float64) (at int, same bool) {
	if want.DType != got.DType || want.Len() != got.Len() {
		return -1, false
	}
	scale := 0.0
	for i := range want.Len() {
		if x := math.Abs(want.Float(i)); !math.IsInf(x, 0) && x > scale {
			scale = x
		}
	}
	for i := range want.Len() {
		if !closeTo(want.Float(i), got.Float(i), tol*scale) {
			return i, false
		}
		if want.C != nil && !closeTo(imag(want.C[i]), imag(got.C[i]), tol*scale) {
			return i, false
		}
	}
	return 0, true
}

func closeTo(want, got, tol float64) bool {
	switch {
	case math.IsNaN(want) || math.IsNaN(got):
		return math.IsNaN(want) && math.IsNaN(got)
	case want == got:
		return true
	}
	return math.Abs(want-got) <= tol
}

func text(a *ir.Array, i int) any {
	switch {
	case i < 0 || i >= a.Len():
		return a.Type()
	case a.C != nil:
		return a.C[i]
	}
	return a.Float(i)
}
