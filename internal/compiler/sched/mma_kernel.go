package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// mmaEmitter writes the kernel of a contraction by multiply-adds. Asynchronous copies bring the
// steps of both operands to shared memory several steps ahead of the arithmetic.
type mmaEmitter struct {
	*writer
	out    epilogue
	p      *mmaPlan
	atom   loop.MmaShape
	part   scalar.Expr
	batch  scalar.Expr // number of the batch
	valid  scalar.Expr // false in workgroups beyond the last tile
	thread scalar.Expr
	group  scalar.Expr // the thread's warp group
	row    scalar.Expr // origin of the thread in its warp group's part,
	column scalar.Expr // see [loop.MmaShape]
	side   [2]mmaSide  // rows, columns
	sums   []string    // accumulators
	left   [2][]string // the rows' operand in registers, of even and of odd steps
}

func newMmaEmitter(e *emitter, g *fusion.Group, c *fusion.Contraction, p *mmaPlan, scratch [2]*fusion.Tensor) *mmaEmitter {
	e.workgroup = [3]int{mmaThreads, 1, 1}
	m := &mmaEmitter{writer: &writer{emitter: e}, p: p, atom: loop.MmaShape{Operand: p.operand, N: p.columns}}
	m.out = epilogue{emitter: e, g: g, c: c}
	row, column := m.assignTile(c)
	for i, operand := range [2]int{p.rows, 1 - p.rows} {
		m.side[i] = m.newSide(operand, i, scratch[operand])
		if e.caps.TensorMaps && !m.side[i].threadRead {
			if b, ok := m.sideTensorMap(operand, &m.side[i], scratch[operand]); ok {
				m.side[i].tensorMap = &b
			}
		}
	}
	m.side[0].index, m.side[1].index = row, column
	return m
}

// threadCoords names the coordinates of a thread that multiplies.
func (m *mmaEmitter) threadCoords() {
	m.thread = loop.LocalID(0, mmaThreads)
	m.group = m.let("warp_group", scalar.FloorDiv(m.thread, loop.Int(loop.WarpGroup)))
	row, column := m.atom.Origin(scalar.Mod(m.thread, loop.Int(loop.WarpGroup)))
	m.row, m.column = m.let("row", row), m.let("column", column)
}

// declareSums defines the accumulators.
func (m *mmaEmitter) declareSums() {
	for i := range m.atom.Sums() {
		m.sums = append(m.sums, "sum"+strconv.Itoa(i))
		m.add(&loop.Var{Name: m.sums[i], Init: scalar.ConstF(ir.F32, 0)})
	}
}

// assignTile names the part and the batch of the workgroup, and returns the row and the column
// of its tile. Workgroups that run at about the same time have tiles of few rows, so that the
// cache holds their operands.
func (m *mmaEmitter) assignTile(c *fusion.Contraction) (row, column scalar.Expr) {
	rows, columns := m.p.tiles(c)
	batches := fusion.Product(c.Batch)
	workgroup, valid := m.boundedGroup(m.p.parts * batches * rows * columns)
	m.valid = valid
	m.part = m.let("part", scalar.FloorDiv(workgroup, loop.Int(batches*rows*columns)))
	batch := scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(rows*columns)), loop.Int(batches))
	m.batch = m.bounded("batch", batch, batches)
	m.out.batch = m.unflatten(m.batch, c.Batch)
	at := m.let("tile", scalar.Mod(workgroup, loop.Int(rows*columns)))
	first := m.let("first", scalar.Mul(scalar.FloorDiv(at, loop.Int(rasterRows*columns)), loop.Int(rasterRows)))
	high := m.let("high", scalar.Min(scalar.Sub(loop.Int(rows), first), loop.Int(rasterRows)))
	at = m.let("within", scalar.Mod(at, loop.Int(rasterRows*columns)))
	return m.bounded("tile_row", scalar.Add(first, scalar.Rem(at, high)), rows), m.bounded("tile_column", scalar.Div(at, high), columns)
}

// bounded names an integer in [0, n).
func (m *mmaEmitter) bounded(prefix string, x scalar.Expr, n int) scalar.Expr {
	if n == 1 {
		return loop.Int(0)
	}
	name := m.name(prefix)
	m.add(&loop.Let{Name: name, Value: m.Simplify(x)})
	return scalar.NewVar(name, ir.I32, 0, int64(n-1))
}

// kernel writes the whole kernel; result returns the stores of a sum.
func (m *mmaEmitter) kernel(name string, result resultStores) Launch {
	if m.declareTensorMaps() {
		m.workgroup[0] += loop.Warp
		return m.specializedKernel(name, result)
	}
	m.threadCoords()
	m.declareSums()
	m.declareLeft()
	for s := range m.p.inFlight() {
		m.prefetch(loop.Int(s))
	}
	iterations, each := m.p.steps, 1
	if m.p.inRegisters() {
		iterations, each = iterations/2, 2
	}
	m.times("step", iterations, func(i scalar.Expr) {
		for parity := range each {
			m.step(scalar.Add(scalar.Mul(i, loop.Int(each)), loop.Int(parity)), parity)
		}
	})
	m.add(&loop.MmaWait{Names: m.sums}, &loop.CopyWait{})
	m.store(result)
	return m.launch(name)
}

