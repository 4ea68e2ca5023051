package matmul_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

func TestProductsOfFragmentsInEveryTile(t *testing.T) {
	for i, s := range matmul.FragmentSchedules(1) {
		for j, size := range []struct{ m, n, k, parts int }{{70, 130, 33, 1}, {64, 64, 64, 1}, {96, 40, 300, 3}} {
			for _, d := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
				for _, layout := range []string{"nn", "tn", "nt", "tt"} {
					t.Run(fmt.Sprintf("tile %d, %s %dx%dx%d/%d %s", i, d, size.m, size.n, size.k, size.parts, layout), func(t *testing.T) {
						s.Split = size.parts
						g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulOf(b, d, size.m, size.n, size.k, layout, j > 0) })
						schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, schedtest.Apple(), s), schedtest.Wholes)
						if d == ir.F32 {
							schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, schedtest.Dawn(), s), schedtest.Wholes)
						}
					})
				}
			}
		}
	}
}

// TestFragmentsAreChosenForWideProducts expects fragments in place of wide tiles. Operands of 16
// bits stay so if both are.
func TestFragmentsAreChosenForWideProducts(t *testing.T) {
	for _, c := range []struct {
		m, n, k   int
		d         ir.DType
		fragments bool
	}{
		{512, 512, 512, ir.F32, true},
		{300, 200, 1000, ir.F16, true},
		{300, 200, 1000, ir.BF16, true},
		{4096, 16, 512, ir.F32, false},
		{1, 512, 512, ir.F32, false},
	} {
		g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulOf(b, c.d, c.m, c.n, c.k, "nn", false) })
		kernels := schedtest.Kernels(t, g, schedtest.Apple())
		has := false
		for _, k := range kernels {
			if err := schedtest.Apple().Check(k); err != nil {
				t.Error(err)
			}
			if !k.HasFragments() {
				continue
			}
			has = true
			if plan.WebGPU().Check(k) == nil {
				t.Errorf("WebGPU takes %s", k.Name)
			}
			for _, a := range k.Arrays {
				if a.Space == loop.Shared && a.Name != "sums" && a.DType != c.d {
					t.Errorf("%s of %s holds %s", a.Name, c.d, a.DType)
				}
			}
		}
		if has != c.fragments {
			t.Errorf("%d×%d×%d of %s: fragments %t", c.m, c.n, c.k, c.d, has)
		}
	}
}
