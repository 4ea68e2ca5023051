package sched

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// mmaEmitter writes the kernel of a contraction by multiply-adds. Steps of both
// operands are copied to shared memory well before they are multiplied, by
// copies that go on beside the arithmetic.
type mmaEmitter struct {
	*writer
	out    results
	p      *mmaPlan
	atom   loop.Atom
	part   scalar.Expr
	batch  scalar.Expr // number of the batch
	valid  scalar.Expr // false in workgroups beyond the last tile
	thread scalar.Expr
	group  scalar.Expr // the thread's warp group
	row    scalar.Expr // origin of the thread in its warp group's part,
	column scalar.Expr // see [loop.Atom]
	side   [2]mmaSide  // of rows, of columns
	sums   []string
	left   [2][]string // parts of the rows' operand in registers, of even and of odd steps
}

func newMmaEmitter(e *emitter, g *fusion.Group, c *fusion.Contraction, p *mmaPlan, scratch [2]*fusion.Tensor) *mmaEmitter {
	e.workgroup = [3]int{mmaThreads, 1, 1}
	m := &mmaEmitter{writer: &writer{emitter: e}, p: p, atom: loop.Atom{Operand: p.operand, N: p.columns}}
	m.out = results{emitter: e, g: g, c: c}
	row, column := m.place(c)
	for i, operand := range [2]int{p.rows, 1 - p.rows} {
		m.side[i] = m.newSide(operand, i, scratch[operand])
		if e.caps.Boxes && !m.side[i].plain {
			if b, ok := m.boxOfSide(operand, &m.side[i], scratch[operand]); ok {
				m.side[i].view = &b
			}
		}
	}
	m.side[0].index, m.side[1].index = row, column
	return m
}

// ownPlace names what a thread that multiplies is.
func (m *mmaEmitter) ownPlace() {
	m.thread = loop.LocalID(0, mmaThreads)
	m.group = m.let("warp_group", scalar.FloorDiv(m.thread, loop.Int(loop.WarpGroup)))
	row, column := m.atom.Origin(scalar.Mod(m.thread, loop.Int(loop.WarpGroup)))
	m.row, m.column = m.let("row", row), m.let("column", column)
}

// declareSums begins the sums.
func (m *mmaEmitter) declareSums() {
	for i := range m.atom.Sums() {
		m.sums = append(m.sums, "sum"+strconv.Itoa(i))
		m.add(&loop.Var{Name: m.sums[i], Init: scalar.ConstF(ir.F32, 0)})
	}
}

// place finds out which part, batch and tile the workgroup has, and returns the
// tile's row and column. Workgroups that run at about the same time have tiles of
// few rows of tiles, so that the cache holds what they read.
func (m *mmaEmitter) place(c *fusion.Contraction) (row, column scalar.Expr) {
	rows, columns := m.p.tiles(c)
	batches := fusion.Product(c.Batch)
	workgroup, valid := m.boundedGroup(m.p.parts * batches * rows * columns)
	m.valid = valid
	m.part = m.let("part", scalar.FloorDiv(workgroup, loop.Int(batches*rows*columns)))
	batch := scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(rows*columns)), loop.Int(batches))
	m.batch = m.bounded("batch", batch, batches)
	m.out.batch = m.unflatten(m.batch, c.Batch)
	at := m.let("tile", scalar.Mod(workgroup, loop.Int(rows*columns)))
	first := m.let("first", scalar.Mul(scalar.FloorDiv(at, loop.Int(mmaRowGroup*columns)), loop.Int(mmaRowGroup)))
	high := m.let("high", scalar.Min(scalar.Sub(loop.Int(rows), first), loop.Int(mmaRowGroup)))
	at = m.let("within", scalar.Mod(at, loop.Int(mmaRowGroup*columns)))
	return m.bounded("tile_row", scalar.Add(first, scalar.Rem(at, high)), rows), m.bounded("tile_column", scalar.Div(at, high), columns)
}

// bounded names an integer from 0 to below n.
func (m *mmaEmitter) bounded(prefix string, x scalar.Expr, n int) scalar.Expr {
	if n == 1 {
		return loop.Int(0)
	}
	name := m.name(prefix)
	m.add(&loop.Let{Name: name, Value: m.Simplify(x)})
	return scalar.NewVar(name, ir.I32, 0, int64(n-1))
}

