package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
)

// TestLongSums holds sums of 10⁵ terms to what they come to in f64.
func TestLongSums(t *testing.T) {
	sums, err := irtest.LongSums(1e5)
	if err != nil {
		t.Fatal(err)
	}
	everyLevel(t, func(t *testing.T) {
		for _, s := range sums {
			t.Run(s.Name, func(t *testing.T) {
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
				if err := s.Check(0, got); err != nil {
					t.Error(err)
				}
			})
		}
	})
}
