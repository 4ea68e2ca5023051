package plan_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/ops"
)

// The reasons of kernels that do more than their graph asks for.
const (
	scores    = "the scores of narrow heads take more instructions than their products"
	network   = "a sorting network compares each key log² n times"
	oneOfRows = "positions are sorted first, and few rows have most of them"
	tiles     = "columns of tiles that are mostly padding, or without matrix units, which is to be mended"
	places    = "positions in windows take more instructions than products of few channels, which is to be mended"
	pivots    = "each column of a small matrix waits for the pivot of the one before"
	apart     = "lanes read elements that are apart, which is to be mended"
)

// busy names the kernels over the bounds of [checkFloor] by what they do, by reason.
var busy = map[string][]string{
	scores: {
		"attention in windows, H200, bf16, attend_attention_backward_mask",
		"mobile vit, H200, bf16, attend_transformer_block_self_attn_queries",
		"mobile vit, H200, bf16, attend_transformer_block_self_attn",
		"mobile vit, H200, bf16, attend_transformer_block_self_attn_keys",
		"long attention with a mask, H200, bf16, attend_attention",
		"long attention with a mask, H200, bf16, attend_attention_keys",
		"long attention with a mask, H200, bf16, attend_attention_queries",
		"further tabular, H200, bf16, attend_attention_backward_keys",
		"further tabular, H200, bf16, attend_attention_forward",
		"further tabular, H200, bf16, attend_attention_backward_queries",
	},
	network: {
		"point cloud, H200, bf16, sort_argsort",
		"lstm, H200, bf16, scatter_scatter_add_sort",
		"gru, H200, bf16, scatter_scatter_add_sort",
		"sort, H200, bf16, sort_argsort",
		"further crf, H200, bf16, scatter_scatter_add_sort",
		"point cloud, WebGPU, sort_argsort",
		"unusual xlstm, H200, bf16, scatter_scatter_add_sort",
	},
	oneOfRows: {
		"messages, H200, bf16, scatter_scatter_add_rows",
		"further gat, H200, bf16, scatter_scatter_add_rows",
	},
	tiles: {
		"further vqvae, WebGPU, contract_conv_general_add",
		"further cycle gan, WebGPU, contract_conv_general_tanh_mul_zero",
		"residual of odd sides, H200, bf16, contract_conv",
		"residual of odd sides, H200, bf16, contract_conv_select",
		"transducer, H200, bf16, contract_linear_parts",
		"further style, H200, bf16, contract_conv_general_left",
		"further conv lstm, H200, bf16, contract_conv_general_left",
		"residual of odd sides, WebGPU, contract_conv_parts",
		"coupling flow, WebGPU, contract_conv",
		"further spatial transformer, WebGPU, contract_conv_general_mul_zero",
	},
	places: {
		"unusual unet 3d, H200, bf16, contract_conv_general",
		"unusual unet 3d, H200, bf16, contract_conv_general_parts",
	},
	pivots: {"unusual glow, H200, bf16, kernels_lu_eliminate"},
	apart: {
		"relative attention, H200, bf16, contract_dot_general_right",
		"fourier operator, H200, bf16, reduce_dot_general",
		"gp, H200, bf16, map_mul",
		"splats, H200, bf16, map_log",
		"further contrastive, H200, bf16, reduce_reduce_sum_reduce_max_reduce_sum_add",
		"graph attention, WebGPU, reduce_reduce_sum",
		"contrastive, WebGPU, reduce_reduce_sum_reduce_max_add_mul_zero",
	},
}

func isBusy(key string) bool {
	for _, keys := range busy {
		if slices.Contains(keys, key) {
			return true
		}
	}
	return false
}

// Bounds on how well counts predict the times of timesFile where they and not what threads wait for bound a kernel: on
// the median of their quotients, and on the quotient that a twentieth of them exceeds. A kernel over three times its
// floor takes longer than it.
const (
	minQuotient, maxQuotient = 0.7, 1.2
	maxTail                  = 2.5
)

