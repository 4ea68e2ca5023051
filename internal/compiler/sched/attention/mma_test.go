package attention_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// attentionOf outputs attention and its cotangents.
func attentionOf(b *ir.Builder, d ir.DType, heads, queries, keys, length int, a ops.AttentionAttrs) {
	in := func(name string, rows int) ir.Value { return b.Input(name, d, ir.Dims(heads, rows, length)...) }
	q, k, v, dout := in("q", queries), in("k", keys), in("v", keys), in("dout", queries)
	out, lse := ops.AttentionForward(b, q, k, v, ir.Value{}, a)
	b.Output("out", out)
	for i, x := range ops.AttentionBackward(b, ops.AttentionOperands{Q: q, K: k, V: v}, ops.AttentionResiduals{LSE: lse, Delta: ops.ZerosLike(b, lse), DOut: dout}, a) {
		b.Output(fmt.Sprint("cotangent", i), x)
	}
}

// mmaKernels returns the names of all attention kernels and of those by multiply-adds.
func mmaKernels(t *testing.T, g *ir.Graph) (all, byMma []string) {
	t.Helper()
	kernels := schedtest.Kernels(t, g, schedtest.Hopper())
	for _, k := range kernels {
		if !strings.HasPrefix(k.Name, "attend_") {
			continue
		}
		if all = append(all, k.Name); k.HasMma() {
			byMma = append(byMma, k.Name)
		}
		if err := schedtest.Hopper().Check(k); err != nil {
			t.Error(err)
		}
	}
	return all, byMma
}

// TestMixedPrecisionAttendsByMultiplyAdds expects one forward and three backward kernels in a
// training step of a language model in mixed precision, whatever the number of its blocks.
func TestMixedPrecisionAttendsByMultiplyAdds(t *testing.T) {
	gpt := irtest.CharacterGPT
	gpt.Blocks = 2
	loss, err := gpt.Loss()
	if err != nil {
		t.Fatal(err)
	}
	g, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = passes.Mixed(g, ir.BF16); err != nil {
		t.Fatal(err)
	}
	all, byMma := mmaKernels(t, g)
	if len(all) != 4 || len(byMma) != 3 {
		t.Errorf("kernels %v, by multiply-adds %v", all, byMma)
	}
}

// TestAttentionByMultiplyAddsIsChosenByCost tests the estimates of cost.go.
func TestAttentionByMultiplyAddsIsChosenByCost(t *testing.T) {
	for _, c := range []struct {
		name                         string
		heads, queries, keys, length int
		d                            ir.DType
		want                         bool
	}{
		{"a language model's", 384, 256, 256, 64, ir.BF16, true},
		{"long", 128, 2048, 2048, 64, ir.F16, true},
		{"long, of length 128", 16, 4096, 4096, 128, ir.BF16, true},
		{"one query and many keys", 12, 1, 4096, 64, ir.BF16, false},
		{"no queries", 12, 0, 256, 64, ir.BF16, false},
		{"f32", 384, 1024, 1024, 64, ir.F32, true},
		{"f32, of length 128", 16, 4096, 4096, 128, ir.F32, false},
		{"f64", 384, 256, 256, 64, ir.F64, false},
		{"a length that is no multiple of 16", 128, 256, 256, 40, ir.BF16, true},
		{"too long", 128, 256, 256, 160, ir.BF16, false},
	} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			attentionOf(b, c.d, c.heads, c.queries, c.keys, c.length, ops.AttentionAttrs{Scale: 0.1, Causal: c.queries == c.keys})
		})
		if _, byMma := mmaKernels(t, g); len(byMma) > 0 != c.want {
			t.Errorf("%s: kernels %v by multiply-adds", c.name, byMma)
		}
	}
}

// TestEveryCandidateIsRight compares all schedules of an attention, and tiles that are no
// candidates, with the reference implementation.
func TestEveryCandidateIsRight(t *testing.T) {
	for _, c := range []struct {
		target plan.Target
		d      ir.DType
		want   int // candidates of the forward and of the backward group: tiles but for the default
	}{
		{schedtest.Hopper(), ir.BF16, 16},
		{schedtest.Hopper(), ir.F32, 17},
		{schedtest.Apple(), ir.F32, 4},
		{schedtest.Dawn(), ir.F32, 4},
	} {
		c.target.ScoreBytes = 1
		t.Run(c.target.Name+" "+c.d.String(), func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				attentionOf(b, c.d, 1, 200, 230, 32, ops.AttentionAttrs{Causal: true, Scale: 0.1})
			})
			schedules, n := attentionSchedules(t, g, c.target)
			if n != c.want {
				t.Errorf("%d candidates, want %d", n, c.want)
			}
			if c.target.Mma {
				for _, tile := range [][4]int{{64, 64, 3, 1}, {192, 32, 4, 1}, {64, 16, 5, 2}} {
					schedules = append(schedules, emit.Schedule{Family: emit.FlashMma, M: tile[0], N: tile[1], Stages: tile[2], Resident: tile[3]})
				}
			}
			for _, s := range schedules {
				by := schedtest.Forced(t, g, c.target, func(*plan.Choice) (emit.Schedule, bool) { return s, true })
				if c.d == ir.F32 {
					schedtest.RunWithin(t, g, by, 0, asF16) // as TF32
				} else {
					schedtest.RunOn(t, g, by, 0)
				}
			}
		})
	}
}

