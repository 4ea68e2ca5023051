package sim

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir/loop"
)

// mbarrier is the state of one barrier of a [loop.Mbarrier].
type mbarrier struct {
	name      string
	index     int
	warps     int       // expected in a phase
	completed int       // number of completed phases
	here      int       // warps that have arrived in the current phase
	copies    []arrival // copies of the current phase
	arrived   []uint32  // joined clocks of the warps that have arrived, see [part.clock]
	clock     []uint32  // the same at the end of the last phase
	landing   int32     // writer id of the copies, see [firstCopy]
}

// barriersOf returns the number of mbarriers of the kernel.
func barriersOf(k *loop.Kernel) int {
	n := 0
	for _, b := range k.Mbarriers {
		n += b.Len
	}
	return n
}

// mbarriers are those of a workgroup, by the numbers of the kernel's.
type mbarriers struct {
	*machine
	rows [][]*mbarrier
}

// reset creates the mbarriers of a workgroup.
func (bs *mbarriers) reset() {
	bs.rows = bs.rows[:0]
	number := 0
	for _, b := range bs.k.Mbarriers {
		row := make([]*mbarrier, b.Len)
		for i := range row {
			row[i] = &mbarrier{name: b.Name, index: i, warps: b.Warps, landing: int32(firstCopy - number)}
			number++
		}
		bs.rows = append(bs.rows, row)
	}
}

// find returns the mbarrier that all threads of the part name, if it exists.
func (bs *mbarriers) find(number int, at column, active []int32) (*mbarrier, bool) {
	if !bs.converged(active) {
		return nil, false
	}
	i, row := at.i[active[0]], bs.rows[number]
	if i < 0 || i >= int64(len(row)) {
		bs.fail(OutOfBounds, active[0], bs.k.Mbarriers[number].Name, int(i), 0)
		return nil, false
	}
	return row[i], true
}

// join returns the component-wise maximum of two clocks.
func join(a, b []uint32) []uint32 {
	if a == nil {
		return slices.Clone(b)
	}
	for i, t := range b {
		a[i] = max(a[i], t)
	}
	return a
}

// arriveAt counts the arriving warps. What they did happens before the end of the phase.
func (c asyncCompiler) arriveAt(s *loop.Arrive) {
	m, at := c.m, c.expr(s.At)
	c.add(func(active []int32) {
		b, ok := m.mbarriers.find(s.Mbarrier, at, active)
		if !ok {
			return
		}
		if b.here += len(active) / loop.Warp; b.here > b.warps {
			m.fail(Overrun, active[0], b.name, b.index, 0)
			return
		}
		b.arrived = join(b.arrived, m.part.clock)
		b.arrived[m.part.number] = m.epoch
		m.epoch++
		if b.here == b.warps {
			m.mbarriers.endPhase(b, active[0])
		}
	})
}

// endPhase writes the copied elements; they need not be visible earlier.
func (bs *mbarriers) endPhase(b *mbarrier, t int32) {
	for _, x := range b.copies {
		x.to.a.async[x.to.elem].inFlight = false
		if x.from.a != nil && math.Float64bits(x.from.number()) != math.Float64bits(x.value) {
			bs.fail(Unfinished, t, x.from.a.Name, x.from.elem, 0)
			return
		}
		cell := &x.to.a.cells[x.to.elem]
		cell.writeEpoch, cell.writer, cell.writeGroup = bs.epoch, b.landing, bs.group
		x.to.a.own.setNumber(x.to.elem, x.value)
	}
	b.arrived[bs.roleOf(b.landing)] = bs.epoch
	b.clock = join(b.clock, b.arrived)
	bs.epoch++
	b.copies, b.here, b.completed = b.copies[:0], 0, b.completed+1
}

// await suspends the role until a phase is complete.
func (c asyncCompiler) await(s *loop.Await) {
	m, at, phase := c.m, c.expr(s.At), c.expr(s.Phase)
	c.add(func(active []int32) {
		b, ok := m.mbarriers.find(s.Mbarrier, at, active)
		if !ok {
			return
		}
		p, until, here := m.part, int(phase.i[active[0]])+1, m.at
		if p.ready = func() bool { return b.completed >= until }; !p.ready() {
			p.at, p.awaited = here, b
			p.yield()
			m.at = here
		}
		p.ready = nil
		switch {
		case m.fault != nil || b.completed < until: // the simulation is being stopped
			return
		case b.completed > until: // by parity, the hardware would wait for the phase after the next
			m.fail(Overrun, active[0], b.name, b.index, 0)
		case b.completed > 0:
			p.clock = join(p.clock, b.clock)
		}
	})
}

