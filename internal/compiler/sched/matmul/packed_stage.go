package matmul

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/reduce"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// packedStage is how packed weights pass through workgroup memory: by asynchronous copies of 16 bytes, where a load of a
// word by a warp touches eight rows. The words of a stage of a row are at the place of the row and the stage.
type packedStage struct {
	units int // iterations; 0 if a stage is no whole number of copies
	words int // of a row in a stage
	pad   int // words behind these in workgroup memory, so that rows lie in several banks
	row   int // words of a whole row
	array int // the tensor
}

// copyWords is the number of words that are copied together.
const copyWords = 4

// stagePadding is the number of words behind the stages that a load of two words for one may touch.
const stagePadding = 4

// maxStageUnits bounds the iterations of a stage.
const maxStageUnits = 8

// pitch returns how many words rows lie apart in workgroup memory.
func (s packedStage) pitch() int { return s.words + s.pad }

// bytes returns the bytes of a stage of some rows.
func (s packedStage) bytes(rows int) int { return 4 * s.pitch() * rows }

// findStage sets the stage, if there is one.
func (p *packedPlan) findStage(e *emit.Emitter) {
	e = e.Sibling()
	array := -1
	scalar.Walk(p.element, func(n scalar.Expr) {
		if n.Op == scalar.OpLoad {
			array = n.Ref
		}
	})
	bytes, units := e.Partition.Tensor(array).Root().Len()/p.rows(), fusion.Product(p.c.K)/packedUnit
	const copied = 4 * copyWords
	for n := 1; n <= maxStageUnits; n *= 2 {
		s := packedStage{units: n, words: bytes * n / units / 4, row: bytes / 4, array: array}
		if units%n == 0 && bytes%copied == 0 && bytes*n%(units*copied) == 0 && p.isStage(e, s) {
			p.stage = s
			return
		}
	}
}

// isStage reports whether the bytes of a row's stage are at the place of the row and the stage.
func (p *packedPlan) isStage(e *emit.Emitter, s packedStage) bool {
	stages := fusion.Product(p.c.K) / packedUnit / s.units
	variable := func(name string, last int) scalar.Expr { return scalar.NewVar(name, ir.I32, 0, int64(last)) }
	row, column := variable("row", p.rows()-1), variable("column", 3)
	stage, unit := variable("stage", stages-1), variable("unit", s.units-1)
	places := func(row, stage scalar.Expr) (at []scalar.Expr) {
		for _, x := range p.fragment(e, row, column, e.Simplify(scalar.Add(scalar.Mul(stage, loop.Int(s.units)), unit))) {
			scalar.Walk(x, func(n scalar.Expr) {
				if n.Op == scalar.OpLoad {
					at = append(at, n.Args[0])
				}
			})
		}
		return at
	}
	all, first := places(row, stage), places(loop.Int(0), loop.Int(0))
	if len(all) != len(first) {
		return false
	}
	origin := scalar.Add(scalar.Mul(row, loop.Int(4*s.row)), scalar.Mul(stage, loop.Int(4*s.words)))
	for i := range all {
		apart := e.Simplify(scalar.Sub(all[i], scalar.Add(origin, first[i])))
		if n, ok := apart.IntConst(); !ok || n != 0 {
			return false
		}
	}
	return true
}

// copyFirstStage starts the copy of the first stage of the part that begins with a chunk.
func (m *packedEmitter) copyFirstStage(chunk scalar.Expr) {
	if n := m.p.stage.units; n > 0 {
		m.copyStage(scalar.FloorDiv(chunk, loop.Int(n*packedUnit/m.p.chunk)), loop.Int(0), loop.Int(0), 1)
	}
}

// copyNextStage starts the copy of a slice of the next stage, as many as a stage has chunks, and notes the buffer of the
// current one. The chunk is counted from the first of the part.
func (m *packedEmitter) copyNextStage(first, chunk scalar.Expr, chunks int) {
	s := m.p.stage
	if s.units == 0 {
		return
	}
	slices := s.units * packedUnit / m.p.chunk
	stages := chunks / slices
	number := m.Bounded("stage", scalar.FloorDiv(chunk, loop.Int(slices)), stages)
	m.stage = m.Bounded("half", scalar.Mod(number, loop.Int(2)), min(stages, 2))
	m.When(scalar.Lt(number, loop.Int(stages-1)), func() {
		next := scalar.Add(scalar.FloorDiv(first, loop.Int(slices)), scalar.Add(number, loop.Int(1)))
		m.copyStage(next, scalar.Sub(loop.Int(1), m.stage), scalar.Mod(chunk, loop.Int(slices)), slices)
	})
}

