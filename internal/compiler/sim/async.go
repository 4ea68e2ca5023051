package sim

import (
	"math"

	"github.com/rlx-go/rlx/ir/loop"
)

// asyncState is what asynchronous work does to an element of shared memory.
type asyncState struct {
	coming  bool  // a copy to it is under way
	reading int32 // multiply-adds under way that read it
	stored  bool  // and not fenced
}

// place is an element of an array.
type place struct {
	a    *array
	elem int
}

// copyGroup is what copies that are waited for together bring.
type copyGroup []arrival

// arrival is an element on its way.
type arrival struct {
	to    place
	from  place // without an array for zeros that nothing is read for
	value float64
}

// The two ways to touch an element.
const (
	loads  = false
	stores = true
)

// prepare gives arrays and variables that asynchronous work touches what is
// needed to watch them.
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
		case *loop.CopyBox:
			watch(s.To)
		case *loop.Mma:
			m.whole.held = map[string]int{}
			for _, t := range s.Terms {
				if t.Left == nil {
					watch(t.A.Array)
				}
				watch(t.B.Array)
			}
		}
	})
	m.copies, m.stored = make([][]copyGroup, m.threads), make([][]place, m.threads)
}

// forget begins a workgroup: nothing is under way.
func (m *machine) forget() {
	for _, a := range m.arrays {
		clear(a.async)
	}
	m.part, m.whole.batches, m.whole.since = m.whole, nil, m.epoch
	clear(m.whole.held)
	m.newBarriers()
	for t := range m.copies {
		m.copies[t], m.stored[t] = append(m.copies[t][:0], copyGroup{}), m.stored[t][:0]
	}
}

// settled looks for what is under way at the end of a workgroup.
func (m *machine) settled() {
	m.at = "the end"
	for t, groups := range m.copies {
		for _, g := range groups {
			if len(g) > 0 {
				m.fail(Unfinished, int32(t), g[0].to.a.Name, g[0].to.elem, 0)
			}
		}
	}
	if b := m.whole.batches; len(b) > 0 {
		m.fail(Unfinished, 0, b[0].names[0], 0, 0)
	}
	for _, row := range m.mbarriers {
		for _, b := range row {
			if len(b.coming) > 0 {
				m.fail(Unfinished, 0, b.coming[0].to.a.Name, b.coming[0].to.elem, 0)
			}
		}
	}
}

// noteAsync records that thread t touches an element by itself and reports
// whether it may.
func (m *machine) noteAsync(a *array, elem int, t int32, write bool) bool {
	s := &a.async[elem]
	if s.coming || write && s.reading > 0 {
		m.fail(Unfinished, t, a.Name, elem, 0)
		return false
	}
	if write && !s.stored {
		s.stored = true
		m.stored[t] = append(m.stored[t], place{a, elem})
	}
	return true
}

// copyAsync takes the values at once. They are put down when the thread has
// waited, and must be what memory has then: nobody may change them in between.
func (c *compiler) copyAsync(s *loop.CopyAsync) {
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
				x := arrival{to: place{to, int(toAt.i[t]) + i}}
				if here {
					x.from = place{from, int(fromAt.i[t]) + i}
				}
				if !m.begin(x, t) {
					return
				}
			}
		}
	})
}

// aligned looks at the bounds and the address of count elements.
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

// begin adds an element to the thread's open group. To write it now is as much
// of a race as to write it later.
func (m *machine) begin(x arrival, t int32) bool {
	if x.from.a != nil {
		if !m.noteRead(x.from.a, x.from.elem, t) {
			return false
		}
		x.value = x.from.number()
	}
	if !m.noteWrite(x.to.a, x.to.elem, t) {
		return false
	}
	x.to.a.async[x.to.elem].coming = true
	g := &m.copies[t][len(m.copies[t])-1]
	*g = append(*g, x)
	return true
}

func (m *machine) commit(active []int32) {
	for _, t := range active {
		m.copies[t] = append(m.copies[t], copyGroup{})
	}
}

// land puts down what all but the last groups of each thread bring.
func (m *machine) land(active []int32, pending int) {
	for _, t := range active {
		for len(m.copies[t])-1 > pending {
			g := m.copies[t][0]
			m.copies[t] = m.copies[t][1:]
			for _, x := range g {
				if !m.arrive(x, t) {
					return
				}
			}
		}
	}
}

// arrive puts an element down.
func (m *machine) arrive(x arrival, t int32) bool {
	if x.from.a != nil && math.Float64bits(x.from.number()) != math.Float64bits(x.value) {
		m.fail(Unfinished, t, x.from.a.Name, x.from.elem, 0)
		return false
	}
	x.to.a.async[x.to.elem].coming = false
	if !m.noteWrite(x.to.a, x.to.elem, t) {
		return false
	}
	x.to.a.own.setNumber(x.to.elem, x.value)
	return true
}

func (m *machine) fence(active []int32) {
	for _, t := range active {
		for _, p := range m.stored[t] {
			p.a.async[p.elem].stored = false
		}
		m.stored[t] = m.stored[t][:0]
	}
}

// number returns an element of storage as a float, which holds any of 32 bits.
func (p place) number() float64 {
	v := decode(p.a.DType, p.a.data[p.elem*p.a.size:][:p.a.size])
	if p.a.DType.IsFloat() {
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
