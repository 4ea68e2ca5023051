package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
)

// TestLongSums compares sums of 10⁵ terms with sums in f64.
func TestLongSums(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for name, equal := range map[string]bool{"equal": true, "spread": false} {
			for _, c := range irtest.LongSums(1e5) {
				t.Run(c.Name+"/"+name, func(t *testing.T) { checkLongSum(t, &c, equal) })
			}
		}
	})
}

func checkLongSum(t *testing.T, c *irtest.SumCase, equal bool) {
	s, err := c.Make(equal)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]native.Tensor{}
	for name, a := range s.Inputs {
		x := make([]float32, a.Len())
		for i, v := range a.F {
			x[i] = float32(v)
		}
		in[name] = native.Float32s(x, a.Dims...)
	}
	out := outputs(t, ir.Entry{Name: "run", Graph: s.Graph}, in)["y"]
	got := make([]float64, len(out))
	for i, v := range out {
		got[i] = float64(v)
	}
	if err := s.Check(got); err != nil {
		t.Error(err)
	}
}
