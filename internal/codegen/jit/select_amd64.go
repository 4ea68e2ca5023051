package jit

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scale multiplies by a power of two. AVX2 does so in two steps, as the power may be out of
// range where the product is not.
func (g *generator) scale(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	if g.Wide {
		g.Vector(asm.ScaleFloat, g.dest(), x, asm.Register(y))
		return
	}
	// The low bits of a large power of two plus the bias, whose ulp is 1, are the exponent.
	bits, whole := 23, float64(127+3<<22)
	if g.Long {
		bits, whole = mantissaBits, bias+3<<51
	}
	number := func(x float64) argument { return argument{bits: wordOf(scalar.ConstF(g.number(), x)), constant: true} }
	half, k := g.temp(), g.temp()
	g.Vector(asm.Broadcast, half, 0, g.last(number(0.5)))
	g.Vector(asm.Fused213, half, y, g.last(number(whole)))           // y/2, rounded
	g.Vector(floatOps[scalar.OpSub], k, half, g.last(number(whole))) //
	g.Vector(floatOps[scalar.OpSub], k, y, asm.Register(k))          // the rest
	g.Vector(floatOps[scalar.OpAdd], k, k, g.last(number(whole)))
	g.shiftLanes(asm.ShiftLeft, bits, half, half) // as powers of two
	g.shiftLanes(asm.ShiftLeft, bits, k, k)
	d := g.dest()
	g.Vector(floatOps[scalar.OpMul], d, x, asm.Register(half))
	g.Vector(floatOps[scalar.OpMul], d, d, asm.Register(k))
}

// number returns the float type of lanes.
func (g *generator) number() dtype.DType {
	if g.Long {
		return dtype.F64
	}
	return dtype.F32
}

// rotateBits rotates the bits of lanes to the left.
func (g *generator) rotateBits(s *step) {
	x := g.in(s.args[0])
	if g.Wide {
		g.shift(asm.RotateLeft, s.lanes, x, g.dest())
		return
	}
	t := g.temp()
	d := g.dest()
	g.shift(asm.ShiftRight, 32-s.lanes, x, t)
	g.shift(asm.ShiftLeft, s.lanes, x, d)
	g.Vector(asm.BitsOr, d, d, asm.Register(t))
}

// convertLong writes a step if it makes 64-bit integers shorter: long lanes hold the result extended.
func (g *generator) convertLong(s *step) bool {
	if s.op != scalar.OpConvert || s.typ.Size() >= s.from.Size() || !s.typ.IsInteger() || s.from.Size() != 8 {
		return false
	}
	g.cutLong(s)
	return true
}

func (g *generator) choose(s *step) {
	c, yes, no := s.args[0], s.args[1], s.args[2]
	other := g.in(no)
	if g.Wide {
		rm := g.last(yes)
		g.EVEX(g.Lanes(asm.BlendMasked), g.dest(), other, rm, asm.Masking{Mask: g.in(c), Broadcast: rm.IsConstant()})
		return
	}
	o := g.Lanes(asm.BlendVector).Imm(g.in(c) << 4)
	g.VEX(o, g.dest(), other, g.last(yes), false)
}

func (g *generator) binary(o asm.Opcode, a, b argument) {
	first := g.in(a)
	g.Vector(o, g.dest(), first, g.last(b))
}

// logic writes operations on booleans.
func (g *generator) logic(s *step) {
	a := g.in(s.args[0])
	switch {
	case s.op == scalar.OpNot && g.Wide:
		g.VEX(asm.MaskNot, g.dest(), 0, asm.Register(a), true)
	case s.op == scalar.OpNot:
		g.Vector(asm.BitsXor, g.dest(), a, asm.Constant(g.ones()))
	case g.Wide:
		g.VEX(operation(maskOps, s), g.dest(), a, g.last(s.args[1]), false)
	default:
		g.Vector(operation(boolOps, s), g.dest(), a, g.last(s.args[1]))
	}
}

