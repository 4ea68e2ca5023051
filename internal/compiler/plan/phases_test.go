package plan_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPhasesOfOddSizesTakeNoLonger counts what plans do for a transposed convolution and for the gradient of one with
// strides: for odd sizes, whose phases have unequal numbers of results, about as much as for those of one pixel more.
func TestPhasesOfOddSizesTakeNoLonger(t *testing.T) {
	const most = 1.3
	for _, target := range []familyTarget{
		{"WebGPU", 0, plan.WebGPU, wgsl.Printer{}, true},
		{"H200, bf16", ir.BF16, hopper, cudacpp.Printer{}, true},
		{"page's CPU", 0, func() plan.Target { return plan.WebAssembly(false) }, wasmsimd.Printer{}, true},
	} {
		for name, graph := range map[string]func(size int) (*ir.Graph, error){"transposed": transposedTo, "gradient": gradientAt} {
			operations := func(size int) (n float64) {
				g, err := graph(size)
				if err == nil && target.half != 0 {
					g, err = passes.Mixed(g, target.half)
				}
				if err != nil {
					t.Fatal(err)
				}
				m, err := ir.NewModule("phases", ir.Entry{Name: "run", Graph: g})
				if err != nil {
					t.Fatal(err)
				}
				launches, _, err := plan.CountedLaunches(m, target.target(), target.printer)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range launches {
					n += l.Counts.Issued
					for _, products := range l.Counts.Products {
						n += products
					}
				}
				return n
			}
			if odd, even := operations(15), operations(16); odd > most*even {
				t.Errorf("%s, %s: %.3g operations for 15 × 15, %.3g for 16 × 16", target.name, name, odd, even)
			}
		}
	}
}

// transposedTo is a transposed convolution of images to a size.
func transposedTo(size int) (*ir.Graph, error) {
	return ir.Build("transposed", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(16, 8, 8, 64)...), b.Input("w", ir.F32, ir.Dims(4, 4, 64, 64)...)
		pad := []int{17 - size, 17 - size}
		b.Output("y", ops.ConvTranspose(b, x, w, ir.Value{}, ops.ConvTransposeAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: pad}))
	})
}

// gradientAt is the gradient by images of a size of a convolution with strides, whose first window reaches over the edge.
func gradientAt(size int) (*ir.Graph, error) {
	g, err := ir.Build("loss", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(16, size, size, 64)...), b.Input("w", ir.F32, ir.Dims(4, 4, 64, 64)...)
		y := ops.Conv2D(b, x, w, ir.Value{}, ops.Conv2DAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{17 - size, 17 - size}})
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, b.Input("c", ir.F32, y.Shape()...))))
	})
	if err != nil {
		return nil, err
	}
	return autodiff.Grad(g, "loss", "x")
}
