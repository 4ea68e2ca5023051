package plan_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestMemoryOfZero compares the memory of a training step with Adam, whose states are divided by the
// stages of ZeRO, with what Rajbhandari et al. (2020) compute.
func TestMemoryOfZero(t *testing.T) {
	const layers, width = 8, 64
	loss, err := ir.Build("chain", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, width)...)
		for i := range layers {
			x = ops.Tanh(b, ops.MatMul(b, x, b.Param(fmt.Sprint("w", i), ir.F32, ir.Dims(width, width)...)))
		}
		b.Output("loss", ops.Mean(b, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	const layer = width * width * 4
	const all = layers * layer
	for _, n := range []int{1, 2, 8} {
		for stage := range 4 {
			kept, temps := bytesOfStep(t, loss, n, stage, layer)
			fmt.Println(n, stage, float64(kept)/all, float64(temps)/layer)
		}
	}
}

// bytesOfStep returns the bytes of parameters and states, and of all other values, of a step on n devices.
func bytesOfStep(t *testing.T, loss *ir.Graph, n, stage, bucket int) (kept, temps int) {
	t.Helper()
	mesh := ops.MeshAttrs{MeshAxis: "data", Devices: n}
	g, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Gradients: func(g *ir.Graph) (*ir.Graph, error) {
		g, _, err := parallel.Data{Mesh: mesh, Bucket: bucket, Scatter: stage >= 2}.Gradients(g)
		return g, err
	}})
	if err == nil && stage > 0 {
		g, _, err = parallel.Shard{Mesh: mesh, Bucket: bucket, Params: stage == 3}.States(g)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(m, withCollectives(), wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Slots {
		if s.Role.Persistent() {
			kept += s.Bytes
		}
	}
	for _, b := range p.Buffers {
		if b.Kind == plan.TempBuffer {
			temps += b.Bytes
		}
	}
	return kept, temps
}
