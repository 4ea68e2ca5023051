package cpu

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maker makes a nest of the code of a group.
type maker struct {
	n       *nest
	buffers map[int]*buffer // by the ID of the tensor
	named   map[string]value
	made    map[scalar.Expr]value
	same    map[signature]value
	coords  map[string]*axis
	p       *phase
	loop    int // the number of the loop over inner points at work, 0 outside
	loops   int
	err     error
}

// blocking says what blocks run along: the last coordinates, wide of them, of the
// outer or the inner ones.
type blocking struct {
	inner bool
	wide  int
}

// newMaker begins a nest over the given coordinates.
func newMaker(name string, outer, inner []scalar.Expr, outerDims, innerDims []int, b blocking, buffers map[int]*buffer) *maker {
	n := &nest{name: name, wideInner: b.inner}
	if b.inner {
		n.outer, n.inner = newSpace(outer, outerDims, 0), newSpace(inner, innerDims, b.wide)
	} else {
		n.outer, n.inner = newSpace(outer, outerDims, b.wide), newSpace(inner, innerDims, 0)
	}
	m := &maker{
		n: n, buffers: buffers,
		named: map[string]value{}, made: map[scalar.Expr]value{}, same: map[signature]value{}, coords: map[string]*axis{},
	}
	m.place(&n.outer, perRow, perBlock)
	m.place(&n.inner, perInner, perElement)
	m.nextPhase()
	return m
}

// place gives the coordinates of a space their registers.
func (m *maker) place(s *space, scalar, wide level) {
	s.start = m.n.sizes.add(s.startClass(), 1)
	for i := range s.vars {
		a := &s.vars[i]
		m.coords[a.name] = a
		if i < len(s.vars)-s.wide {
			a.reg = m.n.sizes.add(a.class(), 1)
			m.named[a.name] = value{reg: a.reg, level: scalar}
			continue
		}
		a.reg = m.n.sizes.add(a.class(), s.coordinateLanes())
		m.named[a.name] = value{reg: a.reg, level: wide, wide: true}
	}
}

// width is how many lanes wide registers have.
func (m *maker) width() int {
	if m.n.wideInner {
		return m.n.inner.lanes()
	}
	return m.n.outer.lanes()
}

func (m *maker) nextPhase() {
	m.p = &phase{stretch: lanes}
	m.n.phases = append(m.n.phases, m.p)
	m.loop = 0
}

// enterLoop makes what is compiled from now on part of the phase's loop over
// the inner points.
func (m *maker) enterLoop() {
	m.loops++
	m.loop = m.loops
	m.p.loop = true
}

func (m *maker) fail(format string, args ...any) {
	if m.err == nil {
		m.err = ir.Errorf(ir.ErrUnsupported, "%s: %s", m.n.name, fmt.Sprintf(format, args...))
	}
}

// emit adds an instruction to the code of a level.
func (m *maker) emit(at level, in instr) {
	switch at {
	case atStart:
		m.n.starts = append(m.n.starts, in)
	case perRun:
		m.n.runs = append(m.n.runs, in)
	case perRow:
		m.n.rows = append(m.n.rows, in)
	case perBlock:
		m.p.block = append(m.p.block, in)
	case perInner:
		m.p.inner = append(m.p.inner, in)
	default:
		m.p.element = append(m.p.element, in)
	}
}
