package passes_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestConstantScatters differentiates images that are resized: no derivative is a scatter, in a loop neither, and all are as before.
// Sums of many updates to a row, and updates of few rows of many, stay scatters.
func TestConstantScatters(t *testing.T) {
	resize := func(mode string, size int) func(b *ir.Builder, x ir.Value) ir.Value {
		return func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Resize(b, x, ops.ResizeAttrs{Sizes: []int{size, size + 1}, Mode: mode})
		}
	}
	for name, c := range map[string]struct {
		f       func(b *ir.Builder, x ir.Value) ir.Value
		gathers bool
	}{
		"nearest, larger":  {resize(ops.ResizeNearest, 13), true},
		"linear, larger":   {resize(ops.ResizeLinear, 12), true},
		"cubic, smaller":   {resize(ops.ResizeCubic, 4), true},
		"linear, enormous": {resize(ops.ResizeLinear, 400), false},
		"few rows": {func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Take(b, x, ops.Literal(b, ir.Ints(ir.I32, []int64{3})), 1, ops.OutsideClip)
		}, false},
		"in a loop": {func(b *ir.Builder, x ir.Value) ir.Value {
			out, _ := ops.Scan(b, ops.Loop{Carries: []ir.Value{x}, Length: ir.N(2), Body: func(b *ir.Builder, _, carry, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.Resize(b, resize(ops.ResizeLinear, 9)(b, carry[0]), ops.ResizeAttrs{Sizes: []int{7, 6}, Mode: ops.ResizeLinear})}, nil
			}})
			return out[0]
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := ir.Build("loss", func(b *ir.Builder) {
				b.Output("loss", ops.ReduceSum(b, ops.Sin(b, c.f(b, b.Param("x", ir.F32, ir.Dims(2, 7, 6, 3)...)))))
			})
			if err == nil {
				g, err = autodiff.Grad(g, "loss")
			}
			if err != nil {
				t.Fatal(err)
			}
			h, err := passes.Run(g, passes.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if scatters(h) == c.gathers {
				t.Fatalf("scatters: %t\n%s", scatters(h), h)
			}
			want, got := evalBoth(t, g, h)
			for j, x := range want[0].F {
				if !(math.Abs(got[0].F[j]-x) <= 1e-5*math.Max(1, math.Abs(x))) {
					t.Fatalf("element %d is %v, and was %v before", j, got[0].F[j], x)
				}
			}
		})
	}
}

// scatters reports whether a graph or a body has a scatter.
func scatters(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return n.Op() == ops.OpScatterAdd || slices.ContainsFunc(n.Subgraphs(), scatters)
	})
}
