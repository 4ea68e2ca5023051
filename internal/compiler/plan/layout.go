package plan

import "slices"

// Layout holds the locations of parameters and states in the state buffers of a plan, so that other
// plans can use the same memory: see [Target]. The zero value is that of a plan without parameters
// and states.
type Layout struct {
	Buffers []int // the sizes of the state buffers in bytes, in the order of the plan
	Places  []Place
}

// Place is the location of a parameter or state: at Offset of state buffer Buffer.
type Place struct {
	Name           string
	Buffer, Offset int
}

// LayoutOf returns the layout of a plan.
func LayoutOf(p *Plan) Layout {
	var l Layout
	indices := p.StateBuffers()
	for _, b := range indices {
		l.Buffers = append(l.Buffers, p.Buffers[b].Bytes)
	}
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Role.Persistent() {
			l.Places = append(l.Places, Place{s.Name, slices.Index(indices, s.Buffer), s.Offset})
		}
	}
	return l
}

// Bytes returns the size of the buffers.
func (l Layout) Bytes() (sum int64) {
	for _, n := range l.Buffers {
		sum += int64(n)
	}
	return sum
}

// StateBuffers returns the indices of the buffers of parameters and states.
func (p *Plan) StateBuffers() (out []int) {
	for i, b := range p.Buffers {
		if b.Kind == StateBuffer {
			out = append(out, i)
		}
	}
	return out
}

// keep makes the buffers of a layout the first of the plan, and places its parameters and states in
// them.
func (c *compiler) keep(l Layout) {
	for _, bytes := range l.Buffers {
		c.plan.Buffers = append(c.plan.Buffers, Buffer{Kind: StateBuffer, Bytes: bytes})
	}
	for _, x := range l.Places {
		c.persistent[x.Name] = region{buffer: x.Buffer, offset: x.Offset}
	}
}