// kernel writes the whole kernel; result stores a sum.
func (m *mmaEmitter) kernel(name string, result storeResult) Launch {
	if m.declareBoxes() {
		m.workgroup[0] += loop.Warp
		return m.rolesKernel(name, result)
	}
	m.ownPlace()
	m.declareSums()
	m.declareLeft()
	for s := range m.p.ahead() {
		m.ahead(loop.Int(s))
	}
	turns, each := m.p.steps, 1
	if m.p.inRegisters() {
		turns, each = turns/2, 2
	}
	m.times("step", turns, func(i scalar.Expr) {
		for parity := range each {
			m.step(scalar.Add(scalar.Mul(i, loop.Int(each)), loop.Int(parity)), parity)
		}
	})
	m.add(&loop.MmaWait{Names: m.sums}, &loop.CopyWait{})
	m.store(result)
	return m.launch(name)
}

// step multiplies a step that has arrived, and begins to copy another over what
// all threads are known to have read: the barrier tells that they have waited for
// the multiply-adds of as many steps ago as may be read.
func (m *mmaEmitter) step(at scalar.Expr, parity int) {
	m.add(&loop.CopyWait{Pending: m.p.ahead() - 1}, &loop.ProxyFence{}, &loop.Barrier{})
	stage := m.let("stage", scalar.Mod(at, loop.Int(m.p.stages)))
	if m.p.inRegisters() {
		m.loadLeft(stage, parity)
	}
	m.add(m.multiply(stage, parity))
	m.ahead(m.Simplify(scalar.Add(at, loop.Int(m.p.ahead()))))
	// The other registers of the rows' operand are free: its multiply-adds are done.
	m.add(&loop.MmaWait{Pending: m.p.read - 1, Names: m.left[1-parity]})
}

// ahead begins to copy a step, if there is one. A group of copies is made in any
// case, so that groups can be counted.
func (m *mmaEmitter) ahead(step scalar.Expr) {
	m.when(scalar.Lt(step, loop.Int(m.p.steps)), func() {
		inside := m.bounded("ahead", scalar.Min(step, loop.Int(m.p.steps-1)), m.p.steps)
		stage := m.let("to", scalar.Mod(inside, loop.Int(m.p.stages)))
		whole := m.let("at", scalar.Add(scalar.Mul(m.part, loop.Int(m.p.steps)), inside))
		for i := range m.side {
			m.copies(&m.side[i], whole, stage)
		}
	})
	m.add(&loop.CopyCommit{})
}

// multiply returns the multiply-adds of a step.
func (m *mmaEmitter) multiply(stage scalar.Expr, parity int) *loop.Mma {
	rows, columns := &m.side[0], &m.side[1]
	s := &loop.Mma{Atom: m.atom}
	own := loop.AtomRows * loop.RowElements(m.p.operand) // a warp group's rows, in either layout
	for k := 0; k < m.p.length(); k += m.atom.K() {
		t := loop.MmaTerm{Sums: m.sums, B: m.operand(columns, stage, k, loop.Int(0))}
		if m.p.inRegisters() {
			first := k / m.atom.K() * 4
			t.Left = m.left[parity][first : first+4]
		} else {
			t.A = m.operand(rows, stage, k, scalar.Mul(m.group, loop.Int(own)))
		}
		s.Terms = append(s.Terms, t)
	}
	return s
}

// operand returns the tile of a side at a contracted position of a step.
func (m *mmaEmitter) operand(s *mmaSide, stage scalar.Expr, k int, from scalar.Expr) loop.Tile {
	t := loop.Tile{Array: s.slot, K: k, At: m.Simplify(scalar.Add(scalar.Mul(stage, loop.Int(s.stageLength(m.p))), from))}
	if s.layout == alongFree {
		t.Depth = m.p.length()
	}
	return t
}

// partial stores sums of a part of the contracted space.
func (m *mmaEmitter) partial(t *fusion.Tensor) storeResult {
	return func(sum scalar.Expr, at ir.Index) []kept {
		return []kept{{t, append(ir.Index{m.part}, at...), sum}}
	}
}