func (g *generator) float(s *step) {
	switch s.op {
	case scalar.OpFma:
		g.fused(s)
	case scalar.OpNeg:
		first := g.in(s.args[0])
		g.Vector(asm.BitsXor, g.dest(), first, asm.Constant(g.sign()))
	case scalar.OpAbs:
		first := g.in(s.args[0])
		g.Vector(asm.BitsAnd, g.dest(), first, asm.Constant(g.sign()-1))
	case scalar.OpSqrt:
		g.Vector(asm.Root, g.dest(), 0, asm.Register(g.in(s.args[0])))
	case scalar.OpRound, scalar.OpFloor, scalar.OpCeil, scalar.OpTrunc:
		g.Vector(asm.RoundWide.Imm(roundings[s.op]), g.dest(), 0, asm.Register(g.in(s.args[0])))
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
		g.Vector(asm.Fused213, g.takeOver(a), second, third)
	case g.dies(c) && (a.constant || a.value != c.value) && (b.constant || b.value != c.value):
		first, second := g.in(a), g.last(b)
		g.Vector(asm.Fused231, g.takeOver(c), first, second)
	default:
		first, second := g.in(a), g.last(b)
		if c.constant {
			g.Vector(asm.Broadcast, g.dest(), 0, asm.Constant(c.bits))
		} else {
			g.Vector(asm.MoveAll, g.dest(), 0, asm.Register(g.in(c)))
		}
		g.Vector(asm.Fused231, g.locations[s.dst].reg, first, second)
	}
}

// compare writes one of the six comparisons.
func (g *generator) compare(s *step) {
	a, b := s.args[0], s.args[1]
	kind := s.op - scalar.OpEq
	o := asm.CompareInt.Imm(intPredicates[kind])
	switch {
	case s.from.IsFloat():
		o = asm.CompareReal.Imm(realPredicates[kind])
	case !g.Wide:
		g.compareNarrow(s)
		return
	case s.from.IsUnsigned():
		o = asm.CompareUint.Imm(intPredicates[kind])
	}
	g.binary(o, a, b)
}

// compareNarrow compares integers with AVX2, which has equal and signed greater only.
func (g *generator) compareNarrow(s *step) {
	a, b := s.args[0], s.args[1]
	switch s.op {
	case scalar.OpEq, scalar.OpNe:
		g.binary(asm.EqualInt, a, b)
	case scalar.OpLt, scalar.OpGe:
		g.greater(s, b, a)
	default:
		g.greater(s, a, b)
	}
	if s.op == scalar.OpNe || s.op == scalar.OpLe || s.op == scalar.OpGe {
		d := g.locations[s.dst].reg
		g.Vector(asm.BitsXor, d, d, asm.Constant(g.ones()))
	}
}

func (g *generator) greater(s *step, a, b argument) {
	if s.from.IsSigned() {
		g.binary(asm.GreaterInt, a, b)
		return
	}
	x, y := g.temp(), g.temp()
	g.Vector(asm.BitsXor, x, g.in(a), asm.Constant(g.sign()))
	g.Vector(asm.BitsXor, y, g.in(b), asm.Constant(g.sign()))
	g.Vector(asm.GreaterInt, g.dest(), x, asm.Register(y))
}

