package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Bounds of attention in blocks.
const (
	attendThreads = 128
	// attendShared is the workgroup memory in bytes: 8 KiB for a group of scores, of which a
	// thread has sixteen, and half as much for a factor beside it. All devices of WebGPU
	// have 16 KiB.
	attendShared = 12 << 10
	// attendVectors is how many vectors of sums each of a thread's four rows has room for:
	// 64 registers in all.
	attendVectors = 4
	// attendDepth is how many contracted positions are in workgroup memory at a time: twice
	// as many of both factors of the widest tiles do not fit.
	attendDepth = 16
	// attendAcross is how many threads a row of them has at most.
	attendAcross = 32
	// attendLongest bounds queries, keys and values: two sums as long, those of keys and
	// values, fit the vectors where threads stand in the longest rows.
	attendLongest = attendVectors / 2 * 4 * attendAcross
)

// attendTile is how attention is cut: a workgroup has a block of rows and goes
// through blocks of columns; one of the two are queries and the other keys. Its
// threads stand in rows of across. Each has four neighbouring rows, and vectors
// of four columns in each of the groups into which a block is cut.
type attendTile struct{ across, groups int }

// pickAttendTile returns the tile with most rows of which a thread has registers
// for its part of the sums, rows that long.
func pickAttendTile(sums ...int) attendTile {
	for t := (attendTile{across: 8, groups: 1}); ; t.across *= 2 {
		vectors := 0
		for _, length := range sums {
			vectors += t.vectors(length)
		}
		if vectors <= attendVectors || t.across == attendAcross {
			return t
		}
	}
}

func (t attendTile) down() int { return attendThreads / t.across }
func (t attendTile) rows() int { return 4 * t.down() }

// piece is the columns of a group, which pass through workgroup memory together.
func (t attendTile) piece() int { return 4 * t.across }
func (t attendTile) cols() int  { return t.groups * t.piece() }

// vectors is how many vectors of a row of sums each thread has.
func (t attendTile) vectors(length int) int { return ceilDiv(length, 4*t.across) }

// depth is how many contracted positions of rows and columns workgroup memory
// holds. Each of them has a vector more than it needs, so that neighbouring
// threads do not write to the same bank.
func (t attendTile) depth(length int) int {
	return largestPower(min(attendDepth, length, attendShared/4/(t.rows()+t.cols()+8)))
}

// turns is how many columns' vectors workgroup memory holds besides a piece.
func (t attendTile) turns(length int) int {
	free := attendShared/4 - t.rows()*t.piece()
	return largestPower(min(t.piece(), free/(t.vectors(length)*4*t.across)))
}

// largestPower returns the largest power of two up to n, which is positive.
func largestPower(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}

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

// stageDown copies contracted positions from k on of the rows of a block into
// workgroup memory, each with those of all the block's rows side by side.
func (a *attendPlain) stageDown(m matrix, s *attendSide, base int, k scalar.Expr, depth int) {
	a.stage(s.block/4*depth, func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr) {
		vec, down := scalar.FloorDiv(id, loop.Int(depth)), scalar.Mod(id, loop.Int(depth))
		pos := a.let("pos", scalar.Add(s.first, scalar.Mul(vec, loop.Int(4))))
		at, ok := withinBounds(scalar.Add(k, down), m.length, m.length%depth == 0)
		for j := range 4 {
			row, exists := s.inside(scalar.Add(pos, loop.Int(j)))
			values = append(values, orZero(scalar.And(ok, exists), a.element(m.operand, row, at)))
		}
		return sum(loop.Int(base), scalar.Mul(down, loop.Int(s.block/4+1)), vec), values
	})
}

// stageRows copies rows of a block, from one on, into workgroup memory.
func (a *attendPlain) stageRows(m matrix, s *attendSide, base int, from scalar.Expr, rows int) {
	width := a.t.vectors(m.length) * a.t.across
	a.stage(rows*width, func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr) {
		vec, row := scalar.Mod(id, loop.Int(width)), scalar.FloorDiv(id, loop.Int(width))
		pos, exists := s.inside(a.let("pos", sum(s.first, from, row)))
		for j := range 4 {
			at, ok := withinBounds(sum(scalar.Mul(vec, loop.Int(4)), loop.Int(j)), m.length, m.length == 4*width)
			values = append(values, orZero(scalar.And(ok, exists), a.element(m.operand, pos, at)))
		}
		return scalar.Add(loop.Int(base), id), values
	})
}

// stage has the threads write so many vectors into workgroup memory.
func (a *attendPlain) stage(vectors int, vector func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr)) {
	a.count("turn", ceilDiv(vectors, attendThreads), func(turn scalar.Expr) {
		outer := a.body
		a.body = nil
		id := a.Simplify(scalar.Add(a.lane, scalar.Mul(turn, loop.Int(attendThreads))))
		at, ok := withinBounds(id, vectors, vectors%attendThreads == 0)
		to, values := vector(at)
		a.body = append(a.body, a.nameAll(values)...)
		a.body = append(a.body, &loop.StoreVec{Array: a.slot, At: a.Simplify(to), Values: values})
		a.body = append(outer, guard(ok, a.body)...)
	})
}
