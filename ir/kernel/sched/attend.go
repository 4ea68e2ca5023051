package sched

import (
	"math"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func scheduleAttend(e *emitter, g *group.Group) []Launch {
	m := g.Members[0]
	s := m.Node.Def().Lower.(*ir.AttendLowering).Spec(m.Node)
	if !s.Backward {
		return []Launch{attendForward(e, g, s)}
	}
	return attendBackward(e.p, e.caps, g, s)
}

// attender writes a kernel of attention. Operands come by way of workgroup
// memory, block by block, and are multiplied from there by vectors of 4, as
// those of contractions are: see [attendTile]. Every step leaves workgroup
// memory free behind it, with a barrier.
type attender struct {
	writer
	ir.Attend
	t          attendTile
	m          *group.Member
	read       ir.Load
	x, y       scalar.Expr // where the thread stands
	lane       scalar.Expr
	exists     scalar.Expr // false in workgroups that must store nothing
	slot       int         // workgroup memory
	rows, cols attendSide
	byQuery    bool     // the rows are queries
	queryHead  ir.Index // which head of the queries, and of the keys
	keyHead    ir.Index
}

// attendSide is what goes along one side of the scores: queries or keys.
type attendSide struct {
	count int         // of them
	block int         // of a tile
	first scalar.Expr // of the block at hand
}

// matrix is an operand with rows of some length.
type matrix struct{ operand, length int }

func (a *attender) q() matrix    { return matrix{0, a.Depth} }
func (a *attender) k() matrix    { return matrix{1, a.Depth} }
func (a *attender) v() matrix    { return matrix{2, a.Width} }
func (a *attender) dout() matrix { return matrix{5, a.Width} }

// newAttender starts a kernel of so many workgroups and returns the number of
// the workgroup that a thread is in.
func newAttender(e *emitter, m *group.Member, s ir.Attend, t attendTile, groups int) (a *attender, workgroup scalar.Expr) {
	a = &attender{writer: writer{emitter: e}, Attend: s, t: t, m: m}
	a.read = e.reader().Operand(m.Node)
	e.workgroup = [3]int{attendThreads, 1, 1}
	workgroup, a.exists = e.boundedGroup(groups)
	a.lane = loop.LocalID(0, attendThreads)
	a.x = a.let("x", scalar.Mod(a.lane, loop.Int(t.across)))
	a.y = a.let("y", scalar.FloorDiv(a.lane, loop.Int(t.across)))
	a.slot = e.shared("blocks", ir.F32, 4, attendShared/16)
	return a, a.let("group", workgroup)
}

// sides has the queries stand along the rows and the keys along the columns, or
// the other way round.
func (a *attender) sides(byQuery bool) {
	a.byQuery = byQuery
	a.rows = attendSide{count: a.Queries, block: a.t.rows()}
	a.cols = attendSide{count: a.Keys, block: a.t.cols()}
	if !byQuery {
		a.rows.count, a.cols.count = a.Keys, a.Queries
	}
}

func (s *attendSide) blocks() int { return ceilDiv(s.count, s.block) }

// move goes to a block.
func (a *attender) move(s *attendSide, block scalar.Expr) {
	s.first = a.let("first", scalar.Mul(block, loop.Int(s.block)))
}

// inside returns a position that exists, and whether it is the one asked for.
func (s *attendSide) inside(pos scalar.Expr) (at, ok scalar.Expr) {
	if s.count%s.block == 0 {
		return pos, scalar.ConstBool(true)
	}
	return scalar.Min(pos, loop.Int(s.count-1)), scalar.Lt(pos, loop.Int(s.count))
}

// atHead goes to a head of the queries, by its number among all.
func (a *attender) atHead(head scalar.Expr) {
	a.queryHead = a.unflatten(head, a.Heads)
	for i, h := range a.queryHead {
		a.queryHead[i] = a.let("head", h)
	}
	a.keyHead = slices.Clone(a.queryHead)
	if last := len(a.keyHead) - 1; last >= 0 {
		a.keyHead[last] = a.let("key_head", scalar.FloorDiv(a.keyHead[last], loop.Int(a.Share)))
	}
}

// operand returns the element of an operand at a place in the head at hand, in f32.
func (a *attender) operand(operand int, at ...scalar.Expr) scalar.Expr {
	head := a.queryHead
	if operand == a.k().operand || operand == a.v().operand {
		head = a.keyHead
	}
	return scalar.Convert(a.read(operand, slices.Concat(head, at)), ir.F32)
}

// count runs a body for 0, 1, … n-1.
func (a *attender) count(prefix string, n int, body func(i scalar.Expr)) {
	if n == 1 {
		body(loop.Int(0))
		return
	}
	a.times(prefix, n, body)
}

// columnBlocks runs a body for the blocks of columns in which any of the rows at
// hand sees, or is seen, from block lo on and before block hi.
func (a *attender) columnBlocks(lo, hi scalar.Expr, body func()) {
	later := a.Keys - a.Queries // query i belongs to key i + later
	if a.Causal && a.byQuery {
		seen := scalar.Max(scalar.Add(a.rows.first, loop.Int(a.rows.block+later)), loop.Int(0))
		hi = scalar.Min(hi, scalar.FloorDiv(scalar.Add(seen, loop.Int(a.cols.block-1)), loop.Int(a.cols.block)))
	}
	if a.Causal && !a.byQuery {
		seeing := scalar.Max(scalar.Sub(a.rows.first, loop.Int(later)), loop.Int(0))
		lo = scalar.Max(lo, scalar.FloorDiv(seeing, loop.Int(a.cols.block)))
	}
	a.loop("block", a.Simplify(lo), a.Simplify(hi), 1, a.cols.blocks()-1, func(block scalar.Expr) {
		a.move(&a.cols, block)
		body()
	})
}

// fragment is a table that the threads of a workgroup hold in registers: each
// has four rows, and so many columns.
type fragment struct {
	name    string
	columns int
}

// zeros declares a fragment.
func (a *attender) zeros(prefix string, columns int) fragment {
	f := fragment{a.name(prefix), columns}
	for i := range 4 {
		for c := range columns {
			a.body = append(a.body, &loop.Var{Name: f.register(i, c), Init: scalar.ConstF(ir.F32, 0)})
		}
	}
	return f
}

func (f fragment) register(i, c int) string {
	return f.name + "_" + strconv.Itoa(i*f.columns+c)
}

func (f fragment) at(i, c int) scalar.Expr { return scalar.FreeVar(f.register(i, c), ir.F32) }

// addProducts adds the products of four numbers of a thread's rows and vectors of
// its columns, read from workgroup memory.
func (a *attender) addProducts(f fragment, left scalar.Expr, right []scalar.Expr) {
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

// product adds to a table of scores the products of the rows of two operands.
func (a *attender) product(f fragment, rows, cols matrix) {
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

// stageDown copies contracted positions from k on of the rows of a block into
// workgroup memory, each with those of all the block's rows side by side.
func (a *attender) stageDown(m matrix, s *attendSide, base int, k scalar.Expr, depth int) {
	a.stage(s.block/4*depth, func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr) {
		vec, down := scalar.FloorDiv(id, loop.Int(depth)), scalar.Mod(id, loop.Int(depth))
		pos := a.let("pos", scalar.Add(s.first, scalar.Mul(vec, loop.Int(4))))
		at, ok := withinBounds(scalar.Add(k, down), m.length, m.length%depth == 0)
		for j := range 4 {
			row, exists := s.inside(scalar.Add(pos, loop.Int(j)))
			values = append(values, orZero(scalar.And(ok, exists), a.operand(m.operand, row, at)))
		}
		return sum(loop.Int(base), scalar.Mul(down, loop.Int(s.block/4+1)), vec), values
	})
}

// stageRows copies rows of a block, from one on, into workgroup memory.
func (a *attender) stageRows(m matrix, s *attendSide, base int, from scalar.Expr, rows int) {
	width := a.t.vectors(m.length) * a.t.across
	a.stage(rows*width, func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr) {
		vec, row := scalar.Mod(id, loop.Int(width)), scalar.FloorDiv(id, loop.Int(width))
		pos, exists := s.inside(a.let("pos", sum(s.first, from, row)))
		for j := range 4 {
			at, ok := withinBounds(sum(scalar.Mul(vec, loop.Int(4)), loop.Int(j)), m.length, m.length == 4*width)
			values = append(values, orZero(scalar.And(ok, exists), a.operand(m.operand, pos, at)))
		}
		return scalar.Add(loop.Int(base), id), values
	})
}

// stage has the threads write so many vectors into workgroup memory.
func (a *attender) stage(vectors int, vector func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr)) {
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

// accumulate adds to sums the products of a table of weights and the rows of an
// operand that belong to its columns. The weights go by way of workgroup memory
// to the threads that need them.
func (a *attender) accumulate(sums, weights fragment, m matrix) {
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
}

// stagePiece writes a group of columns into workgroup memory.
func (a *attender) stagePiece(f fragment, which scalar.Expr) {
	down := a.t.down()
	for g := range a.t.groups {
		var stores []loop.Stmt
		for j := range 4 {
			at := sum(scalar.Mul(a.x, loop.Int(4*down)), loop.Int(j*down), a.y)
			stores = append(stores, &loop.StoreVec{Array: a.slot, At: a.Simplify(at), Values: f.column(4*g + j)})
		}
		a.body = append(a.body, guard(scalar.Eq(which, loop.Int(g)), stores)...)
	}
}

// column returns a thread's four rows of a column.
func (f fragment) column(c int) []scalar.Expr {
	return []scalar.Expr{f.at(0, c), f.at(1, c), f.at(2, c), f.at(3, c)}
}

// meet combines four values of each thread over the threads of a row, or of a
// column, into variables that hold what they start from.
func (a *attender) meet(into []string, values []scalar.Expr, across bool, combine func(a, b scalar.Expr) scalar.Expr) {
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

// vars declares four variables.
func (a *attender) vars(prefix string, init scalar.Expr) []string {
	out := make([]string, 4)
	for i := range out {
		out[i] = a.name(prefix)
		a.body = append(a.body, &loop.Var{Name: out[i], Init: init})
	}
	return out
}

// row is the position of a thread's row i, and column that of its column c.
func (a *attender) row(i int) scalar.Expr {
	return sum(a.rows.first, scalar.Mul(a.y, loop.Int(4)), loop.Int(i))
}

func (a *attender) column(c int) scalar.Expr {
	return sum(a.cols.first, scalar.Mul(a.x, loop.Int(4)), loop.Int(c/4*a.t.piece()+c%4))
}

// storeSums stores a thread's rows of sums as rows of a result.
func (a *attender) storeSums(t *group.Tensor, head ir.Index, length int, value func(i, c int) scalar.Expr) {
	outer := a.body
	a.body = nil
	col := a.let("column", scalar.Mul(a.x, loop.Int(4)))
	for i := range 4 {
		_, exists := a.rows.inside(a.row(i))
		before := a.body
		a.body = nil
		root, offset := a.p.Place(t, slices.Concat(head, ir.Index{a.row(i), col}))
		to := a.let("to", offset)
		for c := range 4 * a.t.vectors(length) {
			on := c/4*4*a.t.across + c%4
			_, ok := withinBounds(scalar.Add(col, loop.Int(on)), length, length%(4*a.t.across) == 0)
			store := []loop.Stmt{&loop.Store{Array: root.ID, At: scalar.Add(to, loop.Int(on)), Value: scalar.Convert(value(i, c), t.DType)}}
			a.body = append(a.body, guard(ok, store)...)
		}
		a.body = append(before, guard(exists, a.body)...)
	}
	a.body = append(outer, guard(a.exists, a.body)...)
}

// storeRows stores a value of each row, which all threads across have.
func (a *attender) storeRows(t *group.Tensor, head ir.Index, value func(i int) scalar.Expr) {
	var body []loop.Stmt
	for i := range 4 {
		_, exists := a.rows.inside(a.row(i))
		at := append(slices.Clone(head), a.row(i))
		body = append(body, guard(exists, a.store(t, at, scalar.Convert(value(i), t.DType)))...)
	}
	body = guard(scalar.Eq(a.x, loop.Int(0)), body)
	a.body = append(a.body, guard(a.exists, body)...)
}

// withinBounds returns a position below n, and whether it is the one asked for.
func withinBounds(pos scalar.Expr, n int, always bool) (at, ok scalar.Expr) {
	if always {
		return pos, scalar.ConstBool(true)
	}
	return scalar.Min(pos, loop.Int(n-1)), scalar.Lt(pos, loop.Int(n))
}

func orZero(ok, x scalar.Expr) scalar.Expr { return scalar.Select(ok, x, scalar.ConstF(ir.F32, 0)) }

func sum(first scalar.Expr, rest ...scalar.Expr) scalar.Expr {
	for _, x := range rest {
		first = scalar.Add(first, x)
	}
	return first
}

// finiteOrZero keeps what is subtracted from scores that are all -Inf from
// making NaN of them.
func finiteOrZero(x scalar.Expr) scalar.Expr {
	finite := scalar.Ge(x, scalar.ConstF(ir.F32, -math.MaxFloat32))
	return scalar.Select(finite, x, scalar.ConstF(ir.F32, 0))
}
