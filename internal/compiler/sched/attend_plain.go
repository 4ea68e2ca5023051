package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attendPlain has tables in tiles of plain registers. Operands come by way of
// workgroup memory, block by block, and are multiplied from there by vectors of 4,
// as those of contractions are: see [attendTile]. Every step leaves workgroup memory
// free behind it, with a barrier.
type attendPlain struct {
	*attender
	t    attendTile
	l    layout
	x, y scalar.Expr // where the thread stands
	lane scalar.Expr
	slot int // workgroup memory
}

func newAttendPlain(a *attender) *attendPlain {
	t := a.plainTile()
	a.workgroup = [3]int{attendThreads, 1, 1}
	return &attendPlain{attender: a, t: t, l: layout{
		rows: t.rows(), cols: t.cols(),
		own: 4, columns: func(length int) int { return 4 * t.vectors(length) },
		rowAt:    func(i int) int { return i },
		columnAt: func(c int) int { return c/4*t.piece() + c%4 },
		width:    t.piece(),
	}}
}

// plainTile is the tile of a kernel.
func (a *attender) plainTile() attendTile {
	switch a.kind {
	case attendQueries:
		return pickAttendTile(a.Depth)
	case attendKeys:
		return pickAttendTile(a.Depth, a.Width)
	case attendMask:
		return pickAttendTile()
	}
	t := pickAttendTile(a.Width)
	if a.Mask < 0 && a.Softcap == 0 && t.vectors(a.Width) <= attendVectors/2 {
		t.groups = 2 // otherwise there is more to write for each score, or for each sum
	}
	return t
}

func (a *attendPlain) begin() {
	a.stand()
	a.slot = a.shared("blocks", ir.F32, 4, attendShared/16)
}

// stand defines where the thread stands.
func (a *attendPlain) stand() {
	a.lane = loop.LocalID(0, attendThreads)
	a.x = a.let("x", scalar.Mod(a.lane, loop.Int(a.t.across)))
	a.y = a.let("y", scalar.FloorDiv(a.lane, loop.Int(a.t.across)))
	a.l.row, a.l.column = scalar.Mul(a.y, loop.Int(4)), scalar.Mul(a.x, loop.Int(4))
	a.l.first = scalar.Eq(a.x, loop.Int(0))
}

func (a *attendPlain) layout() *layout { return &a.l }

func (a *attendPlain) columnStat(c, which int) scalar.Expr {
	return a.stat(&a.cols, a.attender.column(c), which)
}

func (a *attendPlain) blocks(lo, hi scalar.Expr, _ [2]scalar.Expr, body func()) {
	a.loop("block", lo, hi, 1, a.cols.blocks()-1, func(block scalar.Expr) {
		a.move(&a.cols, block)
		body()
	})
}

// element returns the element of an operand at a place in the head at hand, in f32.
func (a *attendPlain) element(operand int, pos, at scalar.Expr) scalar.Expr {
	index := append(append(ir.Index{}, a.head(operand)...), pos, at)
	return scalar.Convert(a.read(operand, index), ir.F32)
}

// addProducts adds the products of four numbers of a thread's rows and vectors of
// its columns, read from workgroup memory.
func (a *attendPlain) addProducts(f fragment, left scalar.Expr, right []scalar.Expr) {
	read := func(at scalar.Expr) []string {
		names := []string{a.name("a"), a.name("a"), a.name("a"), a.name("a")}
		a.body = append(a.body, &loop.LoadVec{Names: names, Array: a.slot, At: a.Simplify(at)})
		return names
	}
	rows := read(left)
	for v, at := range right {
		for j, col := range read(at) {
			for i, row := range rows {
				x := scalar.Mul(scalar.FreeVar(row, ir.F32), scalar.FreeVar(col, ir.F32))
				c := 4*v + j
				a.body = append(a.body, &loop.Assign{Name: f.register(i, c), Value: scalar.Add(f.at(i, c), x)})
			}
		}
	}
}

// product leaves the work to ready: registers are held no longer than need be.
func (a *attendPlain) product(f fragment, rows, cols matrix) (ready func()) {
	return func() { a.multiply(f, rows, cols) }
}

