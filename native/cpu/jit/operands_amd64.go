package jit

import "math"

// busy reports whether the step at work reads a value.
func (g *generator) busy(v Value) bool {
	for _, a := range g.work.args {
		if !a.constant && a.value == v {
			return true
		}
	}
	return v == g.work.dst
}

// bring puts a value into a register.
func (g *generator) bring(v Value) {
	p := &g.places[v]
	if p.reg != none {
		return
	}
	g.give(v, g.reg(g.file(p), g.busy))
	g.spill(p, false)
}

// spill moves a register to its slot or back.
func (g *generator) spill(p *place, out bool) {
	g.loadPointer(rax, roomArgument)
	at := operand{kind: inMemory, reg: rax, disp: int32(slotBytes * p.slot)}
	switch {
	case p.masked && out:
		g.vex(maskOut, p.reg, 0, at, true)
	case p.masked:
		g.vex(maskIn, p.reg, 0, at, true)
	case out:
		g.vec(moveOut, p.reg, 0, at)
	default:
		g.vec(moveIn, p.reg, 0, at)
	}
}

// dest returns a register for the result of the step at work.
func (g *generator) dest() int {
	s := g.work
	p := &g.places[s.dst]
	g.give(s.dst, g.reg(g.file(p), g.busy))
	return p.reg
}

// temp returns a vector register that is free again after the step at work.
func (g *generator) temp() int {
	r := g.reg(&g.vector, g.busy)
	g.temps = append(g.temps, r)
	return r
}

// in returns the register of an argument, of a constant one that is free again
// after the step.
func (g *generator) in(a argument) int {
	if !a.constant {
		return g.places[a.value].reg
	}
	r := g.temp()
	g.vec(broadcast, r, 0, g.word(a.bits))
	return r
}

// last returns an argument where an instruction has its last operand.
func (g *generator) last(a argument) operand {
	if a.constant {
		return g.word(a.bits)
	}
	return register(g.places[a.value].reg)
}

func (g *generator) word(bits uint32) operand { return operand{kind: inPool, bits: bits} }

// dies reports whether the step at work is the last that reads an argument.
func (g *generator) dies(a argument) bool {
	if a.constant {
		return false
	}
	p := &g.places[a.value]
	return !p.stays && p.nextUse(g.now) == math.MaxInt
}

// take gives the register of an argument that dies to the result.
func (g *generator) take(a argument) int {
	p := &g.places[a.value]
	r := p.reg
	delete(g.file(p).holds, r)
	p.reg = none
	g.give(g.work.dst, r)
	return r
}

// vec writes a vector instruction.
func (g *generator) vec(o opcode, reg, first int, rm operand) {
	if g.wide {
		g.evex(o, reg, first, rm, masking{spreads: rm.kind == inPool && o != broadcast})
		return
	}
	g.vex(o, reg, first, rm, false)
}

// array returns the place of the elements that a step reads or writes, of scale
// bytes; with 0 that of the first element of all. It may use RAX, as does what
// gives registers out: the step must have its registers before.
func (g *generator) array(s *step, scale int) operand {
	at := operand{kind: inMemory, scale: scale, disp: int32(s.skip * g.width * scale)}
	if s.array < len(pointers) {
		at.reg = pointers[s.array]
		return at
	}
	g.loadPointer(rax, arrayArgument+g.first+s.array)
	at.reg = rax
	return at
}