// step multiplies a step that has arrived and starts the copies of a later one. They overwrite a
// stage that all threads have read: before the barrier each has waited for the multiply-adds of
// read steps ago.
func (m *mmaEmitter) step(at scalar.Expr, parity int) {
	m.add(&loop.CopyWait{Pending: m.p.inFlight() - 1}, &loop.ProxyFence{}, &loop.Barrier{})
	stage := m.let("stage", scalar.Mod(at, loop.Int(m.p.stages)))
	if m.p.inRegisters() {
		m.loadLeft(stage, parity)
	}
	m.add(m.multiply(stage, parity))
	m.prefetch(m.Simplify(scalar.Add(at, loop.Int(m.p.inFlight()))))
	// The registers of the other parity are free once its multiply-adds are done.
	m.add(&loop.MmaWait{Pending: m.p.stagesRead - 1, Names: m.left[1-parity]})
}

// prefetch starts the copies of a step, if it exists. It commits a group of copies in any case,
// so that groups can be counted.
func (m *mmaEmitter) prefetch(step scalar.Expr) {
	m.when(scalar.Lt(step, loop.Int(m.p.steps)), func() {
		inside := m.bounded("ahead", scalar.Min(step, loop.Int(m.p.steps-1)), m.p.steps)
		stage := m.let("to", scalar.Mod(inside, loop.Int(m.p.stages)))
		whole := m.let("at", scalar.Add(scalar.Mul(m.part, loop.Int(m.p.steps)), inside))
		for i := range m.side {
			m.startCopies(&m.side[i], whole, stage)
		}
	})
	m.add(&loop.CopyCommit{})
}

