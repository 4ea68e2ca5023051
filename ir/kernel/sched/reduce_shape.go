package sched

import (
	"github.com/rlx-go/rlx/ir/kernel/group"
)

// rowsShape is how a workgroup is laid over the outer points ("rows") and the
// inner points of a reduction.
type rowsShape struct {
	lanes, rows int  // threads along the inner points, and rows a workgroup has
	rowsFirst   bool // neighbouring threads have neighbouring rows, not lanes
	chunks      int  // inner points of one thread, where they are written out; 0: a loop
}

// Bounds of writing out the inner points of a thread, which keeps them in
// registers between the stages of a reduction: how many there may be, and how
// many operations that writes out in all.
const (
	maxChunks     = 16
	maxWrittenOut = 400
)

// aloneThreads is the size of a workgroup whose threads have nothing to do with
// each other: small, so that there are many.
const aloneThreads = 64

// shapeRows chooses the layout. Threads that are neighbours should read
// neighbouring elements; rows shorter than a workgroup share one.
func (e *emitter) shapeRows(g *group.Group) rowsShape {
	rows, length := group.Product(g.Outer), group.Product(g.Inner)
	if e.alone {
		return rowsShape{lanes: 1, rows: min(aloneThreads, powerOfTwo(rows)), rowsFirst: true}.writeOut(g, length)
	}
	if g.RowsAreContiguous() {
		return e.shapeColumns(g, rows, length)
	}
	s := rowsShape{lanes: min(e.caps.Invocations, powerOfTwo(length)), rows: 1}
	for s.rows*s.lanes < 64 && s.rows < rows {
		s.rows *= 2
	}
	return e.shareShortRows(s, rows).writeOut(g, length)
}

// manyRows is how many rows are enough for the least workgroups to be many more than any
// device has at once.
const manyRows = 1 << 14

// shareShortRows lets workgroups have as many short rows as they have threads for, with
// some elements for each thread, where there are so many that the device is full anyway:
// a row of 64 costs more by the meetings of its threads than by its elements (on an
// H200 196,608 of them, products of bf16, took 123 µs with a workgroup each, where
// memory takes 12). It needs a target that says how large it is.
func (e *emitter) shareShortRows(s rowsShape, rows int) rowsShape {
	const each, least = 4, 8
	if e.caps.Multiprocessors == 0 || rows < manyRows || s.lanes >= e.caps.Invocations || s.lanes < each*least {
		return s
	}
	s.lanes /= each
	s.rows = e.caps.Invocations / s.lanes
	return s
}

// shapeColumns is shapeRows for rows that are read side by side.
func (e *emitter) shapeColumns(g *group.Group, rows, length int) rowsShape {
	s := rowsShape{lanes: 1, rows: min(32, powerOfTwo(rows)), rowsFirst: true}
	limit := e.caps.Invocations
	for s.lanes < limit/s.rows && s.lanes*4 < length {
		s.lanes *= 2
	}
	for s.lanes*s.rows < limit && rows >= 2*s.rows*wantedGroups {
		s.rows *= 2
	}
	return s.writeOut(g, length)
}

// writeOut returns s with the inner points of a thread written out if they are
// few. A single one always is.
func (s rowsShape) writeOut(g *group.Group, length int) rowsShape {
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
