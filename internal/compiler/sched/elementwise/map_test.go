package elementwise_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestFusedMapsAreVectorized fuses maps horizontally: with vectors where all of them vectorise
// and are large enough together. A free launch makes any of them large.
func TestFusedMapsAreVectorized(t *testing.T) {
	quick := schedtest.Hopper()
	quick.Device = hardware.H200()
	for _, c := range []struct {
		name    string
		sizes   []int
		launch  float64
		vectors int
	}{
		{"whole vectors", []int{4096, 2052, 1024}, 1, 6},
		{"a part of a vector", []int{4096, 2051}, 1, 0},
		{"no more than a launch moves", []int{4096, 2052}, 3000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			quick.Device.Launch = c.launch
			g := schedtest.Build(t, func(b *ir.Builder) {
				for i, n := range c.sizes {
					x := b.Input(fmt.Sprint("x", i), ir.F32, ir.N(n))
					for range i {
						x = ops.Add(b, x, x) // each does something else
					}
					b.Output(fmt.Sprint("y", i), ops.Convert(b, x, ir.BF16))
				}
			})
			kernels := schedtest.Kernels(t, g, quick)
			if len(kernels) != 1 {
				t.Fatalf("%d kernels, not one", len(kernels))
			}
			vectors := 0
			loop.Walk(kernels[0].Body, func(s loop.Stmt) {
				switch s.(type) {
				case *loop.LoadVec, *loop.StoreVec:
					vectors++
				}
			})
			if vectors != c.vectors {
				t.Errorf("%d vectors are read and stored, not %d", vectors, c.vectors)
			}
			schedtest.RunOn(t, g, quick, 0)
		})
	}
}
