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
func (l *lanes) scale(s *step) {
	x, y := l.in(s.args[0]), l.in(s.args[1])
	if l.Wide {
		l.Vector(asm.ScaleFloat, l.dest(), x, asm.Register(y))
		return
	}
	// The low bits of a large power of two plus the bias, whose ulp is 1, are the exponent.
	bits, whole := 23, float64(127+3<<22)
	if l.Long {
		bits, whole = mantissaBits, bias+3<<51
	}
	number := func(x float64) argument { return argument{bits: wordOf(scalar.ConstF(l.number(), x)), constant: true} }
	half, k := l.temp(), l.temp()
	l.Vector(asm.Broadcast, half, 0, l.last(number(0.5)))
	l.Vector(asm.Fused213, half, y, l.last(number(whole)))           // y/2, rounded
	l.Vector(floatOps[scalar.OpSub], k, half, l.last(number(whole))) //
	l.Vector(floatOps[scalar.OpSub], k, y, asm.Register(k))          // the rest
	l.Vector(floatOps[scalar.OpAdd], k, k, l.last(number(whole)))
	l.shiftLanes(asm.ShiftLeft, bits, half, half) // as powers of two
	l.shiftLanes(asm.ShiftLeft, bits, k, k)
	d := l.dest()
	l.Vector(floatOps[scalar.OpMul], d, x, asm.Register(half))
	l.Vector(floatOps[scalar.OpMul], d, d, asm.Register(k))
}

// rotateBits rotates the bits of lanes to the left.
func (l *lanes) rotateBits(s *step) {
	x := l.in(s.args[0])
	if l.Wide {
		l.shift(asm.RotateLeft, s.lanes, x, l.dest())
		return
	}
	t := l.temp()
	d := l.dest()
	l.shift(asm.ShiftRight, 32-s.lanes, x, t)
	l.shift(asm.ShiftLeft, s.lanes, x, d)
	l.Vector(asm.BitsOr, d, d, asm.Register(t))
}

// convertLong writes a step if it makes 64-bit integers shorter: long lanes hold the result extended.
func (l *lanes) convertLong(s *step) bool {
	if s.op != scalar.OpConvert || s.typ.Size() >= s.from.Size() || !s.typ.IsInteger() || s.from.Size() != 8 {
		return false
	}
	l.cutLong(s)
	return true
}

func (l *lanes) choose(s *step) {
	c, yes, no := s.args[0], s.args[1], s.args[2]
	other := l.in(no)
	if l.Wide {
		rm := l.last(yes)
		l.EVEX(l.Lanes(asm.BlendMasked), l.dest(), other, rm, asm.Masking{Mask: l.in(c), Broadcast: rm.IsConstant()})
		return
	}
	o := l.Lanes(asm.BlendVector).Imm(l.in(c) << 4)
	l.VEX(o, l.dest(), other, l.last(yes), false)
}

func (l *lanes) binary(o asm.Opcode, a, b argument) {
	first := l.in(a)
	l.Vector(o, l.dest(), first, l.last(b))
}

// logic writes operations on booleans.
func (l *lanes) logic(s *step) {
	a := l.in(s.args[0])
	switch {
	case s.op == scalar.OpNot && l.Wide:
		l.VEX(asm.MaskNot, l.dest(), 0, asm.Register(a), true)
	case s.op == scalar.OpNot:
		l.Vector(asm.BitsXor, l.dest(), a, asm.Constant(l.ones()))
	case l.Wide:
		l.VEX(operation(maskOps, s), l.dest(), a, l.last(s.args[1]), false)
	default:
		l.Vector(operation(boolOps, s), l.dest(), a, l.last(s.args[1]))
	}
}

func (l *lanes) float(s *step) {
	switch s.op {
	case scalar.OpFma:
		l.fused(s)
	case scalar.OpNeg:
		first := l.in(s.args[0])
		l.Vector(asm.BitsXor, l.dest(), first, asm.Constant(l.sign()))
	case scalar.OpAbs:
		first := l.in(s.args[0])
		l.Vector(asm.BitsAnd, l.dest(), first, asm.Constant(l.sign()-1))
	case scalar.OpSqrt:
		l.Vector(asm.Root, l.dest(), 0, asm.Register(l.in(s.args[0])))
	case scalar.OpRound, scalar.OpFloor, scalar.OpCeil, scalar.OpTrunc:
		l.Vector(asm.RoundWide.Imm(roundings[s.op]), l.dest(), 0, asm.Register(l.in(s.args[0])))
	default:
		l.binary(operation(floatOps, s), s.args[0], s.args[1])
	}
}

