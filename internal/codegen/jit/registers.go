//go:build amd64 || arm64

package jit

import (
	"math"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// file is a register file.
type file struct {
	free  []int
	holds map[int]Value // values in registers that may be spilled
}

func (f *file) take() (int, bool) {
	if len(f.free) == 0 {
		return 0, false
	}
	r := f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	return r, true
}

// none is no register or spill slot.
const none = -1

// location is where a value is.
type location struct {
	reg    int // or none
	slot   int // spill slot, or none
	uses   []int
	pinned bool // it is never spilled
	masked bool // it is in a mask register
}

// allocator allocates registers in straight-line code. When none is free, it spills the value
// whose next use is farthest away (L. A. Belady, A study of replacement algorithms for a
// virtual-storage computer, 1966).
type allocator struct {
	vector, mask file
	locations    []location
	slots        []int // free spill slots
	slotCount    int
	now          int // index of the current step
	// move writes a spill (out) or a reload of a value.
	move func(p *location, out bool)
}

func (a *allocator) file(p *location) *file {
	if p.masked {
		return &a.mask
	}
	return &a.vector
}

// nextUse returns the next step after now that reads a value, [math.MaxInt] for none.
func (p *location) nextUse(now int) int {
	for len(p.uses) > 0 && p.uses[0] <= now {
		p.uses = p.uses[1:]
	}
	if len(p.uses) == 0 {
		return math.MaxInt
	}
	return p.uses[0]
}

// reg returns a free register of a file, spilling a value if necessary, but none for which
// busy is true.
func (a *allocator) reg(f *file, busy func(v Value) bool) int {
	if r, ok := f.take(); ok {
		return r
	}
	last, at := noValue, -1
	for r, v := range f.holds {
		next := a.locations[v].nextUse(a.now)
		if !busy(v) && (next > at || next == at && r < a.locations[last].reg) {
			last, at = v, next
		}
	}
	p := &a.locations[last]
	r := p.reg
	if p.slot == none {
		p.slot = a.slot()
		a.move(p, true)
	}
	delete(f.holds, r)
	p.reg = none
	return r
}

func (a *allocator) slot() int {
	if n := len(a.slots); n > 0 {
		s := a.slots[n-1]
		a.slots = a.slots[:n-1]
		return s
	}
	a.slotCount++
	return a.slotCount - 1
}

// assign records that a register holds a value.
func (a *allocator) assign(v Value, r int) {
	p := &a.locations[v]
	p.reg = r
	a.file(p).holds[r] = v
}

// release frees the register and the spill slot of a dead value.
func (a *allocator) release(v Value) {
	p := &a.locations[v]
	if p.pinned || p.nextUse(a.now) != math.MaxInt {
		return
	}
	if p.reg != none {
		f := a.file(p)
		delete(f.holds, p.reg)
		f.free = append(f.free, p.reg)
		p.reg = none
	}
	if p.slot != none {
		a.slots = append(a.slots, p.slot)
		p.slot = none
	}
}

// registers writes instructions, and has the registers of the current step's operands.
type registers struct {
	asm.Encoder
	allocator
	work  *step
	width int   // lanes of a vector
	temps []int // temporary registers of the current step
}

// begin frees all registers and slots for the values of a kernel.
func (rs *registers) begin(k *Kernel) {
	rs.width = k.Width()
	rs.allocator = allocator{move: rs.spill, slotCount: rs.slotCount}
	for s := range rs.slotCount {
		rs.slots = append(rs.slots, s)
	}
	rs.reset()
	rs.locations = make([]location, len(k.types))
	for v, t := range k.types {
		rs.locations[v] = location{reg: none, slot: none, masked: rs.masks(t)}
	}
}

// enter loads the operands of a step that were spilled.
func (rs *registers) enter(s *step) {
	rs.work = s
	for _, a := range s.args {
		if !a.constant {
			rs.reload(a.value)
		}
	}
}

// exit frees the temporary registers of a step, and those of values that no later one reads.
func (rs *registers) exit(s *step) {
	rs.vector.free = append(rs.vector.free, rs.temps...)
	rs.temps = rs.temps[:0]
	for _, a := range s.args {
		if !a.constant {
			rs.release(a.value)
		}
	}
	if s.dst != noValue {
		rs.release(s.dst) // if nothing reads it
	}
}

// busy reports whether the current step uses a value.
func (rs *registers) busy(v Value) bool {
	for _, a := range rs.work.args {
		if !a.constant && a.value == v {
			return true
		}
	}
	return v == rs.work.dst
}

// reload moves a spilled value to a register.
func (rs *registers) reload(v Value) {
	p := &rs.locations[v]
	if p.reg != none {
		return
	}
	rs.assign(v, rs.reg(rs.file(p), rs.busy))
	rs.spill(p, false)
}

// dest allocates the register of the current step's result.
func (rs *registers) dest() int {
	s := rs.work
	p := &rs.locations[s.dst]
	rs.assign(s.dst, rs.reg(rs.file(p), rs.busy))
	return p.reg
}

// temp allocates a vector register for the current step.
func (rs *registers) temp() int {
	r := rs.reg(&rs.vector, rs.busy)
	rs.temps = append(rs.temps, r)
	return r
}

// in returns the register of an argument; a constant is loaded into a temporary one.
func (rs *registers) in(a argument) int {
	if !a.constant {
		return rs.locations[a.value].reg
	}
	r := rs.temp()
	rs.splatBits(r, a.bits)
	return r
}

// dies reports whether the current step is an argument's last use.
func (rs *registers) dies(a argument) bool {
	if a.constant {
		return false
	}
	p := &rs.locations[a.value]
	return !p.pinned && p.nextUse(rs.now) == math.MaxInt
}

// takeOver assigns the register of a dying argument to the result.
func (rs *registers) takeOver(a argument) int {
	p := &rs.locations[a.value]
	r := p.reg
	delete(rs.file(p).holds, r)
	p.reg = none
	rs.assign(rs.work.dst, r)
	return r
}
