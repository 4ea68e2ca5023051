package sched

import (
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rolesKernel writes the kernel of a target that copies boxes: one warp begins all copies,
// and the others multiply what has arrived. A stage has two barriers: full is over when its
// operands are there, empty when all warps have read them.
func (m *mmaEmitter) rolesKernel(name string, result storeResult) Launch {
	full := m.mbarrier("full", m.p.stages, 1)
	empty := m.mbarrier("empty", m.p.stages, mmaThreads/loop.Warp)
	multiply := m.nested(func() {
		m.ownPlace()
		m.declareSums()
		m.multiplySteps(full, empty)
		m.store(result)
	})
	fetch := m.nested(func() { m.fetchSteps(full, empty) })
	m.add(&loop.Roles{List: []loop.Role{{Threads: mmaThreads, Body: multiply}, {Threads: loop.Warp, Body: fetch}}})
	return m.launch(name)
}

// turn returns in which stage a step is, and how often that was used before.
func (m *mmaEmitter) turn(step scalar.Expr) (stage, phase scalar.Expr) {
	stages := loop.Int(m.p.stages)
	return m.let("stage", scalar.Mod(step, stages)), m.Simplify(scalar.FloorDiv(step, stages))
}

// multiplySteps multiplies each step as it arrives, and gives the stage back of the one
// before, whose multiply-adds are over.
func (m *mmaEmitter) multiplySteps(full, empty int) {
	m.times("step", m.p.steps, func(step scalar.Expr) {
		stage, phase := m.turn(step)
		m.add(&loop.Await{Mbarrier: full, At: stage, Phase: phase})
		m.add(m.multiply(stage, 0), &loop.MmaWait{Pending: 1})
		m.when(scalar.Gt(step, loop.Int(0)), func() {
			before := m.Simplify(scalar.Mod(scalar.Add(step, loop.Int(m.p.stages-1)), loop.Int(m.p.stages)))
			m.add(&loop.Arrive{Mbarrier: empty, At: before})
		})
	})
	m.add(&loop.MmaWait{Names: m.sums})
}

// fetchSteps begins to copy each step when its stage is empty.
func (m *mmaEmitter) fetchSteps(full, empty int) {
	m.times("step", m.p.steps, func(step scalar.Expr) {
		stage, phase := m.turn(step)
		m.add(&loop.Await{Mbarrier: empty, At: stage, Phase: m.Simplify(scalar.Sub(phase, loop.Int(1)))})
		whole := m.let("at", scalar.Add(scalar.Mul(m.part, loop.Int(m.p.steps)), step))
		for i := range m.side {
			m.copyBoxes(&m.side[i], scalar.Mul(whole, loop.Int(m.p.length())), stage, full)
		}
		m.add(&loop.Arrive{Mbarrier: full, At: stage})
	})
}

// copyBoxes begins to copy the tile of a side from a contracted position on: at once where
// rows in shared memory lie along it, else panel by panel.
func (m *mmaEmitter) copyBoxes(s *mmaSide, k, stage scalar.Expr, full int) {
	free, row := scalar.Mul(s.index, loop.Int(s.tile)), loop.RowElements(m.p.operand)
	to := scalar.Mul(stage, loop.Int(s.stageLength(m.p)))
	panels, panel := 1, 0
	if s.layout == alongFree {
		panels, panel = s.tile/row, row*m.p.length()
	}
	for i := range panels {
		from := []scalar.Expr{k, free}
		if s.layout == alongFree {
			from = []scalar.Expr{scalar.Add(free, loop.Int(i*row)), k}
		}
		if s.view.batch {
			from = append(from, m.batch)
		}
		for j, x := range from {
			from[j] = m.Simplify(x)
		}
		m.add(&loop.CopyBox{
			Box: s.box, From: from, To: s.slot, ToAt: m.Simplify(scalar.Add(to, loop.Int(i*panel))), Mbarrier: full, At: stage,
		})
	}
}

// declareBoxes makes boxes of both operands, and reports whether they are some. A product of
// one step has nothing to copy beside its arithmetic: 64 of 256×256×64 in bf16 ran at
// 79 TFLOP/s by copies of all threads and at 73 by boxes on an H200, those of 4096 at 711 and
// 747.
func (m *mmaEmitter) declareBoxes() bool {
	if m.p.steps == 1 {
		return false
	}
	for i := range m.side {
		if m.side[i].view == nil {
			return false
		}
	}
	for i := range m.side {
		s := &m.side[i]
		row := loop.RowElements(m.p.operand)
		b := s.view.Box
		b.Size = []int{row, s.tile}
		if s.layout == alongFree {
			b.Size[1] = m.p.length()
		}
		if s.view.batch {
			b.Size = append(b.Size, 1)
		}
		s.box = len(m.boxes)
		m.boxes = append(m.boxes, b)
	}
	return true
}
