package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestFunctionsAtHardPoints holds kernels to the error bounds of the documentation of package
// ops: those of WebGPU in f32, and those of WebAssembly in f64 too.
func TestFunctionsAtHardPoints(t *testing.T) {
	for name, target := range map[string]plan.Target{"WebGPU": plan.WebGPU(), "WebAssembly": plan.WebAssembly(false)} {
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
				if !runsOn(g, target) {
					continue
				}
				program := opened(t, target, g)
				out, err := program.Run("run", irtest.SampleInputs(c.Sample))
				if err != nil {
					t.Fatal(err)
				}
				if fault := c.Check(out["0"], false); fault != "" {
					t.Errorf("%s, %s: %s", name, c.Op, fault)
				}
			}
		}
	}
}
