package plansim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestRowProductsComputeTheirNorm computes a gate and its factor, products of a row of numbers, in one kernel, with the norm of the
// row: on the left or the right of a matrix, whose elements are numbers of 32 or 16 bits. A matrix whose columns are
// multiplied keeps its kernel.
func TestRowProductsComputeTheirNorm(t *testing.T) {
	const rows, elements = 7, 768
	right := func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.MatMul(b, x, ops.SwapAxes(b, w, 0, 1)) }
	left := func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.MatMul(b, w, ops.SwapAxes(b, x, 0, 1)) }
	columns := func(b *ir.Builder, x, w ir.Value) ir.Value {
		return ops.MatMul(b, x, ops.Reshape(b, w, ir.Dims(elements, rows)...))
	}
	for name, c := range map[string]struct {
		product func(b *ir.Builder, x, w ir.Value) ir.Value
		d       ir.DType
		kernels int
	}{"right": {right, ir.F32, 1}, "left": {left, ir.F32, 1}, "bf16": {right, ir.BF16, 1}, "columns": {columns, ir.F32, 3}} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 5))
			inputs := map[string]*ir.Array{"x": normal(rng, 1, elements), "scale": normal(rng, elements)}
			g := schedtest.Build(t, func(b *ir.Builder) {
				x := ops.RMSNorm(b, b.Input("x", ir.F32, ir.Dims(1, elements)...), b.Input("scale", ir.F32, ir.N(elements)), 1e-5)
				times := func(name string) ir.Value {
					inputs[name] = ir.NewArray(c.d, rows, elements)
					copy(inputs[name].F, normal(rng, rows, elements).F)
					inputs[name].Round()
					return c.product(b, x, ops.Convert(b, b.Input(name, c.d, ir.Dims(rows, elements)...), ir.F32))
				}
				b.Output("y", ops.Mul(b, ops.Silu(b, times("gate")), times("up")))
			})
			for name, target := range map[string]plan.Target{"cuda": schedtest.Hopper(), "webgpu": plan.WebGPU(), "warps": byWarps()} {
				if kernels := schedtest.Kernels(t, g, target); len(kernels) != c.kernels {
					t.Errorf("%s has %d kernels, want %d", name, len(kernels), c.kernels)
				}
				checkPacked(t, g, target, inputs)
			}
		})
	}
}
