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
)

// tame holds, for each packed format, functions that make random bytes of a block numbers of moderate
// size: the high bytes of f16, or other scales.
var tame = map[string]func(block []int64){
	"q4_0": halves(0), "q4_1": halves(0, 2), "q5_0": halves(0), "q5_1": halves(0, 2), "q8_0": halves(0), "q2_k": halves(80, 82),
	"q3_k": halves(108), "q4_k": halves(0, 2), "q5_k": halves(0, 2), "q6_k": halves(208), "iq4_nl": halves(0), "iq4_xs": halves(0),
	"q8_k":    func(x []int64) { x[3], x[2] = 0x3c, x[2]&0x7f },
	"mxfp4":   func(x []int64) { x[0] = 118 + x[0]&7 },
	"nvfp4":   func(x []int64) { x[0], x[1], x[2], x[3] = x[0]&0x37, x[1]&0x37, x[2]&0x37, x[3]&0x37 },
	"f8_e4m3": func(x []int64) { x[0] &= 0xb7 },
	"f8_e5m2": func(x []int64) { x[0] &= 0xbb },
}

func halves(at ...int) func([]int64) {
	return func(x []int64) {
		for _, i := range at {
			x[i+1] = x[i+1]&0x80 | 0x24 | x[i+1]&3
		}
	}
}

// packedRandom returns random rows of a format.
func packedRandom(rng *rand.Rand, format string, rows, elements int) *ir.Array {
	each, bytes, _ := ops.PackedBlock(format)
	a := ir.NewArray(ir.U8, rows, elements/each*bytes)
	for i := range a.I {
		a.I[i] = rng.Int64N(256)
	}
	for block := range slices.Chunk(a.I, bytes) {
		tame[format](block)
	}
	return a
}

// byWarps is WebGPU with subgroups of a warp.
func byWarps() plan.Target { return plan.WebGPU().WithSubgroups(loop.Warp) }

// TestPackedRowsAreReadAsWords multiplies a row with packed weights of every format: kernels of CUDA and of
// WebGPU with subgroups read them as words, at whatever offset in a word blocks begin, and fuse products with their
// epilogue.
func TestPackedRowsAreReadAsWords(t *testing.T) {
	for _, format := range slices.Sorted(maps.Keys(tame)) {
		for _, c := range []struct{ rows, elements int }{{4, 768}, {3, 256}} {
			t.Run(fmt.Sprintf("%s %dx%d", format, c.rows, c.elements), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(1, 2))
				w := packedRandom(rng, format, c.rows, c.elements)
				g := schedtest.Build(t, func(b *ir.Builder) {
					x := b.Input("x", ir.F32, ir.Dims(1, c.elements)...)
					y := ops.QuantizedMatMul(b, x, b.Input("w", ir.U8, ir.Dims(w.Dims...)...), format)
					b.Output("y", ops.Add(b, ops.Silu(b, y), b.Input("residual", ir.F32, ir.Dims(1, c.rows)...)))
				})
				if words := wordArrays(t, g); words != 1 {
					t.Errorf("%d arrays of bytes are read as words", words)
				}
				inputs := map[string]*ir.Array{"x": normal(rng, 1, c.elements), "w": w, "residual": normal(rng, 1, c.rows)}
				checkPacked(t, g, schedtest.Hopper(), inputs)
				if c.rows == 3 { // whose blocks begin at any byte of a word
					checkPacked(t, g, byWarps(), inputs)
				}
			})
		}
	}
}

// TestPackedGateAndValue computes a gate and its factor in one kernel, of activations that it normalises itself, for rows that no
// workgroup shares, of which threads have one part or several, whether activations are vectors or not, by one team of threads or
// four.
func TestPackedGateAndValue(t *testing.T) {
	for _, c := range []struct {
		rows, elements, before int
		format                 string
	}{
		{7, 768, 0, "q4_k"},
		{64, 768, 0, "q4_k"},
		{64, 7680, 0, "q4_k"},
		{5, 768, 1, "q4_k"},
		{66, 7680, 1, "q4_k"},
		{160, 512, 0, "q4_0"},
		{160, 512, 1, "q4_0"},
	} {
		if testing.Short() && c.rows*c.elements > 7*768 {
			continue
		}
		rng := rand.New(rand.NewPCG(3, 4))
		gate, up := packedRandom(rng, c.format, c.rows, c.elements), packedRandom(rng, c.format, c.rows, c.elements)
		g := schedtest.Build(t, func(b *ir.Builder) {
			x := ops.SliceAxis(b, b.Input("x", ir.F32, ir.Dims(1, c.before+c.elements)...), 1, ir.N(c.before), ir.N(c.elements))
			x = ops.RMSNorm(b, x, b.Input("scale", ir.F32, ir.N(c.elements)), 1e-5)
			times := func(name string) ir.Value {
				return ops.QuantizedMatMul(b, x, b.Input(name, ir.U8, ir.Dims(gate.Dims...)...), c.format)
			}
			b.Output("y", ops.Mul(b, ops.Silu(b, times("gate")), times("up")))
		})
		if words := wordArrays(t, g); words != 2 {
			t.Errorf("%v: %d arrays of bytes are read as words", c, words)
		}
		inputs := map[string]*ir.Array{"x": normal(rng, 1, c.before+c.elements), "scale": normal(rng, c.elements), "gate": gate, "up": up}
		for name, target := range map[string]plan.Target{"cuda": schedtest.Hopper(), "webgpu": byWarps()} {
			if kernels := schedtest.Kernels(t, g, target); len(kernels) != 1 {
				t.Errorf("%v: %s has %d kernels, want 1", c, name, len(kernels))
			}
			checkPacked(t, g, target, inputs)
		}
	}
}

