package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// contractCandidates are the candidates of a contraction: tiles, reductions, and the schedules of some
// devices.
type contractCandidates struct {
	e         *emitter
	g         *fusion.Group
	c         *fusion.Contraction
	reduction *reduceSpace
	device    deviceCandidates
}

func newContractCandidates(e *emitter, g *fusion.Group) *contractCandidates {
	w := &contractCandidates{e: e, g: g, c: fusion.ContractionOf(g.Members[0].Node, e.simplifier)}
	w.reduction = newReduceSpace(e, g.Reduction())
	if withMma {
		w.device = newDeviceCandidates(e, g, w.c)
	}
	return w
}

func (w *contractCandidates) rule() Schedule {
	if withMma {
		if s, ok := w.device.rule(); ok {
			return s
		}
	}
	if t, parts, ok := chooseTile(w.c, w.e.caps); ok {
		if withMma {
			t, parts = w.preferPipeline(t, parts)
		}
		return t.schedule(parts)
	}
	if small(w.c) {
		return rowPerFewThreads(w.reduction.g)
	}
	return w.reduction.rule()
}

// ranked returns a schedule with its cost.
func (w *contractCandidates) ranked(s Schedule) Ranked {
	if withMma {
		if ofDevice(s) {
			return Ranked{s, w.device.cost(s)}
		}
	}
	if t, ok := tileFor(s); ok {
		return Ranked{s, t.cost(w.c, s.Split, w.e.caps)}
	}
	return Ranked{s, reductionCost(w.c, s, w.e.caps)}
}

func (w *contractCandidates) candidates() []Ranked {
	list := []Ranked{w.ranked(w.rule())}
	if w.e.caps.Products == loop.AllProducts && list[0].Family == Library {
		return list
	}
	list = append(list, w.ranked(w.reduction.rule()))
	if fusion.Product(w.c.K) <= shortSpace {
		list = append(list, w.ranked(rowPerThread(w.reduction.g)), w.ranked(rowPerFewThreads(w.reduction.g)))
	}
	if !tileable(w.c) {
		return list
	}
	for _, t := range allTiles() {
		if t.fits(w.e.caps) && (t.stages == 0 || w.asyncCopyable()) {
			list = append(list, w.ranked(t.schedule(t.parts(w.c, w.e.caps))), w.ranked(t.schedule(1)))
		}
	}
	if withMma {
		for _, s := range w.device.schedules() {
			list = append(list, w.ranked(s))
		}
	}
	return list
}

func (w *contractCandidates) fits(s Schedule) bool {
	if withMma {
		if ofDevice(s) {
			return w.device.has(s) && (s.Family == Library || w.canSplit(s))
		}
	}
	if s.Family == Tiles || s.Family == Pipelined || s.Family == Fragments {
		t, ok := tileFor(s)
		return ok && tileable(w.c) && t.fits(w.e.caps) && w.canSplit(s) && (t.stages == 0 || w.asyncCopyable())
	}
	return w.reduction.fits(s)
}

// asyncCopyable reports whether both operands lie in memory such that asynchronous copies can
// read them.
func (w *contractCandidates) asyncCopyable() bool {
	return withMma && layoutOf(w.e, w.g, w.c, ir.F32, 0) != staged && layoutOf(w.e, w.g, w.c, ir.F32, 1) != staged
}

// canSplit reports whether split-K fits a schedule: no part is empty, and one array holds the
// partial sums.
func (w *contractCandidates) canSplit(s Schedule) bool {
	return s.Split >= 1 && s.Split <= fusion.Product(w.c.K) && (s.Split == 1 || s.Split <= maxParts(w.c, w.e.caps))
}

func (w *contractCandidates) emit(s Schedule) []Launch {
	if withMma {
		if ofDevice(s) {
			return w.device.launches(s)
		}
	}
	if t, ok := tileFor(s); ok {
		return scheduleTiles(w.e, w.g, w.c, t, s.Split)
	}
	return scheduleReduce(w.e, w.reduction.g, s)
}

// schedule returns the schedule of a tile with split-K parts.
func (t tile) schedule(parts int) Schedule {
	family := Tiles
	switch {
	case t.lanes > 1:
		family = Fragments
	case t.stages > 0:
		family = Pipelined
	}
	return Schedule{Family: family, M: t.m, N: t.n, K: t.k, RM: t.rm, RN: t.rn, Split: parts, Stages: t.stages}
}

