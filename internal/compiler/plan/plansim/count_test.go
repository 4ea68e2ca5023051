package plansim_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestKernelsOfLanguageModels bounds the kernels of a plan for a training step of GPT-2, with AdamW
// and gradients clipped by their norm: each kernel is compiled before the first step.
func TestKernelsOfLanguageModels(t *testing.T) {
	for _, c := range []struct {
		blocks, kernels, source int
		temps                   int64 // bytes of the values between kernels
	}{
		{12, 90, 500e3, 5163267840},
		{48, 110, 800e3, 15e9},
	} {
		if testing.Short() && c.blocks > 12 {
			continue
		}
		t.Run(strconv.Itoa(c.blocks), func(t *testing.T) {
			gpt := irtest.GPT2
			gpt.Blocks = c.blocks
			p := gptPlan(t, gpt)
			source, temps, totals := 0, int64(0), 0
			for _, k := range p.Kernels {
				source += len(k.Source)
				if strings.HasPrefix(k.Name, "total_") {
					totals++
				}
			}
			for _, b := range p.Buffers {
				if b.Kind == plan.TempBuffer {
					temps += int64(b.Bytes)
				}
			}
			t.Logf("%d kernels of %d bytes, %d bytes between them", len(p.Kernels), source, temps)
			if len(p.Kernels) > c.kernels || source > c.source || temps > c.temps {
				t.Errorf("%d kernels of %d bytes, %d bytes between them: over %d, %d and %d", len(p.Kernels), source, temps, c.kernels, c.source, c.temps)
			}
			if totals != 2 {
				t.Errorf("%d kernels for the norm of all gradients, not 2", totals)
			}
			dispatches := p.Entries[0].Dispatches()
			if n := stepBytes(t, p); n > 150*dispatches {
				t.Errorf("%d bytes for %d dispatches", n, dispatches)
			}
		})
	}
}

// Layers differ in the keys of their dropout alone: these are words in memory, and
// the kernels of a deep model are those of one half as deep.
func TestKernelsOfDropoutDoNotGrowWithDepth(t *testing.T) {
	kernels := func(blocks int, dropout float64) int {
		gpt := irtest.GPT{Vocab: 65, Context: 64, Width: 64, Heads: 2, Batch: 8, Blocks: blocks, Dropout: dropout}
		return len(gptPlan(t, gpt).Kernels)
	}
	if half, deep := kernels(12, 0.2), kernels(24, 0.2); deep > half {
		t.Errorf("24 blocks with dropout have %d kernels, 12 have %d", deep, half)
	}
}

// Groups that differ only in literals share a kernel, whatever the kind of group and the type of
// the literals.
func TestLiteralsThatDifferAreWords(t *testing.T) {
	for name, layer := range map[string]func(b *ir.Builder, x ir.Value, i int) ir.Value{
		"rows": func(b *ir.Builder, x ir.Value, i int) ir.Value {
			return ops.Softmax(b, ops.Mul(b, x, ops.ConstLike(b, x, 1+float64(i)/4)), 1)
		},
		"products": func(b *ir.Builder, x ir.Value, i int) ir.Value {
			return ops.Tanh(b, ops.Sub(b, ops.MatMul(b, x, x), ops.ConstLike(b, x, float64(i)-2.5)))
		},
		"indices": func(b *ir.Builder, x ir.Value, i int) ir.Value {
			row := ops.Take(b, x, ops.Const(b, ir.I32, float64(1+i)), 0, ops.OutsideClip)
			return ops.Softmax(b, ops.Add(b, x, ops.BroadcastTo(b, row, x.Shape())), 1)
		},
		"bits": func(b *ir.Builder, x ir.Value, i int) ir.Value {
			large := ops.Convert(b, ops.Gt(b, x, ops.ConstLike(b, x, 0.3)), ir.U32)
			return ops.Softmax(b, ops.Convert(b, ops.Xor(b, large, ops.Const(b, ir.U32, float64(i))), ir.F32), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				x := b.Input("x", ir.F32, ir.Dims(8, 8)...)
				for i := range 6 {
					x = layer(b, x, i)
				}
				b.Output("y", x)
			})
			in := ir.NewArray(ir.F32, 8, 8)
			for i := range in.F {
				in.F[i] = float64(i*i%17)/8 - 1
			}
			if kernels := checkGraphOn(t, plan.WebGPU(), g, map[string]*ir.Array{"x": in}); len(kernels) > 3 { // the first and the last may differ
				t.Errorf("6 equal layers have the kernels %v", kernels)
			}
		})
	}
}

func gptPlan(t *testing.T, gpt irtest.GPT) *plan.Plan {
	t.Helper()
	target := plan.WebGPU()
	target.Limits.BindingBytes, target.Limits.BufferBytes = min(2<<30-4, math.MaxInt), min(4<<30, math.MaxInt)
	m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: gptStep(t, gpt)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(m, target, wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// stepBytes is the size of the first entry's steps in a file.
func stepBytes(t *testing.T, p *plan.Plan) int {
	t.Helper()
	whole, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	entries := p.Entries
	p.Entries = []plan.Entry{entries[0]}
	p.Entries[0].Steps = nil
	rest, err := plan.Encode(p)
	p.Entries = entries
	if err != nil {
		t.Fatal(err)
	}
	return len(whole) - len(rest)
}

// TestManyPartsOfAllLengths runs updates of more states than a kernel has bodies
// for, and the sum of all their squares: in one arena and in many small ones, and
// with enough elements that each thread has two.
func TestManyPartsOfAllLengths(t *testing.T) {
	lengths := []int{1, 255, 256, 257, 0, 1024, 1025, 3, 4097, 8192, 8193, 700, 16000}
	small := plan.WebGPU()
	small.Limits.BindingBytes = 16000 * 4
	narrow := plan.WebGPU()
	narrow.Limits.Groups = 20
	for name, c := range map[string]struct {
		lengths []int
		target  plan.Target
	}{
		"one arena":    {lengths, plan.WebGPU()},
		"small arenas": {lengths, small},
		"small grids":  {lengths, narrow},
		"two turns":    {[]int{1, 1 << 17, 1<<17 + 1, 1 << 17, 1 << 17, 1 << 17, 1 << 17, 1 << 17, 1 << 17}, plan.WebGPU()},
	} {
		t.Run(name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				var old, squares []ir.Value
				for i, n := range c.lengths {
					old = append(old, b.State("s"+strconv.Itoa(i), ir.F32, ir.N(n)))
					squares = append(squares, ops.Mul(b, old[i], old[i]))
				}
				sum := ops.SumAll(b, squares...)
				b.Output("sum", sum)
				scale := ops.Div(b, ops.Const(b, ir.F32, 1), ops.Add(b, sum, ops.Const(b, ir.F32, 1)))
				for i, x := range old {
					b.SetState("s"+strconv.Itoa(i), ops.Sub(b, x, ops.Mul(b, x, scale)))
				}
			})
			checkTwoRuns(t, g, someValues(g), c.target)
		})
	}
}
