package sched_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// choosing are graphs whose groups have several candidates, at sizes that are multiples of
// tiles and at others.
var choosing = map[string]func(b *ir.Builder){
	"map": func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(40, 64)...)
		b.Output("y", ops.Gelu(b, ops.Add(b, x, ops.BroadcastInDim(b, b.Param("bias", ir.F32, ir.N(64)), x.Shape(), []int{1}))))
	},
	"map of a row's number": func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(40, 64)...)
		b.Output("y", ops.Mul(b, x, ops.BroadcastInDim(b, b.Param("scale", ir.F32, ir.N(40)), x.Shape(), []int{0})))
	},
	"transposed convolution to odd rows": func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(2, 5, 6, 40)...), b.Param("w", ir.F32, ir.Dims(3, 2, 40, 36)...)
		b.Output("y", ops.Tanh(b, ops.ConvTranspose(b, x, w, b.Param("bias", ir.F32, ir.N(36)), ops.ConvTransposeAttrs{Strides: []int{2, 2}, PadLo: []int{1, 0}, PadHi: []int{1, 1}})))
	},
	"transposed convolution to odd rows, bf16": func(b *ir.Builder) {
		x, w := b.Input("x", ir.BF16, ir.Dims(2, 5, 6, 64)...), b.Param("w", ir.BF16, ir.Dims(3, 2, 64, 40)...)
		b.Output("y", ops.Tanh(b, ops.ConvTranspose(b, x, w, ir.Value{}, ops.ConvTransposeAttrs{Strides: []int{2, 2}, PadLo: []int{1, 0}, PadHi: []int{1, 1}})))
	},
	"state in place": func(b *ir.Builder) {
		x := b.State("x", ir.F32, ir.Dims(16, 32)...)
		b.SetState("x", ops.Mul(b, x, b.Input("y", ir.F32, ir.Dims(16, 32)...)))
	},
	"random words, two of a block": func(b *ir.Builder) {
		b.Output("y", ops.ThreefryBoth.Bits(b, b.Input("key", ir.U32, ir.N(2)), ir.Dims(40, 64)...))
	},
	"random words of odd rows": func(b *ir.Builder) {
		words := ops.ThreefryBoth13.Bits(b, b.Input("key", ir.U32, ir.N(2)), ir.Dims(8, 7)...)
		b.Output("y", ops.Xor(b, words, ops.BroadcastInDim(b, b.Input("row", ir.U32, ir.N(7)), words.Shape(), []int{1})))
	},
	"random words of keys": func(b *ir.Builder) {
		attrs := &ops.RandomBitsAttrs{RandomAttrs: ops.RandomAttrs{Shape: ir.Dims(3, 5), Generator: ops.ThreefryBoth}}
		b.Output("y", b.Add1(ops.OpRandomBits, attrs, b.Input("key", ir.U32, ir.Dims(4, 2)...)))
	},
	"transpose":          transposed(64, 96),
	"transpose of odds":  transposed(45, 83),
	"transpose of fours": transposed(44, 100),
	"axes in the middle": func(b *ir.Builder) {
		b.Output("y", ops.Exp(b, ops.Transpose(b, b.Input("x", ir.F32, ir.Dims(3, 36, 2, 40)...), 0, 3, 2, 1)))
	},
	"sum with a transpose": func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(64, 64)...)
		b.Output("y", ops.Sub(b, x, ops.Transpose(b, x, 1, 0)))
	},
	"two transposed": func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Dims(36, 70)...), b.Input("y", ir.I32, ir.Dims(36, 70)...)
		b.Output("z", ops.Mul(b, ops.Transpose(b, x, 1, 0), ops.Convert(b, ops.Transpose(b, y, 1, 0), ir.F32)))
	},
	"half transposed": func(b *ir.Builder) {
		b.Output("y", ops.Neg(b, ops.Transpose(b, b.Input("x", ir.F16, ir.Dims(48, 34)...), 1, 0)))
	},
	"softmax": func(b *ir.Builder) { b.Output("y", ops.Softmax(b, b.Input("x", ir.F32, ir.Dims(9, 300)...), 1)) },
	"sums of rows": func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(3, 5000)...)
		b.Output("y", ops.ReduceSum(b, x, 1))
		b.Output("z", ops.ReduceMax(b, x, 1))
	},
	"sums of rows of two": func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, b.Input("x", ir.F32, ir.Dims(300, 2)...), 1)) },
	"sums of columns":     func(b *ir.Builder) { b.Output("y", ops.ReduceSum(b, b.Input("x", ir.F32, ir.Dims(3000, 40)...), 0)) },
	"product": func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Dims(70, 300)...), b.Input("y", ir.F32, ir.Dims(300, 40)...)
		b.Output("z", ops.Relu(b, ops.MatMul(b, x, y)))
	},
	"running sum":                    func(b *ir.Builder) { schedtest.RunningOf(b, false, 5, 3000) },
	"running sum of one row":         func(b *ir.Builder) { schedtest.RunningOf(b, true, 1, 9001) },
	"running sum of columns":         func(b *ir.Builder) { schedtest.RunningOf(b, true, 700, 40, 1) },
	"running sum of whole":           func(b *ir.Builder) { schedtest.RunningOf(b, false, 512, 64, 1) },
	"running sum in vectors":         func(b *ir.Builder) { schedtest.RunningOf(b, false, 3, 3000) },
	"running sum in vectors, one":    func(b *ir.Builder) { schedtest.RunningOf(b, true, 1, 9004) },
	"running sum of many short rows": func(b *ir.Builder) { schedtest.RunningOf(b, true, 37, 100) },
	"linear recurrence in vectors": func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Dims(3, 2060)...), b.Input("y", ir.F32, ir.Dims(3, 2060)...)
		b.Output("h", ops.LinearRecurrence(b, ops.Sin(b, x), y, ops.CumSumAttrs{Axis: 1, Reverse: true}))
	},
	"linear recurrence of one row": func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.N(20480)), b.Input("y", ir.F32, ir.N(20480))
		b.Output("h", ops.LinearRecurrence(b, ops.Sin(b, x), y, ops.CumSumAttrs{}))
	},
	"running maxima, few": func(b *ir.Builder) {
		b.Output("y", ops.CumMax(b, b.Input("x", ir.F32, ir.Dims(150, 9, 3)...), ops.CumSumAttrs{Axis: 1}))
	},
	"linear recurrence, down": func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Dims(130, 12)...), b.Input("y", ir.F32, ir.Dims(130, 12)...)
		b.Output("h", ops.LinearRecurrence(b, ops.Sin(b, x), y, ops.CumSumAttrs{Reverse: true}))
	},
	"sort": func(b *ir.Builder) {
		b.Output("y", ops.Sort(b, ops.SortAttrs{Axis: 1}, b.Input("x", ir.F32, ir.Dims(3, 300)...))[0])
	},
}