func (g *generator) integer(s *step) {
	a := s.args[0]
	switch s.op {
	case scalar.OpMul:
		if g.Long && !g.Wide {
			g.multiplyLong(s)
			return
		}
	case scalar.OpShl, scalar.OpShr:
		if g.Long && !g.Wide && s.op == scalar.OpShr && s.typ.IsSigned() {
			g.shiftLong(s)
			return
		}
		if by := s.args[1]; by.constant {
			how := asm.ShiftLeft
			if s.op == scalar.OpShr {
				how = map[bool]int{true: asm.ShiftSigned, false: asm.ShiftRight}[s.typ.IsSigned()]
			}
			from := g.in(a)
			g.shiftLanes(how, int(by.bits), from, g.dest())
			return
		}
	case scalar.OpNeg:
		from := g.in(a)
		d := g.dest()
		g.Vector(asm.BitsXor, d, d, asm.Register(d))
		g.Vector(asm.SubtractInt, d, d, asm.Register(from))
		return
	case scalar.OpNot:
		from := g.in(a)
		g.Vector(asm.BitsXor, g.dest(), from, asm.Constant(g.ones()))
		return
	case scalar.OpAbs:
		g.Vector(asm.AbsInt, g.dest(), 0, asm.Register(g.in(a)))
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
	g.shiftLanes(asm.ShiftRight, 32, x, cross)
	g.Vector32(asm.MultiplyHalves, cross, cross, asm.Register(y))
	g.shiftLanes(asm.ShiftRight, 32, y, t)
	g.Vector32(asm.MultiplyHalves, t, t, asm.Register(x))
	g.Vector(asm.AddInt, cross, cross, asm.Register(t))
	g.shiftLanes(asm.ShiftLeft, 32, cross, cross)
	g.Vector32(asm.MultiplyHalves, t, x, asm.Register(y))
	g.Vector(asm.AddInt, g.dest(), cross, asm.Register(t))
}

// shiftLong is an arithmetic right shift of 64-bit integers with AVX2, which has logical ones
// only: it extends the shifted sign bit by (x ^ sign) - sign.
func (g *generator) shiftLong(s *step) {
	x, sign := g.in(s.args[0]), g.temp()
	g.splatBits(sign, g.sign())
	by := s.args[1]
	if by.constant {
		g.shiftLanes(asm.ShiftRight, int(by.bits), sign, sign)
		g.shiftLanes(asm.ShiftRight, int(by.bits), x, g.dest())
	} else {
		n := asm.Register(g.in(by))
		g.Vector(asm.ShiftRightEach, sign, sign, n)
		g.Vector(asm.ShiftRightEach, g.dest(), x, n)
	}
	d := g.locations[s.dst].reg
	g.Vector(asm.BitsXor, d, d, asm.Register(sign))
	g.Vector(asm.SubtractInt, d, d, asm.Register(sign))
}

// keepBits writes a bitcast.
func (g *generator) keepBits(s *step) {
	a := s.args[0]
	switch {
	case a.constant:
		g.Vector(asm.Broadcast, g.dest(), 0, asm.Constant(a.bits))
	case g.dies(a):
		g.takeOver(a)
	default:
		g.Vector(asm.MoveAll, g.dest(), 0, asm.Register(g.in(a)))
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
		if g.Wide {
			g.EVEX(g.Lanes(asm.OnesWhere), g.dest(), 0, asm.Constant(one), asm.Masking{Mask: g.in(a), Zero: true})
		} else {
			g.Vector(asm.BitsAnd, g.dest(), g.in(a), asm.Constant(one))
		}
	case s.typ == dtype.F64 && s.from == dtype.F32:
		g.keepBits(s)
	case s.typ == dtype.F32 && s.from == dtype.F64:
		from, t := g.in(a), g.temp()
		g.Vector32(asm.NarrowDoubles, t, 0, asm.Register(from))
		g.Vector32(asm.WidenFloats, g.dest(), 0, asm.Register(t))
	case s.typ == dtype.F32 && s.from == dtype.I32:
		g.Vector(asm.IntToFloat, g.dest(), 0, asm.Register(g.in(a)))
	case s.typ == dtype.I32 && s.from == dtype.F32:
		g.Vector(asm.FloatToInt, g.dest(), 0, asm.Register(g.in(a)))
	default:
		panic(fmt.Sprint("jit: convert ", s.from, " to ", s.typ))
	}
}

// cutLong converts 64-bit integers to 32 bits: long lanes hold the result extended.
func (g *generator) cutLong(s *step) {
	from := g.in(s.args[0])
	if s.typ.IsSigned() {
		g.Vector32(asm.MultiplySigned, g.dest(), from, asm.Constant(1))
	} else {
		g.Vector(asm.BitsAnd, g.dest(), from, asm.Constant(math.MaxUint32))
	}
}
