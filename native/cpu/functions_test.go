package cpu_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
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
				in := map[string]native.Tensor{}
				for name, a := range irtest.SampleInputs(c.Sample) {
					in[name] = native.FromArray(a)
				}
				run, err := compileGraphs(t, ir.Entry{Name: "run", Graph: g}).Run(context.Background(), "run", in)
				if err != nil {
					t.Fatal(err)
				}
				out, err := run.Wait(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				a, err := out["0"].Array()
				if err != nil {
					t.Fatal(err)
				}
				if fault := c.Check(a); fault != "" {
					t.Errorf("%s: %s", c.Op, fault)
				}
			}
		}
	})
}
