package scalar

import (
	"cmp"
	"math/bits"

	"github.com/rlx-go/rlx/ir/dtype"
)

// applyBool computes on 0 and 1.
func applyBool(op Op, a, b int64) Value {
	switch op {
	case OpNot:
		return Value{I: 1 - a}
	case OpAnd:
		return Value{I: a & b}
	case OpOr:
		return Value{I: a | b}
	case OpXor, OpNe:
		return Value{I: a ^ b}
	}
	return Value{I: 1 ^ a ^ b} // OpEq
}

// applyInt computes in int64 for every integer type t except u64; the caller wraps the result to t.
func applyInt(op Op, t dtype.DType, a, b, c int64) Value {
	switch op {
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe:
		return boolean(compare(op, a, b))
	case OpClamp:
		return Value{I: min(max(a, b), c)}
	case OpAbs:
		return Value{I: max(a, -a)}
	case OpSign:
		return Value{I: sign(a)}
	case OpPopCount:
		return Value{I: int64(bits.OnesCount64(uint64(a) << (64 - t.Bits())))}
	case OpMin:
		return Value{I: min(a, b)}
	case OpMax:
		return Value{I: max(a, b)}
	case OpShr:
		return Value{I: a >> shiftCount(b, t)}
	case OpDiv, OpRem, OpFloorDiv, OpMod:
		return Value{I: divide(op, a, b)}
	}
	return Value{I: int64(ring(op, t, uint64(a), uint64(b)))}
}

// applyUint64 is applyInt for u64.
func applyUint64(op Op, a, b, c uint64) Value {
	r := uint64(0)
	switch op {
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe:
		return boolean(compare(op, a, b))
	case OpClamp:
		r = min(max(a, b), c)
	case OpAbs:
		r = a
	case OpSign:
		r = min(a, 1)
	case OpPopCount:
		r = uint64(bits.OnesCount64(a))
	case OpMin:
		r = min(a, b)
	case OpMax:
		r = max(a, b)
	case OpShr:
		r = a >> shiftCount(int64(b), dtype.U64)
	case OpDiv, OpFloorDiv:
		r = a / max(b, 1)
	case OpRem, OpMod:
		r = a % max(b, 1)
	default:
		r = ring(op, dtype.U64, a, b)
	}
	return Value{I: int64(r)}
}

// ring applies the operations whose low bits do not depend on the width or sign of the type.
func ring(op Op, t dtype.DType, a, b uint64) uint64 {
	switch op {
	case OpNeg:
		return -a
	case OpNot:
		return ^a
	case OpAdd:
		return a + b
	case OpSub:
		return a - b
	case OpMul, OpMulZero:
		return a * b
	case OpAnd:
		return a & b
	case OpOr:
		return a | b
	case OpXor:
		return a ^ b
	}
	return a << shiftCount(int64(b), t) // OpShl
}

// shiftCount reduces a shift count modulo the width of t.
func shiftCount(n int64, t dtype.DType) uint64 { return uint64(n) & uint64(t.Bits()-1) }

// divide applies the four integer divisions; a divisor of zero counts as one.
func divide(op Op, a, b int64) int64 {
	if b == 0 {
		b = 1
	}
	q, r := a/b, a%b
	floored := r != 0 && (r < 0) != (b < 0)
	switch op {
	case OpDiv:
		return q
	case OpRem:
		return r
	case OpFloorDiv:
		if floored {
			return q - 1
		}
		return q
	}
	if floored { // OpMod
		return r + b
	}
	return r
}

// sign returns -1, 0 or 1.
func sign(a int64) int64 { return int64(cmp.Compare(a, 0)) }
