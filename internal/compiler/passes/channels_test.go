package passes_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestChannelsLast has convolutions of planes and their gradients: they compute the same with the channels last, which is the
// last axis of all images, and those of few channels are as they were.
func TestChannelsLast(t *testing.T) {
	for name, c := range map[string]struct {
		x, w    []int
		a       ops.ConvAttrs
		changes bool
	}{
		"one axis":     {[]int{2, 8, 9}, []int{16, 8, 3}, ops.ConvAttrs{PadLo: []int{1}, PadHi: []int{1}}, true},
		"two axes":     {[]int{3, 8, 6, 5}, []int{8, 8, 3, 2}, ops.ConvAttrs{Strides: []int{2, 1}, RhsDilation: []int{1, 2}}, true},
		"groups":       {[]int{2, 16, 5, 5}, []int{16, 8, 3, 3}, ops.ConvAttrs{FeatureGroups: ir.N(2)}, true},
		"few channels": {[]int{2, 3, 6, 6}, []int{8, 3, 3, 3}, ops.ConvAttrs{}, false},
		"depthwise":    {[]int{2, 16, 6, 6}, []int{16, 1, 3, 3}, ops.ConvAttrs{FeatureGroups: ir.N(16)}, false},
		"pixels":       {[]int{2, 6, 6, 8}, []int{3, 3, 8, 8}, ops.ConvAttrs{Lhs: []int{0, 3, 1, 2}, Rhs: []int{3, 2, 0, 1}, Out: []int{0, 3, 1, 2}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := ir.Build("loss", func(b *ir.Builder) {
				y := ops.ConvGeneral(b, b.Param("x", ir.F32, ir.Dims(c.x...)...), b.Param("w", ir.F32, ir.Dims(c.w...)...), c.a)
				b.Output("loss", ops.ReduceSum(b, ops.Sin(b, y)))
			})
			if err == nil {
				g, err = autodiff.Grad(g, "loss")
			}
			if err == nil {
				g, err = passes.Run(g, passes.Options{})
			}
			if err != nil {
				t.Fatal(err)
			}
			last, err := passes.ChannelsLast(g)
			if err != nil {
				t.Fatal(err)
			}
			if (last != g) != c.changes {
				t.Fatalf("changes: %t\n%s", last != g, last)
			}
			want, got := evalBoth(t, g, last)
			for i := range want {
				for j, x := range want[i].F {
					if !(math.Abs(got[i].F[j]-x) <= 1e-5*math.Max(1, math.Abs(x))) {
						t.Fatalf("%s[%d] is %v, and was %v before", g.Outputs()[i].Name, j, got[i].F[j], x)
					}
				}
			}
		})
	}
}
