package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxRoundPad is the most that a row of results in shared memory is longer than
// they need.
const maxRoundPad = 4

// roundRow is the elements from one row of results in shared memory to the next.
// Neighbouring threads read neighbours along the last axis of the result: where
// that is the atoms' columns, 68 puts what a warp writes into different banks but
// for pairs; where it is their rows, 65 lets a warp read from all banks.
func (m *mmaEmitter) roundRow() int {
	if m.p.rows == 1 {
		return roundColumns + 1
	}
	return roundColumns + maxRoundPad
}

// finishPoints is how many results, or pairs of them, a thread finds at a time, so that what
// is read for them is read together.
const finishPoints = 4

// together is how many neighbouring results a thread finds at each point: pairs, as it has
// them in registers, where they lie side by side in the result.
func (m *mmaEmitter) together() int {
	if _, columns := m.p.free(m.out.c); m.p.rows == 1 || group.Product(columns)%2 != 0 {
		return 1
	}
	return 2
}

// store stores the sums by way of shared memory, in rounds of some columns: what
// follows the contraction is then a loop, whose neighbouring threads store side
// by side.
func (m *mmaEmitter) store(result storeResult) {
	each := m.together()
	slot := m.shared("results", ir.F32, each, mmaRows*m.roundRow()/each)
	first := scalar.Add(scalar.Mul(m.group, loop.Int(loop.AtomRows)), m.row)
	own := m.let("own", scalar.Add(scalar.Mul(first, loop.Int(m.roundRow()/each)), scalar.Mul(m.column, loop.Int(2/each))))
	m.times("round", m.p.columns/roundColumns, func(round scalar.Expr) {
		m.barrier()
		m.putRound(slot, round, own)
		m.barrier()
		points := mmaRows * roundColumns / each
		m.loop("result", m.thread, loop.Int(points), finishPoints*mmaThreads, points-1, func(at scalar.Expr) {
			for j := range finishPoints {
				m.finishPoint(slot, round, scalar.Add(at, loop.Int(j*mmaThreads)), result)
			}
		})
	})
}

// putRound writes the sums of a round, the thread's first to the place own. Which of a thread's registers these are
// must be known to the compiler, so there is a branch for each round.
func (m *mmaEmitter) putRound(slot int, round, own scalar.Expr) {
	per, each := m.atom.Sums()*roundColumns/m.p.columns, m.together()
	var body []loop.Stmt
	for r := m.p.columns/roundColumns - 1; r >= 0; r-- {
		then := m.nested(func() {
			for i := 0; i < per; i += each {
				row, column := m.atom.Sum(i)
				at := scalar.Add(own, loop.Int((row*m.roundRow()+column)/each))
				if first := scalar.FreeVar(m.sums[r*per+i], ir.F32); each == 1 {
					m.put(slot, at, first)
				} else {
					m.add(&loop.StoreVec{Array: slot, At: at, Values: []scalar.Expr{first, scalar.FreeVar(m.sums[r*per+i+1], ir.F32)}})
				}
			}
		})
		if body != nil {
			then = []loop.Stmt{&loop.If{Cond: scalar.Lt(round, loop.Int(r+1)), Then: then, Else: body}}
		}
		body = then
	}
	m.add(body...)
}

// finishPoint computes and stores one result of a round, or two.
func (m *mmaEmitter) finishPoint(slot int, round, at scalar.Expr, result storeResult) {
	each := m.together()
	across := roundColumns / each
	row, column := scalar.FloorDiv(at, loop.Int(across)), scalar.Mod(at, loop.Int(across))
	if m.p.rows == 1 {
		row, column = scalar.Mod(at, loop.Int(mmaRows)), scalar.FloorDiv(at, loop.Int(mmaRows))
	}
	place := m.Simplify(scalar.Add(scalar.Mul(row, loop.Int(m.roundRow()/each)), column))
	positions := [2]scalar.Expr{
		scalar.Add(scalar.Mul(m.side[0].index, loop.Int(mmaRows)), row),
		scalar.Add(scalar.Mul(m.side[1].index, loop.Int(m.p.columns/each)), scalar.Add(scalar.Mul(round, loop.Int(across)), column)),
	}
	inside := m.valid
	for i, s := range m.side {
		free := s.free / [2]int{1, each}[i]
		if s.free%s.tile != 0 {
			inside = scalar.And(inside, scalar.Lt(positions[i], loop.Int(free)))
			positions[i] = scalar.Min(positions[i], loop.Int(free-1))
		}
		positions[i] = m.bounded([2]string{"m", "n"}[i], positions[i], free)
	}
	if each == 1 {
		sum := m.let("total", scalar.LoadAt(slot, ir.F32, place))
		m.add(guard(m.Simplify(inside), m.storeAll(result(sum, m.pointAt(positions[0], positions[1]))))...)
		return
	}
	m.finishPair(slot, place, positions[0], positions[1], inside, result)
}

// pointAt returns the outer coordinates of the group for the result at a row and a column.
func (m *mmaEmitter) pointAt(row, column scalar.Expr) ir.Index {
	rows, columns := m.p.free(m.out.c)
	x, y := m.unflatten(row, rows), m.unflatten(column, columns)
	if m.p.rows == 1 {
		x, y = y, x
	}
	return m.out.point(x, y)
}

// finishPair stores what becomes of two neighbouring sums, as pairs where memory has them
// side by side and what is read for them.
func (m *mmaEmitter) finishPair(slot int, place, row, pair, inside scalar.Expr, result storeResult) {
	names, each := []string{m.name("total"), m.name("total")}, make([][]kept, 2)
	m.add(&loop.LoadVec{Names: names, Array: slot, At: place})
	for j := range each {
		column := scalar.Add(scalar.Mul(pair, loop.Int(2)), loop.Int(j))
		each[j] = result(scalar.FreeVar(names[j], ir.F32), m.pointAt(row, m.Simplify(column)))
	}
	stores := sideBySide(each)
	v := newMoverOf(2, m.writer)
	for _, s := range m.side {
		v.note(s.pieceAt(loop.Int(0), loop.Int(0)).array, false) // read by other pieces
	}
	for _, s := range stores {
		v.see(s.value)
	}
	v.seeStores(stores, 2)
	v.settle()
	m.add(guard(m.Simplify(inside), m.nested(func() { v.store(stores, 2, all(2)) }))...)
}
