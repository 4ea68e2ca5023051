package sched

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// blocks has the operands of the columns come to shared memory a few blocks before
// they are multiplied.
func (m *attendMma) blocks(lo, hi scalar.Expr, whole [2]scalar.Expr, body func()) {
	lo, hi = m.let("from", lo), m.let("to", hi)
	m.copyRows()
	for s := range m.t.ahead() {
		m.ahead(m.Simplify(scalar.Add(lo, loop.Int(s))), hi)
	}
	at := lo
	for i, end := range []scalar.Expr{whole[0], whole[1], hi} {
		end = m.let("end", scalar.Max(scalar.Min(end, hi), at))
		if scalar.Equal(end, at) {
			continue
		}
		m.whole = i == 1
		m.loop("block", at, end, 1, m.cols.blocks()-1, func(block scalar.Expr) { m.turn(block, hi, body) })
		at = end
	}
	m.whole, m.begun, m.waited = false, nil, 0
	m.wait(0, nil)
	m.add(&loop.CopyWait{}, &loop.Barrier{})
}

// turn computes with a block that has arrived, and begins to copy another over what
// all threads are known to have read: the barrier tells that they have waited for the
// multiply-adds of two blocks ago.
func (m *attendMma) turn(block, hi scalar.Expr, body func()) {
	m.add(&loop.CopyWait{Pending: m.t.ahead() - 1}, &loop.ProxyFence{}, &loop.Barrier{})
	m.stage = m.let("stage", scalar.Mod(block, loop.Int(m.t.stages)))
	m.next = func() { m.ahead(scalar.Add(block, loop.Int(m.t.ahead())), hi) }
	m.move(&m.cols, block)
	m.begun, m.waited = nil, 0
	body()
	if last := len(m.begun) - 1; m.waited < last {
		m.wait(last, nil) // NVIDIA's compiler gives up on two that go on into the next turn
	}
}

// ahead begins to copy a block of columns, if there is one. A group of copies is made
// in any case, so that groups can be counted.
func (m *attendMma) ahead(block, hi scalar.Expr) {
	m.when(scalar.Lt(block, hi), func() {
		inside := m.let("ahead", scalar.Min(block, loop.Int(m.cols.blocks()-1)))
		stage := m.let("place", scalar.Mod(inside, loop.Int(m.t.stages)))
		first := scalar.Mul(inside, loop.Int(m.cols.block))
		for _, h := range m.held {
			if h.streams {
				m.copies(h, first, scalar.Mul(stage, loop.Int(h.length(m))))
			}
		}
		if !m.byQuery {
			m.copyStats(first, scalar.Mul(stage, loop.Int(2*m.cols.block)))
		}
	})
	m.add(&loop.CopyCommit{})
}

// copyRows begins to copy what belongs to the rows.
func (m *attendMma) copyRows() {
	for _, h := range m.held {
		if !h.streams {
			m.copies(h, m.rows.first, loop.Int(0))
		}
	}
}

// copies begins to copy a thread's share of a block, from a position on, to a place.
func (m *attendMma) copies(h *held, first, place scalar.Expr) {
	each, row := loop.PieceElements(m.operand), loop.RowElements(m.operand)
	per := h.columns() / each
	m.share(h.rows()*per, func(id scalar.Expr) {
		r, at := scalar.FloorDiv(id, loop.Int(per)), scalar.Mul(scalar.Mod(id, loop.Int(per)), loop.Int(each))
		p, exists := m.pieceOfBlock(h, first, r, at)
		to := sum(place, scalar.Mul(scalar.FloorDiv(at, loop.Int(row)), loop.Int(row*h.rows())),
			loop.TilePlace(m.operand, 0, r, scalar.Mod(at, loop.Int(row))))
		c := &loop.CopyAsync{To: h.slot, ToAt: m.Simplify(to), From: p.array, FromAt: m.Simplify(p.at), Count: each, Valid: p.valid}
		if exists = m.Simplify(exists); exists.Op != scalar.OpConst {
			c.Valid = both(c.Valid, exists)
		}
		m.add(c)
	})
}

// pieceOfBlock returns 16 bytes of row r of a block, from a column on, and whether they
// are those of an operand.
func (m *attendMma) pieceOfBlock(h *held, first, r, column scalar.Expr) (p piece, exists scalar.Expr) {
	if h.turned {
		at := slices.Concat(m.head(h.operand), ir.Index{r, scalar.Add(first, column)})
		root, from := m.p.Place(m.turned[h.operand], at)
		return piece{array: root.ID, at: from}, scalar.ConstBool(true)
	}
	pos, exists := h.side.inside(m.Simplify(scalar.Add(first, r)))
	p, ok := m.piece(h.operand, m.emitter, m.read, m.head(h.operand), pos, m.Simplify(column))
	if !ok {
		panic("an operand does not lie as it was found to")
	}
	return p, exists
}

// copyStats begins to copy the numbers of a block's queries.
func (m *attendMma) copyStats(first, place scalar.Expr) {
	m.share(m.cols.block, func(id scalar.Expr) {
		pos, exists := m.cols.inside(m.Simplify(scalar.Add(first, id)))
		root, from := m.p.Place(m.stats, slices.Concat(m.queryHead, ir.Index{pos, loop.Int(0)}))
		c := &loop.CopyAsync{
			To: m.slot, ToAt: m.Simplify(scalar.Add(place, scalar.Mul(id, loop.Int(2)))),
			From: root.ID, FromAt: m.Simplify(from), Count: 2,
		}
		if exists = m.Simplify(exists); exists.Op != scalar.OpConst {
			c.Valid = exists
		}
		m.add(c)
	})
}

// share writes what f does for each of n pieces of work, spread over the threads.
func (m *attendMma) share(n int, f func(id scalar.Expr)) {
	for first := 0; first < n; first += m.t.threads() {
		id := m.Simplify(scalar.Add(m.thread, loop.Int(first)))
		m.when(scalar.Lt(id, loop.Int(n)), func() { f(id) })
	}
}
