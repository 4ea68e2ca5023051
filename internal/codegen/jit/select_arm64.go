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
func (g *generator) scale(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	bits, whole := 23, float64(127+3<<22)
	t := dtype.F32
	if g.Long {
		bits, whole, t = mantissaBits, bias+3<<51, dtype.F64
	}
	k, half, w := g.temp(), g.temp(), g.temp()
	g.Constant(w, wordOf(scalar.ConstF(t, 0.5)))
	g.Constant(half, wordOf(scalar.ConstF(t, whole)))
	g.Three(g.Lanes(asm.FusedAdd), half, y, w) // y/2, rounded
	g.Constant(w, wordOf(scalar.ConstF(t, whole)))
	g.Three(g.Lanes(floatOps[scalar.OpSub]), k, half, w)
	g.Three(g.Lanes(floatOps[scalar.OpSub]), k, y, k) // the rest
	g.Three(g.Lanes(floatOps[scalar.OpAdd]), k, k, w)
	g.shiftLanes(asm.LeftBy, bits, half, half) // as powers of two
	g.shiftLanes(asm.LeftBy, bits, k, k)
	d := g.dest()
	g.Three(g.Lanes(floatOps[scalar.OpMul]), d, x, half)
	g.Three(g.Lanes(floatOps[scalar.OpMul]), d, d, k)
}

// rotateBits rotates the bits of lanes to the left.
func (g *generator) rotateBits(s *step) {
	x := g.in(s.args[0])
	d := g.dest()
	g.shift(asm.LeftBy, s.lanes, x, d)
	g.shift(asm.RightInsert, 32-s.lanes, x, d)
}

// convertLong writes a step if it converts between 32 and 64 bits: long lanes hold a result of 32 bits extended.
func (g *generator) convertLong(s *step) bool {
	switch {
	case s.op != scalar.OpConvert:
		return false
	case s.from.Size() == 8 && s.typ.Size() == 4:
		from := g.in(s.args[0])
		d := g.dest()
		g.Two(g.narrowing(s.typ), d, from)
		g.Two(longWidenings[s.typ], d, d)
	case s.from == dtype.F32 && s.typ == dtype.F64: // f64 lanes load numbers of f32 extended
		g.keepBits(s)
	default:
		return false
	}
	return true
}

// logic writes operations on booleans.
func (g *generator) logic(s *step) {
	if s.op == scalar.OpNot {
		g.unary(asm.BitsNot, s)
		return
	}
	g.binary(operation(boolOps, s), s)
}

func (g *generator) unary(o asm.Opcode, s *step) {
	from := g.in(s.args[0])
	g.Two(o, g.dest(), from)
}

func (g *generator) binary(o asm.Opcode, s *step) {
	a, b := g.in(s.args[0]), g.in(s.args[1])
	g.Three(o, g.dest(), a, b)
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
		g.Copy(g.dest(), from)
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
	g.Copy(d, from)
	return d
}

func (g *generator) choose(s *step) {
	c, a, b := s.args[0], s.args[1], s.args[2]
	yes, no := g.in(a), g.in(b)
	g.Three(asm.ChooseBits, g.over(s, c, a, b), yes, no)
}

func (g *generator) convert(s *step) {
	switch {
	case s.from.IsBool():
		one := uint64(1)
		if s.typ.IsFloat() {
			one = wordOf(scalar.ConstF(s.typ, 1))
		}
		from, t := g.in(s.args[0]), g.temp()
		g.Constant(t, one)
		g.Three(asm.BitsAnd, g.dest(), from, t)
	case s.typ == dtype.F32 && s.from == dtype.I32:
		g.unary(asm.IntToFloat, s)
	case s.typ == dtype.I32 && s.from == dtype.F32:
		g.unary(asm.FloatToInt, s)
	default:
		panic(fmt.Sprint("jit: convert ", s.from, " to ", s.typ))
	}
}

func (g *generator) float(s *step) {
	if s.op == scalar.OpFma { // rounded once
		a, b, c := s.args[0], s.args[1], s.args[2]
		x, y := g.in(a), g.in(b)
		g.Three(g.Lanes(asm.FusedAdd), g.over(s, c, a, b), x, y)
		return
	}
	if o, ok := floatUnary[s.op]; ok {
		g.unary(g.Lanes(o), s)
		return
	}
	g.binary(g.Lanes(operation(floatOps, s)), s)
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
	g.Three(g.Lanes(o), d, a, b)
	if c.negated {
		g.Two(asm.BitsNot, d, d)
	}
}

func (g *generator) integer(s *step) {
	switch s.op {
	case scalar.OpShl, scalar.OpShr:
		g.shifts(s)
	case scalar.OpNot:
		g.unary(asm.BitsNot, s)
	case scalar.OpAnd, scalar.OpOr, scalar.OpXor:
		g.binary(boolOps[s.op], s)
	case scalar.OpNeg:
		g.unary(g.Lanes(asm.NegateInt), s)
	case scalar.OpAbs:
		g.unary(g.Lanes(asm.AbsInt), s)
	case scalar.OpMul:
		if g.Long {
			g.multiplyLong(s)
		} else {
			g.binary(asm.MultiplyInt, s)
		}
	case scalar.OpAdd:
		g.binary(g.Lanes(asm.AddInt), s)
	case scalar.OpSub:
		g.binary(g.Lanes(asm.SubtractInt), s)
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
	g.Two(asm.SwapWords, t, y)
	g.Three(asm.MultiplyInt, t, t, x)
	g.Two(asm.AddPairs, t, t)
	g.Two(asm.NarrowLanes, u, y)
	d := g.dest()
	g.shiftLanes(asm.LeftBy, 32, t, t)
	g.Two(asm.NarrowLanes, d, x)
	g.Three(asm.FusedHalves, t, d, u)
	g.Copy(d, t)
}

// shifts writes a shift. Shifts by lanes go to the left; negative counts shift to the right.
func (g *generator) shifts(s *step) {
	left, signed := s.op == scalar.OpShl, s.typ.IsSigned()
	if by := s.args[1]; by.constant && by.bits > 0 {
		o := map[bool]asm.Opcode{true: asm.RightInt, false: asm.RightUint}[signed]
		if left {
			o = asm.LeftBy
		}
		from := g.in(s.args[0])
		g.shiftLanes(o, int(by.bits), from, g.dest())
		return
	}
	o := map[bool]asm.Opcode{true: asm.ShiftInt, false: asm.ShiftUint}[signed && !left]
	from, by := g.in(s.args[0]), g.in(s.args[1])
	if !left {
		t := g.temp()
		g.Two(g.Lanes(asm.NegateInt), t, by)
		by = t
	}
	g.Three(g.Lanes(o), g.dest(), from, by)
}