func transposed(rows, columns int) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		b.Output("y", ops.Transpose(b, b.Input("x", ir.F32, ir.Dims(rows, columns)...), 1, 0))
	}
}

// TestEveryCandidateIsRight runs each graph by each candidate of each of its groups.
func TestEveryCandidateIsRight(t *testing.T) {
	families := map[emit.Family]int{}
	for name, f := range choosing {
		g := schedtest.Build(t, f)
		for _, c := range schedtest.Choices(t, g, schedtest.Choosy()) {
			if len(c.Candidates) > sched.MaxCandidates {
				t.Errorf("%s: %d candidates of %s", name, len(c.Candidates), c.Name)
			}
			for i, r := range c.Candidates {
				families[r.Family]++
				if j := slices.IndexFunc(c.Candidates, func(q emit.Ranked) bool { return q.Schedule == r.Schedule }); j != i {
					t.Errorf("%s: %s stands at %d and %d", name, r, i, j)
				}
				if i > 1 && r.Cost < c.Candidates[i-1].Cost {
					t.Errorf("%s: %s is ranked behind what costs more", name, r)
				}
				t.Run(fmt.Sprintf("%s, %s", name, r), func(t *testing.T) {
					schedtest.RunOn(t, g, schedtest.Forced(t, g, schedtest.Choosy(), func(o *plan.Choice) (emit.Schedule, bool) { return r.Schedule, o.Key == c.Key }), 0)
				})
			}
		}
	}
	for f := range emit.Families {
		if families[f] < 1 && !elsewhere[f] {
			t.Errorf("no candidate of %s", f)
		}
	}
}

