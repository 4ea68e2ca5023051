package jit

import (
	"github.com/rlx-go/rlx/ir/scalar"
)

// compare writes one of the six comparisons.
func (g *generator) compare(s *step) {
	c := comparisons[s.op]
	o := c.signed
	switch {
	case s.from.IsFloat():
		o = c.float
	case s.from.IsUnsigned():
		o = c.unsigned
	}
	a, b := g.in(s.args[0]), g.in(s.args[1])
	if c.turned {
		a, b = b, a
	}
	d := g.dest()
	g.three(g.lanes(o), d, a, b)
	if c.negated {
		g.two(bitsNot, d, d)
	}
}

func (g *generator) integer(s *step) {
	switch s.op {
	case scalar.OpShl, scalar.OpShr:
		g.shifts(s)
	case scalar.OpNot:
		g.unary(bitsNot, s)
	case scalar.OpAnd, scalar.OpOr, scalar.OpXor:
		g.binary(boolOps[s.op], s)
	case scalar.OpNeg:
		g.unary(g.lanes(negateInt), s)
	case scalar.OpAbs:
		g.unary(g.lanes(absInt), s)
	case scalar.OpMul:
		if g.long {
			g.multiplyLong(s)
		} else {
			g.binary(multiplyInt, s)
		}
	case scalar.OpAdd:
		g.binary(g.lanes(addInt), s)
	case scalar.OpSub:
		g.binary(g.lanes(subtractInt), s)
	default:
		extremes := intExtremes
		if s.typ.IsUnsigned() {
			extremes = uintExtremes
		}
		g.binary(operation(extremes, s), s)
	}
}

// multiplyLong multiplies integers of 64 bits by their halves:
// low·low + (high·low + low·high)·2³².
func (g *generator) multiplyLong(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	t, u := g.temp(), g.temp()
	g.two(swapWords, t, y)
	g.three(multiplyInt, t, t, x)
	g.two(addPairs, t, t)
	g.two(narrowLanes, u, y)
	d := g.dest()
	g.shiftLanes(leftBy, 32, t, t)
	g.two(narrowLanes, d, x)
	g.three(fusedHalves, t, d, u)
	g.copy(d, t)
}

// shifts writes a shift: by numbers in lanes to the left, or where they are negative
// to the right.
func (g *generator) shifts(s *step) {
	left, signed := s.op == scalar.OpShl, s.typ.IsSigned()
	if by := s.args[1]; by.constant && by.bits > 0 {
		o := map[bool]opcode{true: rightInt, false: rightUint}[signed]
		if left {
			o = leftBy
		}
		from := g.in(s.args[0])
		g.shiftLanes(o, int(by.bits), from, g.dest())
		return
	}
	o := map[bool]opcode{true: shiftInt, false: shiftUint}[signed && !left]
	from, by := g.in(s.args[0]), g.in(s.args[1])
	if !left {
		t := g.temp()
		g.two(g.lanes(negateInt), t, by)
		by = t
	}
	g.three(g.lanes(o), g.dest(), from, by)
}
