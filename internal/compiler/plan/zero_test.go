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

// TestMemoryOfZero compares the memory of a training step with Adam, with states divided by the
// stages of ZeRO, with the formulas of Rajbhandari et al. (2020): for parameters of P bytes on n
// devices the states take 3P, P + 2P/n, P + 2P/n and 3P/n bytes in stages 0 to 3. Whole gradients
// are P bytes in stages 0 and 1, and P/n in stages 2 and 3. Stage 3 has no more whole parameters
// and gradients than some blocks, those on their way among them.
func TestMemoryOfZero(t *testing.T) {
	const n, layers, layer = 8, 8, zeroWidth * zeroWidth * 4
	const all = layers * layer
	for stage, want := range []int{3 * all, all + 2*all/n, all + 2*all/n, 3 * all / n} {
		kept, temps := bytesOfStep(t, layers, n, stage)
		_, twice := bytesOfStep(t, 2*layers, n, stage)
		if kept != want+4 { // the number of steps
			t.Errorf("stage %d: %d bytes of parameters and states, not %d", stage, kept, want)
		}
		grown := twice - temps // additional layers
		switch {
		case stage < 2 && grown < all:
			t.Errorf("stage %d: %d bytes of other values, %d with twice the layers", stage, temps, twice)
		case stage == 3 && (temps > (5+parallel.DefaultAhead)*layer+2*all/n || grown > 2*all/n+layer):
			// Parts of the gradients, and copies of the parts of parameters that are sent.
			t.Errorf("stage 3: %d bytes of other values, %d with twice the layers, of %d bytes each", temps, twice, layer)
		}
	}
}

// TestMemoryOfPartitions is TestMemoryOfZero's for a step that is written for the whole batch.
func TestMemoryOfPartitions(t *testing.T) {
	const n, layers, layer = 8, 8, zeroWidth * zeroWidth * 4
	const all = layers * layer
	part := func(layers int, params bool) (kept, temps int) {
		g, err := optim.Step(zeroLoss(t, layers, n), "loss", optim.Adam{}, optim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := parallel.Partition{
			Mesh:      []parallel.Axis{{Name: "data", Size: n}},
			Shardings: []parallel.Sharding{{Pattern: "x", Axes: []string{"data"}}},
			States:    "data", Params: params, Bucket: layer,
		}
		places, err := p.Placements(g)
		if err == nil {
			g, _, err = p.Apply(g, places)
		}
		if err != nil {
			t.Fatal(err)
		}
		return bytesOfPlan(t, g)
	}
	if kept, _ := part(layers, false); kept != all+2*all/n+4 {
		t.Errorf("%d bytes of parameters and states, not %d", kept, all+2*all/n+4)
	}
	kept, temps := part(layers, true)
	_, twice := part(2*layers, true)
	if kept != 3*all/n+4 || temps > (5+parallel.DefaultAhead)*layer+2*all/n || twice-temps > 2*all/n+layer {
		t.Errorf("with parameters divided %d bytes of them and states, %d of other values, %d with twice the layers, of %d bytes each", kept, temps, twice, layer)
	}
}

// TestBlocksAreGatheredAhead: more of them need more memory.
func TestBlocksAreGatheredAhead(t *testing.T) {
	loss := zeroLoss(t, 8, 2)
	before := 0
	for _, ahead := range []int{1, 3} {
		_, temps := planOfStep(t, loss, parallel.Shard{Mesh: ops.MeshAttrs{MeshAxis: "data", Devices: 8}, Params: true, Ahead: ahead}, true)
		if temps < before+zeroWidth*zeroWidth*4 {
			t.Errorf("with %d blocks ahead %d bytes, with fewer %d", ahead, temps, before)
		}
		before = temps
	}
}

const zeroWidth = 64

func zeroLoss(t *testing.T, layers, rows int) *ir.Graph {
	t.Helper()
	loss, err := ir.Build("chain", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(rows, zeroWidth)...)
		for i := range layers {
			x = ops.Tanh(b, ops.MatMul(b, x, b.Param(fmt.Sprint("w", i), ir.F32, ir.Dims(zeroWidth, zeroWidth)...)))
		}
		b.Output("loss", ops.Mean(b, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

// bytesOfStep returns the bytes of parameters and states, and of all other values, of a step by a stage of
// ZeRO on n devices.
func bytesOfStep(t *testing.T, layers, n, stage int) (kept, temps int) {
	t.Helper()
	s := parallel.Shard{Mesh: ops.MeshAttrs{MeshAxis: "data", Devices: n}, Params: stage == 3}
	if stage == 0 {
		s.Mesh.Devices = 1
	}
	return planOfStep(t, zeroLoss(t, layers, 2), s, stage >= 2)
}

// planOfStep compiles a step, with divided states if there are several devices.
func planOfStep(t *testing.T, loss *ir.Graph, s parallel.Shard, scatter bool) (kept, temps int) {
	t.Helper()
	s.Bucket = zeroWidth * zeroWidth * 4
	data := parallel.Data{Mesh: ops.MeshAttrs{MeshAxis: "data", Devices: 8}, Bucket: s.Bucket, Scatter: scatter}
	g, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Gradients: func(g *ir.Graph) (*ir.Graph, error) {
		g, _, err := data.Gradients(g)
		return g, err
	}})
	if err == nil {
		g, _, err = s.States(g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytesOfPlan(t, g)
}

func bytesOfPlan(t *testing.T, g *ir.Graph) (kept, temps int) {
	t.Helper()
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