// multiply adds to a table of scores the products of the rows of two operands.
func (a *attendPlain) multiply(f fragment, rows, cols matrix) {
	depth := a.t.depth(rows.length)
	rowStride, colStride := a.rows.block/4+1, a.cols.block/4+1
	base := depth * rowStride
	a.count("chunk", ceilDiv(rows.length, depth), func(chunk scalar.Expr) {
		k := a.let("k", scalar.Mul(chunk, loop.Int(depth)))
		a.stageDown(rows, &a.rows, 0, k, depth)
		a.stageDown(cols, &a.cols, base, k, depth)
		a.barrier()
		a.count("k", depth, func(k scalar.Expr) {
			right := make([]scalar.Expr, a.t.groups)
			for g := range right {
				right[g] = sum(loop.Int(base+g*a.t.across), scalar.Mul(k, loop.Int(colStride)), a.x)
			}
			a.addProducts(f, sum(scalar.Mul(k, loop.Int(rowStride)), a.y), right)
		})
		a.barrier()
	})
}

// accumulate adds to sums the products of a table of weights and the rows of an
// operand that belong to its columns. The weights go by way of workgroup memory
// to the threads that need them.
func (a *attendPlain) accumulate(sums, weights fragment, m matrix) (begin func()) {
	turns, down, piece := a.t.turns(m.length), a.t.down(), a.t.piece()
	base := down * piece
	width := a.t.vectors(m.length) * a.t.across
	a.count("group", a.t.groups, func(which scalar.Expr) {
		a.stagePiece(weights, which)
		a.count("turn", piece/turns, func(turn scalar.Expr) {
			from := a.let("from", scalar.Mul(turn, loop.Int(turns)))
			a.stageRows(m, &a.cols, base, scalar.Add(from, scalar.Mul(which, loop.Int(piece))), turns)
			a.barrier()
			a.count("k", turns, func(k scalar.Expr) {
				right := make([]scalar.Expr, a.t.vectors(m.length))
				for v := range right {
					right[v] = sum(loop.Int(base+v*a.t.across), scalar.Mul(k, loop.Int(width)), a.x)
				}
				a.addProducts(sums, sum(scalar.Mul(scalar.Add(from, k), loop.Int(down)), a.y), right)
			})
			a.barrier()
		})
	})
	return func() {}
}

// stagePiece writes a group of columns into workgroup memory.
func (a *attendPlain) stagePiece(f fragment, which scalar.Expr) {
	down := a.t.down()
	for g := range a.t.groups {
		var stores []loop.Stmt
		for j := range 4 {
			at := sum(scalar.Mul(a.x, loop.Int(4*down)), loop.Int(j*down), a.y)
			stores = append(stores, &loop.StoreVec{Array: a.slot, At: a.Simplify(at), Values: f.fourRows(4*g + j)})
		}
		a.body = append(a.body, guard(scalar.Eq(which, loop.Int(g)), stores)...)
	}
}

// fourRows returns a thread's rows of a column.
func (f fragment) fourRows(c int) []scalar.Expr {
	return []scalar.Expr{f.at(0, c), f.at(1, c), f.at(2, c), f.at(3, c)}
}

// meet combines four values of each thread over the threads of a row, or of a
// column, into variables that hold what they start from.
func (a *attendPlain) meet(into []string, values []scalar.Expr, across bool, combine func(a, b scalar.Expr) scalar.Expr) {
	a.body = append(a.body, &loop.StoreVec{Array: a.slot, At: a.lane, Values: values}, &loop.Barrier{})
	n := a.t.down()
	if across {
		n = a.t.across
	}
	a.count("other", n, func(other scalar.Expr) {
		at := sum(scalar.Mul(other, loop.Int(a.t.across)), a.x)
		if across {
			at = sum(scalar.Mul(a.y, loop.Int(a.t.across)), other)
		}
		names := []string{a.name("o"), a.name("o"), a.name("o"), a.name("o")}
		a.body = append(a.body, &loop.LoadVec{Names: names, Array: a.slot, At: a.Simplify(at)})
		for i, name := range names {
			a.body = append(a.body, &loop.Assign{Name: into[i], Value: combine(scalar.FreeVar(into[i], ir.F32), scalar.FreeVar(name, ir.F32))})
		}
	})
	a.barrier()
}

func (a *attendPlain) fold(into []string, values []scalar.Expr, combine func(a, b scalar.Expr) scalar.Expr) {
	a.meet(into, values, true, combine)
}
