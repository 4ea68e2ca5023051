package jit

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scale multiplies by a power of two in two steps, as the power may be out of range where the
// product is not. The low bits of a large power of two plus the bias, whose ulp is 1, are the
// exponent.
func (l *lanes) scale(s *step) {
	x, y := l.in(s.args[0]), l.in(s.args[1])
	bits, whole := 23, float64(127+3<<22)
	t := dtype.F32
	if l.Long {
		bits, whole, t = mantissaBits, bias+3<<51, dtype.F64
	}
	k, half, w := l.temp(), l.temp(), l.temp()
	l.Constant(w, wordOf(scalar.ConstF(t, 0.5)))
	l.Constant(half, wordOf(scalar.ConstF(t, whole)))
	l.Three(l.Lanes(asm.FusedAdd), half, y, w) // y/2, rounded
	l.Constant(w, wordOf(scalar.ConstF(t, whole)))
	l.Three(l.Lanes(floatOps[scalar.OpSub]), k, half, w)
	l.Three(l.Lanes(floatOps[scalar.OpSub]), k, y, k) // the rest
	l.Three(l.Lanes(floatOps[scalar.OpAdd]), k, k, w)
	l.shiftLanes(asm.LeftBy, bits, half, half) // as powers of two
	l.shiftLanes(asm.LeftBy, bits, k, k)
	d := l.dest()
	l.Three(l.Lanes(floatOps[scalar.OpMul]), d, x, half)
	l.Three(l.Lanes(floatOps[scalar.OpMul]), d, d, k)
}

// rotateBits rotates the bits of lanes to the left.
func (l *lanes) rotateBits(s *step) {
	x := l.in(s.args[0])
	d := l.dest()
	l.shift(asm.LeftBy, s.lanes, x, d)
	l.shift(asm.RightInsert, 32-s.lanes, x, d)
}

// convertLong writes a step if it converts between 32 and 64 bits: long lanes hold a result of 32 bits extended.
func (l *lanes) convertLong(s *step) bool {
	switch {
	case s.op != scalar.OpConvert:
		return false
	case s.from.Size() == 8 && s.typ.Size() == 4:
		from := l.in(s.args[0])
		d := l.dest()
		l.Two(narrowing(s.typ), d, from)
		l.Two(longWidenings[s.typ], d, d)
	case s.from == dtype.F32 && s.typ == dtype.F64: // f64 lanes load numbers of f32 extended
		l.keepBits(s)
	default:
		return false
	}
	return true
}

// logic writes operations on booleans.
func (l *lanes) logic(s *step) {
	if s.op == scalar.OpNot {
		l.unary(asm.BitsNot, s)
		return
	}
	l.binary(operation(boolOps, s), s)
}

func (l *lanes) unary(o asm.Opcode, s *step) {
	from := l.in(s.args[0])
	l.Two(o, l.dest(), from)
}

func (l *lanes) binary(o asm.Opcode, s *step) {
	a, b := l.in(s.args[0]), l.in(s.args[1])
	l.Three(o, l.dest(), a, b)
}

// keepBits writes a bitcast.
func (l *lanes) keepBits(s *step) {
	switch a := s.args[0]; {
	case a.constant:
		l.splatBits(l.dest(), a.bits)
	case l.dies(a):
		l.takeOver(a)
	default:
		from := l.in(a)
		l.Copy(l.dest(), from)
	}
}

// over returns the result's register with an operand in it: the operand's own register where
// it dies and is none of the others.
func (l *lanes) over(s *step, a argument, others ...argument) int {
	free := l.dies(a)
	for _, o := range others {
		free = free && (o.constant || o.value != a.value)
	}
	if free {
		return l.takeOver(a)
	}
	if a.constant {
		d := l.dest()
		l.splatBits(d, a.bits)
		return d
	}
	from := l.in(a)
	d := l.dest()
	l.Copy(d, from)
	return d
}

func (l *lanes) choose(s *step) {
	c, a, b := s.args[0], s.args[1], s.args[2]
	yes, no := l.in(a), l.in(b)
	l.Three(asm.ChooseBits, l.over(s, c, a, b), yes, no)
}

func (l *lanes) convert(s *step) {
	switch {
	case s.from.IsBool():
		one := uint64(1)
		if s.typ.IsFloat() {
			one = wordOf(scalar.ConstF(s.typ, 1))
		}
		from, t := l.in(s.args[0]), l.temp()
		l.Constant(t, one)
		l.Three(asm.BitsAnd, l.dest(), from, t)
	case s.typ == dtype.F32 && s.from == dtype.I32:
		l.unary(asm.IntToFloat, s)
	case s.typ == dtype.I32 && s.from == dtype.F32:
		l.unary(asm.FloatToInt, s)
	default:
		panic(fmt.Sprint("jit: convert ", s.from, " to ", s.typ))
	}
}

