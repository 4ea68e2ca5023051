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
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// asNumbers are the formats whose numbers are no bytes: tables, fifth bits apart from the others, floats.
var asNumbers = map[string]bool{"q5_0": true, "q5_1": true, "iq4_nl": true, "iq4_xs": true, "mxfp4": true, "nvfp4": true, "f8_e4m3": true, "f8_e5m2": true}

// TestRoundedRowsAreMultipliedAsIntegers rounds activations in the kernel of a product on CUDA.
func TestRoundedRowsAreMultipliedAsIntegers(t *testing.T) {
	for _, format := range slices.Sorted(maps.Keys(tame)) {
		for _, c := range []struct{ rows, elements int }{{4, 768}, {3, 256}} {
			t.Run(fmt.Sprintf("%s %dx%d", format, c.rows, c.elements), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(1, 2))
				w := packedRandom(rng, format, c.rows, c.elements)
				g := roundedProduct(t, format, w, c.elements)
				if kernels, dots := schedtest.Kernels(t, g, schedtest.Hopper()), 0; len(kernels) != 1 {
					t.Errorf("%d kernels", len(kernels))
				} else if dots = dotsOf(kernels[0]); (dots == 0) != asNumbers[format] {
					t.Errorf("%d dot products of integers", dots)
				}
				checkPacked(t, g, schedtest.Hopper(), map[string]*ir.Array{"x": normal(rng, 1, c.elements), "w": w, "residual": normal(rng, 1, c.rows)})
			})
		}
	}
}

func roundedProduct(t *testing.T, format string, w *ir.Array, elements int) *ir.Graph {
	return schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(1, elements)...)
		y := ops.QuantizedMatMul8(b, x, b.Param("w", ir.U8, ir.Dims(w.Dims...)...), format)
		b.Output("y", ops.Add(b, ops.Silu(b, y), b.Input("residual", ir.F32, ir.Dims(1, w.Dims[0])...)))
	})
}

// dotsOf counts the dot products of integers in a kernel.
func dotsOf(k *loop.Kernel) (n int) {
	loop.Walk(k.Body, func(s loop.Stmt) {
		loop.EachNode(s, func(e scalar.Expr) {
			if e.Op == scalar.OpDot4 {
				n++
			}
		})
	})
	return n
}

// TestRoundedRowsOfSeveralProducts has two products of a normalised row, for rows that no workgroup shares, of which threads
// have one part or several, whether activations are vectors or not, and in one kernel.
func TestRoundedRowsOfSeveralProducts(t *testing.T) {
	for _, c := range []struct {
		format                 string
		rows, elements, before int
	}{{"q4_0", 7, 768, 0}, {"q8_0", 64, 768, 0}, {"q4_k", 64, 7680, 0}, {"q8_0", 5, 768, 1}, {"q4_1", 66, 7680, 1}} {
		if testing.Short() && c.rows*c.elements > 7*768 {
			continue
		}
		rng := rand.New(rand.NewPCG(3, 4))
		gate, up := packedRandom(rng, c.format, c.rows, c.elements), packedRandom(rng, c.format, c.rows, c.elements)
		g := schedtest.Build(t, func(b *ir.Builder) {
			x := ops.SliceAxis(b, b.Input("x", ir.F32, ir.Dims(1, c.before+c.elements)...), 1, ir.N(c.before), ir.N(c.elements))
			x = ops.Mul(b, x, b.Input("scale", ir.F32, ir.N(c.elements)))
			times := func(name string) ir.Value {
				return ops.QuantizedMatMul8(b, x, b.Param(name, ir.U8, ir.Dims(gate.Dims...)...), c.format)
			}
			b.Output("y", ops.Mul(b, ops.Silu(b, times("gate")), times("up")))
		})
		if kernels := schedtest.Kernels(t, g, schedtest.Hopper()); len(kernels) != 1 || dotsOf(kernels[0]) == 0 {
			t.Errorf("%v: %d kernels", c, len(kernels))
		}
		inputs := map[string]*ir.Array{"x": normal(rng, 1, c.before+c.elements), "scale": normal(rng, c.elements), "gate": gate, "up": up}
		checkPacked(t, g, schedtest.Hopper(), inputs)
	}
}

// TestRoundedCandidatesAreRight runs every schedule that is worth measuring.
func TestRoundedCandidatesAreRight(t *testing.T) {
	for _, format := range []string{"q4_0", "q8_0", "q6_k"} {
		if testing.Short() && format != "q4_0" {
			continue
		}
		t.Run(format, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			const rows, elements = 12, 512
			w := packedRandom(rng, format, rows, elements)
			inputs := map[string]*ir.Array{"x": normal(rng, 1, elements), "w": w, "residual": normal(rng, 1, rows)}
			g := roundedProduct(t, format, w, elements)
			target, packed := schedtest.Hopper(), 0
			target.Device = hardware.Unknown()
			target.Device.Launch = 1e-6 // so that no group is too small for a choice
			for _, c := range schedtest.Choices(t, g, target) {
				for _, r := range c.Candidates {
					if r.Family == emit.PackedRows {
						packed++
					}
					forced := schedtest.Forced(t, g, target, func(o *plan.Choice) (emit.Schedule, bool) { return r.Schedule, o.Key == c.Key })
					checkPacked(t, g, forced, inputs)
				}
			}
			if packed < 4 {
				t.Errorf("%d candidates read words", packed)
			}
		})
	}
}

