package reduce

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// Space is the schedule space of a reduction: the threads per row, the rows per workgroup
// and the split.
type Space struct {
	e      *emit.Emitter
	Group  *fusion.Group // the reduction
	slices []float64     // costs of [rowSlices], 0 before they are known, -1 where the weights do not factor
	tiles  *tile         // of tileOf; nil before it is known, with sharing 0 if there is none
}

// tile is tileOf of the group.
func (w *Space) tile() (t tile, ok bool) {
	if w.tiles == nil {
		t, ok := tileOf(w.e, w.Group)
		if !ok {
			t = tile{}
		}
		w.tiles = &t
	}
	return *w.tiles, w.tiles.sharing > 0
}

// NewSpace returns the schedule space of a reduction.
func NewSpace(e *emit.Emitter, g *fusion.Group) *Space { return &Space{e: e, Group: g} }

// Rule returns the default schedule, see [emit.Space].
func (w *Space) Rule() emit.Schedule {
	if s, ok := packedRule(w); ok {
		return s
	}
	usual := w.usual()
	if r, ok := w.TilesBelow(w.cost(usual)); ok {
		return r.Schedule
	}
	return usual
}

// TilesBelow returns the schedule by tiles and its cost, if the reduction has one that costs less than another schedule. It
// counts no loads where sharing all of them would not do: to count them takes longer than to emit the kernel.
func (w *Space) TilesBelow(cost float64) (r emit.Ranked, ok bool) {
	if w.tiles == nil && !slices.ContainsFunc(tilesOf(w.e, w.Group), func(t tile) bool { return w.costOf(t.schedule(w.e, w.Group), t) < cost }) {
		return r, false
	}
	r, ok = w.Tiles()
	return r, ok && r.Cost < cost
}

// Tiles returns the schedule by tiles and its cost, if the reduction has one.
func (w *Space) Tiles() (r emit.Ranked, ok bool) {
	t, ok := w.tile()
	if !ok {
		return r, false
	}
	s := t.schedule(w.e, w.Group)
	return emit.Ranked{Schedule: s, Cost: w.cost(s)}, s.Split == 1 || w.splits()
}

// usual returns the default schedule without tiles.
func (w *Space) usual() emit.Schedule {
	s := shapeRows(w.e, w.Group)
	if s.Each > 0 {
		return s
	}
	if alone := w.alone(s); alone != s {
		return alone
	}
	s.Split = evenParts(w.e, w.Group, s, w.Group.Rows().Parts())
	t := narrowColumns(s)
	if w.e.Caps.Dialect != dtype.CUDA && fusion.Product(w.Group.Inner) <= maxSerialRow*t.Lanes && w.Fits(t) && w.cost(t) < w.cost(s) {
		return t
	}
	return w.fewerLanes(s)
}

// alone returns a schedule with a thread for each row where that costs less than sharing short rows, and s otherwise.
func (w *Space) alone(s emit.Schedule) emit.Schedule {
	if one := RowPerThread(w.Group); (emit.CostlyBarriers(w.e.Caps) || w.isBrief(s)) && w.cost(one) < w.cost(s) {
		return one
	}
	return s
}

// narrowColumns returns a schedule of split columns in whole ones, as many as a sector has and with more threads each: a launch
// less, which takes longer than such a sum (of an ODE's backward loop, bias sums of 1,024 rows were 16 of 41 dispatches).
func narrowColumns(s emit.Schedule) emit.Schedule {
	if s.Family == emit.Columns && s.Split > 1 {
		for s.Split = 1; s.Rows > emit.SectorElements; s.Rows /= 2 {
			s.Lanes *= 2
		}
	}
	return s
}

