package cudacpp_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestClangAcceptsAttentionInBlocks compiles kernels that a target has for large
// attention only: with all that there can be, and with as little as possible.
func TestClangAcceptsAttentionInBlocks(t *testing.T) {
	for _, op := range []ir.Op{ops.OpAttentionForward, ops.OpAttentionBackward} {
		d, _ := ir.Lookup(op)
		for _, s := range d.Samples() {
			if s.Name != "bias, softcap and causal" && s.Name != "plain" {
				continue
			}
			t.Run(string(op)+"/"+s.Name, func(t *testing.T) {
				t.Parallel()
				g, _, err := irtest.SampleGraph(op, s)
				if err != nil {
					t.Fatal(err)
				}
				m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
				if err != nil {
					t.Fatal(err)
				}
				target := plan.WebGPU()
				target.Dialect, target.ScoreBytes = cudacpp.Printer{}.Dialect(), 1
				p, err := plan.Compile(m, target, cudacpp.Printer{})
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range p.Kernels {
					if err := clang.Check(k.Source); err != nil {
						t.Errorf("%s: %v", k.Name, err)
					}
				}
			})
		}
	}
}
