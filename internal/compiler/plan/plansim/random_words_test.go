package plansim_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestRandomNumbersAreOneKernel counts kernels of random numbers and of functions of them, and
// the blocks of Threefry-2x32 that a thread computes for its four elements: a word is turned
// by 26 bits three times in one of 20 rounds, and twice in one of 13 (Salmon et al. 2011).
func TestRandomNumbersAreOneKernel(t *testing.T) {
	for _, c := range []struct {
		by            ops.Generator
		turns, blocks int
	}{
		{ops.Threefry, 3, 4},
		{ops.ThreefryBoth, 3, 2},
		{ops.ThreefryBoth13, 2, 2},
	} {
		t.Run(string(c.by), func(t *testing.T) {
			p := compiled(t, schedtest.Build(t, func(b *ir.Builder) {
				x, key := b.Input("x", ir.F32, ir.Dims(2048, 1024)...), b.Input("key", ir.U32, ir.N(2))
				b.Output("y", ops.Add(b, x, c.by.Uniform(b, key, ir.F32, x.Shape()...)))
			}))
			checkSources(t, p)
			if len(p.Kernels) != 1 {
				t.Fatalf("%d kernels, not 1", len(p.Kernels))
			}
			if n := strings.Count(p.Kernels[0].Source, "<< 26u"); n != c.turns*c.blocks {
				t.Errorf("%d turns by 26 bits, not those of %d blocks:\n%s", n, c.blocks, p.Kernels[0].Source)
			}
		})
	}
}

// TestNormalNumbersShareBlocks: four normal numbers of a thread are long, and by blocks of
// their own too long for one.
func TestNormalNumbersShareBlocks(t *testing.T) {
	for by, blocks := range map[ops.Generator]int{ops.Threefry: 1, ops.ThreefryBoth: 2} {
		p := compiled(t, schedtest.Build(t, func(b *ir.Builder) {
			b.Output("y", by.Normal(b, b.Input("key", ir.U32, ir.N(2)), ir.F32, ir.Dims(4096, 4096)...))
		}))
		if n := strings.Count(p.Kernels[0].Source, "<< 26u"); len(p.Kernels) != 1 || n != 3*blocks {
			t.Errorf("%s: %d kernels, %d turns by 26 bits, not those of %d blocks", by, len(p.Kernels), n, blocks)
		}
	}
}
