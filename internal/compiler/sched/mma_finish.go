package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
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

// finishPoints is how many results a thread finds at a time, so that what is read
// for them is read together.
const finishPoints = 4

// store stores the sums by way of shared memory, in rounds of some columns: what
// follows the contraction is then a loop, whose neighbouring threads store side
// by side.
func (m *mmaEmitter) store(result storeResult) {
	slot := m.shared("results", ir.F32, 1, mmaRows*m.roundRow())
	first := scalar.Add(scalar.Mul(m.group, loop.Int(loop.AtomRows)), m.row)
	own := m.let("own", scalar.Add(scalar.Mul(first, loop.Int(m.roundRow())), scalar.Mul(m.column, loop.Int(2))))
	m.times("round", m.p.columns/roundColumns, func(round scalar.Expr) {
		m.barrier()
		m.putRound(slot, round, own)
		m.barrier()
		m.loop("result", m.thread, loop.Int(mmaRows*roundColumns), finishPoints*mmaThreads, mmaRows*roundColumns-1, func(at scalar.Expr) {
			for j := range finishPoints {
				m.finishPoint(slot, round, scalar.Add(at, loop.Int(j*mmaThreads)), result)
			}
		})
	})
}

// putRound writes the sums of a round, the thread's first to the place own. Which of a thread's registers these are
// must be known to the compiler, so there is a branch for each round.
func (m *mmaEmitter) putRound(slot int, round, own scalar.Expr) {
	per := m.atom.Sums() * roundColumns / m.p.columns
	var body []loop.Stmt
	for r := m.p.columns/roundColumns - 1; r >= 0; r-- {
		then := m.nested(func() {
			for i := range per {
				row, column := m.atom.Sum(i)
				m.put(slot, scalar.Add(own, loop.Int(row*m.roundRow()+column)), scalar.FreeVar(m.sums[r*per+i], ir.F32))
			}
		})
		if body != nil {
			then = []loop.Stmt{&loop.If{Cond: scalar.Lt(round, loop.Int(r+1)), Then: then, Else: body}}
		}
		body = then
	}
	m.add(body...)
}

// finishPoint computes and stores one result of a round.
func (m *mmaEmitter) finishPoint(slot int, round, at scalar.Expr, result storeResult) {
	c, sides := m.out.c, m.side
	row, column := scalar.FloorDiv(at, loop.Int(roundColumns)), scalar.Mod(at, loop.Int(roundColumns))
	if m.p.rows == 1 {
		row, column = scalar.Mod(at, loop.Int(mmaRows)), scalar.FloorDiv(at, loop.Int(mmaRows))
	}
	sum := m.let("total", scalar.LoadAt(slot, ir.F32, m.Simplify(scalar.Add(scalar.Mul(row, loop.Int(m.roundRow())), column))))
	positions := [2]scalar.Expr{
		scalar.Add(scalar.Mul(sides[0].index, loop.Int(mmaRows)), row),
		scalar.Add(scalar.Mul(sides[1].index, loop.Int(m.p.columns)), scalar.Add(scalar.Mul(round, loop.Int(roundColumns)), column)),
	}
	inside := m.valid
	for i, s := range sides {
		if s.free%s.tile != 0 {
			inside = scalar.And(inside, scalar.Lt(positions[i], loop.Int(s.free)))
			positions[i] = scalar.Min(positions[i], loop.Int(s.free-1))
		}
		positions[i] = m.bounded([2]string{"m", "n"}[i], positions[i], s.free)
	}
	rows, columns := m.p.free(c)
	x, y := m.unflatten(positions[0], rows), m.unflatten(positions[1], columns)
	if m.p.rows == 1 {
		x, y = y, x
	}
	m.add(guard(m.Simplify(inside), m.storeAll(result(sum, m.out.point(x, y))))...)
}
