package cpu

import (
	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// machine executes a nest for one worker: it has the registers, and the code bound to them as
// closures.
type machine struct {
	n       *nest
	env     *environment
	files   *files
	runs    []op
	rows    []op
	phases  []boundPhase
	runRows func(rows int) // runs the row kernel; nil where there are phases
	outer   boundSpace
	inner   boundSpace
	epoch   uint64 // the run for which the values per run were computed
}

// op is an instruction bound to its registers, for a block of n lanes.
type op func(n int)

type boundPhase struct {
	block, inner, element, unrolled, finish []op
	tail, carry, total                      []op
	merges                                  [][]op
	// sweep does the work of unrolled, or that of element, several times; nil, or false, where it cannot.
	sweep func(times, n int) bool
}

func newMachine(n *nest, env *environment) *machine {
	m := &machine{n: n, env: env, files: n.sizes.allocate()}
	for _, o := range m.bindAll(n.starts) {
		o(blockLanes)
	}
	m.runs, m.rows = m.bindAll(n.runs), m.bindAll(n.rows)
	for _, p := range n.phases {
		b := boundPhase{
			block: m.bindAll(p.block), inner: m.bindAll(p.inner), element: m.bindAll(p.element), unrolled: m.bindAll(p.unrolled), finish: m.bindAll(p.finish),
			tail: m.bindAll(p.tail), carry: m.bindAll(p.carry), total: m.bindAll(p.total),
		}
		for _, c := range p.merges {
			b.merges = append(b.merges, m.bindAll(c.code))
		}
		if x := p.unrolled; len(x) > 0 && x[0].fused.kernels.Strides != nil {
			b.sweep = m.bindTimes(x[0].fused)
		}
		if p.sweeps {
			b.sweep = m.bindTimes(p.element[0].fused)
		}
		m.phases = append(m.phases, b)
	}
	m.outer, m.inner = m.bindSpace(&n.outer), m.bindSpace(&n.inner)
	if len(n.rowKernel) > 0 {
		m.runRows = m.bindRows(n.rowKernel[0].fused)
	}
	return m
}

func (m *machine) bindAll(code []instr) []op {
	out := make([]op, len(code))
	for i := range code {
		out[i] = m.bind(&code[i])
	}
	return out
}

func runAll(code []op, n int) {
	for _, o := range code {
		o(n)
	}
}

// runUnits runs the units in [first, last).
func (m *machine) runUnits(first, last int) {
	if m.epoch != m.env.epoch {
		m.epoch = m.env.epoch
		runAll(m.runs, 1)
	}
	if m.runRows != nil {
		m.runRowRange(first, last)
		return
	}
	blocks, row := m.outer.blocks(), -1
	for u := first; u < last; u++ {
		switch r := u / blocks; {
		case row < 0:
			row = r
			m.outer.setRow(row)
			runAll(m.rows, 1)
		case r != row:
			row = r
			m.outer.nextRow()
			runAll(m.rows, 1)
		}
		from := u % blocks * m.outer.block
		n := min(m.outer.block, m.outer.row-from)
		m.outer.setBlock(from, n)
		m.block(n)
	}
}

func (m *machine) block(n int) {
	for i := range m.phases {
		p, code := m.n.phases[i], &m.phases[i]
		runAll(code.block, n)
		if !p.loop {
			continue
		}
		if m.n.wideInner {
			m.innerVector(p, code)
		} else {
			m.innerSerial(p, code, n)
		}
	}
}

// innerSerial visits the inner points one after the other; lanes are outer points.
func (m *machine) innerSerial(p *phase, code *boundPhase, n int) {
	m.initAccumulators(p, n)
	m.inner.firstRow()
	left, sums := m.inner.rows, sumBlocks{code: code, n: n}
	if code.sweep != nil {
		for left >= p.factor {
			times := min(left, 2*fusion.SumBlockLen) / p.factor
			if !code.sweep(times, n) {
				break
			}
			left -= times * p.factor
			m.inner.setRow(m.inner.rows - left)
			sums.add(times * p.factor)
		}
	}
	for ; len(code.unrolled) > 0 && left >= p.factor; left -= p.factor {
		runAll(code.unrolled, n)
		for range p.factor {
			m.inner.nextRow()
		}
		sums.add(p.factor)
	}
	for range left {
		runAll(code.inner, 1)
		runAll(code.element, n)
		m.inner.nextRow()
		sums.add(1)
	}
	sums.end()
}

// innerVector visits the inner points block by block, as lanes are inner points, and merges
// the lanes at the end.
func (m *machine) innerVector(p *phase, code *boundPhase) {
	if p.whole {
		m.inner.firstRow()
		runAll(code.inner, 1)
		m.inner.setBlock(0, m.inner.row)
		runAll(code.element, m.inner.row)
		return
	}
	width := m.inner.lanes()
	if p.finish != nil {
		width = jit.MaxLanes
	}
	m.initAccumulators(p, width)
	m.inner.firstRow()
	sums := sumBlocks{code: code, n: width}
	if p.sweeps {
		m.sweepRows(code)
	} else {
		m.visitBlocks(p, code, &sums)
	}
	sums.end()
	runAll(code.finish, 1)
	for i, c := range p.merges {
		for n := width; n > 1; {
			half := (n + 1) / 2
			for k, acc := range c.acc {
				m.files.of(acc).shift(c.other[k].index, acc.index, half, n)
			}
			runAll(code.merges[i], n-half)
			n = half
		}
	}
}

// sweepRows visits the inner points, all rows along the last coordinate outside of the lanes in one call.
func (m *machine) sweepRows(code *boundPhase) {
	m.inner.setBlock(0, m.inner.row)
	along := m.inner.vars[len(m.inner.scalar)-1].size
	for row := 0; row < m.inner.rows; row += along {
		m.inner.setRow(row)
		code.sweep(along, m.inner.row)
	}
}

// visitBlocks visits the inner points row by row, and those of a row in blocks.
func (m *machine) visitBlocks(p *phase, code *boundPhase, sums *sumBlocks) {
	for range m.inner.rows {
		runAll(code.inner, 1)
		for from, n := 0, 0; from < m.inner.row; from += n {
			element := code.element
			switch n = min(p.maxPoints, m.inner.row-from); {
			case n < p.even:
				element = code.tail
			case p.even > 0:
				n -= n % p.even
			}
			m.inner.setBlock(from, n)
			runAll(element, n)
			sums.add(1)
		}
		m.inner.nextRow()
	}
}

// initAccumulators sets accumulators to their initial values.
func (m *machine) initAccumulators(p *phase, n int) {
	for _, r := range p.accumulators {
		m.files.of(r.acc).fill(r.acc.index, r.init, n)
	}
	for _, x := range p.compensated {
		m.files.of(x.sum).fill(x.sum.index, scalar.Value{}, n)
		m.files.of(x.err).fill(x.err.index, scalar.Value{}, n)
	}
}
