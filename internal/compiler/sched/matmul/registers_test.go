package matmul_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestProductsInSoftwareHaveNoBarriers: a barrier takes longer there than a step of a tile. (SwiftShader, two
// cores: a product of 512 took 692 ms by workgroup memory and 55 without.)
func TestProductsInSoftwareHaveNoBarriers(t *testing.T) {
	shapes := []struct{ m, n, k int }{{512, 512, 512}, {64, 10, 784}, {10, 128, 64}, {128, 128, 16}}
	for _, name := range []string{"google swiftshader", "llvmpipe (LLVM 15.0.6, 256 bits)"} {
		target := plan.WebGPU()
		target.Device = hardware.Named(name)
		for _, s := range shapes {
			g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulBias(b, s.m, s.n, s.k, "nn", ops.Gelu) })
			for _, k := range schedtest.Kernels(t, g, target) {
				loop.Walk(k.Body, func(stmt loop.Stmt) {
					if _, ok := stmt.(*loop.Barrier); ok {
						t.Errorf("%s, %d×%d×%d: kernel %s has a barrier", name, s.m, s.n, s.k, k.Name)
					}
				})
			}
		}
	}
	split := plan.WebGPU()
	split.Device = hardware.Named("google swiftshader")
	g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulBias(b, 64, 64, 1024, "nt", ops.Relu) })
	if kernels := schedtest.RunOn(t, g, split, 0); len(kernels) != 2 {
		t.Errorf("a product with one tile and a long contracted axis takes kernels %v, want two: parts for each processor", kernels)
	}
}