func (l *lanes) float(s *step) {
	if s.op == scalar.OpFma { // rounded once
		a, b, c := s.args[0], s.args[1], s.args[2]
		x, y := l.in(a), l.in(b)
		l.Three(l.Lanes(asm.FusedAdd), l.over(s, c, a, b), x, y)
		return
	}
	if o, ok := floatUnary[s.op]; ok {
		l.unary(l.Lanes(o), s)
		return
	}
	l.binary(l.Lanes(operation(floatOps, s)), s)
}

// compare writes one of the six comparisons.
func (l *lanes) compare(s *step) {
	c := comparisons[s.op]
	o := c.signed
	switch {
	case s.from.IsFloat():
		o = c.float
	case s.from.IsUnsigned():
		o = c.unsigned
	}
	a, b := l.in(s.args[0]), l.in(s.args[1])
	if c.swapped {
		a, b = b, a
	}
	d := l.dest()
	l.Three(l.Lanes(o), d, a, b)
	if c.negated {
		l.Two(asm.BitsNot, d, d)
	}
}

func (l *lanes) integer(s *step) {
	switch s.op {
	case scalar.OpShl, scalar.OpShr:
		l.shifts(s)
	case scalar.OpNot:
		l.unary(asm.BitsNot, s)
	case scalar.OpAnd, scalar.OpOr, scalar.OpXor:
		l.binary(boolOps[s.op], s)
	case scalar.OpNeg:
		l.unary(l.Lanes(asm.NegateInt), s)
	case scalar.OpAbs:
		l.unary(l.Lanes(asm.AbsInt), s)
	case scalar.OpMul:
		if l.Long {
			l.multiplyLong(s)
		} else {
			l.binary(asm.MultiplyInt, s)
		}
	case scalar.OpAdd:
		l.binary(l.Lanes(asm.AddInt), s)
	case scalar.OpSub:
		l.binary(l.Lanes(asm.SubtractInt), s)
	default:
		extremes := intExtremes
		if s.typ.IsUnsigned() {
			extremes = uintExtremes
		}
		l.binary(operation(extremes, s), s)
	}
}

// multiplyLong multiplies 64-bit integers by halves: low·low + (high·low + low·high)·2³².
func (l *lanes) multiplyLong(s *step) {
	x, y := l.in(s.args[0]), l.in(s.args[1])
	t, u := l.temp(), l.temp()
	l.Two(asm.SwapWords, t, y)
	l.Three(asm.MultiplyInt, t, t, x)
	l.Two(asm.AddPairs, t, t)
	l.Two(asm.NarrowLanes, u, y)
	d := l.dest()
	l.shiftLanes(asm.LeftBy, 32, t, t)
	l.Two(asm.NarrowLanes, d, x)
	l.Three(asm.FusedHalves, t, d, u)
	l.Copy(d, t)
}

// shifts writes a shift. Shifts by lanes go to the left; negative counts shift to the right.
func (l *lanes) shifts(s *step) {
	left, signed := s.op == scalar.OpShl, s.typ.IsSigned()
	if by := s.args[1]; by.constant && by.bits > 0 {
		o := map[bool]asm.Opcode{true: asm.RightInt, false: asm.RightUint}[signed]
		if left {
			o = asm.LeftBy
		}
		from := l.in(s.args[0])
		l.shiftLanes(o, int(by.bits), from, l.dest())
		return
	}
	o := map[bool]asm.Opcode{true: asm.ShiftInt, false: asm.ShiftUint}[signed && !left]
	from, by := l.in(s.args[0]), l.in(s.args[1])
	if !left {
		t := l.temp()
		l.Two(l.Lanes(asm.NegateInt), t, by)
		by = t
	}
	l.Three(l.Lanes(o), l.dest(), from, by)
}

// minMax writes x < y ? x : y, or x > y ? x : y.
func (l *lanes) minMax(s *step) {
	x, y := l.in(s.args[0]), l.in(s.args[1])
	d := l.dest()
	if s.kind == minimum {
		l.Three(l.Lanes(asm.GreaterFloat), d, y, x)
	} else {
		l.Three(l.Lanes(asm.GreaterFloat), d, x, y)
	}
	l.Three(asm.ChooseBits, d, x, y)
}

func (l *lanes) roundHalf(s *step) {
	x := l.in(s.args[0])
	d := l.dest()
	l.Two(asm.FloatToHalf, d, x)
	l.Two(asm.HalfToFloat, d, d)
}

func (l *lanes) rotate(s *step) {
	r := l.locations[s.args[0].value].reg
	l.Three(asm.Extract|asm.Opcode(16/l.width*s.lanes)<<11, l.dest(), r, r)
}
