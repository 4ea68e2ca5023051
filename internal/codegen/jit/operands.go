//go:build amd64 || arm64

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

// reload puts a value into a register.
func (g *generator) reload(v Value) {
	p := &g.locations[v]
	if p.reg != none {
		return
	}
	g.assign(v, g.reg(g.file(p), g.busy))
	g.spill(p, false)
}

// dest returns a register for the result of the step at work.
func (g *generator) dest() int {
	s := g.work
	p := &g.locations[s.dst]
	g.assign(s.dst, g.reg(g.file(p), g.busy))
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
		return g.locations[a.value].reg
	}
	r := g.temp()
	g.splatBits(r, a.bits)
	return r
}

// dies reports whether the step at work is the last that reads an argument.
func (g *generator) dies(a argument) bool {
	if a.constant {
		return false
	}
	p := &g.locations[a.value]
	return !p.pinned && p.nextUse(g.now) == math.MaxInt
}

// takeOver gives the register of an argument that dies to the result.
func (g *generator) takeOver(a argument) int {
	p := &g.locations[a.value]
	r := p.reg
	delete(g.file(p).holds, r)
	p.reg = none
	g.assign(g.work.dst, r)
	return r
}
