package jit

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scale multiplies by a power of two. AVX2 does so in two steps, as the power may be out of
// range where the product is not.
func (g *generator) scale(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	if g.wide {
		g.vec(scaleFloat, g.dest(), x, register(y))
		return
	}
	// The low bits of a large power of two plus the bias, whose ulp is 1, are the exponent.
	bits, whole := 23, float64(127+3<<22)
	if g.long {
		bits, whole = mantissaBits, bias+3<<51
	}
	number := func(x float64) argument { return argument{bits: wordOf(scalar.ConstF(g.number(), x)), constant: true} }
	half, k := g.temp(), g.temp()
	g.vec(broadcast, half, 0, g.last(number(0.5)))
	g.vec(fused213, half, y, g.last(number(whole)))               // y/2, rounded
	g.vec(floatOps[scalar.OpSub], k, half, g.last(number(whole))) //
	g.vec(floatOps[scalar.OpSub], k, y, register(k))              // the rest
	g.vec(floatOps[scalar.OpAdd], k, k, g.last(number(whole)))
	g.shiftLanes(shiftLeft, bits, half, half) // as powers of two
	g.shiftLanes(shiftLeft, bits, k, k)
	d := g.dest()
	g.vec(floatOps[scalar.OpMul], d, x, register(half))
	g.vec(floatOps[scalar.OpMul], d, d, register(k))
}

// number returns the float type of lanes.
func (g *generator) number() dtype.DType {
	if g.long {
		return dtype.F64
	}
	return dtype.F32
}

// rotateBits rotates the bits of lanes to the left.
func (g *generator) rotateBits(s *step) {
	x := g.in(s.args[0])
	if g.wide {
		g.shift(rotateLeft, s.lanes, x, g.dest())
		return
	}
	t := g.temp()
	d := g.dest()
	g.shift(shiftRight, 32-s.lanes, x, t)
	g.shift(shiftLeft, s.lanes, x, d)
	g.vec(bitsOr, d, d, register(t))
}

func (g *generator) apply(s *step) {
	switch {
	case s.op == scalar.OpConvert && s.typ.Size() < s.from.Size() && s.typ.IsInteger() && s.from.Size() == 8:
		g.cutLong(s)
	case s.op == scalar.OpBitcast, s.op == scalar.OpConvert && s.typ.IsInteger() && s.from.IsInteger():
		g.keepBits(s)
	case s.op == scalar.OpSelect:
		g.choose(s)
	case s.op == scalar.OpConvert:
		g.convert(s)
	case s.op >= scalar.OpEq && s.op <= scalar.OpGe && !s.from.IsBool():
		g.compare(s)
	case s.typ.IsBool():
		g.logic(s)
	case s.typ.IsFloat():
		g.float(s)
	default:
		g.integer(s)
	}
}

func (g *generator) choose(s *step) {
	c, yes, no := s.args[0], s.args[1], s.args[2]
	other := g.in(no)
	if g.wide {
		rm := g.last(yes)
		g.evex(g.lanes(blendMasked), g.dest(), other, rm, masking{mask: g.in(c), broadcast: rm.kind == inPool})
		return
	}
	o := g.lanes(blendVector)
	o.imm = g.in(c) << 4
	g.vex(o, g.dest(), other, g.last(yes), false)
}

func (g *generator) binary(o opcode, a, b argument) {
	first := g.in(a)
	g.vec(o, g.dest(), first, g.last(b))
}

// logic writes operations on booleans.
func (g *generator) logic(s *step) {
	a := g.in(s.args[0])
	switch {
	case s.op == scalar.OpNot && g.wide:
		g.vex(maskNot, g.dest(), 0, register(a), true)
	case s.op == scalar.OpNot:
		g.vec(bitsXor, g.dest(), a, g.word(g.ones()))
	case g.wide:
		g.vex(operation(maskOps, s), g.dest(), a, g.last(s.args[1]), false)
	default:
		g.vec(operation(boolOps, s), g.dest(), a, g.last(s.args[1]))
	}
}

