package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

func cnn(batch int) (*ir.Graph, error) {
	return ir.Build("cnn", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(batch, 8, 8, 1)...)
		labels := b.Input("labels", ir.I32, ir.N(batch))
		w1, b1 := b.Param("w1", ir.F32, ir.Dims(3, 3, 1, 16)...), b.Param("b1", ir.F32, ir.N(16))
		w2, b2 := b.Param("w2", ir.F32, ir.Dims(3, 3, 16, 32)...), b.Param("b2", ir.F32, ir.N(32))
		w3, b3 := b.Param("w3", ir.F32, ir.Dims(128, 10)...), b.Param("b3", ir.F32, ir.N(10))
		same := ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}
		pool := ops.PoolAttrs{Sizes: []int{2, 2}}
		h := ops.MaxPool(b, ops.Relu(b, ops.Conv2D(b, x, w1, b1, same)), pool)
		h = ops.MaxPool(b, ops.Relu(b, ops.Conv2D(b, h, w2, b2, same)), pool)
		h = ops.Reshape(b, h, ir.N(batch), ir.N(128))
		b.Output("loss", ops.CrossEntropyMean(b, ops.Linear(b, h, w3, b3), labels))
	})
}

// BenchmarkCompile times the compiler: from the graph of a loss to the bytes of
// a training step's plan.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct {
		name string
		make func() (*ir.Graph, error)
	}{
		{"mlp", func() (*ir.Graph, error) { return irtest.MLP(128, 784, 512, 512, 10) }},
		{"cnn", func() (*ir.Graph, error) { return cnn(128) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				loss, err := c.make()
				if err != nil {
					b.Fatal(err)
				}
				g, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
				if err != nil {
					b.Fatal(err)
				}
				m, err := ir.NewModule(c.name, ir.Entry{Name: "step", Graph: g})
				if err != nil {
					b.Fatal(err)
				}
				p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := plan.Encode(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
