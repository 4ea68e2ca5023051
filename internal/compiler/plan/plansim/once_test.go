package plansim_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// counting is a printer that counts the kernels it prints.
type counting struct {
	wgsl.Printer
	printed *int
}

func (c counting) Print(k *loop.Kernel) (string, error) {
	*c.printed++
	return c.Printer.Print(k)
}

// TestEqualGroupsAreWorkedOutOnce compiles training steps of 4, 12 and 24 equal blocks, each of
// which adds 47 dispatches: the number of printed kernels, and so of scheduled and checked ones,
// hardly grows. It grows by maps that are fused with others only in some layers, and by fused parts
// with other grids, which turn out to be equal when they are printed.
func TestEqualGroupsAreWorkedOutOnce(t *testing.T) {
	for _, blocks := range []int{4, 12, 24} {
		m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: gptStep(t, irtest.GPT{Vocab: 65, Context: 64, Width: 64, Heads: 2, Batch: 8, Blocks: blocks, Dropout: 0.1})})
		if err != nil {
			t.Fatal(err)
		}
		printed := 0
		p, err := plan.Compile(m, plan.WebGPU(), counting{printed: &printed})
		if err != nil {
			t.Fatal(err)
		}
		if most := 84 + 3*blocks/2; len(p.Kernels) > 70 || printed > most {
			t.Errorf("%d blocks: %d kernels, %d printed for %d dispatches: over 70 and %d", blocks, len(p.Kernels), printed, p.Entries[0].Dispatches(), most)
		}
	}
}

// TestClippingKernelsDoNotGrowWithParameters: the norm of all gradients is two kernels, the first
// of which is launched once per few arenas.
func TestClippingKernelsDoNotGrowWithParameters(t *testing.T) {
	for _, parameters := range []int{10, 1000} {
		loss, err := ir.Build("loss", func(b *ir.Builder) {
			squares := make([]ir.Value, parameters)
			for i := range squares {
				w := b.Param("w"+strconv.Itoa(i), ir.F32, ir.N(3+i%17))
				squares[i] = ops.Mul(b, w, ops.Sin(b, w))
			}
			b.Output("loss", ops.SumAll(b, squares...))
		})
		if err != nil {
			t.Fatal(err)
		}
		g, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{ClipNorm: 1})
		if err != nil {
			t.Fatal(err)
		}
		if kernels, launches := countTotals(compiled(t, g)); kernels != 2 || launches > 4 {
			t.Errorf("%d parameters: %d kernels in %d launches for the norm", parameters, kernels, launches)
		}
	}
}

// countTotals counts the kernels that add up many values, and their launches.
func countTotals(p *plan.Plan) (kernels, launches int) {
	total := func(k plan.Kernel) bool { return strings.HasPrefix(k.Name, "total_") }
	for _, k := range p.Kernels {
		if total(k) {
			kernels++
		}
	}
	for _, s := range p.Entries[0].Steps {
		if d, ok := s.(*plan.Dispatch); ok && total(p.Kernels[d.Kernel]) {
			launches++
		}
	}
	return kernels, launches
}
