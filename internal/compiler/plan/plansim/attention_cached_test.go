package plansim_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/ops/nan"
)

// cachedSample is attention of two queries in each of four heads over a cache of two heads, with a
// depth and a width of 3.
func cachedSample(a ops.CachedAttentionAttrs, room int, past int64) ir.Sample {
	numbers := func(dims ...int) *ir.Array {
		x := ir.NewArray(ir.F32, dims...)
		for i := range x.F {
			x.F[i] = math.Sin(float64(i))
		}
		x.Round()
		return x
	}
	return ir.Sample{Attrs: &a, In: []*ir.Array{numbers(1, 4, 2, 3), numbers(1, 2, room, 3), numbers(1, 2, room, 3), ir.Ints(ir.I32, []int64{past}, 1)}}
}

// TestCachedAttentionCombinesNaN puts NaN in one of three blocks of keys, which the second kernel
// combines: in a query, in keys and values that all queries see, and in a key that only the last sees.
func TestCachedAttentionCombinesNaN(t *testing.T) {
	const room, past = 600, 590
	clean := cachedSample(ops.CachedAttentionAttrs{Scale: 2}, room, past)
	samples := []ir.Sample{clean, nan.With(clean, 0, 3*3), nan.With(clean, 1, (past+1)*3)}
	for _, operand := range []int{1, 2} {
		samples = append(samples, nan.With(clean, operand, 5*3), nan.With(clean, operand, (room+300)*3))
	}
	for _, target := range []plan.Target{plan.WebGPU(), byWarps()} {
		if kernels := checkSampleOn(t, target, ops.OpCachedAttention, samples...); len(kernels) != 2 {
			t.Errorf("kernels %v, want two", kernels)
		}
	}
}

// TestCachedAttentionPastItsRoomIsZero runs queries with no key in their window after queries with
// some: the second run must not read the partial results of the first.
func TestCachedAttentionPastItsRoomIsZero(t *testing.T) {
	const room = 9
	g, inputs, err := sampleGraph(ops.OpCachedAttention, cachedSample(ops.CachedAttentionAttrs{Scale: 2, Window: 1}, room, 5))
	if err != nil {
		t.Fatal(err)
	}
	program := opened(t, plan.WebGPU(), g)
	for _, past := range []int64{5, room} {
		inputs["x0_3"] = ir.Ints(ir.I32, []int64{past}, 1)
		got, err := program.Run("run", inputs)
		if err != nil {
			t.Fatal(err)
		}
		for i, y := range got["y0_0"].F {
			if (y == 0) != (past == room) {
				t.Errorf("past %d: element %d is %v", past, i, y)
			}
		}
	}
}