// isBrief reports whether several threads share short rows. On CUDA such rows are those of [VectorPerThread], and otherwise
// those that a thread keeps in registers, whose points have constant indices: of rows that are contiguous themselves, those
// of a few elements, as coordinates are (H200: 6 million squared distances in three dimensions took 478 µs by four lanes).
func (w *Space) isBrief(s emit.Schedule) bool {
	if s.Lanes == 1 || s.Family == emit.Rows && (w.e.Caps.Dialect != dtype.CUDA || fusion.Product(w.Group.Inner) > maxFewElements) {
		return false
	}
	if w.e.Caps.Dialect == dtype.CUDA {
		return emit.WithMma && rowLayoutOf(w.e.Caps, RowPerThread(w.Group), w.Group).chunks > 0
	}
	return fusion.Product(w.Group.Inner) <= maxSerialRow
}

// maxFewElements is the longest contiguous row that one thread reduces: less than half a sector of f32.
const maxFewElements = 7

// fewerLanes returns a schedule of rows with half, a quarter or an eighth of the lanes and more rows in a workgroup where its
// cost is lower: combining the lanes of a short row costs more than its elements (H200: 4,096 rows of
// 192 took 10 µs with 256 lanes each, 5 with 64; 8,192 softmax losses of 1,000 classes 23 µs with 256, 18 to 20
// with 128, 27 with 64, the cheapest by cost; 960,000 products of 16 gathered elements 21 with 8 lanes, 15 with 4; by
// WebGPU 524,288 rows of 16 took 90 with 16, 19 with 4, and 4,096 rows of 192 31 with 256, 20 with 64).
func (w *Space) fewerLanes(s emit.Schedule) emit.Schedule {
	if s.Family != emit.Rows || s.Split > 1 {
		return s
	}
	best, usual := s, w.cost(s)
	below, gain := usual, halfGain
	if emit.WithMma && w.e.Caps.Dialect == dtype.CUDA {
		gain = minGain
	}
	for fewer := 2; fewer <= 8 && s.Lanes/fewer >= minLanes; fewer, gain = 2*fewer, clearGain {
		t := s
		t.Lanes = s.Lanes / fewer
		t.Rows = max(s.Rows, emit.UsualThreads(w.e.Caps)/t.Lanes)
		if cost := w.cost(t); cost < min(usual/gain, below) && w.Fits(t) {
			best, below = t, cost
		}
	}
	return best
}

// A row has half the lanes where that costs less by the factor minGain on CUDA, halfGain elsewhere (by WebGPU on an H200
// rows of 0.95 of the cost took 1.24 of the time, one of six kinds whose costs differ by less than halfGain), and a
// quarter or an eighth of them where that costs less by clearGain. minLanes is the minimum number of lanes of a row.
const (
	minGain   = 1.05
	halfGain  = 1.1
	clearGain = 1.25
	minLanes  = 4
)

// Candidates returns the schedules worth measuring, see [emit.Space].
func (w *Space) Candidates() []emit.Ranked {
	rule := w.Rule()
	if rule.Family == emit.PackedRows {
		return packedCandidates(w, rule)
	}
	if rule.M > 0 {
		rule = w.usual()
	}
	list := []emit.Ranked{{Schedule: rule, Cost: w.cost(rule)}}
	if r, ok := w.Tiles(); ok {
		list = append(list, r)
	}
	add := func(s emit.Schedule) {
		if s != rule && w.Fits(s) {
			list = append(list, emit.Ranked{Schedule: s, Cost: w.cost(s)})
		}
	}
	if rule.Each > 0 {
		rule = shapeContiguous(w.e, w.Group)
		add(rule)
	} else {
		add(VectorPerThread)
	}
	for _, lanes := range []int{rule.Lanes / 4, rule.Lanes / 2, 2 * rule.Lanes} {
		s := rule
		s.Lanes = max(lanes, 1)
		add(s)
		for s.Family == emit.Rows && s.Rows*s.Lanes < emit.UsualThreads(w.e.Caps) {
			s.Rows *= 2
		}
		add(s)
	}
	for _, split := range []int{1, rule.Split / 2, 2 * rule.Split, 4 * rule.Split} {
		s := rule
		s.Split = split
		add(s)
	}
	return list
}