// TestPackedCandidatesAreRight runs every schedule that is worth measuring, of weights that no kernel writes: loops
// over rows load words an iteration ahead.
func TestPackedCandidatesAreRight(t *testing.T) {
	for _, format := range []string{"q4_0", "q5_0"} {
		if testing.Short() && format == "q5_0" {
			continue
		}
		t.Run(format, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			const rows, elements = 24, 512
			w := packedRandom(rng, format, rows, elements)
			inputs := map[string]*ir.Array{"x": normal(rng, 1, elements), "w": w}
			g := schedtest.Build(t, func(b *ir.Builder) {
				b.Output("y", ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.Dims(1, elements)...), b.Param("w", ir.U8, ir.Dims(w.Dims...)...), format))
			})
			for name, target := range map[string]plan.Target{"cuda": schedtest.Hopper(), "webgpu": byWarps()} {
				packed, rowsOf, teams := 0, map[int]bool{}, 0
				target.Device = hardware.Unknown()
				target.Device.Launch = 1e-6 // so that no group is too small for a choice
				target.Device.Processors = 3
				for _, c := range schedtest.Choices(t, g, target) {
					for _, r := range c.Candidates {
						if r.Family == emit.PackedRows {
							packed, rowsOf[r.Rows], teams = packed+1, true, max(teams, r.M)
						}
						forced := schedtest.Forced(t, g, target, func(o *plan.Choice) (emit.Schedule, bool) { return r.Schedule, o.Key == c.Key })
						checkPacked(t, g, forced, inputs)
					}
				}
				if packed < 4 || len(rowsOf) < 2 || name == "webgpu" && teams < 4 {
					t.Errorf("%s: %d candidates read words, of rows %v, by %d teams, want some", name, packed, rowsOf, teams)
				}
			}
		})
	}
}

// TestPackedActivationsOfAnyScale multiplies weights that are computed as subnormal numbers with activations that
// are large or small.
func TestPackedActivationsOfAnyScale(t *testing.T) {
	for _, scale := range []float64{1e-6, 1, 1e20} {
		rng := rand.New(rand.NewPCG(7, 8))
		const rows, elements = 4, 512
		w, x := packedRandom(rng, "q4_0", rows, elements), normal(rng, 1, elements)
		for i := range x.F {
			x.F[i] *= scale
		}
		x.Round()
		g := schedtest.Build(t, func(b *ir.Builder) {
			y := ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.Dims(1, elements)...), b.Input("w", ir.U8, ir.Dims(w.Dims...)...), "q4_0")
			b.Output("y", ops.Mul(b, y, ops.Const(b, ir.F32, 10/scale)))
		})
		checkPacked(t, g, schedtest.Hopper(), map[string]*ir.Array{"x": x, "w": w})
	}
}

// TestUnpackedNumbersAreStoredAsVectors dequantises weights to bf16, of which a thread has several.
func TestUnpackedNumbersAreStoredAsVectors(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	w := packedRandom(rng, "q4_0", 8, 256)
	g := schedtest.Build(t, func(b *ir.Builder) {
		b.Output("y", ops.Dequantize(b, b.Input("w", ir.U8, ir.Dims(w.Dims...)...), "q4_0", ir.BF16))
	})
	target := schedtest.Hopper()
	target.Device = hardware.Unknown()
	target.Device.Launch = 1e-6
	for _, k := range schedtest.Kernels(t, g, target) {
		if width := k.Arrays[len(k.Arrays)-1].Width; width != 4 {
			t.Errorf("%s stores vectors of %d", k.Name, width)
		}
	}
	checkPacked(t, g, target, map[string]*ir.Array{"w": w})
}

func normal(rng *rand.Rand, dims ...int) *ir.Array {
	a := ir.NewArray(ir.F32, dims...)
	for i := range a.F {
		a.F[i] = rng.NormFloat64()
	}
	a.Round()
	return a
}

// wordArrays returns how many arrays of words the kernels of a graph without such inputs read.
func wordArrays(t *testing.T, g *ir.Graph) (n int) {
	for _, k := range schedtest.Kernels(t, g, schedtest.Hopper()) {
		for _, a := range k.Arrays {
			if a.Space == loop.Storage && a.DType == ir.U32 {
				n++
			}
		}
	}
	return n
}

// checkPacked runs a graph in the simulator and compares its result with the reference.
func checkPacked(t *testing.T, g *ir.Graph, target plan.Target, inputs map[string]*ir.Array) {
	t.Helper()
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	s := opened(t, target, g)
	if err := s.SetStates(g, inputs); err != nil {
		t.Fatal(err)
	}
	got, err := s.RunGraph("run", g, inputs)
	if err != nil {
		t.Fatal(err)
	}
	want[0].Round()
	for i := range want[0].Len() {
		x, y := got[0].Float(i), want[0].Float(i)
		if math.IsNaN(y) || math.Abs(x-y) > 2e-5*math.Max(10, math.Abs(y)) {
			t.Fatalf("element %d is %v, not %v", i, x, y)
		}
	}
}