// elsewhere are the families without candidates on WebGPU without features; they have tests of
// their own.
var elsewhere = map[emit.Family]bool{
	emit.Sole:      true, // no choice
	emit.Pipelined: true, emit.Fragments: true, emit.WarpGroups: true, emit.Library: true, emit.Stationary: true,
	emit.Flash: true, emit.FlashFragments: true, emit.FlashMma: true, // no choice without features
	emit.Registers:   true, // in software: TestContractionsInEveryTile
	emit.PackedRows:  true, // of packed weights: TestPackedCandidatesAreRight of plansim
	emit.PackedTiles: true, // likewise: TestPackedTiles
}

// TestTrialPlansRunRepeatedly runs plans of one group each on the simulator, repeatedly.
func TestTrialPlansRunRepeatedly(t *testing.T) {
	for name, f := range choosing {
		t.Run(name, func(t *testing.T) {
			for _, c := range schedtest.Choices(t, schedtest.Build(t, f), schedtest.Choosy()) {
				for _, r := range c.Candidates {
					p, err := c.Trial(r.Schedule, 3, plansim.Text)
					if err != nil {
						t.Fatalf("%s: %v", r, err)
					}
					repeat, ok := p.Entries[0].Steps[0].(*plan.Repeat)
					if !ok || repeat.Count != 3 || len(p.Slots) > 0 {
						t.Errorf("%s: steps %v, slots %v", r, p.Entries[0].Steps, p.Slots)
					}
				}
			}
		})
	}
}

// TestSchedulesThatDoNotFit expects Emit to refuse schedules that do not fit, and a cache to
// ignore them.
func TestSchedulesThatDoNotFit(t *testing.T) {
	g := schedtest.Build(t, choosing["product"])
	c := schedtest.Choices(t, g, schedtest.Choosy())[0]
	for _, s := range []emit.Schedule{
		{},
		{Family: emit.Elements, Each: 1},
		{Family: emit.WarpGroups, N: 256, Stages: 4, Split: 1},
		{Family: emit.Library},
		{Family: emit.Tiles, M: 48, N: 48, K: 16, RM: 4, RN: 4, Split: 1},
		{Family: emit.Rows, Lanes: 3, Rows: 1, Split: 1},
		{Family: emit.Rows, Lanes: 512, Rows: 1, Split: 1},
		{Family: emit.Rows, Lanes: 32, Rows: 1, Split: 1, M: 5},
	} {
		if _, err := c.Trial(s, 1, plansim.Text); !errors.Is(err, ir.ErrUnsupported) {
			t.Errorf("%s: error %v, want one of kind %q", s, err, ir.ErrUnsupported)
		}
		schedtest.RunOn(t, g, schedtest.Forced(t, g, schedtest.Choosy(), func(o *plan.Choice) (emit.Schedule, bool) { return s, o.Key == c.Key }), 0)
	}
}

func TestSchedulesAsText(t *testing.T) {
	for _, s := range []emit.Schedule{
		{},
		{Family: emit.Tiles, M: 128, N: 64, K: 8, RM: 8, RN: 4, Split: 2},
		{Family: emit.WarpGroups, N: 256, Stages: 4, Split: 1},
		{Family: emit.RadixSort},
		{Family: emit.SerialScan, Lanes: 8, Rows: 32, Each: 8, Split: 3},
	} {
		back, err := emit.ParseSchedule(s.String())
		if err != nil || back != s {
			t.Errorf("%q is read as %q, error %v", s, back, err)
		}
	}
	for text, kind := range map[string]error{
		"": ir.ErrName, "spirals": ir.ErrName, "rows width=3": ir.ErrName, "rows lanes=0": ir.ErrAttr, "rows lanes": ir.ErrAttr, "rows lanes=99999": ir.ErrAttr,
	} {
		if _, err := emit.ParseSchedule(text); !errors.Is(err, kind) {
			t.Errorf("%q: error %v, want one of kind %q", text, err, kind)
		}
	}
}
