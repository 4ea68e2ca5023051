package attention

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Space is the schedule space of an attention: how threads hold tables and multiply, and the tile
// of warp-group MMA.
type Space struct {
	e       *emit.Emitter
	g       *fusion.Group
	spec    ir.Attend
	operand ir.DType // the type that is multiplied
}

// NewSpace returns the schedule space of an attention, forward or backward.
func NewSpace(e *emit.Emitter, g *fusion.Group) *Space {
	n := g.Members[0].Node
	return &Space{e, g, n.Def().Lower.(*ir.AttendLowering).Spec(n), n.Input(0).DType()}
}

// Rule returns warp-group MMA where the target has it, else fragments, else plain registers. With
// MMA each kernel has the tile that was measured for it.
func (w *Space) Rule() emit.Schedule {
	for _, f := range []emit.Family{emit.FlashMma, emit.FlashFragments} {
		if s := (emit.Schedule{Family: f}); w.Fits(s) {
			return s
		}
	}
	return emit.Schedule{Family: emit.Flash}
}

// Candidates returns the rule's schedule first, then the other families and tiles.
func (w *Space) Candidates() []emit.Ranked {
	rule := w.Rule()
	list := []emit.Ranked{{Schedule: rule, Cost: w.cost(rule)}}
	if !emit.WithMma || rule.Family == emit.Flash {
		return list
	}
	others := []emit.Schedule{{Family: emit.Flash}, {Family: emit.FlashFragments}}
	for _, t := range tunedTiles {
		if !w.isDefault(t) {
			others = append(others, t.schedule())
		}
	}
	for _, s := range others {
		if s != rule && w.Fits(s) {
			list = append(list, emit.Ranked{Schedule: s, Cost: w.cost(s)})
		}
	}
	return list
}

// isDefault reports whether every kernel has a tile by default.
func (w *Space) isDefault(t mmaTile) bool {
	return !slices.ContainsFunc(kindsOf(w.spec), func(kind kernelKind) bool {
		return pickMmaTile(kind, w.operand, w.spec, w.e.Caps.MmaBytes) != t
	})
}

// Fits reports whether the target has what a schedule multiplies with, and the shared memory for
// its tile in each kernel.
func (w *Space) Fits(s emit.Schedule) bool {
	switch {
	case s == emit.Schedule{Family: emit.Flash}:
		return true
	case !emit.WithMma:
		return false
	case s.Family == emit.FlashFragments:
		return s == emit.Schedule{Family: emit.FlashFragments} && hasFragments(w.e.Caps)
	case s.Family == emit.FlashMma && usesMma(w.spec, w.operand, w.e.Caps):
		t := tileOf(s)
		return s == emit.Schedule{Family: emit.FlashMma} || s == t.schedule() && t.valid() && t.fits(w.spec, w.operand, w.e.Caps)
	}
	return false
}

// cost estimates the nanoseconds of all kernels.
func (w *Space) cost(s emit.Schedule) float64 {
	if emit.WithMma && s.Family == emit.FlashMma {
		return mmaTime(w.spec, w.operand, w.e.Caps, s)
	}
	return plainTime(w.spec, w.e.Caps)
}

// Emit returns the kernels of a schedule, after those that copy operands for warp-group MMA.
func (w *Space) Emit(s emit.Schedule) []emit.Launch {
	n := &attention{
		spec: w.spec, schedule: s, mma: emit.WithMma && s.Family == emit.FlashMma,
		p: w.e.Partition, caps: w.e.Caps, m: w.g.Members[0], prefix: w.g.Name(),
		staged: map[int]*fusion.Tensor{}, transposed: map[int]*fusion.Tensor{},
	}
	var launches []emit.Launch
	if emit.WithMma && n.mma {
		launches = n.stage()
	}
	if n.spec.Backward {
		return append(launches, n.backward()...)
	}
	return append(launches, n.forward())
}

// tunedTiles are the tiles that are candidates in all kernels of an attention: those that are the
// default of one, and a wide one.
var tunedTiles = []mmaTile{{1, 64, 3, 4}, {1, 64, 3, 2}, {1, 64, 4, 2}, {2, 64, 3, 1}, {2, 32, 4, 1}, {1, 32, 3, 1}, {2, 128, 3, 1}}

// schedule returns the schedule with a tile in all kernels.
func (t mmaTile) schedule() emit.Schedule {
	return emit.Schedule{Family: emit.FlashMma, M: t.rows(), N: t.columns, Stages: t.stages, Resident: t.resident}
}

// tileOf returns the tile of a schedule that has one.
func tileOf(s emit.Schedule) mmaTile {
	return mmaTile{groups: s.M / loop.MmaRows, columns: s.N, stages: s.Stages, resident: s.Resident}
}

// Bounds of tiles. A multiprocessor has 65,536 registers: of threads of three warp groups 168 each, and
// of four workgroups of one warp group 128. A thread has 64 scores of 128 columns in registers. The
// multiply-add of scores and values is at least 16 numbers deep. The number of stages is bounded by
// shared memory, of which 8 of 64 columns and 64 numbers of 16 bits take 128 KiB.
const (
	maxGroups   = 3
	minColumns  = 16
	maxColumns  = 128
	maxStages   = 8
	maxResident = 4
)

// valid reports whether kernels can have a tile: columns are a power of two, and of the stages
// one is copied, one is read, and one may still be read.
func (t mmaTile) valid() bool {
	return t.groups >= 1 && t.groups <= maxGroups && t.columns >= minColumns && t.columns <= maxColumns && emit.PowerOfTwo(t.columns) == t.columns &&
		t.inFlight() >= 1 && t.stages <= maxStages && t.resident >= 1 && t.resident <= maxResident
}

// fits reports whether all kernels have shared memory for a tile.
func (t mmaTile) fits(s ir.Attend, d ir.DType, caps loop.Caps) bool {
	return !slices.ContainsFunc(kindsOf(s), func(kind kernelKind) bool { return t.sharedBytes(kind, d, s) > caps.MmaBytes })
}

// tileFor returns the tile of a kernel by a schedule: the schedule's, or the measured one.
func tileFor(by emit.Schedule, kind kernelKind, d ir.DType, s ir.Attend, bytes int) mmaTile {
	if by.M > 0 {
		return tileOf(by)
	}
	return pickMmaTile(kind, d, s, bytes)
}
