package ops_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// Scans of several operands have the same results where a target cannot bind them
// all and they are decomposed into other ops.
func TestScansByPrefixDoublingEqualReference(t *testing.T) {
	tried := 0
	forEachSampleOf(t, func(d *ir.Def, s ir.Sample) {
		l, ok := d.Lower.(*ir.PrefixLowering)
		if !ok || l.Decompose == nil {
			if ok && d.Variadic() {
				t.Errorf("%s takes any number of operands, and there is nothing for targets that cannot bind them", d.Op)
			}
			return
		}
		tried++
		g, n, err := irtest.SampleGraph(d.Op, s)
		if err != nil {
			t.Fatal(err)
		}
		apart, err := ir.Inline(n)
		if err != nil {
			t.Fatal(err)
		}
		want, err := ir.Eval(g, irtest.SampleInputs(s), ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ir.Eval(apart, irtest.SampleInputs(s), ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if at, ok := firstDifference(want[i], got[i], tolerance(want[i].DType)); !ok {
				t.Errorf("%s, %s: result %d differs at element %d: apart %v, reference %v", d.Op, s.Name, i, at, text(got[i], at), text(want[i], at))
			}
		}
	})
	if tried < 12 {
		t.Errorf("%d samples, fewer than the two ops have", tried)
	}
}

func forEachSampleOf(t *testing.T, f func(d *ir.Def, s ir.Sample)) {
	t.Helper()
	for _, op := range ir.Ops() {
		if d, _ := ir.Lookup(op); d.Samples != nil {
			for _, s := range d.Samples() {
				f(d, s)
			}
		}
	}
}