// TestRingsOfRowsAreRight has rows that are copied asynchronously to a ring of stages, of weights that no kernel writes and
// of others, one array or two, and exact activations of q8_0.
func TestRingsOfRowsAreRight(t *testing.T) {
	for _, c := range []struct {
		format         string
		rows, elements int
		exact, gated   bool
		fixed          bool
	}{{"q8_0", 64, 1024, false, false, true}, {"q4_k", 64, 512, false, true, false}, {"q4_0", 96, 1024, false, false, false}, {"q8_0", 64, 512, true, false, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(11, 12))
			w, up := packedRandom(rng, c.format, c.rows, c.elements), packedRandom(rng, c.format, c.rows, c.elements)
			g := schedtest.Build(t, func(b *ir.Builder) {
				x, declare, times := b.Input("x", ir.F32, ir.Dims(1, c.elements)...), b.Input, ops.QuantizedMatMul8
				if c.fixed {
					declare = b.Param
				}
				if c.exact {
					times = ops.QuantizedMatMul
				}
				y := ops.Silu(b, times(b, x, declare("w", ir.U8, ir.Dims(w.Dims...)...), c.format))
				if c.gated {
					y = ops.Mul(b, y, times(b, x, declare("up", ir.U8, ir.Dims(w.Dims...)...), c.format))
				}
				b.Output("y", y)
			})
			inputs := map[string]*ir.Array{"x": normal(rng, 1, c.elements), "w": w}
			if c.gated {
				inputs["up"] = up
			}
			target := schedtest.Hopper()
			target.Device = hardware.Unknown()
			target.Device.Launch = 1e-6 // so that no group is too small for a choice
			choices := schedtest.Choices(t, g, target)
			at := slices.IndexFunc(choices, func(o *plan.Choice) bool { return o.Candidates[0].Family == emit.PackedRows })
			if at < 0 {
				t.Fatal("no kernel reads words")
			}
			for _, ring := range []struct{ rows, each, stages int }{{16, 1, 3}, {16, 2, 3}, {16, 4, 3}, {8, 4, 3}, {8, 1, 7}} {
				s := choices[at].Candidates[0].Schedule
				s.Rows, s.Each, s.Stages = ring.rows, ring.each, ring.stages
				forced := schedtest.Forced(t, g, target, func(o *plan.Choice) (emit.Schedule, bool) { return s, o.Key == choices[at].Key })
				if copiesOf(schedtest.Kernels(t, g, forced)) == 0 {
					t.Errorf("%s copies no rows", s)
				}
				checkPacked(t, g, forced, inputs)
			}
		})
	}
}

// copiesOf counts the asynchronous copies of kernels.
func copiesOf(kernels []*loop.Kernel) (n int) {
	for _, k := range kernels {
		loop.Walk(k.Body, func(s loop.Stmt) {
			if _, ok := s.(*loop.CopyAsync); ok {
				n++
			}
		})
	}
	return n
}

// TestRoundedRowsOfAnyScale has blocks of zeros, of large, small and subnormal numbers, of ties, and with infinities and
// NaN: results are those of the definition, within the error of a sum in f32.
func TestRoundedRowsOfAnyScale(t *testing.T) {
	const rows, elements = 4, 512
	for name, block := range map[string]func(i int, x float64) float64{
		"zeros":     func(int, float64) float64 { return 0 },
		"large":     func(_ int, x float64) float64 { return 1e34 * x },
		"small":     func(_ int, x float64) float64 { return 1e-30 * x },
		"least":     func(_ int, x float64) float64 { return 1e-36 * x },
		"subnormal": func(_ int, x float64) float64 { return 2e-43 * x },
		"ties":      func(i int, _ float64) float64 { return 6 * (float64(i%32) - 15.5) * 127 / (15.5 * 6) },
		"infinite":  func(i int, x float64) float64 { return []float64{x, math.Inf(1)}[i/7%2] },
		"NaN":       func(i int, x float64) float64 { return []float64{x, math.NaN()}[i/31%2] },
	} {
		for _, format := range []string{"q4_0", "q8_0"} {
			rng := rand.New(rand.NewPCG(7, 8))
			w, x := packedRandom(rng, format, rows, elements), normal(rng, 1, elements)
			for i := range x.F {
				x.F[i] = block(i, x.F[i])
				if i >= 32 && (name == "infinite" || name == "NaN") {
					x.F[i] = float64(i)
				}
			}
			x.Round()
			g := schedtest.Build(t, func(b *ir.Builder) {
				b.Output("y", ops.QuantizedMatMul8(b, b.Input("x", ir.F32, ir.Dims(1, elements)...), b.Param("w", ir.U8, ir.Dims(w.Dims...)...), format))
			})
			checkRounded(t, name+" "+format, g, format, x, w)
		}
	}
}