// copyStage starts the copies of one of some slices of a stage to a buffer. Rows beyond the last are the last.
func (m *packedEmitter) copyStage(stage, buffer, slice scalar.Expr, slices int) {
	s, rows, threads := m.p.stage, m.p.tileRows(), m.p.groups*loop.WarpGroup
	m.Words[s.array] = true
	perRow := s.words / copyWords
	each := emit.CeilDiv(rows*perRow, slices)
	from := m.Bounded("from", scalar.Mul(slice, loop.Int(each)), each*(slices-1)+1)
	m.Loop("piece", m.thread, loop.Int(each), threads, each-1, func(i scalar.Expr) {
		at := m.Bounded("at", scalar.Min(scalar.Add(from, i), loop.Int(rows*perRow-1)), rows*perRow)
		row, word := scalar.FloorDiv(at, loop.Int(perRow)), scalar.Mul(scalar.Mod(at, loop.Int(perRow)), loop.Int(copyWords))
		global := scalar.Min(scalar.Add(scalar.Mul(m.tile, loop.Int(rows)), row), loop.Int(m.p.rows()-1))
		place := scalar.Add(scalar.Mul(global, loop.Int(s.row)), scalar.Mul(stage, loop.Int(s.words)))
		to := scalar.Add(scalar.Mul(buffer, loop.Int(rows*s.pitch())), scalar.Mul(row, loop.Int(s.pitch())))
		m.Add(&loop.CopyAsync{
			To: m.stages, ToAt: m.Simplify(scalar.Add(to, word)),
			From: s.array, FromAt: m.Simplify(scalar.Add(place, word)), Count: copyWords,
		})
	})
}

// load returns the weights of an iteration of one of the thread's rows, from memory or from a stage.
func (m *packedEmitter) load(down int, unit scalar.Expr) []reduce.Weight {
	s := m.p.stage
	if s.units == 0 {
		row := m.Simplify(scalar.Min(m.row(down), loop.Int(m.p.rows()-1)))
		weights, _ := reduce.LoadWeights(m.Emitter, m.p.fragment(m.Emitter, row, m.column, unit), nil)
		return weights
	}
	inStage, origin := m.Bounded("unit", scalar.Mod(unit, loop.Int(s.units)), s.units), m.stageOrigin(down)
	copied := func(_ int, at scalar.Expr, _ int) scalar.Expr {
		return m.Let("word", scalar.LoadAt(m.stages, ir.U32, m.Simplify(scalar.Add(origin, at))))
	}
	weights, _ := reduce.LoadWeights(m.Emitter, m.p.fragment(m.Emitter, loop.Int(0), m.column, inStage), copied)
	return weights
}

// stageOrigin returns where the current stage of one of the thread's rows begins.
func (m *packedEmitter) stageOrigin(down int) scalar.Expr {
	s := m.p.stage
	origin := scalar.Mul(m.stage, loop.Int(m.p.tileRows()*s.pitch()))
	return m.Let("origin", scalar.Add(origin, scalar.Mul(m.rowInTile(down), loop.Int(s.pitch()))))
}

// loadPlain sets the fragments of an iteration to the words of weights of BF16, and returns their spans, which are one term.
func (m *packedEmitter) loadPlain(unit scalar.Expr) []weightSpan {
	inStage := scalar.Mul(scalar.Mod(unit, loop.Int(m.p.stage.units)), loop.Int(packedUnit/2))
	for half, down := range halves {
		origin := m.Let("words", scalar.Add(scalar.Add(m.stageOrigin(down), inStage), scalar.Mul(m.column, loop.Int(quad/2))))
		for i := half; i < len(m.left); i += 2 {
			at := loop.Int(i/packedSpan*quadSpan/2 + i%packedSpan/2)
			m.Set(scalar.FreeVar(m.left[i], ir.U32), scalar.LoadAt(m.stages, ir.U32, m.Simplify(scalar.Add(origin, at))))
		}
	}
	return spansOf(make([]reduce.Weight, 2*packedSpans*quad))
}
