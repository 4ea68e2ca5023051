package attention

import (
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Limits of attention in blocks of plain registers.
const (
	plainThreads = 128
	// plainShared is the bytes of workgroup memory: 8 KiB for a group of scores, sixteen
	// per thread, and half as much for an operand. All WebGPU devices have 16 KiB.
	plainShared = 12 << 10
	// plainVectors is the maximum number of accumulator vectors in each of a thread's four
	// rows: 64 registers in all.
	plainVectors = 4
	// plainDepth is the maximum number of contracted positions in workgroup memory. Twice
	// as many do not fit for both operands of the widest tiles.
	plainDepth = 16
	// plainAcross is the maximum number of threads that share a row.
	plainAcross = 32
	// maxLength is the maximum length of queries, keys and values: the accumulators of
	// both keys and values fit the vectors if plainAcross threads share a row.
	maxLength = plainVectors / 2 * 4 * plainAcross
)

// plainTile is the shape of attention in plain registers. A workgroup has a block of rows and
// loops over blocks of columns: rows are queries and columns keys, or the other way round. across
// threads share a row. Each thread has four neighbouring rows, and vectors of four columns in each of the
// column groups of a block.
type plainTile struct{ across, groups int }

// pickPlainTile returns the tile with the most rows for which a thread has enough registers for
// accumulators of the given row lengths.
func pickPlainTile(sums ...int) plainTile {
	for t := (plainTile{across: 8, groups: 1}); ; t.across *= 2 {
		vectors := 0
		for _, length := range sums {
			vectors += t.vectors(length)
		}
		if vectors <= plainVectors || t.across == plainAcross {
			return t
		}
	}
}

func (t plainTile) down() int { return plainThreads / t.across }

func (t plainTile) rows() int { return 4 * t.down() }

// groupColumns returns the columns of a group, which pass through workgroup memory together.
func (t plainTile) groupColumns() int { return 4 * t.across }

func (t plainTile) cols() int { return t.groups * t.groupColumns() }

// vectors returns the number of a thread's vectors in a row of accumulators.
func (t plainTile) vectors(length int) int { return emit.CeilDiv(length, 4*t.across) }

// depth returns the number of contracted positions of rows and columns that workgroup memory
// holds. Each is padded by a vector to avoid bank conflicts.
func (t plainTile) depth(length int) int {
	return largestPower(min(plainDepth, length, plainShared/4/(t.rows()+t.cols()+8)))
}

// stageColumns returns the number of columns' vectors that workgroup memory holds besides a
// piece.
func (t plainTile) stageColumns(length int) int {
	free := plainShared/4 - t.rows()*t.groupColumns()
	return largestPower(min(t.groupColumns(), free/(t.vectors(length)*4*t.across)))
}

// largestPower returns the largest power of two up to n, which is positive.
func largestPower(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}

// plain has tables in tiles of plain registers. Operands are loaded into workgroup memory
// block by block and multiplied by vectors of 4, as in tiled contractions. See [plainTile].
// Every step ends with a barrier, after which workgroup memory is free.
type plain struct {
	*kernel
	t    plainTile
	l    layout
	x, y scalar.Expr // the thread's column and row of the tile
	lane scalar.Expr
	slot int // workgroup array
}

func newPlain(a *kernel) *plain {
	t := a.plainTile()
	a.e.Workgroup = [3]int{plainThreads, 1, 1}
	return &plain{kernel: a, t: t, l: layout{
		rows: t.rows(), cols: t.cols(),
		own: 4, columns: func(length int) int { return 4 * t.vectors(length) },
		rowAt:    func(i int) int { return i },
		columnAt: func(c int) int { return c/4*t.groupColumns() + c%4 },
		width:    t.groupColumns(),
	}}
}

// plainTile returns the tile of a kernel.
func (a *kernel) plainTile() plainTile {
	switch a.kind {
	case queriesKernel:
		return pickPlainTile(a.spec.Depth)
	case keysKernel:
		return pickPlainTile(a.spec.Depth, a.spec.Width)
	case maskKernel:
		return pickPlainTile()
	}
	t := pickPlainTile(a.spec.Width)
	if a.spec.Mask < 0 && a.spec.Softcap == 0 && t.vectors(a.spec.Width) <= plainVectors/2 {
		t.groups = 2 // a mask, a softcap or more vectors would unroll to too much code
	}
	return t
}

func (a *plain) begin() {
	a.threadCoords()
	a.slot = a.e.Shared("blocks", ir.F32, 4, plainShared/16)
}

// threadCoords names the thread's coordinates.
func (a *plain) threadCoords() {
	a.lane = loop.LocalID(0, plainThreads)
	a.x = a.e.Let("x", scalar.Mod(a.lane, loop.Int(a.t.across)))
	a.y = a.e.Let("y", scalar.FloorDiv(a.lane, loop.Int(a.t.across)))
	a.l.row, a.l.column = scalar.Mul(a.y, loop.Int(4)), scalar.Mul(a.x, loop.Int(4))
	a.l.first = scalar.Eq(a.x, loop.Int(0))
}

func (a *plain) layout() *layout { return &a.l }

func (a *plain) columnStat(c, which int) scalar.Expr {
	return a.stat(&a.cols, a.cols.position(c), which)
}

func (a *plain) blocks(lo, hi scalar.Expr, _ [2]scalar.Expr, body func()) {
	a.e.Loop("block", lo, hi, 1, a.cols.blocks()-1, func(block scalar.Expr) {
		a.cols.setBlock(block)
		body()
	})
}

// element returns an element of an operand in the current head, in f32.
func (a *plain) element(operand int, pos, at scalar.Expr) scalar.Expr {
	index := append(append(ir.Index{}, a.heads.of(operand)...), pos, at)
	return scalar.Convert(a.read(operand, index), ir.F32)
}

// mulAdd accumulates the products of four numbers of a thread's rows and vectors of its
// columns, loaded from workgroup memory.
func (a *plain) mulAdd(f fragment, left scalar.Expr, right []scalar.Expr) {
	read := func(at scalar.Expr) []string {
		names := []string{a.e.Name("a"), a.e.Name("a"), a.e.Name("a"), a.e.Name("a")}
		a.e.Body = append(a.e.Body, &loop.LoadVec{Names: names, Array: a.slot, At: a.e.Simplify(at)})
		return names
	}
	rows := read(left)
	for v, at := range right {
		for j, col := range read(at) {
			for i, row := range rows {
				x := scalar.Mul(scalar.FreeVar(row, ir.F32), scalar.FreeVar(col, ir.F32))
				c := 4*v + j
				a.e.Body = append(a.e.Body, &loop.Assign{Name: f.register(i, c), Value: scalar.Add(f.at(i, c), x)})
			}
		}
	}
}

// product defers the work to ready, which shortens the live ranges of registers.
func (a *plain) product(f fragment, rows, cols matrix) (ready func()) {
	return func() { a.multiply(f, rows, cols) }
}

// multiply accumulates the products of the rows of two operands in a table of scores.
func (a *plain) multiply(f fragment, rows, cols matrix) {
	depth := a.t.depth(rows.length)
	rowStride, colStride := a.rows.block/4+1, a.cols.block/4+1
	base := depth * rowStride
	a.repeat("chunk", emit.CeilDiv(rows.length, depth), func(chunk scalar.Expr) {
		k := a.e.Let("k", scalar.Mul(chunk, loop.Int(depth)))
		a.stageByDepth(rows, &a.rows, 0, k, depth)
		a.stageByDepth(cols, &a.cols, base, k, depth)
		a.e.Barrier()
		a.repeat("k", depth, func(k scalar.Expr) {
			right := make([]scalar.Expr, a.t.groups)
			for g := range right {
				right[g] = sum(loop.Int(base+g*a.t.across), scalar.Mul(k, loop.Int(colStride)), a.x)
			}
			a.mulAdd(f, sum(scalar.Mul(k, loop.Int(rowStride)), a.y), right)
		})
		a.e.Barrier()
	})
}

// accumulate passes the weights through workgroup memory to the threads that need them.
func (a *plain) accumulate(sums, weights fragment, m matrix) (begin func()) {
	columns, down, piece := a.t.stageColumns(m.length), a.t.down(), a.t.groupColumns()
	base := down * piece
	width := a.t.vectors(m.length) * a.t.across
	a.repeat("group", a.t.groups, func(which scalar.Expr) {
		a.stagePiece(weights, which)
		a.repeat("round", piece/columns, func(round scalar.Expr) {
			from := a.e.Let("from", scalar.Mul(round, loop.Int(columns)))
			a.stageRows(m, &a.cols, base, scalar.Add(from, scalar.Mul(which, loop.Int(piece))), columns)
			a.e.Barrier()
			a.repeat("k", columns, func(k scalar.Expr) {
				right := make([]scalar.Expr, a.t.vectors(m.length))
				for v := range right {
					right[v] = sum(loop.Int(base+v*a.t.across), scalar.Mul(k, loop.Int(width)), a.x)
				}
				a.mulAdd(sums, sum(scalar.Mul(scalar.Add(from, k), loop.Int(down)), a.y), right)
			})
			a.e.Barrier()
		})
	})
	return func() {}
}

// stagePiece stores a group of columns into workgroup memory.
func (a *plain) stagePiece(f fragment, which scalar.Expr) {
	down := a.t.down()
	for g := range a.t.groups {
		var stores []loop.Stmt
		for j := range 4 {
			at := sum(scalar.Mul(a.x, loop.Int(4*down)), loop.Int(j*down), a.y)
			stores = append(stores, &loop.StoreVec{Array: a.slot, At: a.e.Simplify(at), Values: f.rowsOf(4*g + j)})
		}
		a.e.Body = append(a.e.Body, emit.Guard(scalar.Eq(which, loop.Int(g)), stores)...)
	}
}

// rowsOf returns a thread's rows of a column.
func (f fragment) rowsOf(c int) []scalar.Expr {
	return []scalar.Expr{f.at(0, c), f.at(1, c), f.at(2, c), f.at(3, c)}
}

// reduceThreads reduces four values of each thread over the threads of a row, or of a column,
// into variables that hold the initial values.
func (a *plain) reduceThreads(into []string, values []scalar.Expr, across bool, combine func(a, b scalar.Expr) scalar.Expr) {
	a.e.Body = append(a.e.Body, &loop.StoreVec{Array: a.slot, At: a.lane, Values: values}, &loop.Barrier{})
	n := a.t.down()
	if across {
		n = a.t.across
	}
	a.repeat("other", n, func(other scalar.Expr) {
		at := sum(scalar.Mul(other, loop.Int(a.t.across)), a.x)
		if across {
			at = sum(scalar.Mul(a.y, loop.Int(a.t.across)), other)
		}
		names := []string{a.e.Name("o"), a.e.Name("o"), a.e.Name("o"), a.e.Name("o")}
		a.e.Body = append(a.e.Body, &loop.LoadVec{Names: names, Array: a.slot, At: a.e.Simplify(at)})
		for i, name := range names {
			a.e.Body = append(a.e.Body, &loop.Assign{Name: into[i], Value: combine(scalar.FreeVar(into[i], ir.F32), scalar.FreeVar(name, ir.F32))})
		}
	})
	a.e.Barrier()
}

func (a *plain) fold(into []string, values []scalar.Expr, combine func(a, b scalar.Expr) scalar.Expr) {
	a.reduceThreads(into, values, true, combine)
}

// stageByDepth copies the contracted positions from k on of a block's rows into workgroup memory,
// one contracted position after the other.
func (a *plain) stageByDepth(m matrix, s *side, base int, k scalar.Expr, depth int) {
	a.stage(s.block/4*depth, func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr) {
		vec, down := scalar.FloorDiv(id, loop.Int(depth)), scalar.Mod(id, loop.Int(depth))
		pos := a.e.Let("pos", scalar.Add(s.first, scalar.Mul(vec, loop.Int(4))))
		at, ok := withinBounds(scalar.Add(k, down), m.length, m.length%depth == 0)
		for j := range 4 {
			row, exists := s.clamp(scalar.Add(pos, loop.Int(j)))
			values = append(values, orZero(scalar.And(ok, exists), a.element(m.operand, row, at)))
		}
		return sum(loop.Int(base), scalar.Mul(down, loop.Int(s.block/4+1)), vec), values
	})
}

