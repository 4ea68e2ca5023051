package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maskEmitter writes the kernel of the cotangent of a mask that is added to the
// scores. Each workgroup has a block of the mask, or all that is one along an
// axis of the scores, and goes through the scores that it is added to.
type maskEmitter struct {
	*attender
	plain *attendPlain
	dims  []int    // of the mask, with as many axes as the scores
	at    ir.Index // the mask's own head
	adds  fragment // the block's or the row's or the column's cotangents
}

// mask writes the kernel of the cotangent of the mask.
func (n *attention) mask() Launch {
	t := n.m.Store[3]
	rank := len(n.Heads)
	dims := make([]int, rank+2)
	for i := range dims {
		dims[i] = 1
		if own := i - len(dims) + len(t.Dims); own >= 0 {
			dims[i] = t.Dims[own]
		}
	}
	a := n.attender(attendMask)
	rows, cols := ceilDiv(dims[rank], a.rows.block), ceilDiv(dims[rank+1], a.cols.block)
	workgroup := a.workgroups(fusion.Product(dims[:rank]) * rows * cols)
	x := &maskEmitter{attender: a, plain: a.fragments.(*attendPlain), dims: dims}
	x.at = a.unflatten(scalar.FloorDiv(workgroup, loop.Int(rows*cols)), dims[:rank])
	for i, h := range x.at {
		x.at[i] = a.let("mask_head", h)
	}
	x.adds = a.zeros("s", a.cols.block)
	row := a.let("row_block", scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(cols)), loop.Int(rows)))
	column := a.let("column_block", scalar.Mod(workgroup, loop.Int(cols)))
	x.overHeads(func() { x.overRows(row, func() { x.overColumns(column) }) })
	x.meetAndStore(t, row, column)
	return a.launch(n.prefix + "_mask")
}

// overHeads runs a body for all heads of the queries that have the mask's head.
func (x *maskEmitter) overHeads(body func()) {
	rest := make([]int, len(x.at))
	for i, d := range x.dims[:len(rest)] {
		rest[i] = x.Heads[i] / d
	}
	x.count("head", fusion.Product(rest), func(n scalar.Expr) {
		head := loop.Int(0)
		for i, other := range x.unflatten(n, rest) {
			head = sum(scalar.Mul(head, loop.Int(x.Heads[i])), x.at[i], other) // one of the two is 0
		}
		x.atHead(x.Simplify(head))
		body()
	})
}

// overRows runs a body for the block of rows that is the workgroup's, or for all.
func (x *maskEmitter) overRows(block scalar.Expr, body func()) {
	if x.dims[len(x.at)] > 1 {
		x.move(&x.rows, block)
		body()
		return
	}
	x.times("row_block", x.rows.blocks(), func(block scalar.Expr) {
		x.move(&x.rows, block)
		body()
	})
}

// overColumns adds up the cotangents of the scores in the rows at hand.
func (x *maskEmitter) overColumns(block scalar.Expr) {
	queries := x.rowQueries()
	lo, hi := loop.Int(0), loop.Int(x.cols.blocks())
	if x.dims[len(x.at)+1] > 1 {
		lo, hi = block, scalar.Add(block, loop.Int(1))
	}
	x.columnBlocks(lo, hi, func() {
		ds := x.cotangents(queries, false)
		ds.each(func(i, c int) { x.assign(x.adds, i, c, scalar.Add(x.adds.at(i, c), ds.at(i, c))) })
	})
}

// meetAndStore adds up what threads have along the axes on which the mask is one,
// and stores the sums.
func (x *maskEmitter) meetAndStore(t *fusion.Tensor, row, column scalar.Expr) {
	x.move(&x.rows, row)
	x.move(&x.cols, column)
	rows, rowAt, rowExists := 4, x.row, func(i int) scalar.Expr { return x.exist(&x.rows, x.row(i)) }
	cols, colAt, colExists := 4, x.column, func(c int) scalar.Expr { return x.exist(&x.cols, x.column(c)) }
	first := func(int) scalar.Expr { return loop.Int(0) }
	value := x.adds.at
	if x.dims[len(x.at)+1] == 1 {
		totals := x.totals(true, func(i int) scalar.Expr { return sum(value(i, 0), value(i, 1), value(i, 2), value(i, 3)) })
		value = func(i, _ int) scalar.Expr { return totals[i] }
		cols, colAt, colExists = 1, first, func(int) scalar.Expr { return scalar.Eq(x.plain.x, loop.Int(0)) }
	}
	if x.dims[len(x.at)] == 1 {
		before := value
		totals := x.totals(false, func(c int) scalar.Expr { return sum(before(0, c), before(1, c), before(2, c), before(3, c)) })
		value = func(_, c int) scalar.Expr { return totals[c] }
		rows, rowAt, rowExists = 1, first, func(int) scalar.Expr { return scalar.Eq(x.plain.y, loop.Int(0)) }
	}
	var body []loop.Stmt
	for i := range rows {
		for c := range cols {
			at := slices.Concat(x.at, ir.Index{rowAt(i), colAt(c)})
			store := x.store(t, at[len(at)-len(t.Dims):], scalar.Convert(value(i, c), t.DType))
			body = append(body, guard(scalar.And(rowExists(i), colExists(c)), store)...)
		}
	}
	x.body = append(x.body, guard(x.exists, body)...)
}

// totals adds four values of each thread up, over the threads of a row or of a
// column.
func (x *maskEmitter) totals(across bool, value func(i int) scalar.Expr) []scalar.Expr {
	totals := x.vars("total", scalar.ConstF(ir.F32, 0))
	x.plain.meet(totals, []scalar.Expr{value(0), value(1), value(2), value(3)}, across, scalar.Add)
	return floats(totals)
}

// exist reports whether there is a position.
func (x *maskEmitter) exist(s *attendSide, pos scalar.Expr) scalar.Expr {
	_, ok := s.inside(pos)
	return x.Simplify(ok)
}
