package sim

import (
	"math"

	"github.com/rlx-go/rlx/ir/loop"
)

// asyncState is the state of an element of shared memory in asynchronous operations.
type asyncState struct {
	inFlight bool  // destination of a copy in flight
	reading  int32 // number of multiply-adds in flight that read it
	stored   bool  // stored to, without a proxy fence since
}

// element is an element of an array.
type element struct {
	a    *array
	elem int
}

// copyGroup is a group of copies that are waited for together.
type copyGroup []arrival

// arrival is an element of a copy in flight.
type arrival struct {
	to    element
	from  element // no array for zero fill
	value float64
}

// copies are the copies by threads that are in flight in a workgroup.
type copies struct {
	*machine
	groups [][]copyGroup // by thread: groups in flight and, last, the open one
	spare  []copyGroup   // completed groups, whose memory the next ones use
	stored [][]element   // by thread: stores since its last proxy fence to arrays with async state
}

// The two kinds of access to an element.
const (
	loads  = false
	stores = true
)

// prepare allocates the state to track arrays and variables of asynchronous operations.
func (m *machine) prepare(body []loop.Stmt) {
	watch := func(i int) {
		if a := m.arrays[i]; a.async == nil {
			a.async = make([]asyncState, a.Len*a.Width)
		}
	}
	loop.Walk(body, func(s loop.Stmt) {
		switch s := s.(type) {
		case *loop.CopyAsync:
			watch(s.To)
		case *loop.CopyTMA:
			watch(s.To)
		case *loop.Mma:
			m.whole.held = map[string]int{}
			for _, t := range s.Terms {
				if t.LeftRegisters == nil {
					watch(t.A.Array)
				}
				watch(t.B.Array)
			}
		}
	})
	m.mbarriers = mbarriers{machine: m}
	m.copies = copies{machine: m, groups: make([][]copyGroup, m.threads), stored: make([][]element, m.threads)}
}

// resetAsync resets the asynchronous state for a new workgroup.
func (m *machine) resetAsync() {
	for _, a := range m.arrays {
		clear(a.async)
	}
	m.part, m.whole.batches, m.whole.since = m.whole, nil, m.epoch
	clear(m.whole.held)
	m.mbarriers.reset()
	m.copies.reset()
}

// checkSettled fails if an operation is in flight at the end of a workgroup.
func (m *machine) checkSettled() {
	m.at = "the end"
	for t, groups := range m.copies.groups {
		for _, g := range groups {
			if len(g) > 0 {
				m.fail(Unfinished, int32(t), g[0].to.a.Name, g[0].to.elem, 0)
			}
		}
	}
	if b := m.whole.batches; len(b) > 0 {
		m.fail(Unfinished, 0, b[0].names[0], 0, 0)
	}
	for _, row := range m.mbarriers.rows {
		for _, b := range row {
			if len(b.copies) > 0 {
				m.fail(Unfinished, 0, b.copies[0].to.a.Name, b.copies[0].to.elem, 0)
			}
		}
	}
}

// reset discards the groups of the workgroup before, and opens one for each thread.
func (c *copies) reset() {
	for t := range c.groups {
		c.groups[t], c.stored[t] = append(c.groups[t][:0], copyGroup{}), c.stored[t][:0]
	}
}

// note records a synchronous access of thread t to an element and reports whether it is
// allowed.
func (c *copies) note(a *array, elem int, t int32, write bool) bool {
	s := &a.async[elem]
	if s.inFlight || write && s.reading > 0 {
		c.fail(Unfinished, t, a.Name, elem, 0)
		return false
	}
	if write && !s.stored {
		s.stored = true
		c.stored[t] = append(c.stored[t], element{a, elem})
	}
	return true
}

// asyncCompiler translates copies and multiply-adds that run beside the threads, and what these wait for.
type asyncCompiler struct{ *compiler }

func (c asyncCompiler) stmt(s loop.Stmt) {
	m := c.m
	switch s := s.(type) {
	case *loop.CopyAsync:
		c.copyAsync(s)
	case *loop.CopyTMA:
		c.copyTMA(s)
	case *loop.Arrive:
		c.arriveAt(s)
	case *loop.Await:
		c.await(s)
	case *loop.Roles:
		c.roles(s)
	case *loop.CopyCommit:
		c.add(m.copies.commit)
	case *loop.CopyWait:
		c.add(func(active []int32) { m.copies.complete(active, s.Pending) })
	case *loop.ProxyFence:
		c.add(m.copies.fence)
	case *loop.Mma:
		c.mma(s)
	case *loop.MmaWait:
		c.mmaWait(s)
	}
}