// Fits accepts powers of two of threads, as the trees over lanes need, splits that leave each
// thread an element, and vectors of adjacent rows.
func (w *Space) Fits(s emit.Schedule) bool {
	if s.Family == emit.PackedRows {
		return packedFits(w, s)
	}
	if s.M > 0 {
		r, ok := w.Tiles()
		return ok && s == r.Schedule
	}
	if s.Each > 0 {
		return s == VectorPerThread && canShareThread(w.e, w.Group)
	}
	if s.Family != emit.Rows && s.Family != emit.Columns || s.Lanes < 1 || s.Rows < 1 || s.Split < 1 ||
		s != (emit.Schedule{Family: s.Family, Lanes: s.Lanes, Rows: s.Rows, Split: s.Split}) {
		return false
	}
	threads, length := s.Lanes*s.Rows, max(fusion.Product(w.Group.Inner), 1)
	if emit.PowerOfTwo(s.Lanes) != s.Lanes || emit.PowerOfTwo(s.Rows) != s.Rows || threads > w.e.Caps.Invocations || s.Lanes > emit.PowerOfTwo(length) {
		return false
	}
	return s.Split == 1 || s.Split*s.Lanes <= length && w.splits()
}

// splits reports whether rows can be split: the partial results between the two kernels need
// bindings.
func (w *Space) splits() bool {
	g := w.Group
	return g.Rows().CanSplit() && g.Rows().SplitTensors(len(g.Reads()), len(g.Writes())) <= w.e.Caps.Tensors()
}

// cost estimates the time to read the rows, and of a tree with a barrier per level over the
// lanes of a row.
func (w *Space) cost(s emit.Schedule) float64 {
	if s.M == 0 {
		return w.costOf(s, tile{})
	}
	t, _ := w.tile()
	return w.costOf(s, t)
}

// costOf is cost with the tile of a schedule that has one.
func (w *Space) costOf(s emit.Schedule, t tile) float64 {
	rows, length := max(fusion.Product(w.Group.Outer), 1), max(fusion.Product(w.Group.Inner), 1)
	groups := emit.CeilDiv(rows, s.Rows*max(s.Each, 1)) * s.Split
	each := emit.CeilDiv(emit.CeilDiv(length, s.Split), s.Lanes) * max(s.Each, 1)
	load := hardware.Work{
		Bytes:   emit.BytesOf(w.Group.Reads()) + emit.BytesOf(w.Group.Writes()),
		Threads: min(groups*s.Rows, rows*s.Split) * s.Lanes, BytesInFlight: 4 * min(each, MaxUnroll),
		Ops: float64(rows) * float64(length) * float64(w.Group.Weight()+emit.PointOps),
	}
	if s.M > 0 { // index arithmetic and loads are those of the elements that differ
		load.Threads = rows / (t.rows * t.width) * s.Split
		load.Ops = float64(rows) * float64(length) * (1 + float64(w.Group.Weight()+emit.PointOps)/t.sharing)
	}
	load.Sectors = load.Bytes
	if short := min(s.Lanes, length); s.Family == emit.Rows && short < emit.SectorElements {
		load.Sectors *= float64(emit.SectorElements) / float64(short)
	} else if s.Family == emit.Rows && w.Group.Rows().AreContiguous() {
		load.Sectors *= emit.SectorElements
	}
	d := w.e.Caps.Profile()
	time := load.Time(d)
	for lanes := s.Lanes; lanes > 1; lanes /= 2 {
		time += d.Barrier * d.Waves(groups, s.Lanes*s.Rows)
	}
	if s.Split > 1 {
		time += d.Launch + 2*4*float64(rows*s.Split)/d.Bandwidth()
	}
	return time
}

// rowLayout maps a workgroup onto the outer points ("rows") and the inner points of a
// reduction.
type rowLayout struct {
	lanes, rows int  // threads per row, and rows per workgroup
	rowsFirst   bool // neighbouring threads have neighbouring rows, not lanes
	chunks      int  // unrolled inner points per thread; 0: a loop
}

