package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestFunctionsAtHardPoints holds loops and compiled kernels to the error bounds of the
// documentation of package ops.
func TestFunctionsAtHardPoints(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for _, d := range []ir.DType{ir.F32, ir.F64} {
			cases, err := irtest.FunctionCases(d)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				g, _, err := irtest.SampleGraph(c.Op, c.Sample)
				if err != nil {
					t.Fatal(err)
				}
				if fault := c.Check(resultsOf(t, g, c.Sample)[0]); fault != "" {
					t.Errorf("%s: %s", c.Op, fault)
				}
			}
		}
	})
}