// copyAsync reads the values at once and writes them when the thread has waited. It is a fault
// if memory changes in between.
func (c asyncCompiler) copyAsync(s *loop.CopyAsync) {
	m, to, from := c.m, c.m.arrays[s.To], c.m.arrays[s.From]
	toAt, fromAt, valid := c.expr(s.ToAt), c.expr(s.FromAt), column{}
	if s.Valid != nil {
		valid = c.expr(s.Valid)
	}
	c.add(func(active []int32) {
		for _, t := range active {
			if !m.aligned(to, toAt.i[t], s.Count, t) {
				return
			}
			here := valid.i == nil || valid.i[t] != 0
			if here && !m.aligned(from, fromAt.i[t], s.Count, t) {
				return
			}
			for i := range s.Count {
				x := arrival{to: element{to, int(toAt.i[t]) + i}}
				if here {
					x.from = element{from, int(fromAt.i[t]) + i}
				}
				if !m.copies.begin(x, t) {
					return
				}
			}
		}
	})
}

// aligned checks the bounds and the alignment of count elements.
func (m *machine) aligned(a *array, at int64, count int, t int32) bool {
	if at < 0 || at+int64(count) > int64(a.Len*a.Width) {
		m.fail(OutOfBounds, t, a.Name, int(at), 0)
		return false
	}
	if (a.offset+int(at)*a.size)%(count*a.size) != 0 {
		m.fail(Misaligned, t, a.Name, int(at), 0)
		return false
	}
	return true
}

// begin adds an element to the thread's open group. It checks the write for races now and
// again on arrival.
func (c *copies) begin(x arrival, t int32) bool {
	if x.from.a != nil {
		if !c.noteRead(x.from.a, x.from.elem, t) {
			return false
		}
		x.value = x.from.number()
	}
	if !c.noteWrite(x.to.a, x.to.elem, t) {
		return false
	}
	x.to.a.async[x.to.elem].inFlight = true
	g := &c.groups[t][len(c.groups[t])-1]
	*g = append(*g, x)
	return true
}

func (c *copies) commit(active []int32) {
	for _, t := range active {
		open := copyGroup{}
		if last := len(c.spare) - 1; last >= 0 {
			open, c.spare = c.spare[last], c.spare[:last]
		}
		c.groups[t] = append(c.groups[t], open)
	}
}

// complete completes all but the last pending groups of each thread.
func (c *copies) complete(active []int32, pending int) {
	for _, t := range active {
		for len(c.groups[t])-1 > pending {
			g := c.groups[t][0]
			c.groups[t] = append(c.groups[t][:0], c.groups[t][1:]...)
			for _, x := range g {
				if !c.arrive(x, t) {
					return
				}
			}
			c.spare = append(c.spare, g[:0])
		}
	}
}

// arrive writes an element of a completed copy.
func (c *copies) arrive(x arrival, t int32) bool {
	if x.from.a != nil && math.Float64bits(x.from.number()) != math.Float64bits(x.value) {
		c.fail(Unfinished, t, x.from.a.Name, x.from.elem, 0)
		return false
	}
	x.to.a.async[x.to.elem].inFlight = false
	if !c.noteWrite(x.to.a, x.to.elem, t) {
		return false
	}
	x.to.a.own.setNumber(x.to.elem, x.value)
	return true
}

func (c *copies) fence(active []int32) {
	for _, t := range active {
		for _, p := range c.stored[t] {
			p.a.async[p.elem].stored = false
		}
		c.stored[t] = c.stored[t][:0]
	}
}

// number returns an element of storage as a float, which represents all 32-bit numbers.
func (p element) number() float64 {
	v := p.a.decode(p.a.data[p.elem*p.a.size:])
	if p.a.isFloat {
		return v.F
	}
	return float64(v.I)
}

func (c column) setNumber(i int, x float64) {
	if c.f != nil {
		c.f[i] = x
	} else {
		c.i[i] = int64(x)
	}
}