// rowLayoutOf returns the layout of a schedule.
func rowLayoutOf(caps loop.Caps, s emit.Schedule, g *fusion.Group) rowLayout {
	shape := rowLayout{lanes: s.Lanes, rows: s.Rows, rowsFirst: s.Family == emit.Columns}
	return shape.unroll(caps, g, fusion.Product(g.Inner))
}

// Bounds of unrolling the inner points of a thread, which keeps them in registers between the
// stages of a reduction: maxUnrolled points, so that three or four operands fit 64 registers,
// and maxUnrolledWeight operations in all.
const (
	maxUnrolled       = 16
	maxUnrolledWeight = 400
)

// maxUnrolledInSoftware replaces maxUnrolled on devices in software where the work is little: their
// drivers compile for longer than the kernel runs. (SwiftShader: a product of sixteen terms compiled in 70 to
// 140 ms of processor time, in a loop in 20.)
const maxUnrolledInSoftware = 4

// independentThreads is the workgroup size of threads that do not cooperate: small, for many
// workgroups.
const independentThreads = 64

// RowPerThread gives each row to one thread.
func RowPerThread(g *fusion.Group) emit.Schedule {
	return emit.Schedule{Family: emit.Columns, Lanes: 1, Rows: min(independentThreads, emit.PowerOfTwo(fusion.Product(g.Outer))), Split: 1}
}

// maxSerialRow is the longest row of one thread: a row of 128 takes 13 µs on an H200, less than
// half with four threads.
const maxSerialRow = 64

// RowPerFewThreads gives each row to one thread, or to a few where it is longer than maxSerialRow.
func RowPerFewThreads(g *fusion.Group) emit.Schedule {
	s := RowPerThread(g)
	if fusion.Product(g.Inner) > maxSerialRow && s.Rows == independentThreads {
		s.Lanes, s.Rows = 4, independentThreads/4
	}
	return s
}

// minThreads is the minimum workgroup size where there is work for it: the widest subgroup of
// any device.
const minThreads = 64

// adjacentColumns is the number of adjacent rows read together: a cache line of 128 bytes in
// f32. minColumnElements is the number of elements of a column per thread before more threads
// share it.
const (
	adjacentColumns   = 32
	minColumnElements = 4
)

// shapeRows picks the threads of a reduction: neighbouring threads read neighbouring elements,
// and short rows share a workgroup.
func shapeRows(e *emit.Emitter, g *fusion.Group) emit.Schedule {
	if !g.Rows().AreContiguous() {
		return shapeWholeRows(e, g)
	}
	if s, ok := shareThread(e, g); ok {
		return s
	}
	return shapeContiguous(e, g)
}

// shapeContiguous is shapeRows for rows that are contiguous across rows, with one row or less per
// thread.
func shapeContiguous(e *emit.Emitter, g *fusion.Group) emit.Schedule {
	columns := shapeColumns(e, fusion.Product(g.Outer), fusion.Product(g.Inner))
	if g.Rows().CanSplit() {
		return columns
	}
	rows, w := shapeWholeRows(e, g), NewSpace(e, g)
	if w.Fits(rows) && strided*w.cost(rows) < w.cost(columns) {
		return rows
	}
	return columns
}

// strided is by how much a workgroup per row must be faster than contiguous rows together: its
// threads read elements that are apart, and the sectors that rows share come from the cache at
// best.
const strided = 2

// shapeWholeRows is shapeRows for rows whose own elements are contiguous.
func shapeWholeRows(e *emit.Emitter, g *fusion.Group) emit.Schedule {
	rows, length := fusion.Product(g.Outer), fusion.Product(g.Inner)
	s := emit.Schedule{Family: emit.Rows, Lanes: min(emit.UsualThreads(e.Caps), emit.PowerOfTwo(length)), Rows: 1, Split: 1}
	for s.Lanes < min(e.Caps.Invocations, emit.PowerOfTwo(length)) && exceedsCache(e, g, s.Lanes) {
		s.Lanes *= 2
	}
	for s.Rows*s.Lanes < minThreads && s.Rows < rows {
		s.Rows *= 2
	}
	return shareShortRows(e, s, rows, length)
}

