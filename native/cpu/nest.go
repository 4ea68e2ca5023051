package cpu

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cpu/jit"
)

// level is how often a value is computed.
type level uint8

const (
	atStart    level = iota // a constant: once
	perRun                  // run scalars, counters of loops: each time the group runs
	perRow                  // the outer coordinates that blocks do not run along
	perBlock                // outer coordinates along a block; values between stages
	perInner                // inner coordinates that blocks do not run along
	perElement              // inner coordinates along a block
)

// nest is how a group runs: rows of outer points, cut into blocks; for each
// block the phases in turn, each of which may go through the inner points.
//
// Blocks run either along outer points, so that each lane of a register is an
// outer point and inner points come one after the other, or along inner points
// (wideInner), so that a block is one outer point and its lanes are inner ones.
// Lanes cost least when what they load lies side by side.
type nest struct {
	name      string
	outer     space
	inner     space
	wideInner bool
	sizes     sizes
	starts    []instr // level atStart
	runs      []instr
	rows      []instr
	phases    []*phase
	sweep     []instr // one kernel for all rows, in place of phases
	cost      float64 // nanoseconds for one worker, roughly
}

// space is a list of coordinates, the last of which may make up the lanes of a
// block.
type space struct {
	vars []axis
	// wide is how many of vars run along a block; row is how many points they
	// have together and points how many rows there are.
	wide      int
	row, rows int
	start     register // the place of the block's first point in its row
}

// axis is one coordinate.
type axis struct {
	name   string
	size   int
	stride int // within the row, for wide ones
	reg    register
	used   bool // whether a wide one's register is read
}

// phase is a part of a block: code for the outer points, then a loop over the
// inner ones with running values.
type phase struct {
	block     []instr
	loop      bool
	inner     []instr
	element   []instr
	running   []running
	combining []*combining
	// finish, where there is any, is done instead of combining: running values
	// are then kept in as many lanes as a kernel computes at once.
	finish []instr
	// whole says that the code goes through all inner points at once, and sets
	// the running values.
	whole bool
	// stretch is how many inner points the code can take at once.
	stretch int
}

// running is a value that goes through a loop over inner points.
type running struct {
	acc  register
	init scalar.Value
}

// combining merges running values with those of other lanes, where lanes are
// inner points.
type combining struct {
	acc, other []register
	code       []instr
}

// newSpace returns a space of which the last coordinates, so many as wide says,
// run along a block.
func newSpace(vars []scalar.Expr, dims []int, wide int) space {
	s := space{row: 1, rows: 1, wide: wide}
	for i, d := range dims {
		s.vars = append(s.vars, axis{name: vars[i].Name, size: d})
	}
	for i := len(dims) - 1; i >= 0; i-- {
		if i >= len(dims)-wide {
			s.vars[i].stride = s.row
			s.row *= dims[i]
			continue
		}
		s.rows *= dims[i]
	}
	return s
}

// widths returns how many of the last coordinates may be worth running along a
// block: few make short blocks, many make coordinates that differ from lane to
// lane.
func widths(dims []int) []int {
	out := []int{min(1, len(dims))}
	row := 1
	for w := 1; w < len(dims); w++ {
		if row *= dims[len(dims)-w]; row >= lanes/4 {
			break
		}
		out = append(out, w+1)
	}
	return out
}

// scalars are the coordinates that do not run along a block, wides those that
// do.
func (s *space) scalars() []axis { return s.vars[:len(s.vars)-s.wide] }
func (s *space) wides() []axis   { return s.vars[len(s.vars)-s.wide:] }

// points returns how many points there are.
func (s *space) points() int { return s.row * s.rows }

// blocks returns how many blocks a row has.
func (s *space) blocks() int { return (s.row + lanes - 1) / lanes }

// lanesOf returns how many lanes a block of the space has at most.
func (s *space) lanes() int { return max(1, min(lanes, s.row)) }

