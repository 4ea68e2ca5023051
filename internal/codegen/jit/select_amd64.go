package jit

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scale multiplies with a power of two: with AVX2 in two steps, as the power may
// be out of range where the product is not.
func (g *generator) scale(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	if g.wide {
		g.vec(scaleFloat, g.dest(), x, register(y))
		return
	}
	// In steps of 1, the bits of 2^n + bias, n as large as they allow, count up from 0.
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
	g.shiftLanes(shiftLeft, bits, half, half) // and their powers
	g.shiftLanes(shiftLeft, bits, k, k)
	d := g.dest()
	g.vec(floatOps[scalar.OpMul], d, x, register(half))
	g.vec(floatOps[scalar.OpMul], d, d, register(k))
}

// number is the type of floats in lanes.
func (g *generator) number() dtype.DType {
	if g.long {
		return dtype.F64
	}
	return dtype.F32
}

// rotateBits moves bits to the left, and those that fall out back in.
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
		g.evex(g.lanes(blendMasked), g.dest(), other, rm, masking{mask: g.in(c), spreads: rm.kind == inPool})
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

// logic writes operations on truths.
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

// operation returns the instruction of a step; that there is one follows from
// Operations and is tested for each.
func operation(list map[scalar.Op]opcode, s *step) opcode {
	o, ok := list[s.op]
	if !ok {
		panic(fmt.Sprint("jit: ", s.op, " of ", s.from))
	}
	return o
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

// contractFMA writes a product and a sum, rounded once, over an operand that is not
// needed any more if there is one.
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
