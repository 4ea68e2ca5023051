package jit

import "github.com/rlx-go/rlx/internal/codegen/asm"

func hasGathers() bool { return true }

// gather loads the elements at the places of a vector.
func (m *memory) gather(s *step) {
	places := m.in(s.args[0])
	if m.Wide {
		mask := m.reg(&m.mask, m.busy)
		d := m.dest()
		base := m.array(s, 0).Base
		m.VEX(asm.MaskEqual, mask, mask, asm.Register(mask), false) // all lanes
		m.Gather(d, base, places, s.lanes, mask)
		m.mask.free = append(m.mask.free, mask)
		return
	}
	mask := m.temp()
	m.splatBits(mask, m.ones())
	d := m.dest()
	m.Gather(d, m.array(s, 0).Base, places, s.lanes, mask)
}
