package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

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