func (g *generator) float(s *step) {
	switch s.op {
	case scalar.OpFma:
		g.fused(s)
	case scalar.OpNeg:
		first := g.in(s.args[0])
		g.vec(bitsXor, g.dest(), first, g.word(g.sign()))
	case scalar.OpAbs:
		first := g.in(s.args[0])
		g.vec(bitsAnd, g.dest(), first, g.word(g.sign()-1))
	case scalar.OpSqrt:
		g.vec(root, g.dest(), 0, register(g.in(s.args[0])))
	case scalar.OpRound, scalar.OpFloor, scalar.OpCeil, scalar.OpTrunc:
		o := roundWide
		o.imm = roundings[s.op]
		g.vec(o, g.dest(), 0, register(g.in(s.args[0])))
	default:
		g.binary(operation(floatOps, s), s.args[0], s.args[1])
	}
}

// fused writes a fused multiply-add, over a dying operand if there is one.
func (g *generator) fused(s *step) {
	a, b, c := s.args[0], s.args[1], s.args[2]
	if g.dies(b) && !g.dies(a) {
		a, b = b, a
	}
	switch {
	case g.dies(a) && (a.value != b.value || b.constant) && (a.value != c.value || c.constant):
		second, third := g.in(b), g.last(c)
		g.vec(fused213, g.takeOver(a), second, third)
	case g.dies(c) && (a.constant || a.value != c.value) && (b.constant || b.value != c.value):
		first, second := g.in(a), g.last(b)
		g.vec(fused231, g.takeOver(c), first, second)
	default:
		first, second := g.in(a), g.last(b)
		if c.constant {
			g.vec(broadcast, g.dest(), 0, g.word(c.bits))
		} else {
			g.vec(moveAll, g.dest(), 0, register(g.in(c)))
		}
		g.vec(fused231, g.locations[s.dst].reg, first, second)
	}
}

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

// compareNarrow compares integers with AVX2, which has equal and signed greater only.
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

// multiplyLong multiplies 64-bit integers with AVX2, which multiplies lower halves only:
// low·low + (high·low + low·high)·2³².
func (g *generator) multiplyLong(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	cross, t := g.temp(), g.temp()
	g.shiftLanes(shiftRight, 32, x, cross)
	g.vec32(multiplyHalves, cross, cross, register(y))
	g.shiftLanes(shiftRight, 32, y, t)
	g.vec32(multiplyHalves, t, t, register(x))
	g.vec(addInt, cross, cross, register(t))
	g.shiftLanes(shiftLeft, 32, cross, cross)
	g.vec32(multiplyHalves, t, x, register(y))
	g.vec(addInt, g.dest(), cross, register(t))
}

// shiftLong is an arithmetic right shift of 64-bit integers with AVX2, which has logical ones
// only: it extends the shifted sign bit by (x ^ sign) - sign.
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

// keepBits writes a bitcast.
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
		g.vec32(narrowDoubles, t, 0, register(from))
		g.vec32(widenFloats, g.dest(), 0, register(t))
	case s.typ == dtype.F32 && s.from == dtype.I32:
		g.vec(intToFloat, g.dest(), 0, register(g.in(a)))
	case s.typ == dtype.I32 && s.from == dtype.F32:
		g.vec(floatToInt, g.dest(), 0, register(g.in(a)))
	default:
		panic(fmt.Sprint("jit: convert ", s.from, " to ", s.typ))
	}
}

// cutLong converts 64-bit integers to 32 bits: long lanes hold the result extended.
func (g *generator) cutLong(s *step) {
	from := g.in(s.args[0])
	if s.typ.IsSigned() {
		g.vec32(multiplySigned, g.dest(), from, g.word(1))
	} else {
		g.vec(bitsAnd, g.dest(), from, g.word(math.MaxUint32))
	}
}
