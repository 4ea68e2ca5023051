package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attendMma has tables in the registers of multiply-adds of warp groups: see
// [loop.Atom]. What belongs to the rows stays in shared memory throughout, and what
// belongs to the columns comes in stages, by copies that go on beside the arithmetic.
// Weights become the left operand of the next product without leaving registers.
type attendMma struct {
	*attender
	t       attendMmaTile
	l       layout
	operand ir.DType
	thread  scalar.Expr
	group   scalar.Expr // the thread's warp group
	lane    scalar.Expr // the thread's place among the four that share a row
	held    []*held     // operands in shared memory
	slot    int         // of stats
	stage   scalar.Expr // of the block at hand
	packed  [][]string  // weights by twos, for each of the sums
	// begun are the variables of the multiply-adds of a turn, statement by statement.
	begun  [][]string
	waited int // how many of them are known to be done
	// next begins to copy a block that comes later, beside the first products.
	next func()
}

// held is an operand in shared memory: for each piece of rows as long as one of a
// [loop.Tile], the rows of a block, in each stage.
type held struct {
	matrix
	side    *attendSide
	streams bool // it belongs to the columns
	slot    int
}

func newAttendMma(a *attender) *attendMma {
	t := pickAttendMma(a.kind, max(a.Depth, a.Width))
	m := &attendMma{attender: a, t: t, operand: a.m.Node.Input(0).DType()}
	a.workgroup, a.resident = [3]int{t.threads(), 1, 1}, t.resident
	atom := loop.Atom{Operand: m.operand}
	m.l = layout{
		rows: t.rows(), cols: t.columns, width: 16, pairs: true,
		own: 2, columns: func(length int) int { return length / 4 },
		rowAt:    func(i int) int { row, _ := atom.Sum(2 * i); return row },
		columnAt: func(c int) int { _, column := atom.Sum(c/2*4 + c%2); return column },
	}
	return m
}

func (m *attendMma) layout() *layout { return &m.l }

func (m *attendMma) begin() {
	m.thread = loop.LocalID(0, m.t.threads())
	m.group = m.let("warp_group", scalar.FloorDiv(m.thread, loop.Int(loop.WarpGroup)))
	row, column := loop.Atom{}.Origin(scalar.Mod(m.thread, loop.Int(loop.WarpGroup)))
	m.lane = m.let("lane", column)
	m.l.row = m.let("own", scalar.Add(scalar.Mul(m.group, loop.Int(loop.AtomRows)), row))
	m.l.column = scalar.Mul(m.lane, loop.Int(2))
	m.l.first = scalar.Eq(m.lane, loop.Int(0))
	rows, cols := m.operands()
	for _, x := range rows {
		m.hold(x, &m.rows, false)
	}
	for _, x := range cols {
		m.hold(x, &m.cols, true)
	}
	if !m.byQuery {
		m.slot = m.shared("stats", ir.F32, 1, m.t.stages*2*m.t.columns)
	}
	m.packed = make([][]string, 1)
	if m.kind == attendKeys {
		m.packed = make([][]string, 2)
	}
	for s := range m.packed {
		for i := range m.t.columns / 4 {
			name := "packed" + strconv.Itoa(s) + "_" + strconv.Itoa(i)
			m.packed[s] = append(m.packed[s], name)
			m.add(&loop.Var{Name: name, Init: scalar.ConstI(ir.U32, 0)})
		}
	}
}

// operands are those that belong to the rows and to the columns of a kernel.
func (m *attendMma) operands() (rows, cols []matrix) {
	switch m.kind {
	case attendForward:
		return []matrix{m.q()}, []matrix{m.k(), m.v()}
	case attendQueries:
		return []matrix{m.q(), m.dout()}, []matrix{m.k(), m.v()}
	}
	return []matrix{m.k(), m.v()}, []matrix{m.q(), m.dout()}
}

// hold gives an operand shared memory.
func (m *attendMma) hold(x matrix, side *attendSide, streams bool) {
	h := &held{matrix: x, side: side, streams: streams}
	length := h.length(m)
	if streams {
		length *= m.t.stages
	}
	h.slot = m.shared(attendNames[x.operand], m.operand, 1, length)
	m.held = append(m.held, h)
}

// length is the elements of an operand's block.
func (h *held) length(m *attendMma) int {
	row := loop.RowElements(m.operand)
	return ceilDiv(h.matrix.length, row) * row * h.side.block
}

func (m *attendMma) find(x matrix) *held {
	for _, h := range m.held {
		if h.operand == x.operand {
			return h
		}
	}
	panic("an operand is not in shared memory")
}

