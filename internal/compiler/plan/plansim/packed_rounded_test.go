package plansim_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// asNumbers are the formats whose numbers are no bytes: tables, fifth bits apart from the others, floats.
var asNumbers = map[string]bool{"q5_0": true, "q5_1": true, "iq4_nl": true, "iq4_xs": true, "mxfp4": true, "nvfp4": true, "f8_e4m3": true, "f8_e5m2": true}

// TestRoundedRowsAreMultipliedAsIntegers rounds activations in the kernel of a product on CUDA.
func TestRoundedRowsAreMultipliedAsIntegers(t *testing.T) {
	for _, format := range slices.Sorted(maps.Keys(tame)) {
		for _, c := range []struct{ rows, elements int }{{4, 768}, {3, 256}} {
			t.Run(fmt.Sprintf("%s %dx%d", format, c.rows, c.elements), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(1, 2))
				w := packedRandom(rng, format, c.rows, c.elements)
				g := roundedProduct(t, format, w, c.elements)
				if kernels, dots := schedtest.Kernels(t, g, schedtest.Hopper()), 0; len(kernels) != 1 {
					t.Errorf("%d kernels", len(kernels))
				} else if dots = dotsOf(kernels[0]); (dots == 0) != asNumbers[format] {
					t.Errorf("%d dot products of integers", dots)
				}
				checkPacked(t, g, schedtest.Hopper(), map[string]*ir.Array{"x": normal(rng, 1, c.elements), "w": w, "residual": normal(rng, 1, c.rows)})
			})
		}
	}
}

func roundedProduct(t *testing.T, format string, w *ir.Array, elements int) *ir.Graph {
	return schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(1, elements)...)
		y := ops.QuantizedMatMul8(b, x, b.Param("w", ir.U8, ir.Dims(w.Dims...)...), format)
		b.Output("y", ops.Add(b, ops.Silu(b, y), b.Input("residual", ir.F32, ir.Dims(1, w.Dims[0])...)))
	})
}

// dotsOf counts the dot products of integers in a kernel.
func dotsOf(k *loop.Kernel) (n int) {
	loop.Walk(k.Body, func(s loop.Stmt) {
		loop.EachNode(s, func(e scalar.Expr) {
			if e.Op == scalar.OpDot4 {
				n++
			}
		})
	})
	return n
}

var _ = []any{plan.WebGPU, emit.PackedRows, hardware.Unknown, math.Abs}
