package plansim_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/webgpu/wgsl"
)

// TestTrainingOnALongContextFitsTheDefaultLimits compiles an AdamW step of a
// block of a language model with a context whose scores would take 8 GiB.
func TestTrainingOnALongContextFitsTheDefaultLimits(t *testing.T) {
	const context = 16384
	loss, err := irtest.GPT{Vocab: 65, Context: context, Width: 512, Heads: 8, Blocks: 1, Batch: 1}.Loss()
	if err != nil {
		t.Fatal(err)
	}
	g, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{ClipNorm: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Requires.Met(nil, plan.DefaultLimits(), [2]int{}) {
		t.Errorf("requires %+v", p.Requires)
	}
	bytes := 0
	for _, b := range p.Buffers {
		bytes += b.Bytes
	}
	launches := 0
	for _, s := range p.Entries[0].Steps {
		if d, ok := s.(*plan.Dispatch); ok && strings.HasPrefix(p.Kernels[d.Kernel].Name, "attend_") {
			launches++
		}
	}
	if launches != 4 {
		t.Errorf("%d launches of attention, want one forward and three backward", launches)
	}
	if steps := len(p.Entries[0].Steps); bytes > 960<<20 || steps > 108 {
		t.Errorf("%d MiB in %d buffers, %d steps; it took 957 MiB and 108 steps once", bytes>>20, len(p.Buffers), steps)
	}
}
