package matmul

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/reduce"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// Space are the candidates of a contraction: tiles, reductions, and the schedules of some
// devices.
type Space struct {
	e         *emit.Emitter
	g         *fusion.Group
	c         *fusion.Contraction
	reduction *reduce.Space
	device    deviceSpace
}

// NewSpace returns the schedule space of a contraction.
func NewSpace(e *emit.Emitter, g *fusion.Group) *Space {
	w := &Space{e: e, g: g, c: fusion.ContractionOf(g.Members[0].Node, e.Simplifier)}
	w.reduction = reduce.NewSpace(e, g.Reduction())
	if emit.WithMma {
		w.device = newDeviceSpace(e, g, w.c)
	}
	return w
}

// Rule returns the default schedule, see [emit.Space].
func (w *Space) Rule() emit.Schedule {
	if !emit.WithMma {
		return w.withoutStationary()
	}
	return w.device.packedOr(w)
}

// withoutPacked returns the default schedule among the others than PackedTiles.
func (w *Space) withoutPacked() emit.Schedule {
	return w.device.orStationary(w, w.withoutStationary())
}

// withoutStationary returns the default schedule among the others than Stationary.
func (w *Space) withoutStationary() emit.Schedule {
	if emit.WithMma && fusion.Product(w.c.K) <= emit.ThinSide && w.reduction.Fits(reduce.VectorPerThread) {
		return reduce.VectorPerThread // an outer product
	}
	if emit.WithMma {
		if s, ok := w.device.rule(); ok {
			return orSharedRows(w, s)
		}
	}
	if t, parts, ok := chooseTile(w.c, w.e.Caps); ok {
		if emit.WithMma {
			t, parts = preferPipeline(w, t, parts)
		}
		return orSharedRows(w, t.schedule(parts))
	}
	if small(w.c) {
		if emit.CostlyBarriers(w.e.Caps) {
			return reduce.RowPerThread(w.reduction.Group)
		}
		alone := reduce.RowPerFewThreads(w.reduction.Group)
		if emit.WithMma && w.e.Caps.Dialect == dtype.CUDA {
			return w.device.orRows(alone, w.reduction.Rule())
		}
		t := tiles[3] // of 32 × 32 results
		if t.fits(w.e.Caps) && tileable(w.c) && t.count(w.c) >= fewTiles && smallGain*t.cost(w.c, 1, w.e.Caps) < reductionCost(w.c, alone, w.e.Caps) {
			return t.schedule(1)
		}
		return alone
	}
	s := w.reduction.Rule()
	if emit.WithMma {
		return w.device.insteadOf(w.ranked(s))
	}
	return s
}

// smallGain is by how much a tile must cost less than a thread for each result of a small product (1,024 × 64 × 32 took 65 µs
// by WebGPU on an H200, by tiles 19).
const smallGain = 1.5

// orSharedRows returns a schedule or, where its cost is lower, the reduction of rows that share elements, as those of a
// convolution of few channels a group do.
func orSharedRows(w *Space, s emit.Schedule) emit.Schedule {
	if s.Family == emit.Library {
		return s
	}
	if r, ok := w.reduction.TilesBelow(w.ranked(s).Cost); ok {
		return r.Schedule
	}
	return s
}

// ranked returns a schedule with its cost.
func (w *Space) ranked(s emit.Schedule) emit.Ranked {
	if emit.WithMma {
		if ofDevice(s) {
			return emit.Ranked{Schedule: s, Cost: w.device.cost(s)}
		}
	}
	if t, ok := tileFor(s); ok {
		return emit.Ranked{Schedule: s, Cost: t.cost(w.c, s.Split, w.e.Caps)}
	}
	if s.M > 0 {
		if r, ok := w.reduction.Tiles(); ok && s == r.Schedule {
			return r
		}
	}
	return emit.Ranked{Schedule: s, Cost: reductionCost(w.c, s, w.e.Caps)}
}

// Candidates returns the schedules worth measuring, see [emit.Space].
func (w *Space) Candidates() []emit.Ranked {
	list := []emit.Ranked{w.ranked(w.Rule())}
	if w.e.Caps.Products == loop.AllProducts && list[0].Family == emit.Library {
		return list
	}
	list = append(list, w.ranked(w.reduction.Rule()))
	if fusion.Product(w.c.K) <= shortSpace {
		list = append(list, w.ranked(reduce.RowPerThread(w.reduction.Group)), w.ranked(reduce.RowPerFewThreads(w.reduction.Group)))
	}
	if w.reduction.Fits(reduce.VectorPerThread) {
		list = append(list, w.ranked(reduce.VectorPerThread))
	}
	if r, ok := w.reduction.Tiles(); ok {
		list = append(list, r)
	}
	if !tileable(w.c) {
		return list
	}
	for _, t := range allTiles() {
		if t.registers == emit.CostlyBarriers(w.e.Caps) && t.fits(w.e.Caps) && (t.stages == 0 || w.asyncCopyable()) {
			list = append(list, w.ranked(t.schedule(t.parts(w.c, w.e.Caps))), w.ranked(t.schedule(1)))
		}
	}
	if emit.WithMma {
		for _, s := range w.device.schedules() {
			list = append(list, w.ranked(s))
		}
	}
	return list
}

