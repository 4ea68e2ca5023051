package jit

import (
	"math"

	"github.com/rlx-go/rlx/ir/scalar"
)

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
		d := g.places[s.dst].reg
		g.vec(bitsXor, d, d, g.word(math.MaxUint32))
	}
}

func (g *generator) greater(s *step, a, b argument) {
	if s.from.IsSigned() {
		g.binary(greaterInt, a, b)
		return
	}
	x, y := g.temp(), g.temp()
	g.vec(bitsXor, x, g.in(a), g.word(1<<31))
	g.vec(bitsXor, y, g.in(b), g.word(1<<31))
	g.vec(greaterInt, g.dest(), x, register(y))
}

func (g *generator) integer(s *step) {
	a := s.args[0]
	switch s.op {
	case scalar.OpShl, scalar.OpShr:
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
		g.vec(bitsXor, g.dest(), from, g.word(math.MaxUint32))
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