// base is where the block at hand of an operand begins.
func (m *attendMma) base(h *held) scalar.Expr {
	if !h.streams {
		return loop.Int(0)
	}
	return scalar.Mul(m.stage, loop.Int(h.length(m)))
}

// tile is an operand with its elements along k, from position k on.
func (m *attendMma) tile(h *held, from scalar.Expr, k int) loop.Tile {
	row := loop.RowElements(m.operand)
	from = sum(m.base(h), loop.Int(k/row*row*h.side.block), from)
	return loop.Tile{Array: h.slot, At: m.Simplify(from), K: k % row}
}

func (m *attendMma) product(f fragment, rows, cols matrix) (ready func()) {
	left, right := m.find(rows), m.find(cols)
	s := &loop.Mma{Atom: loop.Atom{Operand: m.operand, N: m.t.columns}}
	own := scalar.Mul(m.group, loop.Int(loop.AtomRows*loop.RowElements(m.operand)))
	for k := 0; k < rows.length; k += s.Atom.K() {
		s.Terms = append(s.Terms, loop.MmaTerm{Sums: f.sums(), First: k == 0, A: m.tile(left, own, k), B: m.tile(right, loop.Int(0), k)})
	}
	m.add(s)
	m.begun = append(m.begun, f.sums())
	number := len(m.begun)
	return func() {
		if m.next != nil {
			m.next()
			m.next = nil
		}
		m.wait(number, f.sums())
	}
}

// accumulate puts the weights into registers of their own. It does not wait: a later
// wait does.
func (m *attendMma) accumulate(sums, weights fragment, x matrix) (begin func()) {
	h := m.find(x)
	packed := m.packed[slices.IndexFunc(m.sums, func(f fragment) bool { return f.name == sums.name })]
	s := &loop.Mma{Atom: loop.Atom{Operand: m.operand, N: x.length}}
	for k := 0; k < m.t.columns; k += s.Atom.K() {
		left := packed[k/4 : k/4+4]
		for i, name := range left {
			row, at := s.Atom.Left(i)
			r, c := row/8, (k+at)/4
			m.add(&loop.Pack{Name: name, Type: m.operand, Low: weights.at(r, c), High: weights.at(r, c+1)})
		}
		right := loop.Tile{Array: h.slot, At: m.Simplify(m.base(h)), Depth: m.t.columns, K: k}
		s.Terms = append(s.Terms, loop.MmaTerm{Sums: sums.sums(), Left: left, B: right})
	}
	return func() {
		m.add(s)
		m.begun = append(m.begun, slices.Concat(sums.sums(), packed))
	}
}

// wait waits for the first multiply-adds that the turn has begun, and for those of
// turns before. What goes beyond a turn is named where it may be used again.
func (m *attendMma) wait(number int, names []string) {
	busy := slices.Concat(m.begun[number:]...)
	for i, f := range m.sums {
		if lasting := slices.Concat(f.sums(), m.packed[i]); !slices.Contains(busy, lasting[0]) {
			names = append(names, lasting...)
		}
	}
	m.add(&loop.MmaWait{Pending: len(m.begun) - number, Names: names})
	m.waited = number
}

// sums are the registers in the order of [loop.Atom.Sum].
func (f fragment) sums() []string {
	out := make([]string, 2*f.columns)
	for i := range out {
		out[i] = f.register(i/2%2, i/4*2+i%2)
	}
	return out
}

// fold combines over the four threads that share a row.
func (m *attendMma) fold(into []string, values []scalar.Expr, combine func(a, b scalar.Expr) scalar.Expr) {
	for i, x := range values {
		x = m.let("mine", x)
		for across := 1; across < 4; across *= 2 {
			other := m.name("other")
			m.add(&loop.Shuffle{Name: other, Value: x, Xor: across})
			x = m.let("both", combine(x, scalar.FreeVar(other, ir.F32)))
		}
		m.add(&loop.Assign{Name: into[i], Value: combine(scalar.FreeVar(into[i], ir.F32), x)})
	}
}

func (m *attendMma) columnStat(c, which int) scalar.Expr {
	column := sum(m.l.column, loop.Int(m.l.columnAt(c)))
	at := sum(scalar.Mul(m.stage, loop.Int(2*m.t.columns)), scalar.Mul(column, loop.Int(2)), loop.Int(which))
	return m.let("stat", scalar.LoadAt(m.slot, ir.F32, m.Simplify(at)))
}