// Fits reports whether the group can be lowered by a schedule.
func (w *Space) Fits(s emit.Schedule) bool {
	if emit.WithMma {
		if ofDevice(s) {
			return w.device.has(s) && (s.Family != emit.WarpGroups || w.canSplit(s))
		}
	}
	if s.Family == emit.Tiles || s.Family == emit.Registers || s.Family == emit.Pipelined || s.Family == emit.Fragments {
		t, ok := tileFor(s)
		return ok && tileable(w.c) && t.fits(w.e.Caps) && w.canSplit(s) && (t.stages == 0 || w.asyncCopyable())
	}
	return w.reduction.Fits(s)
}

// asyncCopyable reports whether both operands lie in memory such that asynchronous copies can
// read them.
func (w *Space) asyncCopyable() bool {
	inMemory := func(operand int) bool {
		l, _ := layoutOf(w.e, w.g, w.c, ir.F32, operand)
		return l != staged
	}
	return emit.WithMma && inMemory(0) && inMemory(1)
}

// canSplit reports whether split-K fits a schedule: no part is empty, and one array holds the
// partial sums.
func (w *Space) canSplit(s emit.Schedule) bool {
	return s.Split >= 1 && s.Split <= fusion.Product(w.c.K) && (s.Split == 1 || s.Split <= maxParts(w.c, w.e.Caps))
}

// Emit returns the launches of a schedule that fits.
func (w *Space) Emit(s emit.Schedule) []emit.Launch {
	if emit.WithMma {
		if ofDevice(s) {
			return w.device.launches(s)
		}
	}
	if t, ok := tileFor(s); ok {
		return emitTiles(w.e, w.g, w.c, t, s.Split)
	}
	return w.reduction.Emit(s)
}

// schedule returns the schedule of a tile with split-K parts.
func (t tile) schedule(parts int) emit.Schedule {
	family := emit.Tiles
	switch {
	case t.registers:
		family = emit.Registers
	case t.lanes > 1:
		family = emit.Fragments
	case t.stages > 0:
		family = emit.Pipelined
	}
	return emit.Schedule{Family: family, M: t.m, N: t.n, K: t.k, RM: t.rm, RN: t.rn, Split: parts, Stages: t.stages}
}

// allTiles returns the tiles of all targets.
func allTiles() []tile {
	if emit.WithMma {
		return slices.Concat(fragmentTiles, pipelinedTiles, tiles, registerTiles)
	}
	return slices.Concat(tiles, registerTiles)
}

// tileFor returns the tile of a schedule.
func tileFor(s emit.Schedule) (tile, bool) {
	for _, t := range allTiles() {
		if t.schedule(s.Split) == s {
			return t, true
		}
	}
	return tile{}, false
}

// deviceSpace are the candidates of a contraction that only some devices have: warp-group
// multiply-adds and the products of a library. It is an interface so that the browser's compiler, which has
// none, has not the types of its plans either.
type deviceSpace interface {
	rule() (emit.Schedule, bool)
	packedOr(w *Space) emit.Schedule
	insteadOf(reduction emit.Ranked) emit.Schedule
	orStationary(w *Space, s emit.Schedule) emit.Schedule
	orRows(few, rows emit.Schedule) emit.Schedule
	schedules() []emit.Schedule
	cost(s emit.Schedule) float64
	has(s emit.Schedule) bool
	launches(s emit.Schedule) []emit.Launch
}

// deviceCandidates is the deviceSpace of a contraction.
type deviceCandidates struct {
	e       *emit.Emitter
	g       *fusion.Group
	c       *fusion.Contraction
	mma     *mmaPlan     // without a tile; nil if the target has no multiply-adds for c
	product *libraryPlan // nil if no library computes c
	// stationary keeps the columns' operand in shared memory; nil if c has other shapes.
	stationary *stationaryPlan
	packed     []*packedPlan // multiply packed weights, the cheapest first; none if c has others
}

// noCandidates is the deviceSpace on targets without multiply-adds and library.
var noCandidates = &deviceCandidates{}

func newDeviceSpace(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction) deviceSpace {
	if e.Caps.Dialect != dtype.CUDA && !e.Caps.Mma && e.Caps.Products == loop.NoProducts {
		return noCandidates
	}
	w := &deviceCandidates{e: e, g: g, c: c}
	w.mma, _ = planMma(e, g, c)
	w.product, _ = planLibrary(e, g, c)
	w.stationary, _ = planStationary(e, g, c)
	w.packed = packedPlans(e, g, c)
	return w
}

