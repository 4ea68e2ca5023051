package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// reduceWays are the ways of a reduction: over how many threads and workgroups its rows
// are spread.
type reduceWays struct {
	e *emitter
	g *fusion.Group
}

func (w *reduceWays) rule() Schedule {
	s := w.e.shapeRows(w.g)
	s.Split = w.e.evenParts(w.g, s, w.g.RowParts())
	return s
}

func (w *reduceWays) candidates() []Ranked {
	rule := w.rule()
	list := []Ranked{{rule, w.cost(rule)}}
	add := func(s Schedule) {
		if s != rule && w.fits(s) {
			list = append(list, Ranked{s, w.cost(s)})
		}
	}
	for _, lanes := range []int{rule.Lanes / 4, rule.Lanes / 2, 2 * rule.Lanes} {
		s := rule
		s.Lanes = lanes
		add(s)
		for s.Family == Rows && s.Rows*s.Lanes < usualThreads(w.e.caps) {
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

// fits takes powers of two of threads, as those in which they meet are, and as many
// parts of rows as leave each thread something to do.
func (w *reduceWays) fits(s Schedule) bool {
	if s.Family != Rows && s.Family != Columns || s.Lanes < 1 || s.Rows < 1 || s.Split < 1 ||
		s != (Schedule{Family: s.Family, Lanes: s.Lanes, Rows: s.Rows, Split: s.Split}) {
		return false
	}
	threads, length := s.Lanes*s.Rows, max(fusion.Product(w.g.Inner), 1)
	if powerOfTwo(s.Lanes) != s.Lanes || powerOfTwo(s.Rows) != s.Rows || threads > w.e.caps.Invocations || s.Lanes > powerOfTwo(length) {
		return false
	}
	return s.Split == 1 || s.Split*s.Lanes <= length && w.splits()
}

// splits reports whether rows may be cut: the running values between the two kernels
// are bound like any other tensor.
func (w *reduceWays) splits() bool {
	if !w.g.Splits() {
		return false
	}
	running := 0
	for _, m := range w.g.Members {
		if m.Reduced {
			running += len(m.Reduction().Accumulators(m.Node))
		}
	}
	return running+max(len(w.g.Reads()), len(w.g.Writes())) <= w.e.caps.Tensors()
}

// cost is that of reading what the rows are made of, by as many threads as there are,
// and of a tree in which those of a row meet after each stage.
func (w *reduceWays) cost(s Schedule) float64 {
	rows, length := max(fusion.Product(w.g.Outer), 1), max(fusion.Product(w.g.Inner), 1)
	groups := ceilDiv(rows, s.Rows) * s.Split
	each := ceilDiv(ceilDiv(length, s.Split), s.Lanes)
	load := hardware.Work{
		Bytes:   bytesOf(w.g.Reads()) + bytesOf(w.g.Writes()),
		Threads: groups * s.Lanes * s.Rows, UnderWay: 4 * min(each, maxTogether),
		Ops: float64(rows) * float64(length) * float64(w.g.Weight()+pointOps),
	}
	load.Sectors = load.Bytes
	if short := min(s.Lanes, length); s.Family == Rows && short < sectorElements {
		load.Sectors *= float64(sectorElements) / float64(short)
	}
	d := w.e.caps.Profile()
	time := load.Time(d)
	for lanes := s.Lanes; lanes > 1; lanes /= 2 {
		time += d.Barrier * d.Waves(groups, s.Lanes*s.Rows)
	}
	if s.Split > 1 {
		time += d.Launch + 2*4*float64(rows*s.Split)/d.Bandwidth()
	}
	return time
}

func (w *reduceWays) emit(s Schedule) []Launch { return scheduleReduce(w.e, w.g, s) }

// rowsShape is how a workgroup is laid over the outer points ("rows") and the
// inner points of a reduction.
type rowsShape struct {
	lanes, rows int  // threads along the inner points, and rows a workgroup has
	rowsFirst   bool // neighbouring threads have neighbouring rows, not lanes
	chunks      int  // inner points of one thread, where they are written out; 0: a loop
}

// shapeOf returns the layout that a schedule says.
func shapeOf(s Schedule, g *fusion.Group) rowsShape {
	shape := rowsShape{lanes: s.Lanes, rows: s.Rows, rowsFirst: s.Family == Columns}
	return shape.writeOut(g, fusion.Product(g.Inner))
}

// Bounds of writing out the inner points of a thread, which keeps them in
// registers between the stages of a reduction: how many there may be, so that what is
// read of three or four tensors fits 64 registers, and how many operations that writes
// out in all.
const (
	maxChunks     = 16
	maxWrittenOut = 400
)

// aloneThreads is the size of a workgroup whose threads have nothing to do with
// each other: small, so that there are many.
const aloneThreads = 64

// rowAlone gives each row to one thread.
func rowAlone(g *fusion.Group) Schedule {
	return Schedule{Family: Columns, Lanes: 1, Rows: min(aloneThreads, powerOfTwo(fusion.Product(g.Outer))), Split: 1}
}

// aloneLength is how long a row is that one thread goes through while others do more: of
// 128 elements it takes 13 µs on an H200, of which four threads need less than half.
const aloneLength = 64

// rowByFew gives each row to a few threads of a small workgroup.
func rowByFew(g *fusion.Group) Schedule {
	s := rowAlone(g)
	if fusion.Product(g.Inner) > aloneLength && s.Rows == aloneThreads {
		s.Lanes, s.Rows = 4, aloneThreads/4
	}
	return s
}

// leastThreads is how many threads a workgroup has at least where there is work for them:
// those of the widest subgroups that devices have.
const leastThreads = 64

// columnsBeside is how many neighbouring rows are read side by side: a line of 128 bytes of
// the cache in f32. leastColumn is how many elements of a column a thread has before others
// share it.
const (
	columnsBeside = 32
	leastColumn   = 4
)

// shapeRows chooses threads. Those that are neighbours should read neighbouring
// elements; rows shorter than a workgroup share one.
func (e *emitter) shapeRows(g *fusion.Group) Schedule {
	rows, length := fusion.Product(g.Outer), fusion.Product(g.Inner)
	if g.RowsAreContiguous() {
		return e.shapeColumns(rows, length)
	}
	s := Schedule{Family: Rows, Lanes: min(usualThreads(e.caps), powerOfTwo(length)), Rows: 1, Split: 1}
	for s.Lanes < min(e.caps.Invocations, powerOfTwo(length)) && e.leavesCache(g, s.Lanes) {
		s.Lanes *= 2
	}
	for s.Rows*s.Lanes < leastThreads && s.Rows < rows {
		s.Rows *= 2
	}
	return e.shareShortRows(s, rows, length)
}

// usualThreads is how many threads a workgroup has at most but for long rows: on CUDA fewer
// than it may have, since with 1,024 softmax and layer norm were a fifth slower on an H100.
func usualThreads(caps loop.Caps) int {
	if withMma && caps.Dialect == dtype.CUDA {
		return min(caps.Invocations, mapThreads)
	}
	return caps.Invocations
}

// leavesCache reports whether rows that are read in several stages, and do not fit
// registers, are too many for the cache where each has so many threads: then each stage
// reads them from memory, where those of fewer and wider workgroups would lie in the cache.
func (e *emitter) leavesCache(g *fusion.Group, lanes int) bool {
	length := fusion.Product(g.Inner)
	if g.Splits() || ceilDiv(length, lanes) <= maxChunks {
		return false
	}
	row := 0
	for _, t := range g.Reads() {
		if t.Len() >= fusion.Product(g.Outer)*length {
			row += length * loop.DeviceSize(t.DType)
		}
	}
	atOnce := min(fusion.Product(g.Outer), e.caps.Profile().Resident()/lanes)
	return atOnce*row > e.caps.Profile().Kept()
}

// manyRows is how many rows are enough for the least workgroups to be many more than any
// device has at once.
const manyRows = 1 << 14

// shareShortRows lets workgroups have as many short rows as they have threads for, with
// some elements for each thread, where there are so many that the device is full anyway:
// a row of 64 costs more by the meetings of its threads than by its elements (on an
// H200 196,608 of them, products of bf16, took 123 µs with a workgroup each, where
// memory takes 12, and 16,384 softmaxes of 256 took 251 µs in WebGPU, where 114 will do).
func (e *emitter) shareShortRows(s Schedule, rows, length int) Schedule {
	const each, least, most = 4, 8, 32
	if rows < manyRows || length > 2*usualThreads(e.caps) || s.Lanes < each*least {
		return s
	}
	s.Lanes = min(s.Lanes/each, most)
	s.Rows = usualThreads(e.caps) / s.Lanes
	return s
}

// shapeColumns is shapeRows for rows that are read side by side.
func (e *emitter) shapeColumns(rows, length int) Schedule {
	s := Schedule{Family: Columns, Lanes: 1, Rows: min(columnsBeside, powerOfTwo(rows)), Split: 1}
	limit := usualThreads(e.caps)
	for s.Lanes < limit/s.Rows && s.Lanes*leastColumn < length {
		s.Lanes *= 2
	}
	for s.Lanes*s.Rows < limit && rows >= 2*s.Rows*e.caps.Profile().Workgroups(wantedGroups) {
		s.Rows *= 2
	}
	return s
}

// writeOut returns s with the inner points of a thread written out if they are
// few. A single one always is.
func (s rowsShape) writeOut(g *fusion.Group, length int) rowsShape {
	c := max(ceilDiv(length, s.lanes), 1)
	if c == 1 || c <= maxChunks && c*g.Weight() <= maxWrittenOut {
		s.chunks = c
	}
	return s
}

func powerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}