// stageRows copies rows of a block, starting at from, into workgroup memory.
func (a *plain) stageRows(m matrix, s *side, base int, from scalar.Expr, rows int) {
	width := a.t.vectors(m.length) * a.t.across
	a.stage(rows*width, func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr) {
		vec, row := scalar.Mod(id, loop.Int(width)), scalar.FloorDiv(id, loop.Int(width))
		pos, exists := s.clamp(a.e.Let("pos", sum(s.first, from, row)))
		for j := range 4 {
			at, ok := withinBounds(sum(scalar.Mul(vec, loop.Int(4)), loop.Int(j)), m.length, m.length == 4*width)
			values = append(values, orZero(scalar.And(ok, exists), a.element(m.operand, pos, at)))
		}
		return scalar.Add(loop.Int(base), id), values
	})
}

// stage has the threads store a number of vectors into workgroup memory.
func (a *plain) stage(vectors int, vector func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr)) {
	a.repeat("round", emit.CeilDiv(vectors, plainThreads), func(round scalar.Expr) {
		id := a.e.Simplify(scalar.Add(a.lane, scalar.Mul(round, loop.Int(plainThreads))))
		at, ok := withinBounds(id, vectors, vectors%plainThreads == 0)
		a.e.Add(emit.Guard(ok, a.e.Nested(func() {
			to, values := vector(at)
			a.e.Add(a.e.NameAll(values)...)
			a.e.Add(&loop.StoreVec{Array: a.slot, At: a.e.Simplify(to), Values: values})
		}))...)
	})
}
