package kernel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maskEmitter writes the kernel of the cotangent of a mask that is added to the
// scores. Each workgroup has a block of the mask, or all that is one along an
// axis of the scores, and goes through the scores that it is added to.
type maskEmitter struct {
	*attender
	stats *Tensor
	dims  []int    // of the mask, with as many axes as the scores
	at    ir.Index // the mask's own head
	sums  fragment
}

// mask writes the kernel of the cotangent of the mask.
func (b *backward) mask() Launch {
	t := b.m.Store[3]
	rank := len(b.Heads)
	dims := make([]int, rank+2)
	for i := range dims {
		dims[i] = 1
		if own := i - len(dims) + len(t.Dims); own >= 0 {
			dims[i] = t.Dims[own]
		}
	}
	shape := pickAttendTile()
	rows, cols := ceilDiv(dims[rank], shape.rows()), ceilDiv(dims[rank+1], shape.cols())
	a, group := newAttender(b.new(), b.m, b.Attend, shape, product(dims[:rank])*rows*cols)
	a.sides(true)
	x := &maskEmitter{attender: a, stats: b.stats, dims: dims}
	x.at = a.unflatten(scalar.FloorDiv(group, integer(rows*cols)), dims[:rank])
	for i, h := range x.at {
		x.at[i] = a.let("mask_head", h, dims[i]-1)
	}
	x.sums = a.zeros("s", 4)
	row := a.let("row_block", scalar.Mod(scalar.FloorDiv(group, integer(cols)), integer(rows)), rows-1)
	column := a.let("column_block", scalar.Mod(group, integer(cols)), cols-1)
	x.overHeads(func() { x.overRows(row, func() { x.overColumns(column) }) })
	x.store(t, row, column)
	return a.finish(b.name+"_mask", a.body)
}

// overHeads runs a body for all heads of the queries that have the mask's head.
func (x *maskEmitter) overHeads(body func()) {
	rest := make([]int, len(x.at))
	for i, d := range x.dims[:len(rest)] {
		rest[i] = x.Heads[i] / d
	}
	x.count("head", product(rest), func(n scalar.Expr) {
		head := integer(0)
		for i, other := range x.unflatten(n, rest) {
			head = sum(scalar.Mul(head, integer(x.Heads[i])), x.at[i], other) // one of the two is 0
		}
		x.atHead(x.Simplify(head))
		body()
	})
}

func (x *maskEmitter) overRows(block scalar.Expr, body func()) {
	n := x.rows.blocks()
	if x.dims[len(x.at)] > 1 {
		x.move(&x.rows, block)
		body()
		return
	}
	x.loop("row_block", integer(0), integer(n), n, func(block scalar.Expr) {
		x.move(&x.rows, block)
		body()
	})
}

// overColumns adds up the cotangents of the scores in the rows at hand.
func (x *maskEmitter) overColumns(block scalar.Expr) {
	queries := x.rowQueries(x.stats)
	lo, hi := integer(0), integer(x.cols.blocks())
	if x.dims[len(x.at)+1] > 1 {
		lo, hi = block, scalar.Add(block, integer(1))
	}
	x.columnBlocks(lo, hi, func() {
		ds := x.cotangents(queries, false)
		for i := range 4 {
			for c := range 4 {
				x.body = append(x.body, &Assign{x.sums.register(i, c), scalar.Add(x.sums.at(i, c), ds.at(i, c))})
			}
		}
	})
}

// store adds up what threads have along the axes on which the mask is one, and
// stores the sums.
func (x *maskEmitter) store(t *Tensor, row, column scalar.Expr) {
	value, mine := x.sums.at, x.exists
	rows, cols := min(x.dims[len(x.at)], 4), min(x.dims[len(x.at)+1], 4)
	zero := scalar.ConstF(ir.F32, 0)
	if cols == 1 {
		part := make([]scalar.Expr, 4)
		for i := range part {
			part[i] = sum(value(i, 0), value(i, 1), value(i, 2), value(i, 3))
		}
		totals := x.vars("row_total", zero)
		x.meet(totals, part, true, scalar.Add)
		value = func(i, _ int) scalar.Expr { return scalar.FreeVar(totals[i], ir.F32) }
		mine = scalar.And(mine, scalar.Eq(x.x, integer(0)))
	}
	if rows == 1 {
		part := make([]scalar.Expr, 4)
		for c := range part {
			part[c] = sum(value(0, c), value(1, c), value(2, c), value(3, c))
		}
		totals := x.vars("column_total", zero)
		x.meet(totals, part, false, scalar.Add)
		value = func(_, c int) scalar.Expr { return scalar.FreeVar(totals[c], ir.F32) }
		mine = scalar.And(mine, scalar.Eq(x.y, integer(0)))
	}
	x.move(&x.rows, row)
	x.move(&x.cols, column)
	var body []Stmt
	for i := range min(rows, 4) {
		for c := range cols {
			at, inside := x.place(t, i, c, rows == 1, cols == 1)
			body = append(body, guard(inside, x.emitter.store(t, at, scalar.Convert(value(i, c), t.DType)))...)
		}
	}
	x.body = append(x.body, guard(mine, body)...)
}

// place returns where in the mask the sum of a thread's row i and column c goes,
// and whether there is such a place.
func (x *maskEmitter) place(t *Tensor, i, c int, oneRow, oneColumn bool) (at ir.Index, inside scalar.Expr) {
	row, rowExists := x.row(i), scalar.ConstBool(true)
	if oneRow {
		row = integer(0)
	} else {
		_, rowExists = x.rows.inside(row)
	}
	col, colExists := x.column(c), scalar.ConstBool(true)
	if oneColumn {
		col = integer(0)
	} else {
		_, colExists = x.cols.inside(col)
	}
	at = append(append(ir.Index{}, x.at...), row, col)
	return at[len(at)-len(t.Dims):], x.Simplify(scalar.And(rowExists, colExists))
}
