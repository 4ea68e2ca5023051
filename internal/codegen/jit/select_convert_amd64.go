package jit

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// keepBits gives bits another type.
func (g *generator) keepBits(s *step) {
	a := s.args[0]
	switch {
	case a.constant:
		g.vec(broadcast, g.dest(), 0, g.word(a.bits))
	case g.dies(a):
		g.takeOver(a)
	default:
		g.vec(moveAll, g.dest(), 0, register(g.in(a)))
	}
}

func (g *generator) convert(s *step) {
	a := s.args[0]
	switch {
	case s.from.IsBool():
		one := uint64(1)
		if s.typ.IsFloat() {
			one = wordOf(scalar.ConstF(s.typ, 1))
		}
		if g.wide {
			g.evex(g.lanes(onesWhere), g.dest(), 0, g.word(one), masking{mask: g.in(a), zero: true})
		} else {
			g.vec(bitsAnd, g.dest(), g.in(a), g.word(one))
		}
	case s.typ == dtype.F64 && s.from == dtype.F32:
		g.keepBits(s)
	case s.typ == dtype.F32 && s.from == dtype.F64:
		from, t := g.in(a), g.temp()
		g.words(narrowDoubles, t, 0, register(from))
		g.words(widenFloats, g.dest(), 0, register(t))
	case s.typ == dtype.F32 && s.from == dtype.I32:
		g.vec(intToFloat, g.dest(), 0, register(g.in(a)))
	case s.typ == dtype.I32 && s.from == dtype.F32:
		g.vec(floatToInt, g.dest(), 0, register(g.in(a)))
	default:
		panic(fmt.Sprint("jit: convert ", s.from, " to ", s.typ))
	}
}

// cutLong leaves integers of 64 bits what those of 32 have, the sign included.
func (g *generator) cutLong(s *step) {
	from := g.in(s.args[0])
	if s.typ.IsSigned() {
		g.words(multiplySigned, g.dest(), from, g.word(1))
	} else {
		g.vec(bitsAnd, g.dest(), from, g.word(math.MaxUint32))
	}
}