// copyTMA starts a copy: values are read at once and written when the phase ends.
func (c asyncCompiler) copyTMA(s *loop.CopyTMA) {
	m, to := c.m, c.m.arrays[s.To]
	view := &m.k.TensorMaps[s.Map]
	from := m.arrays[view.Array]
	toAt, at := c.expr(s.ToAt), c.expr(s.At)
	origin, offset := make([]column, len(s.From)), make([]column, len(s.Offset))
	for i, e := range s.From {
		origin[i] = c.expr(e)
	}
	for i, e := range s.Offset {
		offset[i] = c.expr(e)
	}
	c.add(func(active []int32) {
		b, ok := m.mbarriers.find(s.Mbarrier, at, active)
		if !ok {
			return
		}
		t := active[0]
		base := int(toAt.i[t])
		if base < 0 || base+view.Elements() > to.Len {
			m.fail(OutOfBounds, t, to.Name, base, 0)
			return
		}
		if base*to.size%loop.TileAlign != 0 {
			m.fail(Misaligned, t, to.Name, base, 0)
			return
		}
		for i := range view.Elements() {
			x := arrival{to: elementOf(to, base, i, view)}
			elem, inside := 0, false
			if view.Im2col != nil {
				elem, inside = pixelElement(view, origin, offset, i, t)
			} else {
				elem, inside = tiledElement(view, origin, i, t)
			}
			if inside {
				x.from = element{from, elem}
			}
			if !m.mbarriers.begin(&x, t) {
				return
			}
			b.copies = append(b.copies, x)
		}
	})
}

// elementOf returns the destination of element i of a copy, in rows of a tile.
func elementOf(to *array, base, i int, view *loop.TensorMap) element {
	tile := loop.Tile{}
	return element{to, base + tile.Element(to.DType, i/view.Size[0], i%view.Size[0])}
}

// tiledElement returns the source of element i of a copy, and whether it is in bounds of the tensor map.
func tiledElement(view *loop.TensorMap, origin []column, i int, t int32) (elem int, inside bool) {
	elem, inside = view.First, true
	for axis, size := range view.Size {
		stride := 1
		if axis > 0 {
			stride = view.Strides[axis-1]
		}
		at := int(origin[axis].i[t]) + i%size
		i /= size
		elem += at * stride
		inside = inside && at >= 0 && at < view.Dims[axis]
	}
	return elem, inside
}

// pixelElement is tiledElement for a copy in im2col mode.
func pixelElement(view *loop.TensorMap, origin, offset []column, i int, t int32) (elem int, inside bool) {
	carry, i := i/view.Size[0], i%view.Size[0] // the pixels after the origin
	at := int(origin[0].i[t]) + i
	elem, inside = view.First+at, at >= 0 && at < view.Dims[0]
	last := len(view.Dims) - 1
	for axis := 1; axis <= last; axis++ {
		at = int(origin[axis].i[t])
		if axis < last {
			c, spatial := view.Im2col, axis-1
			lower, step, pixels := c.Lower[spatial], c.Step[spatial], c.Pixels(view, spatial)
			carry += (at - lower) / step
			at = lower + carry%pixels*step + int(offset[spatial].i[t])
			carry /= pixels
		} else {
			at += carry
		}
		elem += at * view.Strides[axis-1]
		inside = inside && at >= 0 && at < view.Dims[axis]
	}
	return elem, inside
}

// begin checks that an element may be written from now on.
func (bs *mbarriers) begin(x *arrival, t int32) bool {
	if x.from.a != nil {
		if !bs.noteRead(x.from.a, x.from.elem, t) {
			return false
		}
		x.value = x.from.number()
	}
	s, c := &x.to.a.async[x.to.elem], &x.to.a.cells[x.to.elem]
	switch {
	case s.inFlight || s.reading > 0:
		bs.fail(Unfinished, t, x.to.a.Name, x.to.elem, 0)
	case !bs.happenedBefore(c.writeEpoch, c.writer, t):
		bs.fail(Race, t, x.to.a.Name, x.to.elem, otherThread(c.writer))
	case !bs.happenedBefore(c.readEpoch, c.reader, t):
		bs.fail(Race, t, x.to.a.Name, x.to.elem, otherThread(c.reader))
	default:
		s.inFlight = true
		return true
	}
	return false
}
