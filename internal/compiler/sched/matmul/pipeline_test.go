package matmul_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPipelinedProductsInEveryTile covers partial tiles, contracted spaces that end within a
// step, split-K, a single step, and epilogues stored from registers and through workgroup
// memory.
func TestPipelinedProductsInEveryTile(t *testing.T) {
	shapes := []struct{ m, n, k, parts int }{{132, 72, 36, 1}, {20, 260, 96, 2}, {4, 8, 4, 1}, {256, 128, 32, 1}}
	for i := range matmul.PipelinedSchedules(1) {
		for _, s := range shapes {
			for layout, behind := range map[string]func(*ir.Builder, ir.Value) ir.Value{"nn": ops.Relu, "tn": ops.Gelu, "nt": ops.Relu, "tt": ops.Gelu} {
				schedule := matmul.PipelinedSchedules(s.parts)[i]
				t.Run(fmt.Sprintf("%s, %dx%dx%d %s", schedule, s.m, s.n, s.k, layout), func(t *testing.T) {
					t.Parallel()
					g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulBias(b, s.m, s.n, s.k, layout, behind) })
					if !takes(t, g, schedule) {
						t.Fatal("it does not fit")
					}
					names := schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, schedtest.OwnProducts(), schedule), 0)
					if want := min(s.parts, 2); len(names) != want {
						t.Errorf("kernels %v, want %d", names, want)
					}
				})
			}
		}
	}
}

// TestPipelinedContractions covers batches, axes in other orders, and windows beyond the edge of
// an image, all with operands that asynchronous copies can read.
func TestPipelinedContractions(t *testing.T) {
	for name, f := range map[string]func(b *ir.Builder){
		"batches": func(b *ir.Builder) {
			x, y := b.Input("x", ir.F32, ir.Dims(3, 20, 24)...), b.Input("y", ir.F32, ir.Dims(3, 24, 12)...)
			b.Output("z", ops.MatMul(b, x, y))
		},
		"heads": func(b *ir.Builder) {
			x, y := b.Input("x", ir.F32, ir.Dims(2, 20, 4, 8)...), b.Input("y", ir.F32, ir.Dims(2, 28, 4, 8)...)
			b.Output("z", ops.DotGeneral(b, x, y, ops.DotAttrs{LhsBatch: []int{0, 2}, RhsBatch: []int{0, 2}, LhsContract: []int{3}, RhsContract: []int{3}}))
		},
		"windows": func(b *ir.Builder) {
			x, w := b.Input("x", ir.F32, ir.Dims(2, 6, 5, 4)...), b.Input("w", ir.F32, ir.Dims(3, 3, 4, 8)...)
			b.Output("z", ops.ConvGeneral(b, x, w, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}, Lhs: []int{0, 3, 1, 2}, Rhs: []int{3, 2, 0, 1}, Out: []int{0, 3, 1, 2}}))
		},
	} {
		g := schedtest.Build(t, f)
		for _, schedule := range matmul.PipelinedSchedules(1) {
			t.Run(fmt.Sprintf("%s, %s", name, schedule), func(t *testing.T) {
				if !takes(t, g, schedule) {
					t.Fatal("it does not fit")
				}
				schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, schedtest.OwnProducts(), schedule), 0)
			})
		}
	}
}

// TestPipelinedTilesAreChosen expects the tile that was faster where both were measured: wide
// tiles if they fill the device, tall ones if wide ones leave half of it idle in the last wave
// or the product is small, with the split-K that fills it. Operands that cannot be copied
// asynchronously go through registers.
func TestPipelinedTilesAreChosen(t *testing.T) {
	for _, c := range []struct {
		m, n, k int
		layout  string
		want    string
	}{
		{4096, 4096, 4096, "nn", "pipelined m=128 n=128 k=8 rm=16 rn=8 split=1 stages=2"},
		{4096, 4096, 4096, "tt", "pipelined m=128 n=128 k=8 rm=16 rn=8 split=1 stages=2"},
		{2048, 2048, 2048, "nn", "pipelined m=128 n=128 k=8 rm=16 rn=8 split=1 stages=2"},
		{4096, 512, 512, "nt", "pipelined m=128 n=128 k=8 rm=16 rn=8 split=1 stages=2"},
		{16384, 1152, 384, "nn", "pipelined m=64 n=128 k=16 rm=8 rn=8 split=1 stages=2"},
		{16384, 384, 1536, "nt", "pipelined m=64 n=128 k=16 rm=8 rn=8 split=1 stages=2"},
		{2560, 2560, 8192, "nn", "pipelined m=64 n=128 k=16 rm=8 rn=8 split=4 stages=2"},
		{1024, 1024, 1024, "nn", "pipelined m=64 n=128 k=16 rm=8 rn=8 split=1 stages=2"},
		{512, 512, 4096, "tn", "pipelined m=64 n=128 k=16 rm=8 rn=8 split=8 stages=2"},
		{4095, 4095, 4095, "nn", "tiles m=64 n=128 k=8 rm=8 rn=8 split=1"},
	} {
		g := schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulOf(b, ir.F32, c.m, c.n, c.k, c.layout, false) })
		if got := schedtest.Choices(t, g, schedtest.OwnProducts())[0].Candidates[0].Schedule.String(); got != c.want {
			t.Errorf("%dx%dx%d %s is scheduled by %s, want %s", c.m, c.n, c.k, c.layout, got, c.want)
		}
	}
}

// takes reports whether the contraction of a graph fits a schedule.
func takes(t *testing.T, g *ir.Graph, s emit.Schedule) bool {
	t.Helper()
	for _, c := range schedtest.Choices(t, g, schedtest.OwnProducts()) {
		if schedtest.IsContraction(c) {
			_, err := c.Trial(s, 1, plansim.Text)
			return err == nil
		}
	}
	return false
}