// allTiles returns the tiles of all targets.
func allTiles() []tile {
	if withMma {
		return slices.Concat(fragmentTiles, pipelinedTiles, tiles)
	}
	return tiles
}

// tileFor returns the tile of a schedule.
func tileFor(s Schedule) (tile, bool) {
	for _, t := range allTiles() {
		if t.schedule(s.Split) == s {
			return t, true
		}
	}
	return tile{}, false
}

// deviceCandidates are the candidates of a contraction that only some devices have: warp-group
// multiply-adds and the products of a library. The browser calls none of its methods; their
// names differ from those of [ways] so that the linker drops them there.
type deviceCandidates struct {
	e       *emitter
	g       *fusion.Group
	c       *fusion.Contraction
	mma     *mmaPlan     // without a tile; nil if the target has no multiply-adds for c
	product *productPlan // nil if no library computes c
}

func newDeviceCandidates(e *emitter, g *fusion.Group, c *fusion.Contraction) deviceCandidates {
	w := deviceCandidates{e: e, g: g, c: c}
	w.mma, _ = planMma(e, g, c)
	w.product, _ = planProduct(e, g, c)
	return w
}

// ofDevice reports whether a schedule is one of deviceCandidates.
func ofDevice(s Schedule) bool { return s.Family == WarpGroups || s.Family == Library }

// rule returns the schedule that is expected to be faster than tiles, if there is one.
func (w *deviceCandidates) rule() (Schedule, bool) {
	var best *mmaPlan
	if w.mma != nil {
		best, _ = chooseMma(*w.mma, w.c, w.e.caps)
	}
	if p := w.product; p != nil && (w.e.caps.Products == loop.AllProducts || p.faster(w.c, w.e.caps, best)) {
		return Schedule{Family: Library}, true
	}
	if best != nil {
		return best.schedule(), true
	}
	return Schedule{}, false
}

// schedules returns the candidates that are worth comparing.
func (w *deviceCandidates) schedules() (list []Schedule) {
	if w.product != nil && w.product.worthwhile(w.c) {
		list = append(list, Schedule{Family: Library})
	}
	if w.mma == nil {
		return list
	}
	for _, t := range mmaTilesFor(w.e.caps) {
		p := w.mma.withTile(t)
		p.split(w.c, p.wantedParts(w.c, w.e.caps))
		list = append(list, p.schedule())
	}
	return list
}

// plan completes the plan of multiply-adds for a schedule.
func (w *deviceCandidates) plan(s Schedule) mmaPlan {
	t, _ := mmaTileFor(s, w.e.caps)
	p := w.mma.withTile(t)
	p.split(w.c, s.Split)
	return p
}

func (w *deviceCandidates) cost(s Schedule) float64 {
	if s.Family == Library {
		return w.product.cost(w.c, w.e.caps)
	}
	p := w.plan(s)
	time := p.cost(w.c, w.e.caps)
	if w.product != nil { // the library's cost includes the epilogue, so this one must too
		time += w.product.epilogue.fusedTime(w.e.caps)
	}
	return time
}

func (w *deviceCandidates) has(s Schedule) bool {
	if s.Family == Library {
		return w.product != nil && s == Schedule{Family: Library}
	}
	_, ok := mmaTileFor(s, w.e.caps)
	return ok && w.mma != nil
}

func (w *deviceCandidates) launches(s Schedule) []Launch {
	if s.Family == Library {
		return scheduleProduct(w.e, w.g, w.product)
	}
	p := w.plan(s)
	return scheduleMma(w.e, w.g, w.c, &p)
}

func (p *mmaPlan) schedule() Schedule {
	return Schedule{Family: WarpGroups, N: p.columns, Stages: p.stages, Split: p.parts}
}

func mmaTileFor(s Schedule, caps loop.Caps) (mmaTile, bool) {
	for _, t := range mmaTilesFor(caps) {
		if s == (Schedule{Family: WarpGroups, N: t.columns, Stages: t.stages, Split: s.Split}) {
			return t, true
		}
	}
	return mmaTile{}, false
}