// machine is a nest made ready for one worker: its registers, and its code
// bound to them.
type machine struct {
	n      *nest
	env    *environment
	files  *files
	runs   []op
	rows   []op
	phases []boundPhase
	sweep  func(rows int) // nil where there are phases
	outer  boundSpace
	inner  boundSpace
	epoch  uint64 // the run that the values per run are of
}

// op is an instruction with its registers, for a block of n lanes.
type op func(n int)

type boundPhase struct {
	block, inner, element, finish []op
	combining                     [][]op
}

// boundSpace is a space with its registers.
type boundSpace struct {
	*space
	scalar []*int32
	start  *int32
	wide   [][]int32
}

// environment is what the code of a program's groups refers to.
type environment struct {
	counters [maxDepth]int32
	scalars  []scalar.Value
	status   status
	spaces   spaces
	kernels  jit.Set
	epoch    uint64 // counts runs of groups
}

// maxDepth is the greatest depth of loops.
const maxDepth = 16

func newMachine(n *nest, env *environment) *machine {
	m := &machine{n: n, env: env, files: n.sizes.allocate()}
	for _, o := range m.bindAll(n.starts) {
		o(lanes)
	}
	m.runs, m.rows = m.bindAll(n.runs), m.bindAll(n.rows)
	for _, p := range n.phases {
		b := boundPhase{block: m.bindAll(p.block), inner: m.bindAll(p.inner), element: m.bindAll(p.element), finish: m.bindAll(p.finish)}
		for _, c := range p.combining {
			b.combining = append(b.combining, m.bindAll(c.code))
		}
		m.phases = append(m.phases, b)
	}
	m.outer, m.inner = m.bindSpace(&n.outer), m.bindSpace(&n.inner)
	if len(n.sweep) > 0 {
		m.sweep = m.bindRows(n.sweep[0].fused)
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

func (m *machine) bindSpace(s *space) boundSpace {
	b := boundSpace{space: s, start: &m.files.ints[s.start.index][0]}
	for _, a := range s.scalars() {
		b.scalar = append(b.scalar, &m.files.ints[a.reg.index][0])
	}
	for _, a := range s.wides() {
		if !a.used {
			b.wide = append(b.wide, nil)
			continue
		}
		b.wide = append(b.wide, m.files.ints[a.reg.index])
	}
	return b
}

// setRow puts the coordinates of a row into their registers.
func (b *boundSpace) setRow(row int) {
	for i := len(b.scalar) - 1; i >= 0; i-- {
		size := b.vars[i].size
		*b.scalar[i] = int32(row % size)
		row /= size
	}
}

// firstRow goes to the first row.
func (b *boundSpace) firstRow() {
	for _, at := range b.scalar {
		*at = 0
	}
}

// nextRow goes from one row to the next.
func (b *boundSpace) nextRow() {
	for i := len(b.scalar) - 1; i >= 0; i-- {
		if *b.scalar[i]++; *b.scalar[i] < int32(b.vars[i].size) {
			return
		}
		*b.scalar[i] = 0
	}
}

// setBlock puts the coordinates along a block of n points into their registers.
func (b *boundSpace) setBlock(from, n int) {
	*b.start = int32(from)
	for i, a := range b.wides() {
		if a.used {
			fillCoordinate(b.wide[i][:n], from, a.stride, a.size)
		}
	}
}

// fillCoordinate writes (from+i)/stride mod size for each lane i.
func fillCoordinate(d []int32, from, stride, size int) {
	at, left := int32(from/stride%size), stride-from%stride
	for i := range d {
		d[i] = at
		if left--; left == 0 {
			left = stride
			if at++; at == int32(size) {
				at = 0
			}
		}
	}
}

func runAll(code []op, n int) {
	for _, o := range code {
		o(n)
	}
}

// units is how many pieces the nest has, which may run in any order: rows where
// there is a kernel for them, else blocks.
func (n *nest) units() int {
	if len(n.sweep) > 0 {
		return n.outer.rows
	}
	return n.outer.rows * n.outer.blocks()
}

// span runs the units from first up to, not including, last.
func (m *machine) span(first, last int) {
	if m.epoch != m.env.epoch {
		m.epoch = m.env.epoch
		runAll(m.runs, 1)
	}
	if m.sweep != nil {
		m.rowsFrom(first, last)
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
		from := u % blocks * lanes
		n := min(lanes, m.outer.row-from)
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
			m.acrossInner(p, code)
		} else {
			m.alongInner(p, code, n)
		}
	}
}

// alongInner goes through the inner points one after the other.
func (m *machine) alongInner(p *phase, code *boundPhase, n int) {
	m.begin(p, n)
	m.inner.firstRow()
	for range m.inner.rows {
		runAll(code.inner, 1)
		runAll(code.element, n)
		m.inner.nextRow()
	}
}

// acrossInner goes through the inner points block by block, and merges the
// lanes at the end.
func (m *machine) acrossInner(p *phase, code *boundPhase) {
	if p.whole {
		m.inner.firstRow()
		runAll(code.inner, 1)
		m.inner.setBlock(0, m.inner.row)
		runAll(code.element, m.inner.row)
		return
	}
	width := m.inner.lanes()
	if p.finish != nil {
		width = jit.Lanes
	}
	m.begin(p, width)
	m.inner.firstRow()
	for range m.inner.rows {
		runAll(code.inner, 1)
		for from := 0; from < m.inner.row; from += p.stretch {
			n := min(p.stretch, m.inner.row-from)
			m.inner.setBlock(from, n)
			runAll(code.element, n)
		}
		m.inner.nextRow()
	}
	runAll(code.finish, 1)
	for i, c := range p.combining {
		for n := width; n > 1; {
			half := (n + 1) / 2
			for k, acc := range c.acc {
				m.files.shift(c.other[k], acc, half, n)
			}
			runAll(code.combining[i], n-half)
			n = half
		}
	}
}

// begin gives running values their first value.
func (m *machine) begin(p *phase, n int) {
	for _, r := range p.running {
		m.files.fill(r.acc, r.init, n)
	}
}

// shift copies lanes from up to to of a register to the beginning of another.
func (f *files) shift(dst, src register, from, to int) {
	switch src.class {
	case classF32:
		copy(f.f32[dst.index], f.f32[src.index][from:to])
	case classF64:
		copy(f.f64[dst.index], f.f64[src.index][from:to])
	case classInt:
		copy(f.ints[dst.index], f.ints[src.index][from:to])
	case classLong:
		copy(f.long[dst.index], f.long[src.index][from:to])
	default:
		copy(f.cplx[dst.index], f.cplx[src.index][from:to])
	}
}

// fill sets n lanes of a register.
func (f *files) fill(r register, v scalar.Value, n int) {
	switch r.class {
	case classF32:
		fill(f.f32[r.index][:n], float32(v.F))
	case classF64:
		fill(f.f64[r.index][:n], v.F)
	case classInt:
		fill(f.ints[r.index][:n], int32(v.I))
	case classLong:
		fill(f.long[r.index][:n], v.I)
	default:
		fill(f.cplx[r.index][:n], v.C)
	}
}

// fill sets a few lanes, and copies them to the others.
func fill[T lane](d []T, x T) {
	few := d[:min(len(d), 16)]
	for i := range few {
		few[i] = x
	}
	for done := len(few); done < len(d); done *= 2 {
		copy(d[done:], d[:done])
	}
}

// constantValue returns the value of a constant expression.
func constantValue(e scalar.Expr) (scalar.Value, error) {
	v, err := scalar.Eval(e, &scalar.Env{})
	if err != nil {
		return v, ir.Errorf(ir.ErrGraph, "the first value of a reduction is not constant: %v", err)
	}
	return v, nil
}
