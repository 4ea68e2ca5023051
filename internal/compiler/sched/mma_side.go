package sched

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// mmaSide is one operand of the multiply-adds: tiles of free positions by those
// of a step.
type mmaSide struct {
	layout mmaLayout
	// pieceAt returns a piece of the operand. Its positions are inside.
	pieceAt func(free, k scalar.Expr) piece
	free    int         // positions in all,
	tile    int         // and of a workgroup
	index   scalar.Expr // number of the workgroup's tile
	length  int         // contracted positions in all
	slot    int         // workgroup memory: the tiles of all stages
	// plain tiles are read by threads, not by multiply-adds.
	plain bool
	// view is the operand as a box, nil where it is none or the target copies none, and box
	// the number of it in the kernel.
	view *boxed
	box  int
}

// newSide declares the memory of an operand, number 0 for rows and 1 for columns
// of the multiply-adds. An operand in scratch memory is read from there.
func (m *mmaEmitter) newSide(operand, number int, scratch *fusion.Tensor) mmaSide {
	c := m.out.c
	s := mmaSide{
		layout: m.p.layout[operand], free: fusion.Product([2][]int{c.M, c.N}[operand]), length: fusion.Product(c.K),
		tile: [2]int{mmaRows, m.p.columns}[number], plain: number == 0 && m.p.inRegisters(),
	}
	s.slot = m.shared([2]string{"rows", "columns"}[number], m.p.operand, 1, m.p.stages*s.stageLength(m.p))
	if scratch != nil {
		s.layout, s.length = alongK, stagedLength(c, m.p.operand)
		s.pieceAt = func(free, k scalar.Expr) piece {
			root, at := m.emitter.p.Place(scratch, ir.Index{m.batch, free, k})
			return piece{array: root.ID, at: m.Simplify(at)}
		}
		return s
	}
	r := &reading{e: m.emitter, c: c, d: m.p.operand, operand: operand, batch: m.out.batch}
	load := m.reader().Operand(c.Node)
	s.pieceAt = func(free, k scalar.Expr) piece {
		p, ok := r.pieceAt(load, free, k, s.layout)
		if !ok {
			panic("an operand does not lie as it was found to")
		}
		return p
	}
	return s
}

// stageLength is the elements of a stage's tile.
func (s *mmaSide) stageLength(p *mmaPlan) int { return s.tile * p.length() }

// copies begins to copy a thread's share of a step to a stage.
func (m *mmaEmitter) copies(s *mmaSide, step, stage scalar.Expr) {
	each := loop.PieceElements(m.p.operand)
	base := scalar.Mul(stage, loop.Int(s.stageLength(m.p)))
	for first := 0; first < s.stageLength(m.p)/each; first += mmaThreads {
		id := m.Simplify(scalar.Add(m.thread, loop.Int(first)))
		var to scalar.Expr
		var p piece
		if s.layout == alongK {
			to, p = m.pieceAlongK(s, step, id)
		} else {
			to, p = m.pieceAlongFree(s, step, id)
		}
		m.add(&loop.CopyAsync{
			To: s.slot, ToAt: m.Simplify(scalar.Add(base, to)), From: p.array, FromAt: p.at, Count: each, Valid: p.valid,
		})
	}
}

// pieceAlongK returns piece number id of a step's tile and its place: neighbouring
// threads have neighbours along k. Beyond the free positions any will do, since
// nothing is made of them; beyond the contracted ones there are zeros.
func (m *mmaEmitter) pieceAlongK(s *mmaSide, step, id scalar.Expr) (to scalar.Expr, p piece) {
	each, length := loop.PieceElements(m.p.operand), m.p.length()
	per := length / each
	row, at := scalar.FloorDiv(id, loop.Int(per)), scalar.Mod(id, loop.Int(per))
	free := scalar.Add(scalar.Mul(s.index, loop.Int(s.tile)), row)
	if s.free%s.tile != 0 {
		free = scalar.Min(free, loop.Int(s.free-1))
	}
	k, inside := m.contracted(s, scalar.Add(scalar.Mul(step, loop.Int(per)), at), each)
	p = s.pieceAt(m.Simplify(free), scalar.Mul(k, loop.Int(each)))
	p.valid = both(p.valid, inside)
	return loop.TilePlace(m.p.operand, 0, row, scalar.Mul(at, loop.Int(each))), p
}