// TestCountsPredictTimes compares the times that follow from what kernels do with times that were measured.
func TestCountsPredictTimes(t *testing.T) {
	d := hardware.H200()
	var quotients []float64
	for _, g := range timedGroups(t) {
		c := choicesOf(t, g.family, g.precision)[g.key]
		if c == nil {
			continue
		}
		for _, r := range c.Candidates {
			if took, timed := g.took[r.Schedule.String()]; timed {
				counted := 0.0
				for _, l := range launchesBy(t, c, r.Schedule) {
					counted += l.Counts.Time(d, l.Groups)
				}
				if counted > 2*d.Launch {
					quotients = append(quotients, (counted+d.Launch)/took)
				}
			}
		}
	}
	slices.Sort(quotients)
	median, tail := quotients[len(quotients)/2], quotients[len(quotients)*19/20]
	t.Logf("%d kernels: %.2f of the time in the median, and up to %.2f of it but for a twentieth", len(quotients), median, tail)
	if median < minQuotient || median > maxQuotient || tail > maxTail {
		t.Errorf("counts predict %.2f times the time in the median, and up to %.2f but for a twentieth", median, tail)
	}
}

func launchesBy(t *testing.T, c *plan.Choice, s emit.Schedule) []plan.Launch {
	t.Helper()
	launches, err := c.Launches(s)
	if err != nil {
		t.Fatal(err)
	}
	return launches
}

// TestHolesAreSeen plans graphs by schedules that were found to be slow on a GPU: rows whose lanes read elements that
// are apart, tiles of convolutions in groups, which are mostly padding, and products of f32 without matrix units. Each
// takes more than three times its floor, and twice as long as the schedule that the compiler takes.
func TestHolesAreSeen(t *testing.T) {
	target := hopper()
	target.TF32 = true
	d := target.Profile()
	for name, hole := range map[string]struct {
		schedule string
		model    func(b *ir.Builder)
	}{
		"rows": {"rows lanes=256 rows=1 split=1", func(b *ir.Builder) {
			b.Output("y", ops.ReduceSum(b, b.Input("x", ir.F32, ir.Dims(4096, 4096)...), 0))
		}},
		"groups": {"tiles m=64 n=16 k=16 rm=4 rn=4 split=1", func(b *ir.Builder) {
			x, w := b.Input("x", ir.BF16, ir.Dims(16, 56, 56, 256)...), b.Input("w", ir.BF16, ir.Dims(3, 3, 8, 256)...)
			b.Output("y", ops.Conv2D(b, x, w, ir.Value{}, ops.Conv2DAttrs{Groups: 32, PadLo: []int{1, 1}, PadHi: []int{1, 1}}))
		}},
		"f32": {"tiles m=128 n=128 k=8 rm=8 rn=8 split=1", func(b *ir.Builder) {
			b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(2048, 2048)...), b.Input("w", ir.F32, ir.Dims(2048, 2048)...)))
		}},
	} {
		g, err := ir.Build("g", hole.model)
		if err != nil {
			t.Fatal(err)
		}
		s, err := emit.ParseSchedule(hole.schedule)
		if err != nil {
			t.Fatal(err)
		}
		forced := schedtest.Forced(t, g, target, func(*plan.Choice) (emit.Schedule, bool) { return s, true })
		slow, plain := overFloor(t, g, forced, d), overFloor(t, g, target, d)
		if slow <= maxOfFloor || plain > slow/2 {
			t.Errorf("%s: %q takes %.1f times the floor, and the plan %.1f", name, s, slow, plain)
		}
	}
}

// overFloor is the time of a graph's kernels as a multiple of the floor.
func overFloor(t *testing.T, g *ir.Graph, target plan.Target, d hardware.Profile) float64 {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	launches, _, err := plan.CountedLaunches(m, target, cudacpp.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	time, least := 0.0, 0.0
	for _, l := range launches {
		time, least = time+timeOf(l, d), least+floorOf(l, d)
	}
	return time / max(least, 1)
}
