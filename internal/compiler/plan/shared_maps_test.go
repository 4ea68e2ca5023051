package plan_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestKernelsShareTheirTensorMaps multiplies the halves of a matrix. The kernels differ in nothing but the
// origin of a tensor map, which is no part of their text.
func TestKernelsShareTheirTensorMaps(t *testing.T) {
	const rows, inner = 256, 512
	g, err := ir.Build("halves", func(b *ir.Builder) {
		x, w := b.Input("x", ir.BF16, ir.Dims(2*rows, inner)...), b.Input("w", ir.BF16, ir.Dims(inner, rows)...)
		b.Output("upper", ops.MatMul(b, ops.Slice(b, x, ir.Dims(0, 0), ir.Dims(rows, inner), nil), w))
		b.Output("lower", ops.MatMul(b, ops.Slice(b, x, ir.Dims(rows, 0), ir.Dims(rows, inner), nil), w))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	target := hopper()
	target.Products = loop.NoProducts
	p, err := plan.Compile(m, target, cudacpp.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	var origins []int
	for _, s := range p.Entries[0].Steps {
		if d, ok := s.(*plan.Dispatch); ok {
			if maps := p.Kernels[d.Kernel].TensorMaps; len(maps) > 0 {
				origins = append(origins, maps[0].First)
			}
		}
	}
	if want := []int{0, rows * inner}; !slices.Equal(origins, want) {
		t.Errorf("the tensor maps begin at %v, not at %v", origins, want)
	}
}