// fused writes a fused multiply-add, over a dying operand if there is one.
func (l *lanes) fused(s *step) {
	a, b, c := s.args[0], s.args[1], s.args[2]
	if l.dies(b) && !l.dies(a) {
		a, b = b, a
	}
	switch {
	case l.dies(a) && (a.value != b.value || b.constant) && (a.value != c.value || c.constant):
		second, third := l.in(b), l.last(c)
		l.Vector(asm.Fused213, l.takeOver(a), second, third)
	case l.dies(c) && (a.constant || a.value != c.value) && (b.constant || b.value != c.value):
		first, second := l.in(a), l.last(b)
		l.Vector(asm.Fused231, l.takeOver(c), first, second)
	default:
		first, second := l.in(a), l.last(b)
		if c.constant {
			l.Vector(asm.Broadcast, l.dest(), 0, asm.Constant(c.bits))
		} else {
			l.Vector(asm.MoveAll, l.dest(), 0, asm.Register(l.in(c)))
		}
		l.Vector(asm.Fused231, l.locations[s.dst].reg, first, second)
	}
}

// compare writes one of the six comparisons.
func (l *lanes) compare(s *step) {
	a, b := s.args[0], s.args[1]
	kind := s.op - scalar.OpEq
	o := asm.CompareInt.Imm(intPredicates[kind])
	switch {
	case s.from.IsFloat():
		o = asm.CompareReal.Imm(realPredicates[kind])
	case !l.Wide:
		l.compareNarrow(s)
		return
	case s.from.IsUnsigned():
		o = asm.CompareUint.Imm(intPredicates[kind])
	}
	l.binary(o, a, b)
}

// compareNarrow compares integers with AVX2, which has equal and signed greater only.
func (l *lanes) compareNarrow(s *step) {
	a, b := s.args[0], s.args[1]
	switch s.op {
	case scalar.OpEq, scalar.OpNe:
		l.binary(asm.EqualInt, a, b)
	case scalar.OpLt, scalar.OpGe:
		l.greater(s, b, a)
	default:
		l.greater(s, a, b)
	}
	if s.op == scalar.OpNe || s.op == scalar.OpLe || s.op == scalar.OpGe {
		d := l.locations[s.dst].reg
		l.Vector(asm.BitsXor, d, d, asm.Constant(l.ones()))
	}
}

func (l *lanes) greater(s *step, a, b argument) {
	if s.from.IsSigned() {
		l.binary(asm.GreaterInt, a, b)
		return
	}
	x, y := l.temp(), l.temp()
	l.Vector(asm.BitsXor, x, l.in(a), asm.Constant(l.sign()))
	l.Vector(asm.BitsXor, y, l.in(b), asm.Constant(l.sign()))
	l.Vector(asm.GreaterInt, l.dest(), x, asm.Register(y))
}

func (l *lanes) integer(s *step) {
	a := s.args[0]
	switch s.op {
	case scalar.OpMul:
		if l.Long && !l.Wide {
			l.multiplyLong(s)
			return
		}
	case scalar.OpShl, scalar.OpShr:
		if l.Long && !l.Wide && s.op == scalar.OpShr && s.typ.IsSigned() {
			l.shiftLong(s)
			return
		}
		if by := s.args[1]; by.constant {
			how := asm.ShiftLeft
			if s.op == scalar.OpShr {
				how = map[bool]int{true: asm.ShiftSigned, false: asm.ShiftRight}[s.typ.IsSigned()]
			}
			from := l.in(a)
			l.shiftLanes(how, int(by.bits), from, l.dest())
			return
		}
	case scalar.OpNeg:
		from := l.in(a)
		d := l.dest()
		l.Vector(asm.BitsXor, d, d, asm.Register(d))
		l.Vector(asm.SubtractInt, d, d, asm.Register(from))
		return
	case scalar.OpNot:
		from := l.in(a)
		l.Vector(asm.BitsXor, l.dest(), from, asm.Constant(l.ones()))
		return
	case scalar.OpAbs:
		l.Vector(asm.AbsInt, l.dest(), 0, asm.Register(l.in(a)))
		return
	}
	if o, ok := uintOps[s.op]; ok && s.typ.IsUnsigned() {
		l.binary(o, a, s.args[1])
		return
	}
	l.binary(operation(intOps, s), a, s.args[1])
}

// multiplyLong multiplies 64-bit integers with AVX2, which multiplies lower halves only:
// low·low + (high·low + low·high)·2³².
func (l *lanes) multiplyLong(s *step) {
	x, y := l.in(s.args[0]), l.in(s.args[1])
	cross, t := l.temp(), l.temp()
	l.shiftLanes(asm.ShiftRight, 32, x, cross)
	l.Vector32(asm.MultiplyHalves, cross, cross, asm.Register(y))
	l.shiftLanes(asm.ShiftRight, 32, y, t)
	l.Vector32(asm.MultiplyHalves, t, t, asm.Register(x))
	l.Vector(asm.AddInt, cross, cross, asm.Register(t))
	l.shiftLanes(asm.ShiftLeft, 32, cross, cross)
	l.Vector32(asm.MultiplyHalves, t, x, asm.Register(y))
	l.Vector(asm.AddInt, l.dest(), cross, asm.Register(t))
}

