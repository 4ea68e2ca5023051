package jit

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scale multiplies by a power of two in two steps, as the power may be out of range where the
// product is not. The low bits of a large power of two plus the bias, whose ulp is 1, are the
// exponent.
func (g *generator) scale(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	bits, whole := 23, float64(127+3<<22)
	t := dtype.F32
	if g.long {
		bits, whole, t = mantissaBits, bias+3<<51, dtype.F64
	}
	k, half, w := g.temp(), g.temp(), g.temp()
	g.constant(w, wordOf(scalar.ConstF(t, 0.5)))
	g.constant(half, wordOf(scalar.ConstF(t, whole)))
	g.three(g.lanes(fusedAdd), half, y, w) // y/2, rounded
	g.constant(w, wordOf(scalar.ConstF(t, whole)))
	g.three(g.lanes(floatOps[scalar.OpSub]), k, half, w)
	g.three(g.lanes(floatOps[scalar.OpSub]), k, y, k) // the rest
	g.three(g.lanes(floatOps[scalar.OpAdd]), k, k, w)
	g.shiftLanes(leftBy, bits, half, half) // as powers of two
	g.shiftLanes(leftBy, bits, k, k)
	d := g.dest()
	g.three(g.lanes(floatOps[scalar.OpMul]), d, x, half)
	g.three(g.lanes(floatOps[scalar.OpMul]), d, d, k)
}

// rotateBits rotates the bits of lanes to the left.
func (g *generator) rotateBits(s *step) {
	x := g.in(s.args[0])
	d := g.dest()
	g.shift(leftBy, s.lanes, x, d)
	g.shift(rightInsert, 32-s.lanes, x, d)
}

func (g *generator) apply(s *step) {
	switch {
	case s.op == scalar.OpConvert && s.from.Size() == 8 && s.typ.Size() == 4: // long lanes hold the result extended
		from := g.in(s.args[0])
		d := g.dest()
		g.two(g.narrowing(s.typ), d, from)
		g.two(longWidenings[s.typ], d, d)
	case s.op == scalar.OpConvert && s.from == dtype.F32 && s.typ == dtype.F64:
		g.keepBits(s)
	case s.op == scalar.OpBitcast, s.op == scalar.OpConvert && s.typ.IsInteger() && s.from.IsInteger():
		g.keepBits(s)
	case s.op == scalar.OpSelect:
		g.choose(s)
	case s.op == scalar.OpConvert:
		g.convert(s)
	case s.op >= scalar.OpEq && s.op <= scalar.OpGe && !s.from.IsBool():
		g.compare(s)
	case s.typ.IsBool() && s.op == scalar.OpNot:
		g.unary(bitsNot, s)
	case s.typ.IsBool():
		g.binary(operation(boolOps, s), s)
	case s.typ.IsFloat():
		g.float(s)
	default:
		g.integer(s)
	}
}

func (g *generator) unary(o opcode, s *step) {
	from := g.in(s.args[0])
	g.two(o, g.dest(), from)
}

func (g *generator) binary(o opcode, s *step) {
	a, b := g.in(s.args[0]), g.in(s.args[1])
	g.three(o, g.dest(), a, b)
}

// keepBits writes a bitcast.
func (g *generator) keepBits(s *step) {
	switch a := s.args[0]; {
	case a.constant:
		g.splatBits(g.dest(), a.bits)
	case g.dies(a):
		g.takeOver(a)
	default:
		from := g.in(a)
		g.copy(g.dest(), from)
	}
}

// over returns the result's register with an operand in it: the operand's own register where
// it dies and is none of the others.
func (g *generator) over(s *step, a argument, others ...argument) int {
	free := g.dies(a)
	for _, o := range others {
		free = free && (o.constant || o.value != a.value)
	}
	if free {
		return g.takeOver(a)
	}
	if a.constant {
		d := g.dest()
		g.splatBits(d, a.bits)
		return d
	}
	from := g.in(a)
	d := g.dest()
	g.copy(d, from)
	return d
}

func (g *generator) choose(s *step) {
	c, a, b := s.args[0], s.args[1], s.args[2]
	yes, no := g.in(a), g.in(b)
	g.three(chooseBits, g.over(s, c, a, b), yes, no)
}

func (g *generator) convert(s *step) {
	switch {
	case s.from.IsBool():
		one := uint64(1)
		if s.typ.IsFloat() {
			one = wordOf(scalar.ConstF(s.typ, 1))
		}
		from, t := g.in(s.args[0]), g.temp()
		g.constant(t, one)
		g.three(bitsAnd, g.dest(), from, t)
	case s.typ == dtype.F32 && s.from == dtype.I32:
		g.unary(intToFloat, s)
	case s.typ == dtype.I32 && s.from == dtype.F32:
		g.unary(floatToInt, s)
	default:
		panic(fmt.Sprint("jit: convert ", s.from, " to ", s.typ))
	}
}

func (g *generator) float(s *step) {
	if s.op == scalar.OpFma { // rounded once
		a, b, c := s.args[0], s.args[1], s.args[2]
		x, y := g.in(a), g.in(b)
		g.three(g.lanes(fusedAdd), g.over(s, c, a, b), x, y)
		return
	}
	if o, ok := floatUnary[s.op]; ok {
		g.unary(g.lanes(o), s)
		return
	}
	g.binary(g.lanes(operation(floatOps, s)), s)
}

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
	if c.swapped {
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

// multiplyLong multiplies 64-bit integers by halves: low·low + (high·low + low·high)·2³².
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

// shifts writes a shift. Shifts by lanes go to the left; negative counts shift to the right.
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
