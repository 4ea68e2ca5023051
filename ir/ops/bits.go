package ops

import "github.com/rlx-go/rlx/ir"

// PopCount returns the number of set bits of each element of x, of an integer type, in that type
// (Hacker's Delight, 5–1; JAX's population_count).
func PopCount(b *ir.Builder, x ir.Value) ir.Value {
	w, ok := wordsOf(b, "pop_count", x)
	if !ok {
		return ir.Value{}
	}
	return Convert(b, w.popCount(w.x), x.DType())
}

// CLZ returns the number of zero bits before the first set bit of each element of x, of an integer
// type, in that type: its width for 0 (JAX's clz).
func CLZ(b *ir.Builder, x ir.Value) ir.Value {
	w, ok := wordsOf(b, "clz", x)
	if !ok {
		return ir.Value{}
	}
	v := w.x
	for by := 1; by < w.width; by *= 2 { // set all bits after the first
		v = Or(b, v, ShiftRight(b, v, w.number(int64(by))))
	}
	return Convert(b, Sub(b, w.number(int64(8*x.DType().Size())), w.popCount(v)), x.DType())
}

// words are the bits of integers in unsigned words of 32 or 64 bits.
type words struct {
	*ir.Builder
	x     ir.Value
	width int
}

func wordsOf(b *ir.Builder, op ir.Op, x ir.Value) (w words, ok bool) {
	if !b.Require(op, "operand", x.Valid()) {
		return w, false
	}
	if err := integers.check(x.DType()); err != nil {
		b.Failf(op, []ir.Value{x}, ir.DTypef("x is %s, not of an integer type", x.Type()))
		return w, false
	}
	unsigned := map[int]ir.DType{1: ir.U8, 2: ir.U16, 4: ir.U32, 8: ir.U64}[x.DType().Size()]
	if x.DType() != unsigned {
		x = Bitcast(b, x, unsigned)
	}
	if unsigned.Size() < 4 {
		x = Convert(b, x, ir.U32)
	}
	return words{b, x, 8 * max(unsigned.Size(), 4)}, b.Err() == nil
}

// number is a constant of the words' type, exact in all bits.
func (w words) number(n int64) ir.Value { return Literal(w.Builder, ir.Int(w.x.DType(), n)) }

// popCount adds up neighbouring groups of 1, 2 and 4 bits, and then all bytes by a product.
func (w words) popCount(x ir.Value) ir.Value {
	b := w.Builder
	ones := int64(0x0101010101010101)
	if w.width == 32 {
		ones = 0x01010101
	}
	mask := func(x ir.Value, byte int64) ir.Value { return And(b, x, w.number(byte*ones)) }
	shifted := func(x ir.Value, by int) ir.Value { return ShiftRight(b, x, w.number(int64(by))) }
	x = Sub(b, x, mask(shifted(x, 1), 0x55))
	x = Add(b, mask(x, 0x33), mask(shifted(x, 2), 0x33))
	x = mask(Add(b, x, shifted(x, 4)), 0x0f)
	return shifted(Mul(b, x, w.number(ones)), w.width-8)
}
