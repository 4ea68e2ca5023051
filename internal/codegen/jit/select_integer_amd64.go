package jit

import "github.com/rlx-go/rlx/ir/scalar"

// compare writes one of the six comparisons.
func (g *generator) compare(s *step) {
	a, b := s.args[0], s.args[1]
	kind := s.op - scalar.OpEq
	o := compareInt
	switch {
	case s.from.IsFloat():
		o = compareReal
		o.imm = realPredicates[kind]
	case !g.wide:
		g.compareNarrow(s)
		return
	case s.from.IsUnsigned():
		o = compareUint
		o.imm = intPredicates[kind]
	default:
		o.imm = intPredicates[kind]
	}
	g.binary(o, a, b)
}

// compareNarrow compares integers with AVX2, which has equal and, for signed
// ones, greater.
func (g *generator) compareNarrow(s *step) {
	a, b := s.args[0], s.args[1]
	switch s.op {
	case scalar.OpEq, scalar.OpNe:
		g.binary(equalInt, a, b)
	case scalar.OpLt, scalar.OpGe:
		g.greater(s, b, a)
	default:
		g.greater(s, a, b)
	}
	if s.op == scalar.OpNe || s.op == scalar.OpLe || s.op == scalar.OpGe {
		d := g.locations[s.dst].reg
		g.vec(bitsXor, d, d, g.word(g.ones()))
	}
}

func (g *generator) greater(s *step, a, b argument) {
	if s.from.IsSigned() {
		g.binary(greaterInt, a, b)
		return
	}
	x, y := g.temp(), g.temp()
	g.vec(bitsXor, x, g.in(a), g.word(g.sign()))
	g.vec(bitsXor, y, g.in(b), g.word(g.sign()))
	g.vec(greaterInt, g.dest(), x, register(y))
}

func (g *generator) integer(s *step) {
	a := s.args[0]
	switch s.op {
	case scalar.OpMul:
		if g.long && !g.wide {
			g.multiplyLong(s)
			return
		}
	case scalar.OpShl, scalar.OpShr:
		if g.long && !g.wide && s.op == scalar.OpShr && s.typ.IsSigned() {
			g.shiftLong(s)
			return
		}
		if by := s.args[1]; by.constant {
			how := shiftLeft
			if s.op == scalar.OpShr {
				how = map[bool]int{true: shiftSigned, false: shiftRight}[s.typ.IsSigned()]
			}
			from := g.in(a)
			g.shiftLanes(how, int(by.bits), from, g.dest())
			return
		}
	case scalar.OpNeg:
		from := g.in(a)
		d := g.dest()
		g.vec(bitsXor, d, d, register(d))
		g.vec(subtractInt, d, d, register(from))
		return
	case scalar.OpNot:
		from := g.in(a)
		g.vec(bitsXor, g.dest(), from, g.word(g.ones()))
		return
	case scalar.OpAbs:
		g.vec(absInt, g.dest(), 0, register(g.in(a)))
		return
	}
	if o, ok := uintOps[s.op]; ok && s.typ.IsUnsigned() {
		g.binary(o, a, s.args[1])
		return
	}
	g.binary(operation(intOps, s), a, s.args[1])
}

// multiplyLong multiplies integers of 64 bits with AVX2, which has products of their
// lower halves: low·low + (high·low + low·high)·2³².
func (g *generator) multiplyLong(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	cross, t := g.temp(), g.temp()
	g.shiftLanes(shiftRight, 32, x, cross)
	g.words(multiplyHalves, cross, cross, register(y))
	g.shiftLanes(shiftRight, 32, y, t)
	g.words(multiplyHalves, t, t, register(x))
	g.vec(addInt, cross, cross, register(t))
	g.shiftLanes(shiftLeft, 32, cross, cross)
	g.words(multiplyHalves, t, x, register(y))
	g.vec(addInt, g.dest(), cross, register(t))
}

// shiftLong shifts integers of 64 bits with their sign to the right with AVX2, which
// shifts them without: the sign bit then stands where it is to be spread from.
func (g *generator) shiftLong(s *step) {
	x, sign := g.in(s.args[0]), g.temp()
	g.splatBits(sign, g.sign())
	by := s.args[1]
	if by.constant {
		g.shiftLanes(shiftRight, int(by.bits), sign, sign)
		g.shiftLanes(shiftRight, int(by.bits), x, g.dest())
	} else {
		n := register(g.in(by))
		g.vec(shiftRightEach, sign, sign, n)
		g.vec(shiftRightEach, g.dest(), x, n)
	}
	d := g.locations[s.dst].reg
	g.vec(bitsXor, d, d, register(sign))
	g.vec(subtractInt, d, d, register(sign))
}
