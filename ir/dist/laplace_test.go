package dist_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dist"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestDivergenceOfEqualLaplaces: the second derivative of the divergence of a distribution from itself is its Fisher
// information, 1/Scale² by Loc.
func TestDivergenceOfEqualLaplaces(t *testing.T) {
	g, err := ir.Build("divergence", func(b *ir.Builder) {
		two := ops.Const(b, ir.F64, 2)
		b.Output("y", dist.KL(b, dist.Laplace{Loc: b.Input("loc", ir.F64), Scale: two}, dist.Laplace{Loc: two, Scale: two}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = autodiff.Hessian(g, "y", "loc"); err != nil {
		t.Fatal(err)
	}
	loc := ir.NewArray(ir.F64)
	loc.F[0] = 2
	out, err := ir.Eval(g, map[string]*ir.Array{"loc": loc}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(g.Outputs(), func(o ir.Output) bool { return o.Name == autodiff.HessianName("loc", "loc") })
	if got := out[i].F[0]; !(math.Abs(got-0.25) <= 1e-12) {
		t.Errorf("the second derivative is %v, want 1/4", got)
	}
}