// TestCachedAttentionOfManyBlocks runs the CUDA kernels, whose threads read vectors, and those of all GPUs, whose threads
// share a key and divide the keys of a feature: lengths from none to many full blocks of keys, several sequences
// selected by row, windows, wide values, pages that are no whole rounds of loads, and NaN in visible keys.
func TestCachedAttentionOfManyBlocks(t *testing.T) {
	of := func(a ops.CachedAttentionAttrs, d ir.DType, dims [3][]int, past, row *ir.Array) ir.Sample {
		s := ir.Sample{Attrs: &a}
		for i, dims := range dims {
			x := ir.NewArray(d, dims...)
			for j := range x.F {
				x.F[j] = math.Sin(float64(j*(i+1)) + float64(i))
			}
			x.Round()
			s.In = append(s.In, x)
		}
		s.In = append(s.In, past, row)
		return s
	}
	sample := func(a ops.CachedAttentionAttrs, d ir.DType, queries int, past ...int64) ir.Sample {
		dims := [3][]int{{2, 4, queries, 64}, {3, 2, 300, 64}, {3, 2, 300, 32}}
		return of(a, d, dims, ir.Ints(ir.I32, past, 2), ir.Ints(ir.I32, []int64{2, 0}, 2))
	}
	plain := sample(ops.CachedAttentionAttrs{Scale: 0.2}, ir.F32, 1, 299, 5)
	half := sample(ops.CachedAttentionAttrs{Scale: 0.2}, ir.BF16, 1, 140, 128)
	samples := []ir.Sample{
		plain, half, sample(ops.CachedAttentionAttrs{Scale: 0.2}, ir.F32, 2, -1, 127), sample(ops.CachedAttentionAttrs{Scale: 0.2, Window: 9}, ir.F32, 2, 200, 3),
		sample(ops.CachedAttentionAttrs{Scale: 0.2, Softcap: 2}, ir.F32, 1, 298, 17), nan.With(plain, 0, 70), nan.With(plain, 1, 4*300*64+130*64),
		of(ops.CachedAttentionAttrs{Scale: 0.2}, ir.F32, [3][]int{{2, 4, 2, 64}, {2, 2, 150, 64}, {2, 2, 150, 96}}, ir.Ints(ir.I32, []int64{148, 40}, 2), ir.Ints(ir.I32, []int64{1, 0}, 2)),
		of(ops.CachedAttentionAttrs{Scale: 0.2}, ir.F32, [3][]int{{2, 4, 1, 48}, {5, 2, 100, 48}, {5, 2, 100, 32}}, ir.Ints(ir.I32, []int64{177, 20}, 2), ir.Ints(ir.I32, []int64{3, 1, 0, 4}, 2, 2)),
	}
	for _, target := range []plan.Target{schedtest.Hopper(), plan.WebGPU(), byWarps()} {
		for _, name := range checkSampleOn(t, target, ops.OpCachedAttention, samples...) {
			if !strings.HasPrefix(name, "kernels_") {
				t.Errorf("kernel %s is none of the op's own", name)
			}
		}
	}
}

// TestCachedAttentionOfManyRows runs the op's own kernels with as many queries and as wide values as 16 and 32 KiB of workgroup
// memory hold: queries and sums share some of it, as do products and weights.
func TestCachedAttentionOfManyRows(t *testing.T) {
	larger := func(p plan.Target) plan.Target {
		p.SharedBytes = 32 << 10
		return p
	}
	for _, c := range []struct {
		name        string
		target      plan.Target
		heads, size int
	}{
		{"16 KiB", plan.WebGPU(), 8, 64},
		{"16 KiB, wide", plan.WebGPU(), 4, 256},
		{"32 KiB, wide", larger(plan.WebGPU()), 8, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ir.Sample{Attrs: &ops.CachedAttentionAttrs{Scale: 0.2, Window: 60}}
			for i, dims := range [][]int{{1, c.heads, 2, c.size}, {1, 1, 90, c.size}, {1, 1, 90, c.size}} {
				x := ir.NewArray(ir.F32, dims...)
				for j := range x.F {
					x.F[j] = math.Sin(float64(j*(i+1)) + float64(i))
				}
				x.Round()
				s.In = append(s.In, x)
			}
			s.In = append(s.In, ir.Ints(ir.I32, []int64{80}, 1))
			kernels := checkSampleOn(t, c.target, ops.OpCachedAttention, s)
			if len(kernels) != 2 || !strings.HasPrefix(kernels[0], "kernels_") || !strings.HasPrefix(kernels[1], "kernels_") {
				t.Errorf("kernels %v, want the two of the op", kernels)
			}
		})
	}
}