// pieceAlongFree is pieceAlongK where neighbouring threads have neighbours along
// the free axis.
func (m *mmaEmitter) pieceAlongFree(s *mmaSide, step, id scalar.Expr) (to scalar.Expr, p piece) {
	each, length := loop.PieceElements(m.p.operand), m.p.length()
	per := s.tile / each
	row, at := scalar.FloorDiv(id, loop.Int(per)), scalar.Mod(id, loop.Int(per))
	free := scalar.Add(scalar.Mul(s.index, loop.Int(per)), at)
	if s.free%s.tile != 0 {
		free = scalar.Min(free, loop.Int(s.free/each-1))
	}
	k, inside := m.contracted(s, scalar.Add(scalar.Mul(step, loop.Int(length)), row), 1)
	p = s.pieceAt(scalar.Mul(m.Simplify(free), loop.Int(each)), k)
	p.valid = both(p.valid, inside)
	local := scalar.Mul(at, loop.Int(each))
	if s.plain {
		return plainPlace(s.tile, local, row), p
	}
	return loop.TilePlace(m.p.operand, length, local, row), p
}

// contracted keeps a contracted position, in units of so many, inside the space,
// and tells whether it was, nil where all are.
func (m *mmaEmitter) contracted(s *mmaSide, k scalar.Expr, unit int) (at, inside scalar.Expr) {
	have, all := s.length/unit, m.p.parts*m.p.steps*m.p.length()/unit
	if all <= have {
		return m.Simplify(k), nil
	}
	return m.Simplify(scalar.Min(k, loop.Int(have-1))), m.Simplify(scalar.Lt(k, loop.Int(have)))
}

func both(a, b scalar.Expr) scalar.Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return scalar.And(a, b)
}

// plainPlace is where a tile that threads read has an element of f32: rows of one
// contracted position, pieces of which are exchanged so that what a warp reads
// for an [loop.Atom], 8 free positions by 4 contracted ones, lies in 32 banks.
func plainPlace(tile int, free, k scalar.Expr) scalar.Expr {
	turn := scalar.Mul(scalar.Mod(k, loop.Int(4)), loop.Int(2))
	at := scalar.Add(scalar.Mul(scalar.Xor(scalar.FloorDiv(free, loop.Int(4)), turn), loop.Int(4)), scalar.Mod(free, loop.Int(4)))
	return scalar.Add(scalar.Mul(k, loop.Int(tile)), at)
}

// declareLeft declares the registers of the rows' operand.
func (m *mmaEmitter) declareLeft() {
	if !m.p.inRegisters() {
		return
	}
	for parity := range m.left {
		for i := range m.p.length() / m.atom.K() * 4 {
			name := "left" + strconv.Itoa(parity) + "_" + strconv.Itoa(i)
			m.left[parity] = append(m.left[parity], name)
			m.add(&loop.Var{Name: name, Init: scalar.ConstF(ir.F32, 0)})
		}
	}
}

// loadLeft reads a thread's part of the rows' operand of a step.
func (m *mmaEmitter) loadLeft(stage scalar.Expr, parity int) {
	s := &m.side[0]
	base := scalar.Mul(stage, loop.Int(s.stageLength(m.p)))
	first := scalar.Add(scalar.Mul(m.group, loop.Int(loop.AtomRows)), m.row)
	for i, name := range m.left[parity] {
		row, k := m.atom.Left(i % 4)
		at := plainPlace(s.tile, scalar.Add(first, loop.Int(row)), scalar.Add(m.column, loop.Int(i/4*m.atom.K()+k)))
		m.add(&loop.Assign{Name: name, Value: scalar.LoadAt(s.slot, ir.F32, m.Simplify(scalar.Add(base, at)))})
	}
}
