package plansim_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// packedProduct is a product of some rows x with packed weights.
type packedProduct struct {
	format            string
	x, rows, elements int
	left              bool // the weights are the left operand
}

// value adds the product to a graph, with an epilogue. With magnitudes, all factors are positive and there is no epilogue.
func (p packedProduct) value(b *ir.Builder, magnitudes bool) ir.Value {
	x := b.Input("x", ir.F32, ir.Dims(p.x, p.elements)...)
	w := p.weights(b)
	if magnitudes {
		return ops.MatMul(b, ops.Abs(b, x), ops.Transpose(b, ops.Abs(b, w), 1, 0))
	}
	y := ops.MatMul(b, x, ops.Transpose(b, w, 1, 0))
	if p.left {
		y = ops.Transpose(b, ops.MatMul(b, w, ops.Transpose(b, x, 1, 0)), 1, 0)
	}
	return ops.Add(b, ops.Silu(b, y), ops.SliceAxis(b, x, 1, ir.N(0), ir.N(1)))
}

// weights adds the weights to a graph, as f32; the format "bf16" has no blocks.
func (p packedProduct) weights(b *ir.Builder) ir.Value {
	if p.format == "bf16" {
		return ops.Convert(b, b.Input("w", ir.BF16, ir.Dims(p.rows, p.elements)...), ir.F32)
	}
	each, bytes, _ := ops.PackedBlock(p.format)
	return ops.Dequantize(b, b.Input("w", ir.U8, ir.Dims(p.rows, p.elements/each*bytes)...), p.format, ir.F32)
}

// TestPackedTiles multiplies several rows with packed weights of every format by multiply-adds, whose sums err by a
// millionth of the magnitudes of their terms at most: with whole tiles and without, in parts of the contracted space and
// in chunks, and with an epilogue.
func TestPackedTiles(t *testing.T) {
	products := []packedProduct{
		{"q4_0", 48, 64, 4096, false},
		{"q8_0", 17, 200, 1024, false},
		{"q4_1", 64, 1100, 576, false},
		{"q4_k", 5, 80, 512, true},
		{"bf16", 3, 100, 192, false},
		{"bf16", 48, 200, 1024, false},
		{"bf16", 8, 64, 576, true},
		{"q8_0", 72, 130, 256, true}, // several tiles of columns
	}
	type run struct {
		packedProduct
		target plan.Target
	}
	targets := []plan.Target{schedtest.Hopper(), schedtest.Ampere()}
	var runs []run
	for _, p := range products {
		runs = append(runs, run{p, targets[0]}, run{p, targets[1]})
	}
	// Each format has both shapes and both targets; which shape is for which target alternates.
	for i, format := range slices.Sorted(maps.Keys(tame)) {
		if _, bytes, _ := ops.PackedBlock(format); bytes > 1 {
			runs = append(runs, run{packedProduct{format, 8, 64, 256, false}, targets[i%2]}, run{packedProduct{format, 3, 100, 768, false}, targets[1-i%2]})
		}
	}
	for _, r := range runs {
		r.target.TF32 = false
		t.Run(fmt.Sprintf("%s %dx%dx%d %s", r.format, r.x, r.rows, r.elements, r.target.Name), func(t *testing.T) {
			t.Parallel()
			r.check(t, r.target)
		})
	}
}

// TestPackedTileCandidates runs every schedule of products whose weights pass through workgroup memory and of others, with
// one tile of columns and with several.
func TestPackedTileCandidates(t *testing.T) {
	for _, p := range []packedProduct{{"q4_0", 12, 130, 1024, false}, {"q5_1", 20, 130, 576, false}, {"bf16", 12, 130, 1024, false}, {"bf16", 72, 66, 1024, false}} {
		g := schedtest.Build(t, func(b *ir.Builder) { b.Output("y", p.value(b, false)) })
		found := 0
		for _, c := range schedtest.Choices(t, g, schedtest.Hopper()) {
			for _, r := range c.Candidates {
				if r.Family != emit.PackedTiles {
					continue
				}
				found++
				forced := schedtest.Forced(t, g, schedtest.Hopper(), func(o *plan.Choice) (emit.Schedule, bool) { return r.Schedule, o.Key == c.Key })
				t.Run(fmt.Sprintf("%s %s", p.format, r.Schedule), func(t *testing.T) { p.check(t, forced) })
			}
		}
		if found < 4 {
			t.Errorf("%s has %d schedules", p.format, found)
		}
	}
}

func (p packedProduct) check(t *testing.T, target plan.Target) {
	rng := rand.New(rand.NewPCG(1, 2))
	inputs := map[string]*ir.Array{"x": normal(rng, p.x, p.elements)}
	if p.format == "bf16" {
		inputs["w"] = ir.Floats(ir.BF16, normal(rng, p.rows, p.elements).F, p.rows, p.elements)
	} else {
		inputs["w"] = packedRandom(rng, p.format, p.rows, p.elements)
	}
	g := schedtest.Build(t, func(b *ir.Builder) { b.Output("y", p.value(b, false)) })
	if !slices.ContainsFunc(schedtest.Kernels(t, g, target), (*loop.Kernel).HasMma) {
		t.Fatal("no multiply-adds")
	}
	evaluate := func(g *ir.Graph) *ir.Array {
		out, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	want := evaluate(g)
	magnitudes := evaluate(schedtest.Build(t, func(b *ir.Builder) { b.Output("y", p.value(b, true)) }))
	got, err := opened(t, target, g).RunGraph("run", g, inputs)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Len() {
		x, y := got[0].Float(i), want.Float(i)
		if limit := 1e-6 * (1 + magnitudes.Float(i)); !(math.Abs(x-y) <= limit) {
			t.Fatalf("element %d is %v, not %v, by more than %v", i, x, y, limit)
		}
	}
}
