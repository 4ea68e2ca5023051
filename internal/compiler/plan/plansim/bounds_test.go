package plansim_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// maxSource is the maximum size of one kernel's WGSL, in bytes.
const maxSource = 24 << 10

func checkSources(t *testing.T, p *plan.Plan) {
	t.Helper()
	for _, k := range p.Kernels {
		if len(k.Source) > maxSource {
			t.Errorf("kernel %s takes %d bytes, over %d", k.Name, len(k.Source), maxSource)
		}
	}
}

// TestGroupsAreBounded: the size of one fused kernel is bounded, however many nodes there
// are, and what compiling allocates for a node does not grow with their number.
func TestGroupsAreBounded(t *testing.T) {
	for _, f := range irtest.Families {
		t.Run(f.Name, func(t *testing.T) {
			var perNode [2]float64
			for i, nodes := range []int{1000, 4000} {
				g, err := f.Graph(nodes)
				if err != nil {
					t.Fatal(err)
				}
				n, _, bytes := compileTime(t, g, plan.WebGPU())
				perNode[i] = float64(bytes) / float64(n)
				checkSources(t, compiled(t, g))
			}
			if perNode[1] > 1.15*perNode[0] {
				t.Errorf("%.0f bytes a node in a graph of 4000, %.0f in one of 1000", perNode[1], perNode[0])
			}
		})
	}
}

// TestEpilogueIsPrintedOnce: a thread has many sums of a product; the random bits of a dropout
// after it are computed in a loop over them. 0x1bd11bda is Threefry's constant, which a block uses
// once (Salmon et al. 2011).
func TestEpilogueIsPrintedOnce(t *testing.T) {
	p := compiled(t, schedtest.Build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(2048, 64)...), b.Param("w", ir.F32, ir.Dims(64, 2048)...)
		h := ops.Relu(b, ops.MatMul(b, x, w))
		b.Output("y", ops.Dropout(b, h, ops.Key(b, 7), 0.25))
	}))
	checkSources(t, p)
	if len(p.Kernels) != 1 {
		t.Fatalf("%d kernels, not 1", len(p.Kernels))
	}
	k := p.Kernels[0]
	if n := strings.Count(k.Source, "0x1bd11bda"); n != 1 {
		t.Errorf("kernel %s of %d bytes has %d blocks of random bits, not 1", k.Name, len(k.Source), n)
	}
}

// TestKernelsOfThirdDerivativesAreBounded differentiates an MLP of width 24 three times.
func TestKernelsOfThirdDerivativesAreBounded(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(64, 1)...)
		h := x
		for i, in := range []int{1, 24, 24} {
			name := string(rune('a' + i))
			h = ops.Tanh(b, ops.Linear(b, h, b.Param("w"+name, ir.F32, ir.Dims(in, 24)...), b.Param("b"+name, ir.F32, ir.N(24))))
		}
		b.Output("y", ops.SumAll(b, ops.MatMul(b, h, b.Param("w", ir.F32, ir.Dims(24, 1)...))))
	})
	d, err := autodiff.Directional(g, "y", "x", 3)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = autodiff.Grad(d, autodiff.OrderName(3, "y")); err != nil {
		t.Fatal(err)
	}
	checkSources(t, compiled(t, d))
}