// ofDevice reports whether a schedule is one of deviceSpace.
func ofDevice(s emit.Schedule) bool {
	return s.Family == emit.WarpGroups || s.Family == emit.Library || s.Family == emit.Stationary || s.Family == emit.PackedTiles
}

// rule returns the schedule that is expected to be faster than tiles, if there is one.
func (w *deviceCandidates) rule() (emit.Schedule, bool) {
	var best *mmaPlan
	if w.mma != nil {
		best, _ = chooseMma(*w.mma, w.c, w.e.Caps)
	}
	if p := w.product; p != nil && (w.e.Caps.Products == loop.AllProducts || p.faster(w.c, w.e.Caps, best)) {
		return emit.Schedule{Family: emit.Library}, true
	}
	if best != nil {
		return best.schedule(), true
	}
	return emit.Schedule{}, false
}

// packedOr returns the schedule of a product with packed weights, if it is one, or another: tiles and reductions unpack a weight
// for each few results, which their costs do not count. Several tiles of columns read weights again: those of BF16, which
// need no unpacking, and those that multiply-adds in TF32 unpack once, only where this costs less.
func (w *deviceCandidates) packedOr(all *Space) emit.Schedule {
	if len(w.packed) == 0 {
		return all.withoutPacked()
	}
	p := w.packed[0]
	s := p.schedule()
	if p.columnTiles() == 1 {
		return s
	}
	other := all.withoutPacked()
	if (p.plain || other.Family == emit.WarpGroups) && all.ranked(other).Cost <= w.cost(s) {
		return other
	}
	return s
}

// packedBy returns the plan of a product with packed weights by its schedule, or nil.
func (w *deviceCandidates) packedBy(s emit.Schedule) *packedPlan {
	for _, p := range w.packed {
		if p.schedule() == s {
			return p
		}
	}
	return nil
}

// packedTrials is the number of schedules of products with packed weights that are worth comparing.
const packedTrials = 6

// thinGain is the ratio of costs from which multiply-adds of 16-bit types, or tiles of f32, compute a product that has
// too few results or columns for tiles by their count (H200: convolutions from and to 3 channels took 16 and 18 µs
// instead of 40 and 23 as reductions of 2.4 and 4 times the cost; one of f32 to 3 channels took 15 µs by tiles, 28 by
// multiply-adds in TF32, and 37 as a reduction of 2.8 times the cost). tf32Gain is that from which multiply-adds in TF32
// compute it instead of tiles, wholeGain that for tiles of all of k where there are no multiply-adds (H200, f32: the gradient
// of an image by 7 × 7 from 64 channels took 2.2 ms instead of 5.5 as a reduction of 1.6 times the cost).
const (
	thinGain  = 2
	tf32Gain  = 2
	wholeGain = 1.5
)

// insteadOf returns the cheapest multiply-adds, or tiles of f32, where a reduction costs thinGain or wholeGain times as much, or
// the reduction.
func (w *deviceCandidates) insteadOf(reduction emit.Ranked) emit.Schedule {
	best, below := reduction.Schedule, reduction.Cost/thinGain
	if t, ok := w.cheapestTile(reduction.Cost); ok {
		best, below = t.Schedule, t.Cost/tf32Gain
	}
	if w.mma == nil {
		return best
	}
	if w.product != nil { // as in cost
		below -= w.product.epilogue.fusedTime(w.e.Caps)
	}
	if p := w.mma.fastest(w.e.Caps, below); p != nil {
		return p.schedule()
	}
	return best
}

// cheapestTile returns the tile of f32 with the lowest cost, where multiply-adds are of TF32 or there are none, or false if a
// reduction of a cost is no slower by the gains.
func (w *deviceCandidates) cheapestTile(reduction float64) (best emit.Ranked, ok bool) {
	switch {
	case w.mma != nil && w.mma.operand != ir.F32:
		return best, false
	case w.mma == nil && (w.e == nil || w.e.Caps.Dialect != dtype.CUDA || !tileable(w.c)):
		return best, false
	}
	for _, t := range tiles {
		parts, gain := t.parts(w.c, w.e.Caps), float64(thinGain)
		if w.mma == nil && parts == 1 {
			gain = wholeGain
		}
		if cost := t.cost(w.c, parts, w.e.Caps); t.fits(w.e.Caps) && gain*cost < reduction && (!ok || cost < best.Cost) {
			best, ok = emit.Ranked{Schedule: t.schedule(parts), Cost: cost}, true
		}
	}
	return best, ok
}

