package reduce

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Bounds of reducing adjacent rows in one thread, which unrolls rows whole: their length, and the
// operations of a thread in all.
const (
	maxAdjacentLength = 64
	maxAdjacentWeight = 2048
)

// VectorPerThread gives each thread a vector of adjacent rows. It fits short rows on CUDA.
var VectorPerThread = emit.Schedule{Family: emit.Columns, Lanes: 1, Rows: emit.GroupThreads, Each: emit.VectorWidth, Split: 1}

// canShareThread reports whether a thread may reduce a vector of adjacent rows: short rows that are
// contiguous across rows, in one stage or by points in registers. On CUDA only: elsewhere it is not measured.
func canShareThread(e *emit.Emitter, g *fusion.Group) bool {
	n, length := len(g.Outer), fusion.Product(g.Inner)
	return onCUDA(e) && n > 0 && g.Outer[n-1]%emit.VectorWidth == 0 && length <= maxAdjacentLength &&
		length*emit.VectorWidth*max(g.Weight(), 1) <= maxAdjacentWeight && g.Rows().AreContiguous() &&
		(g.Rows().CanSplit() || rowLayoutOf(e.Caps, RowPerThread(g), g).chunks == length)
}

// shareThread returns the schedule of a vector of adjacent rows per thread where these fill the
// device. The index arithmetic of short rows, as of windows and of depthwise convolutions, takes
// longer than their loads, and adjacent rows share it.
func shareThread(e *emit.Emitter, g *fusion.Group) (s emit.Schedule, ok bool) {
	threads := fusion.Product(g.Outer) / emit.VectorWidth
	wanted := e.Caps.Profile().Workgroups(wantedGroups) * emit.GroupThreads
	return VectorPerThread, threads >= wanted && e.Caps.Invocations >= emit.GroupThreads && canShareThread(e, g)
}

// adjacentRows is a reduction with a vector of adjacent rows per thread, or false where its accesses
// are no vectors.
func adjacentRows(e *emit.Emitter, g *fusion.Group) (l emit.Launch, ok bool) {
	e = e.Sibling().WithThreads(emit.GroupThreads)
	e.Threads(fusion.Product(g.Outer)/emit.VectorWidth, func(i scalar.Expr) {
		var rows []*rowEmitter
		for j := range emit.VectorWidth {
			row := e.Unflatten(scalar.Add(scalar.Mul(i, loop.Int(emit.VectorWidth)), loop.Int(j)), g.Outer)
			rows = append(rows, rowOfThread(e, g, row))
		}
		var body []loop.Stmt
		if g.Rows().CanSplit() {
			body, ok = vectors(e, e.Nested(func() { reduceTogether(rows) }))
		} else {
			body, ok = vectorsAlong(e, e.Nested(func() { reduceInStages(rows) }), i.Name)
		}
		e.Add(body...)
	})
	return e.Launch(g.Name()), ok
}

// reduceInStages writes the reductions of rows of one thread, row by row, with all points in registers.
func reduceInStages(rows []*rowEmitter) {
	for _, r := range rows {
		r.shape.chunks, r.each = fusion.Product(r.g.Inner), 1
		r.keepPoints()
		r.rows()
	}
}

// rowOfThread is the emitter of one of the rows of a thread, at outer coordinates.
func rowOfThread(e *emit.Emitter, g *fusion.Group, row ir.Index) *rowEmitter {
	for i := range row {
		row[i] = e.Simplify(row[i])
	}
	return &rowEmitter{
		Emitter: e, g: g, shape: rowLayout{lanes: 1, rows: emit.GroupThreads, rowsFirst: true},
		row: row, inRange: scalar.ConstBool(true), lane: loop.Int(0), levels: g.Levels(), named: map[ir.Value]scalar.Expr{},
	}
}

// reduceTogether writes the reductions of rows of one thread, point by point.
func reduceTogether(rows []*rowEmitter) {
	length := fusion.Product(rows[0].g.Inner)
	each := &loop.For{Start: loop.Int(0), End: loop.Int(length), Step: loop.Int(1), Unroll: true}
	finishTogether(rows, reducePoints(rows, each, length, 1))
}

// reducePoints writes a loop over groups of points in which rows of one thread are reduced, and
// returns their accumulators.
func reducePoints(rows []*rowEmitter, each *loop.For, groups, points int) (accs [][]accumulator) {
	g, e := rows[0].g, rows[0].Emitter
	members := rows[0].membersAt(0, true)
	for _, r := range rows {
		r.nameRows(0)
		accs = append(accs, r.declare(members))
	}
	each.Var = e.Name("r")
	each.Body = e.Nested(func() {
		for u := range points {
			at := scalar.Add(scalar.Mul(scalar.NewVar(each.Var, each.Type(), 0, int64(groups-1)), loop.Int(points)), loop.Int(u))
			point := &chunk{len(rows[0].loads) - 1, e.Unflatten(at, g.Inner), scalar.ConstBool(true)}
			for _, m := range members {
				for j, r := range rows {
					point.accumulate(r, m, accs[j])
				}
			}
		}
	})
	e.Add(each)
	return accs
}

// finishTogether names and stores the results of rows of one thread.
func finishTogether(rows []*rowEmitter, accs [][]accumulator) {
	members := rows[0].membersAt(0, true)
	for j, r := range rows {
		for _, m := range members {
			r.finishMember(m, accs[j])
		}
		r.nameRows(1)
	}
	for _, r := range rows {
		r.finishRows()
	}
}