// shiftLong is an arithmetic right shift of 64-bit integers with AVX2, which has logical ones
// only: it extends the shifted sign bit by (x ^ sign) - sign.
func (l *lanes) shiftLong(s *step) {
	x, sign := l.in(s.args[0]), l.temp()
	l.splatBits(sign, l.sign())
	by := s.args[1]
	if by.constant {
		l.shiftLanes(asm.ShiftRight, int(by.bits), sign, sign)
		l.shiftLanes(asm.ShiftRight, int(by.bits), x, l.dest())
	} else {
		n := asm.Register(l.in(by))
		l.Vector(asm.ShiftRightEach, sign, sign, n)
		l.Vector(asm.ShiftRightEach, l.dest(), x, n)
	}
	d := l.locations[s.dst].reg
	l.Vector(asm.BitsXor, d, d, asm.Register(sign))
	l.Vector(asm.SubtractInt, d, d, asm.Register(sign))
}

// keepBits writes a bitcast.
func (l *lanes) keepBits(s *step) {
	a := s.args[0]
	switch {
	case a.constant:
		l.Vector(asm.Broadcast, l.dest(), 0, asm.Constant(a.bits))
	case l.dies(a):
		l.takeOver(a)
	default:
		l.Vector(asm.MoveAll, l.dest(), 0, asm.Register(l.in(a)))
	}
}

func (l *lanes) convert(s *step) {
	a := s.args[0]
	switch {
	case s.from.IsBool():
		one := uint64(1)
		if s.typ.IsFloat() {
			one = wordOf(scalar.ConstF(s.typ, 1))
		}
		if l.Wide {
			l.EVEX(l.Lanes(asm.OnesWhere), l.dest(), 0, asm.Constant(one), asm.Masking{Mask: l.in(a), Zero: true})
		} else {
			l.Vector(asm.BitsAnd, l.dest(), l.in(a), asm.Constant(one))
		}
	case s.typ == dtype.F64 && s.from == dtype.F32:
		l.keepBits(s)
	case s.typ == dtype.F32 && s.from == dtype.F64:
		from, t := l.in(a), l.temp()
		l.Vector32(asm.NarrowDoubles, t, 0, asm.Register(from))
		l.Vector32(asm.WidenFloats, l.dest(), 0, asm.Register(t))
	case s.typ == dtype.F32 && s.from == dtype.I32:
		l.Vector(asm.IntToFloat, l.dest(), 0, asm.Register(l.in(a)))
	case s.typ == dtype.I32 && s.from == dtype.F32:
		l.Vector(asm.FloatToInt, l.dest(), 0, asm.Register(l.in(a)))
	default:
		panic(fmt.Sprint("jit: convert ", s.from, " to ", s.typ))
	}
}

// cutLong converts 64-bit integers to 32 bits: long lanes hold the result extended.
func (l *lanes) cutLong(s *step) {
	from := l.in(s.args[0])
	if s.typ.IsSigned() {
		l.Vector32(asm.MultiplySigned, l.dest(), from, asm.Constant(1))
	} else {
		l.Vector(asm.BitsAnd, l.dest(), from, asm.Constant(math.MaxUint32))
	}
}

// minMax writes a minimum or maximum, which is the second operand where either is NaN.
func (l *lanes) minMax(s *step) {
	o := asm.MinFloat
	if s.kind == maximum {
		o = asm.MaxFloat
	}
	l.binary(o, s.args[0], s.args[1])
}

func (l *lanes) roundHalf(s *step) {
	x, t := l.in(s.args[0]), l.temp()
	l.Vector(asm.FloatToHalf, x, 0, asm.Register(t))
	l.Vector(asm.HalfToFloat, l.dest(), 0, asm.Register(t))
}

func (l *lanes) rotate(s *step) {
	r := l.locations[s.args[0].value].reg
	d := l.dest()
	switch {
	case l.Wide:
		l.EVEX(l.Lanes(asm.AlignWords).Imm(s.lanes), d, r, asm.Register(r), asm.Masking{})
	case 2*s.lanes == l.width:
		l.VEX(asm.PermuteHalves.Imm(0x01), d, r, asm.Register(r), false)
	default:
		to := map[int]int{2: 0x4e, 1: 0x39}[s.lanes]
		if l.Long {
			to = 0x05
		}
		l.Vector(asm.PermuteFour.Imm(to), d, 0, asm.Register(r))
	}
}