// stationaryGain is the ratio of costs up to which the schedule that keeps the columns' operand in shared memory is faster
// than another, by the products of 20 families on an H200. Of multiply-adds in 16 bits, whose operands may be copied while
// the kernel before ends, it is 1: with 1.15 a step of pinn took 1.09 times as long, though its products take less one by one.
const stationaryGain = 1.15

// orStationary returns a schedule or, where it is faster, the one that keeps the columns' operand in shared memory.
func (w *deviceCandidates) orStationary(all *Space, s emit.Schedule) emit.Schedule {
	p := w.stationary
	if p == nil {
		return s
	}
	cost, gain := p.cost(w.e.Caps), stationaryGain // without the epilogue, as those of tiles and reductions
	if ofDevice(s) {
		cost = w.cost(p.schedule())
	}
	if s.Family == emit.WarpGroups && p.operand != ir.F32 {
		gain = 1
	}
	if cost < gain*all.ranked(s).Cost {
		return p.schedule()
	}
	return s
}

// orRows returns the schedule of few threads a row or, where its cost is lower, that of a whole reduction: it reads the
// rows of a matrix coalesced (H200: 4,096 rows of 64 times a vector take 1.5 µs by a warp each, 3.6 to 4.6 by one
// thread; 512 of 256 take 1.8 by 256 threads, 3.2 to 4.0 by four).
func (w *deviceCandidates) orRows(few, rows emit.Schedule) emit.Schedule {
	if rows.Each == 0 && reductionCost(w.c, rows, w.e.Caps) < reductionCost(w.c, few, w.e.Caps) {
		return rows
	}
	return few
}

// schedules returns the candidates that are worth comparing.
func (w *deviceCandidates) schedules() (list []emit.Schedule) {
	if w.product != nil && w.product.worthwhile(w.c) {
		list = append(list, emit.Schedule{Family: emit.Library})
	}
	if w.stationary != nil {
		list = append(list, w.stationary.schedule())
	}
	for _, p := range w.packed[:min(len(w.packed), packedTrials)] {
		list = append(list, p.schedule())
	}
	if w.mma == nil || w.mma.operand == ir.F32 {
		return list
	}
	for _, t := range mmaTilesFor(w.e.Caps) {
		if p := w.mma.withTile(t, w.e.Caps); p.suits() {
			list = append(list, p.schedule())
		}
	}
	return list
}

// plan completes the plan of multiply-adds for a schedule.
func (w *deviceCandidates) plan(s emit.Schedule) mmaPlan {
	t, _ := mmaTileFor(s, w.e.Caps)
	p := *w.mma
	p.mmaTile = t
	p.split(s.Split)
	return p
}

func (w *deviceCandidates) cost(s emit.Schedule) float64 {
	if s.Family == emit.Library {
		return w.product.cost(w.c, w.e.Caps)
	}
	var time float64
	switch s.Family {
	case emit.Stationary:
		time = w.stationary.cost(w.e.Caps)
	case emit.PackedTiles:
		time = w.packedBy(s).cost(w.e.Caps)
	default:
		p := w.plan(s)
		time = p.cost(w.e.Caps)
	}
	if w.product != nil { // the library's cost includes the epilogue, so this one must too
		time += w.product.epilogue.fusedTime(w.e.Caps)
	}
	return time
}

func (w *deviceCandidates) has(s emit.Schedule) bool {
	if s.Family == emit.Library {
		return w.product != nil && s == emit.Schedule{Family: emit.Library}
	}
	if s.Family == emit.Stationary {
		return w.stationary != nil && s == w.stationary.schedule()
	}
	if s.Family == emit.PackedTiles {
		return w.packedBy(s) != nil
	}
	if w.mma == nil {
		return false
	}
	_, ok := mmaTileFor(s, w.e.Caps)
	return ok
}

func (w *deviceCandidates) launches(s emit.Schedule) []emit.Launch {
	if s.Family == emit.Library {
		return emitLibrary(w.e, w.g, w.product)
	}
	if s.Family == emit.Stationary {
		return emitStationary(w.e, w.g, w.stationary)
	}
	if s.Family == emit.PackedTiles {
		return emitPacked(w.e, w.g, w.packedBy(s))
	}
	p := w.plan(s)
	return emitMma(w.e, w.g, &p)
}

func (p *mmaPlan) schedule() emit.Schedule {
	return emit.Schedule{Family: emit.WarpGroups, N: p.columns, Stages: p.stages, Split: p.parts}
}

func mmaTileFor(s emit.Schedule, caps loop.Caps) (mmaTile, bool) {
	for _, t := range mmaTilesFor(caps) {
		if s == (emit.Schedule{Family: emit.WarpGroups, N: t.columns, Stages: t.stages, Split: s.Split}) {
			return t, true
		}
	}
	return mmaTile{}, false
}
