package plansim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestTrainingOnALongContextFitsTheDefaultLimits compiles an AdamW step of a block of a language
// model whose scores would take 8 GiB.
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
	if !p.Requires.Met(nil, loop.DefaultLimits(), [2]int{}) {
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
	if steps := len(p.Entries[0].Steps); bytes > 965<<20 || steps > 95 {
		t.Errorf("%d MiB in %d buffers, %d steps; it took 962 MiB and 95 steps once", bytes>>20, len(p.Buffers), steps)
	}
}

// TestAttentionKernelsHaveBoundedSize bounds the source and the workgroup memory of
// kernels with all that there can be in them.
func TestAttentionKernelsHaveBoundedSize(t *testing.T) {
	for _, depth := range []int{64, 128, 256} {
		for name, mask := range map[string][]ir.Dim{"none": nil, "bias": ir.Dims(2, 1, 2000)} {
			t.Run(fmt.Sprintf("%d, %s", depth, name), func(t *testing.T) {
				for _, k := range attentionPlan(t, depth, mask).Kernels {
					if len(k.Source) > 24<<10 || k.SharedBytes > 12<<10 || len(k.Storage) > 8 {
						t.Errorf("%s: %d bytes of source, %d of workgroup memory, %d bindings", k.Name, len(k.Source), k.SharedBytes, len(k.Storage))
					}
				}
			})
		}
	}
}

func attentionPlan(t *testing.T, depth int, bias []ir.Dim) *plan.Plan {
	t.Helper()
	a := ops.AttentionAttrs{Scale: 1, Causal: true}
	g := schedtest.Build(t, func(b *ir.Builder) {
		var in []ir.Value
		for _, name := range []string{"q", "k", "v", "dout"} {
			in = append(in, b.Input(name, ir.F32, ir.Dims(2, 2000, depth)...))
		}
		var mask ir.Value
		if bias != nil {
			a.Softcap = 30
			mask = b.Input("mask", ir.F32, bias...)
		}
		out, lse := ops.AttentionForward(b, in[0], in[1], in[2], mask, a)
		b.Output("out", out)
		for i, g := range ops.AttentionBackward(b, ops.AttentionOperands{Q: in[0], K: in[1], V: in[2], Mask: mask}, ops.AttentionResiduals{LSE: lse, Delta: lse, DOut: in[3]}, a) {
			b.Output(fmt.Sprint("g", i), g)
		}
	})
	p := compiledFor(t, inBlocks(), g)
	return p
}