// multiply returns the multiply-adds of a step.
func (m *mmaEmitter) multiply(stage scalar.Expr, parity int) *loop.Mma {
	rows, columns := &m.side[0], &m.side[1]
	s := &loop.Mma{Shape: m.atom}
	own := loop.MmaRows * loop.RowElements(m.p.operand) // a warp group's rows, in either layout
	for k := 0; k < m.p.stepLength(); k += m.atom.K() {
		t := loop.MmaTerm{Sums: m.sums, B: m.operand(columns, stage, k, loop.Int(0))}
		if m.p.inRegisters() {
			first := k / m.atom.K() * 4
			t.LeftRegisters = m.left[parity][first : first+4]
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
		t.Depth = m.p.stepLength()
	}
	return t
}

// partial returns the stores of split-K partial sums.
func (m *mmaEmitter) partial(t *fusion.Tensor) resultStores {
	return func(sum scalar.Expr, at ir.Index) []pendingStore {
		return []pendingStore{{t, append(ir.Index{m.part}, at...), sum}}
	}
}

// specializedKernel writes a warp-specialised kernel for targets with tensor maps (TMA): one
// producer warp starts all copies and the others multiply. Each stage has two barriers: full
// completes when its operands have arrived, empty when all warps have read them.
func (m *mmaEmitter) specializedKernel(name string, result resultStores) Launch {
	full := m.mbarrier("full", m.p.stages, 1)
	empty := m.mbarrier("empty", m.p.stages, mmaThreads/loop.Warp)
	multiply := m.nested(func() {
		m.threadCoords()
		m.declareSums()
		m.multiplySteps(full, empty)
		m.store(result)
	})
	fetch := m.nested(func() { m.copySteps(full, empty) })
	m.add(&loop.Roles{List: []loop.Role{{Threads: mmaThreads, Body: multiply}, {Threads: loop.Warp, Body: fetch}}})
	return m.launch(name)
}

// stageOf returns the stage of a step and the number of its earlier uses.
func (m *mmaEmitter) stageOf(step scalar.Expr) (stage, phase scalar.Expr) {
	stages := loop.Int(m.p.stages)
	return m.let("stage", scalar.Mod(step, stages)), m.Simplify(scalar.FloorDiv(step, stages))
}

// multiplySteps multiplies each step as it arrives, and releases the stage of the step before,
// whose multiply-adds are done.
func (m *mmaEmitter) multiplySteps(full, empty int) {
	m.times("step", m.p.steps, func(step scalar.Expr) {
		stage, phase := m.stageOf(step)
		m.add(&loop.Await{Mbarrier: full, At: stage, Phase: phase})
		m.add(m.multiply(stage, 0), &loop.MmaWait{Pending: 1})
		m.when(scalar.Gt(step, loop.Int(0)), func() {
			before := m.Simplify(scalar.Mod(scalar.Add(step, loop.Int(m.p.stages-1)), loop.Int(m.p.stages)))
			m.add(&loop.Arrive{Mbarrier: empty, At: before})
		})
	})
	m.add(&loop.MmaWait{Names: m.sums})
}

// copySteps starts the copies of each step when its stage is empty.
func (m *mmaEmitter) copySteps(full, empty int) {
	m.times("step", m.p.steps, func(step scalar.Expr) {
		stage, phase := m.stageOf(step)
		m.add(&loop.Await{Mbarrier: empty, At: stage, Phase: m.Simplify(scalar.Sub(phase, loop.Int(1)))})
		whole := m.let("at", scalar.Add(scalar.Mul(m.part, loop.Int(m.p.steps)), step))
		for i := range m.side {
			m.copyByTensorMap(&m.side[i], scalar.Mul(whole, loop.Int(m.p.stepLength())), stage, full)
		}
		m.add(&loop.Arrive{Mbarrier: full, At: stage})
	})
}

// copyByTensorMap starts the copies of a side's tile at a contracted position: one copy if rows
// in shared memory lie along k, otherwise one for each panel.
func (m *mmaEmitter) copyByTensorMap(s *mmaSide, k, stage scalar.Expr, full int) {
	free, row := scalar.Mul(s.index, loop.Int(s.tile)), loop.RowElements(m.p.operand)
	to := scalar.Mul(stage, loop.Int(s.stageLength(m.p)))
	panels, panel := 1, 0
	if s.layout == alongFree {
		panels, panel = s.tile/row, row*m.p.stepLength()
	}
	for i := range panels {
		from := []scalar.Expr{k, free}
		if s.layout == alongFree {
			from = []scalar.Expr{scalar.Add(free, loop.Int(i*row)), k}
		}
		if s.tensorMap.batch {
			from = append(from, m.batch)
		}
		for j, x := range from {
			from[j] = m.Simplify(x)
		}
		m.add(&loop.CopyTMA{
			Map: s.mapNumber, From: from, To: s.slot, ToAt: m.Simplify(scalar.Add(to, loop.Int(i*panel))), Mbarrier: full, At: stage,
		})
	}
}

// declareTensorMaps declares the tensor maps of both operands, or returns false if one has none.
// It also returns false for a product of one step, which has no arithmetic to overlap with
// copies: 64 of 256×256×64 in bf16 ran at 79 TFLOP/s with copies by all threads and at 73 with
// tensor maps on an H200; those of 4096 at 711 and 747.
func (m *mmaEmitter) declareTensorMaps() bool {
	if m.p.steps == 1 {
		return false
	}
	for i := range m.side {
		if m.side[i].tensorMap == nil {
			return false
		}
	}
	for i := range m.side {
		s := &m.side[i]
		row := loop.RowElements(m.p.operand)
		b := s.tensorMap.TensorMap
		b.Size = []int{row, s.tile}
		if s.layout == alongFree {
			b.Size[1] = m.p.stepLength()
		}
		if s.tensorMap.batch {
			b.Size = append(b.Size, 1)
		}
		s.mapNumber = len(m.boxes)
		m.boxes = append(m.boxes, b)
	}
	return true
}

// maxRoundPad is the maximum padding of a row of results in shared memory.
const maxRoundPad = 4

// roundStride returns the elements from one row of results in shared memory to the next. Threads
// read results coalesced along the last axis of the output: if that is the atoms' columns, a
// pitch of 68 limits a warp's writes to two-way bank conflicts; if it is their rows, 65 makes a
// warp's reads free of conflicts.
func (m *mmaEmitter) roundStride() int {
	if m.p.rows == 1 {
		return roundColumns + 1
	}
	return roundColumns + maxRoundPad
}

// Results that a thread computes at a time, so that their loads are in flight together:
// quadsInFlight times four neighbours, or fewer where an epilogue of so many operations unrolled
// would take more than maxQuadOps.
const (
	quadsInFlight = 4
	maxQuadOps    = 256
)

// store stores the accumulators through shared memory, in rounds of some columns. The epilogue
// is then a loop with coalesced stores.
func (m *mmaEmitter) store(result resultStores) {
	slot := m.shared("results", ir.F32, 1, mmaRows*m.roundStride())
	first := scalar.Add(scalar.Mul(m.group, loop.Int(loop.MmaRows)), m.row)
	own := m.let("own", scalar.Add(scalar.Mul(first, loop.Int(m.roundStride())), scalar.Mul(m.column, loop.Int(2))))
	m.times("round", m.p.columns/roundColumns, func(round scalar.Expr) {
		m.barrier()
		m.stageRound(slot, round, own)
		m.barrier()
		m.storeRound(slot, round, result)
	})
}

// neighbours returns the number of results next to each other in memory that a thread stores: a
// vector, where the last axis of the output consists of whole ones.
func (m *mmaEmitter) neighbours() int {
	if m.side[1-m.p.rows].free%width != 0 {
		return 1
	}
	return width
}

// storeRound computes and stores the results of a round. A thread has several runs of neighbours
// at a time.
func (m *mmaEmitter) storeRound(slot int, round scalar.Expr, result resultStores) {
	run := m.neighbours()
	runs := quadsInFlight
	for runs > 1 && runs*run*m.out.g.Weight() > maxQuadOps {
		runs /= 2
	}
	total := mmaRows * roundColumns / run
	m.loop("result", m.thread, loop.Int(total), runs*mmaThreads, total-1, func(at scalar.Expr) {
		v := newVectorizer(m.writer)
		v.observeWritten(m.body)
		var list [][]pendingStore
		var inside []scalar.Expr
		for j := range runs {
			stores, exists := m.runStores(slot, round, scalar.Add(at, loop.Int(j*mmaThreads)), run, result)
			list, inside = append(list, stores), append(inside, exists)
			v.observeStores(stores, run)
			for _, s := range stores {
				v.observe(s.value)
			}
		}
		v.decide()
		if x, known := inside[0].IntConst(); known && x != 0 {
			v.store(slices.Concat(list...), run, all(run))
			return
		}
		for j, stores := range list {
			m.when(inside[j], func() { v.store(stores, run, all(run)) })
		}
	})
}

// stageRound stores the accumulators of a round, the thread's first at offset own. Registers are
// named statically, so each round has a branch.
func (m *mmaEmitter) stageRound(slot int, round, own scalar.Expr) {
	per := m.atom.Sums() * roundColumns / m.p.columns
	var body []loop.Stmt
	for r := m.p.columns/roundColumns - 1; r >= 0; r-- {
		then := m.nested(func() {
			for i := range per {
				row, column := m.atom.Sum(i)
				m.put(slot, scalar.Add(own, loop.Int(row*m.roundStride()+column)), scalar.FreeVar(m.sums[r*per+i], ir.F32))
			}
		})
		if body != nil {
			then = []loop.Stmt{&loop.If{Cond: scalar.Lt(round, loop.Int(r+1)), Then: then, Else: body}}
		}
		body = then
	}
	m.add(body...)
}

// runStores returns the stores of run neighbouring results of a round, by tensor, and the condition
// that they exist.
func (m *mmaEmitter) runStores(slot int, round, at scalar.Expr, run int, result resultStores) (stores []pendingStore, exists scalar.Expr) {
	along := 1 - m.p.rows // the side of the neighbours
	sizes := [2]int{mmaRows, roundColumns}
	sizes[along] /= run
	var tile [2]scalar.Expr // coordinates in the round
	tile[1-along], tile[along] = scalar.FloorDiv(at, loop.Int(sizes[along])), scalar.Mul(scalar.Mod(at, loop.Int(sizes[along])), loop.Int(run))
	first := [2]scalar.Expr{
		scalar.Mul(m.side[0].index, loop.Int(mmaRows)),
		scalar.Add(scalar.Mul(m.side[1].index, loop.Int(m.p.columns)), scalar.Mul(round, loop.Int(roundColumns))),
	}
	var position [2]scalar.Expr
	exists = m.valid
	for i, s := range m.side {
		x, unit := scalar.Add(first[i], tile[i]), 1
		if i == along {
			unit = run
		}
		if s.free%s.tile != 0 {
			exists = scalar.And(exists, scalar.Lt(x, loop.Int(s.free)))
			x = scalar.Min(x, loop.Int(s.free-unit))
		}
		x = m.bounded([2]string{"m", "n"}[i], scalar.FloorDiv(x, loop.Int(unit)), s.free/unit)
		position[i] = scalar.Mul(x, loop.Int(unit))
	}
	each := make([][]pendingStore, run)
	for j := range each {
		here, in := position, tile
		here[along], in[along] = scalar.Add(here[along], loop.Int(j)), scalar.Add(in[along], loop.Int(j))
		sum := m.let("total", scalar.LoadAt(slot, ir.F32, m.Simplify(scalar.Add(scalar.Mul(in[0], loop.Int(m.roundStride())), in[1]))))
		each[j] = result(sum, m.pointAt(here))
	}
	return byTensor(each), m.Simplify(exists)
}

// pointAt returns the point of the group at a row and a column.
func (m *mmaEmitter) pointAt(position [2]scalar.Expr) ir.Index {
	rows, columns := m.p.free(m.out.c)
	x, y := m.unflatten(m.Simplify(position[0]), rows), m.unflatten(m.Simplify(position[1]), columns)
	if m.p.rows == 1 {
		x, y = y, x
	}
	return m.out.point(x, y)
}