// TestCachedAttentionOfAPromptReadsNoHiddenKeys runs many queries, which attend by blocks with a mask: no block that
// the mask hides from all queries is read, so that NaN in it does not matter.
func TestCachedAttentionOfAPromptReadsNoHiddenKeys(t *testing.T) {
	const queries, room, depth, past = 40, 400, 64, 150
	for _, c := range []struct {
		d ir.DType
		a ops.CachedAttentionAttrs
	}{{ir.F32, ops.CachedAttentionAttrs{Scale: 0.2}}, {ir.BF16, ops.CachedAttentionAttrs{Scale: 0.2, Window: 20}}} {
		s := ir.Sample{Attrs: &c.a}
		for i, dims := range [][]int{{1, 1, queries, depth}, {1, 1, room, depth}, {1, 1, room, depth}} {
			x := ir.NewArray(c.d, dims...)
			for j := range x.F {
				x.F[j] = math.Sin(float64(j*(i+1)) + float64(i))
			}
			x.Round()
			s.In = append(s.In, x)
		}
		s.In = append(s.In, ir.Ints(ir.I32, []int64{past}, 1))
		g, inputs, err := sampleGraph(ops.OpCachedAttention, s)
		if err != nil {
			t.Fatal(err)
		}
		want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.In[2].F {
			if key := i / depth; key >= past+queries || c.a.Window > 0 && key < past-c.a.Window-128 {
				s.In[2].F[i] = math.NaN()
			}
		}
		m := moduleOf(t, g)
		target := schedtest.Hopper()
		target.ScoreBytes = 1
		program, err := plansim.Open(m, target)
		if err != nil {
			t.Fatal(err)
		}
		got, err := program.Run("run", inputs)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range got["y0_0"].F {
			if math.IsNaN(x) || math.Abs(x-want[0].F[i]) > 0.02 {
				t.Fatalf("%s, window %d: element %d is %v, not %v", c.d, c.a.Window, i, x, want[0].F[i])
			}
		}
	}
}

// TestCachedAttentionOfFilledPositionsAlone puts NaN in the keys and values of positions that are not filled, as an earlier
// sequence may leave them: one query and a prompt, in a whole cache and in pages.
func TestCachedAttentionOfFilledPositionsAlone(t *testing.T) {
	for _, target := range []plan.Target{schedtest.Hopper(), plan.WebGPU(), byWarps()} {
		for _, d := range []ir.DType{ir.F32, ir.BF16} {
			for _, queries := range []int{1, 40} {
				for _, paged := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s %s %d pages %t", target.Name, d, queries, paged), func(t *testing.T) { checkFilledAlone(t, target, d, queries, paged) })
				}
			}
		}
	}
}

// checkFilledAlone holds queries over a cache with NaN after their positions to the same without.
func checkFilledAlone(t *testing.T, target plan.Target, d ir.DType, queries int, paged bool) {
	const heads, page, depth, past = 2, 64, 64, 70
	dims, row, pages := []int{1, heads, 3 * page, depth}, []*ir.Array(nil), []int{0}
	if paged { // the last page of the sequence is not filled
		dims, row, pages = []int{4, heads, page, depth}, []*ir.Array{ir.Ints(ir.I32, []int64{3, 1, -1}, 1, 3)}, []int{3, 1}
	}
	s := ir.Sample{Attrs: &ops.CachedAttentionAttrs{Scale: 0.2}}
	for _, dims := range [][]int{{1, 4, queries, depth}, dims, dims} {
		x := ir.NewArray(d, dims...)
		for i := range x.F {
			x.F[i] = math.Sin(float64(i))
		}
		x.Round()
		s.In = append(s.In, x)
	}
	s.In = append(append(s.In, ir.Ints(ir.I32, []int64{past}, 1)), row...)
	g, inputs, err := sampleGraph(ops.OpCachedAttention, s)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range s.In[1:3] {
		for i := range x.F {
			line := i / depth // of a page and head
			number := slices.Index(pages, line/dims[2]/heads)
			if number < 0 || number*dims[2]+line%dims[2] >= past+queries {
				x.F[i] = math.NaN()
			}
		}
	}
	got, err := open(t, g, target).Run("run", inputs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := compare(got["y0_0"], want[0], 0.02); diff != "" {
		t.Error(diff)
	}
}
