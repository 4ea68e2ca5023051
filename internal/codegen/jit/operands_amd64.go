package jit

// spill moves a register to its slot or back.
func (g *generator) spill(p *location, out bool) {
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

// last returns an argument where an instruction has its last operand.
func (g *generator) last(a argument) operand {
	if a.constant {
		return g.word(a.bits)
	}
	return register(g.locations[a.value].reg)
}

func (g *generator) word(bits uint64) operand { return operand{kind: inPool, bits: bits} }

// lanes returns an instruction for the lanes of the kernel.
func (g *generator) lanes(o opcode) opcode {
	if g.long {
		return o.doubled()
	}
	return o
}

// sign is the constant with the sign of a number alone, ones that of all bits.
func (g *generator) sign() uint64 {
	if g.long {
		return 1 << 63
	}
	return 1 << 31
}

func (g *generator) ones() uint64 { return 2*g.sign() - 1 }

// vec writes a vector instruction for the lanes of the kernel, words one for lanes of
// 32 bits.
func (g *generator) vec(o opcode, reg, first int, rm operand) { g.words(g.lanes(o), reg, first, rm) }

func (g *generator) words(o opcode, reg, first int, rm operand) {
	if g.wide {
		g.evex(o, reg, first, rm, masking{spreads: rm.kind == inPool && o.code&^1 != broadcast.code})
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