// checkRounded compares the results of a product with those of the definition, which it sums up in f64: the reference
// implementation rounds each product.
func checkRounded(t *testing.T, name string, g *ir.Graph, format string, x, w *ir.Array) {
	t.Helper()
	weights, err := ir.Eval(schedtest.Build(t, func(b *ir.Builder) {
		b.Output("w", ops.Dequantize(b, b.Input("w", ir.U8, ir.Dims(w.Dims...)...), format, ir.F32))
	}), map[string]*ir.Array{"w": w}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*ir.Array{"x": x, "w": w}
	s := opened(t, schedtest.Hopper(), g)
	if err := s.SetStates(g, inputs); err != nil {
		t.Fatal(err)
	}
	got, err := s.RunGraph("run", g, inputs)
	if err != nil {
		t.Fatal(err)
	}
	rounded := roundedRow(x.F)
	for i, y := range got[0].F {
		want, all := 0., 0.
		for k, r := range rounded {
			product := r * weights[0].F[i*len(rounded)+k]
			want, all = want+product, all+math.Abs(product)
		}
		if math.IsNaN(y) != math.IsNaN(want) || math.Abs(y-want) > 1e-6*all+1e-44 {
			t.Errorf("%s: element %d is %v, not %v", name, i, y, want)
		}
	}
}

// roundedRow rounds blocks of 32 to multiples of their largest magnitude divided by 127, all in f32.
func roundedRow(x []float64) (out []float64) {
	for block := range slices.Chunk(x, 32) {
		largest := float32(0)
		for _, v := range block {
			largest = max(largest, float32(math.Abs(v)))
		}
		step := largest / 127
		if step == 0 {
			step = 1
		}
		for _, v := range block {
			q := math.RoundToEven(float64(float32(v) / step))
			out = append(out, float64(float32(min(max(q, -127), 127))*step))
		}
	}
	return out
}

// TestRingsHaveWholeRows has rows that begin within those of the array, by some bytes: a stage of the array's rows lacks
// the end of its last one.
func TestRingsHaveWholeRows(t *testing.T) {
	const rows, elements = 64, 512
	for _, before := range []int{0, 1, 2, 4, 16, elements / 32 * 34} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(11, 12))
			w := packedRandom(rng, "q8_0", rows, elements)
			all := ir.NewArray(ir.U8, before+w.Len())
			copy(all.I[before:], w.I)
			g := schedtest.Build(t, func(b *ir.Builder) {
				x, all := b.Input("x", ir.F32, ir.Dims(1, elements)...), b.Param("w", ir.U8, ir.N(before+w.Len()))
				own := ops.Reshape(b, ops.SliceAxis(b, all, 0, ir.N(before), ir.N(w.Len())), ir.Dims(w.Dims...)...)
				b.Output("y", ops.QuantizedMatMul8(b, x, own, "q8_0"))
			})
			forced := withRings(t, g, schedtest.Hopper())
			if copies := copiesOf(schedtest.Kernels(t, g, forced)); (copies > 0) != (before == 0) {
				t.Errorf("%d copies of rows", copies)
			}
			checkPacked(t, g, forced, map[string]*ir.Array{"x": normal(rng, 1, elements), "w": all})
		})
	}
}

// withRings returns a target whose products with packed weights have rings, if they can.
func withRings(t *testing.T, g *ir.Graph, target plan.Target) plan.Target {
	t.Helper()
	target.Device = hardware.Unknown()
	target.Device.Launch = 1e-6 // so that no group is too small for a choice
	words := 0
	forced := schedtest.Forced(t, g, target, func(c *plan.Choice) (emit.Schedule, bool) {
		s := c.Candidates[0].Schedule
		packed := s.Family == emit.PackedRows
		if packed {
			words++
		}
		s.Rows, s.Each, s.Stages = 16, 2, 3
		return s, packed
	})
	if words == 0 {
		t.Fatal("no kernel reads words")
	}
	return forced
}

// TestRingsNeedAsynchronousCopies has a device of compute capability 7.5, which has none: neither the rule nor a choice
// measured on another device gives it a ring.
func TestRingsNeedAsynchronousCopies(t *testing.T) {
	const rows, elements = 32000, 4096
	g := roundedProduct(t, "q4_k", &ir.Array{Dims: []int{rows, elements / 256 * 144}}, elements)
	for _, mma := range []bool{true, false} {
		target := schedtest.Ada()
		target.Mma = mma
		if copies := copiesOf(schedtest.Kernels(t, g, target)); (copies > 0) != mma {
			t.Errorf("multiply-adds: %v: %d copies by the rule", mma, copies)
		}
		if copies := copiesOf(schedtest.Kernels(t, g, withRings(t, g, target))); (copies > 0) != mma {
			t.Errorf("multiply-adds: %v: %d copies by a choice", mma, copies)
		}
		for _, c := range schedtest.Choices(t, g, target) {
			if slices.ContainsFunc(c.Candidates, func(r emit.Ranked) bool { return r.Schedule.Stages > 0 }) != mma {
				t.Errorf("multiply-adds: %v: candidates %v", mma, c.Candidates)
			}
		}
	}
}
