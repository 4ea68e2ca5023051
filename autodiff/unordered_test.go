package autodiff_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestDerivativesAddAsTheirOpsAllow has scatters in derivatives, of first and second order,
// add in any order only if the functions that they differentiate may.
func TestDerivativesAddAsTheirOpsAllow(t *testing.T) {
	at := func(unordered bool) ops.IndexedAxes { return ops.IndexedAxes{Axes: []int{0}, Unordered: unordered} }
	for name, f := range map[string]func(b *ir.Builder, x, i ir.Value, unordered bool) ir.Value{
		"gather": func(b *ir.Builder, x, i ir.Value, unordered bool) ir.Value {
			return ops.Gather(b, x, ops.ExpandDims(b, i, -1), ops.GatherAttrs{IndexedAxes: at(unordered)})
		},
		"take": func(b *ir.Builder, x, i ir.Value, unordered bool) ir.Value {
			if unordered {
				return ops.TakeUnordered(b, x, i, 0, ops.OutsideWrap)
			}
			return ops.Take(b, x, i, 0, ops.OutsideWrap)
		},
		"embedding": func(b *ir.Builder, x, i ir.Value, unordered bool) ir.Value {
			if unordered {
				return ops.EmbeddingUnordered(b, x, i)
			}
			return ops.Embedding(b, x, i)
		},
		"scatter_add": func(b *ir.Builder, x, i ir.Value, unordered bool) ir.Value {
			return ops.ScatterAdd(b, x, ops.ExpandDims(b, i, -1), ops.Sin(b, x), ops.ScatterAttrs{IndexedAxes: at(unordered)})
		},
		"scatter_mul": func(b *ir.Builder, x, i ir.Value, unordered bool) ir.Value {
			return ops.ScatterMul(b, x, ops.ExpandDims(b, i, -1), ops.Sin(b, x), ops.ScatterAttrs{IndexedAxes: at(unordered)})
		},
	} {
		for _, unordered := range []bool{false, true} {
			g := build(t, func(b *ir.Builder) {
				x, i := b.Input("x", ir.F32, ir.Dims(7, 3)...), b.Input("i", ir.I32, ir.N(7))
				b.Output("loss", ops.ReduceSum(b, ops.Exp(b, f(b, x, i, unordered))))
			})
			first, err := autodiff.Grad(g, "loss", "x")
			must(t, first, err)
			second, err := autodiff.JVP(first, "x")
			must(t, second, err)
			additions := 0
			for order, d := range []*ir.Graph{first, second} {
				for _, n := range d.Nodes() {
					if a, ok := n.Attrs().(*ops.ScatterAttrs); ok && n.Op() == ops.OpScatterAdd {
						additions++
						if a.Unordered != unordered {
							t.Errorf("%s, derivative %d: unordered is %t, not %t", name, order+1, a.Unordered, unordered)
						}
					}
				}
			}
			if additions == 0 {
				t.Errorf("%s: nothing is added in its derivatives", name)
			}
		}
	}
}
