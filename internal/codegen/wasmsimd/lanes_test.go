package wasmsimd_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched/serial"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestConvolutionsOfPlanesAreVectors has convolutions whose results are adjacent along their positions: inside
// the padding the lanes of each loop read the same element of a tensor, or adjacent ones, and those of a
// convolution that is not transposed store adjacent ones. Depthwise ones took ten times as long while each
// lane tested its own padding, transposed ones up to thirty times while zeros were multiplied.
func TestConvolutionsOfPlanesAreVectors(t *testing.T) {
	for _, c := range []struct {
		name            string
		in, out, groups int
		window, side    int
		pad, dilation   int
	}{
		{"dense", 8, 12, 1, 3, 40, 1, 1},
		{"lines that are no whole panels", 8, 12, 1, 3, 20, 1, 1},
		{"pointwise", 8, 12, 1, 1, 20, 0, 1},
		{"depthwise", 8, 8, 8, 3, 48, 1, 1},
		{"depthwise, few columns", 8, 8, 8, 5, 8, 2, 1},
		{"transposed", 8, 12, 1, 4, 20, 2, 2},
		{"transposed without overlap", 8, 12, 1, 2, 20, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := ir.Build("run", func(b *ir.Builder) {
				x := b.Input("x", ir.F32, ir.Dims(2, c.in, c.side, c.side)...)
				w := b.Param("w", ir.F32, ir.Dims(c.out, c.in/c.groups, c.window, c.window)...)
				b.Output("y", ops.ConvGeneral(b, x, w, ops.ConvAttrs{
					PadLo: []int{c.pad, c.pad}, PadHi: []int{c.pad, c.pad}, LhsDilation: []int{c.dilation, c.dilation}, FeatureGroups: ir.N(c.groups),
				}))
			})
			if err != nil {
				t.Fatal(err)
			}
			_, kernels, err := plan.CompileKernels(&ir.Module{Entries: []ir.Entry{{Name: "run", Graph: g}}}, plan.WebAssembly(true), wasmsimd.Printer{Relaxed: true})
			if err != nil {
				t.Fatal(err)
			}
			loops := 0
			for _, k := range kernels {
				loops += checkLanes(t, k.Kernel, k.Body, c.dilation == 1)
			}
			if loops == 0 {
				t.Error("no loop over lanes reads a tensor")
			}
		})
	}
}

// checkLanes checks the loops over lanes of a body, but for the other branches of conditions, and returns
// how many of them read tensors.
func checkLanes(t *testing.T, k *loop.Kernel, body []loop.Stmt, stores bool) (loops int) {
	for _, s := range body {
		switch s := s.(type) {
		case *loop.If:
			loops += checkLanes(t, k, s.Then, stores)
		case *loop.For:
			if !s.Lanes {
				loops += checkLanes(t, k, s.Body, stores)
				continue
			}
			reads := false
			check := func(array int, at scalar.Expr) {
				if k.Arrays[array].Space != loop.Storage {
					return
				}
				if step, known := serial.StepOf(at, s.Var); !known || step < 0 || step > 1 {
					t.Errorf("lanes access %s at %s", k.Arrays[array].Name, at)
				}
			}
			loop.Walk(s.Body, func(st loop.Stmt) {
				loop.EachNode(st, func(n scalar.Expr) {
					if n.Op == scalar.OpLoad && k.Arrays[n.Ref].Space == loop.Storage {
						reads = true
						check(n.Ref, n.Args[0])
					}
				})
				if x, ok := st.(*loop.Store); ok && stores {
					check(x.Array, x.At)
				}
			})
			if reads {
				loops++
			}
		}
	}
	return loops
}