// exceedsCache reports whether rows that several stages read, and that do not fit registers,
// overflow the cache at the given lanes per row: each stage would then read them from memory,
// while fewer rows at a time in wider workgroups stay cached.
func exceedsCache(e *emit.Emitter, g *fusion.Group, lanes int) bool {
	length := fusion.Product(g.Inner)
	if g.Rows().CanSplit() || emit.CeilDiv(length, lanes) <= maxUnrolled {
		return false
	}
	row := 0
	for _, t := range g.Reads() {
		if t.Len() >= fusion.Product(g.Outer)*length {
			row += length * loop.DeviceSize(t.DType)
		}
	}
	atOnce := min(fusion.Product(g.Outer), e.Caps.Profile().Resident()/lanes)
	return atOnce*row > e.Caps.Profile().RetainedBytes()
}

// manyRows is a number of rows that fills any device with the smallest workgroups.
const manyRows = 1 << 14

// shareShortRows packs short rows into workgroups with several elements per thread where the
// rows fill the device anyway: combining the lanes of a row of 64 costs more than its elements
// (H200: 196,608 rows of bf16 products took 123 µs with a workgroup each, where memory takes
// 12; 16,384 softmaxes of 256 took 251 µs in WebGPU instead of 114).
func shareShortRows(e *emit.Emitter, s emit.Schedule, rows, length int) emit.Schedule {
	const each, minLanes, maxLanes = 4, 8, 32
	if rows < manyRows || length > 2*emit.UsualThreads(e.Caps) || s.Lanes < each*minLanes {
		return s
	}
	s.Lanes = min(s.Lanes/each, maxLanes)
	s.Rows = emit.UsualThreads(e.Caps) / s.Lanes
	return s
}

// shapeColumns is shapeRows for rows that are contiguous across rows. Few rows that are too short to split take smaller
// workgroups, with more lanes for each: the 128 columns of a short matrix would be four workgroups, with few bytes in
// flight. Half a sector is the least, as neighbours read the other half from the cache.
func shapeColumns(e *emit.Emitter, rows, length int) emit.Schedule {
	s := emit.Schedule{Family: emit.Columns, Lanes: 1, Rows: min(adjacentColumns, emit.PowerOfTwo(rows)), Split: 1}
	limit, d := emit.UsualThreads(e.Caps), e.Caps.Profile()
	whole := d.RowSplits(rows, length, true) == 1
	for whole && s.Rows > emit.SectorElements/2 && 4*rows < d.Processors*s.Rows && s.Rows*length >= 2*limit*minColumnElements {
		s.Rows /= 2
	}
	for s.Lanes < limit/s.Rows && s.Lanes*minColumnElements < length {
		s.Lanes *= 2
	}
	for s.Lanes*s.Rows < limit && rows >= 2*s.Rows*d.Workgroups(wantedGroups) {
		s.Rows *= 2
	}
	return s
}

// brief reports whether threads reduce a row of the given length each, and all of them take less time than a launch.
func (s rowLayout) brief(g *fusion.Group, length int) bool {
	return s.lanes == 1 && float64(length)*float64(fusion.Product(g.Outer)) <= emit.SmallProduct
}

// unroll returns s with the inner points of a thread unrolled if they are few. A single point
// always is.
func (s rowLayout) unroll(caps loop.Caps, g *fusion.Group, length int) rowLayout {
	c, most := max(emit.CeilDiv(length, s.lanes), 1), maxUnrolled
	if emit.CostlyBarriers(caps) && s.brief(g, length) {
		most = maxUnrolledInSoftware
	}
	if c == 1 || c <= most && c*g.Weight() <= maxUnrolledWeight {
		s.chunks = c
	}
	return s
}