// attentionSchedules returns the candidates of the attentions in a graph without duplicates, and
// their number with them.
func attentionSchedules(t *testing.T, g *ir.Graph, target plan.Target) (list []emit.Schedule, n int) {
	for _, c := range schedtest.Choices(t, g, target) {
		for _, r := range c.Candidates {
			if r.Family != emit.Flash && r.Family != emit.FlashFragments && r.Family != emit.FlashMma {
				continue
			}
			if _, err := c.Trial(r.Schedule, 2, plansim.Text); err != nil {
				t.Errorf("a trial of %s: %v", r, err)
			}
			if n++; !slices.Contains(list, r.Schedule) {
				list = append(list, r.Schedule)
			}
		}
	}
	return list, n
}

// asF16 is the tolerance of f16, whose fraction has 10 bits as that of TF32 has.
func asF16(ir.DType) float64 { return irtest.LooseToleranceFor(ir.F16).Rel }

// TestAttentionOfF32ByMultiplyAdds covers transposed copies with partial blocks, lengths that
// differ, shared heads, masks, a cap, and operands that are computed.
func TestAttentionOfF32ByMultiplyAdds(t *testing.T) {
	target := schedtest.Hopper()
	target.ScoreBytes = 1
	for name, f := range map[string]func(b *ir.Builder){
		"causal": func(b *ir.Builder) {
			attentionOf(b, ir.F32, 2, 100, 130, 32, ops.AttentionAttrs{Causal: true, Scale: 0.1})
		},
		"whole blocks":   func(b *ir.Builder) { attentionOf(b, ir.F32, 1, 128, 128, 64, ops.AttentionAttrs{Scale: 0.1}) },
		"a short length": func(b *ir.Builder) { attentionOf(b, ir.F32, 2, 70, 33, 8, ops.AttentionAttrs{Scale: 0.3}) },
		"a length of whole pieces but not of multiply-adds": func(b *ir.Builder) {
			attentionOf(b, ir.F32, 2, 70, 33, 20, ops.AttentionAttrs{Scale: 0.2})
		},
		"an odd length": func(b *ir.Builder) { attentionOf(b, ir.F32, 2, 70, 33, 7, ops.AttentionAttrs{Scale: 0.3}) },
		"shared heads and a computed operand": func(b *ir.Builder) {
			q := ops.Neg(b, b.Input("q", ir.F32, ir.Dims(4, 70, 24)...))
			k, v := b.Input("k", ir.F32, ir.Dims(2, 90, 24)...), b.Input("v", ir.F32, ir.Dims(2, 90, 24)...)
			b.Output("out", ops.Attention(b, q, ops.Neg(b, k), ops.Neg(b, v), ir.Value{}, ops.AttentionAttrs{Scale: 0.2}))
		},
	} {
		t.Run(name, func(t *testing.T) { schedtest.RunWithin(t, schedtest.Build(t, f), target, 0, asF16) })
	}
}

// TestAttentionStagesUnalignedOperands expects operands that are computed or not
// contiguous along rows to be staged in scratch memory, and slices of larger arrays not to be.
func TestAttentionStagesUnalignedOperands(t *testing.T) {
	for name, c := range map[string]struct {
		view func(b *ir.Builder, x ir.Value) ir.Value
		want int
	}{
		"a part": {func(b *ir.Builder, x ir.Value) ir.Value { return ops.SliceAxis(b, x, 1, ir.N(32), ir.N(160)) }, 0},
		"heads inside": {func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Transpose(b, ops.Reshape(b, x, ir.Dims(192, 4, 64)...), 1, 0, 2)
		}, 0},
		"rows reversed": {func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 1) }, 0},
		"turned": {func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Transpose(b, ops.Reshape(b, x, ir.Dims(4, 64, 192)...), 0, 2, 1)
		}, 1},
		"negated": {func(b *ir.Builder, x ir.Value) ir.Value { return ops.Neg(b, x) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			target := schedtest.Hopper()
			target.ScoreBytes = 1
			g := schedtest.Build(t, func(b *ir.Builder) {
				k := b.Input("k", ir.BF16, ir.Dims(4, 192, 64)...)
				q := c.view(b, b.Input("q", ir.BF16, ir.Dims(4, 192, 64)...))
				b.Output("out", ops.Attention(b, q, k, k, ir.Value{}, ops.AttentionAttrs{}))
			})
			staged := 0
			for _, name := range schedtest.RunOn(t, g, target, 0) {
				if strings.HasSuffix(name, "_q") {
					staged++
				}
			}
			if staged != c.want {
				t.Errorf("%d operands staged, want %d", staged, c.want)
			}
		})
	}
}
