package cpu_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestRunsInBlocks sums the squares of the channels of each group, which lie in runs, and scales
// each channel by a number of its group: the numbers are small integers, so that sums are exact.
func TestRunsInBlocks(t *testing.T) {
	const batch, groups = 2, 3
	everyLevel(t, func(t *testing.T) {
		for _, c := range []struct{ places, channels int }{
			{4, 4}, {16, 4}, {1024, 4}, {300, 4}, {33, 8}, {256, 8}, {7, 16}, {130, 32}, {37, 64}, {5, 512}, {3, 1024}, {3, 4096}, {100, 12}, {5, 3},
		} {
			t.Run(fmt.Sprint(c.places, "x", c.channels), func(t *testing.T) {
				dims := []int{batch, c.places, groups, c.channels}
				g, err := ir.Build("g", func(b *ir.Builder) {
					x := b.Input("x", ir.F32, ir.Dims(dims...)...)
					scale := ops.Reshape(b, b.Input("scale", ir.F32, ir.Dims(batch, groups)...), ir.Dims(batch, 1, groups, 1)...)
					b.Output("scaled", ops.Mul(b, x, scale))
					b.Output("sums", ops.ReduceSum(b, ops.Mul(b, x, ops.Add(b, x, scale)), 1, 3))
				})
				if err != nil {
					t.Fatal(err)
				}
				x, scale := make([]float32, batch*c.places*groups*c.channels), make([]float32, batch*groups)
				for i := range x {
					x[i] = float32(i*7%11 - 5)
				}
				for i := range scale {
					scale[i] = float32(i%3 - 1)
				}
				wantScaled, wantSums := make([]float32, len(x)), make([]float32, len(scale))
				for i, v := range x {
					of := i/(c.places*groups*c.channels)*groups + i/c.channels%groups
					wantScaled[i] = v * scale[of]
					wantSums[of] += v * (v + scale[of])
				}
				scaled, sums := make([]float32, len(x)), make([]float32, len(scale))
				runBound(t, bind(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), "run",
					map[string]native.Tensor{"x": native.Float32s(x, dims...), "scale": native.Float32s(scale, batch, groups)},
					map[string]native.Tensor{"scaled": native.Float32s(scaled, dims...), "sums": native.Float32s(sums, batch, groups)}))
				for i, want := range wantScaled {
					if scaled[i] != want {
						t.Fatalf("scaled element %d is %v, not %v", i, scaled[i], want)
					}
				}
				for i, want := range wantSums {
					if sums[i] != want {
						t.Fatalf("sum %d is %v, not %v", i, sums[i], want)
					}
				}
			})
		}
	})
}
