package scalar

import (
	"cmp"
	"math"
	"math/bits"
	"math/cmplx"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Apply returns the value of the operation of n for operand values v, in mode Exact, as Eval does.
// n must have operands and not be a Load. For a Check it returns the value and ignores the
// condition.
func Apply(n Expr, v [3]Value) Value { return apply(n, v, Exact) }

// apply returns the value of node n for operand values v. n must have operands and not be a Load.
func apply(n *Node, v [3]Value, mode Rounding) Value {
	from := n.Args[len(n.Args)-1].Type
	switch n.Op {
	case OpConvert:
		return convert(v[0], from, n.Type, mode)
	case OpBitcast:
		return bitcast(v[0], from, n.Type)
	case OpSelect:
		if v[0].I != 0 {
			return v[1]
		}
		return v[2]
	case OpCheck:
		return v[0]
	}
	var r Value
	switch kindOf(from) {
	case kFloat:
		r = applyFloat(n.Op, v[0].F, v[1].F, v[2].F)
	case kComplex:
		r = applyComplex(n.Op, v[0].C, v[1].C)
	case kInt:
		if n.Op == OpDot4 {
			r = dot4(v[0].I, v[1].I, v[2].I)
		} else if from == dtype.U64 {
			r = applyUint64(n.Op, uint64(v[0].I), uint64(v[1].I), uint64(v[2].I))
		} else {
			r = applyInt(n.Op, from, v[0].I, v[1].I, v[2].I)
		}
	default:
		r = applyBool(n.Op, v[0].I, v[1].I)
	}
	return r.round(n.Type, mode)
}

// applyFloat computes in float64.
func applyFloat(op Op, a, b, c float64) Value {
	switch op {
	case OpIsNaN:
		return boolean(math.IsNaN(a))
	case OpIsFinite:
		return boolean(isFinite(a))
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe:
		return boolean(compare(op, a, b))
	case OpMakeComplex:
		return Value{C: complex(a, b)}
	case OpClamp:
		return Value{F: min(max(a, b), c)}
	case OpFma:
		return Value{F: math.FMA(a, b, c)}
	}
	if op.Arity() == 1 {
		return Value{F: floatUnary(op, a)}
	}
	return Value{F: floatBinary(op, a, b)}
}

func floatUnary(op Op, a float64) float64 {
	switch op {
	case OpNeg:
		return -a
	case OpSign:
		if a == 0 || math.IsNaN(a) {
			return a
		}
		return math.Copysign(1, a)
	case OpRsqrt:
		return 1 / math.Sqrt(a)
	case OpRecip:
		return 1 / a
	}
	return floatFuncs[op](a)
}

// floatFuncs are the unary functions of floats.
var floatFuncs = [opCount]func(float64) float64{
	OpAbs:   math.Abs,
	OpFloor: math.Floor,
	OpCeil:  math.Ceil,
	OpRound: math.RoundToEven,
	OpTrunc: math.Trunc,
	OpExp:   elementary.Exp,
	OpExpm1: math.Expm1,
	OpLog:   elementary.Log,
	OpLog1p: math.Log1p,
	OpSqrt:  math.Sqrt,
	OpSin:   elementary.Sin,
	OpCos:   elementary.Cos,
	OpTan:   elementary.Tan,
	OpAsin:  elementary.Asin,
	OpAcos:  elementary.Acos,
	OpAtan:  math.Atan,
	OpSinh:  elementary.Sinh,
	OpCosh:  elementary.Cosh,
	OpTanh:  math.Tanh,
	OpErf:   math.Erf,
	OpErfc:  math.Erfc,

	OpSigmoid: elementary.Sigmoid,
}

func floatBinary(op Op, a, b float64) float64 {
	switch op {
	case OpAdd:
		return a + b
	case OpSub:
		return a - b
	case OpMul:
		return a * b
	case OpMulZero:
		if a == 0 || b == 0 {
			return 0
		}
		return a * b
	case OpDiv:
		return a / b
	case OpRem:
		return math.Mod(a, b)
	case OpPow:
		return elementary.Pow(a, b)
	case OpMin:
		return min(a, b)
	case OpMax:
		return max(a, b)
	}
	return elementary.Atan2(a, b) // OpAtan2 is the only remaining operation
}

// compare applies one of the six comparisons.
func compare[T float64 | int64 | uint64](op Op, a, b T) bool {
	switch op {
	case OpEq:
		return a == b
	case OpNe:
		return a != b
	case OpLt:
		return a < b
	case OpLe:
		return a <= b
	case OpGt:
		return a > b
	}
	return a >= b // OpGe
}

// applyComplex computes in complex128.
func applyComplex(op Op, a, b complex128) Value {
	switch op {
	case OpEq:
		return boolean(a == b)
	case OpNe:
		return boolean(a != b)
	case OpReal:
		return Value{F: real(a)}
	case OpImag:
		return Value{F: imag(a)}
	case OpAbs:
		return Value{F: cmplx.Abs(a)}
	}
	return Value{C: complexValue(op, a, b)}
}

func complexValue(op Op, a, b complex128) complex128 {
	switch op {
	case OpNeg:
		return -a
	case OpConj:
		return cmplx.Conj(a)
	case OpRecip:
		return 1 / a
	case OpAdd:
		return a + b
	case OpSub:
		return a - b
	case OpMul:
		return a * b
	case OpMulZero:
		if a == 0 || b == 0 {
			return 0
		}
		return a * b
	}
	return a / b // OpDiv is the only remaining operation
}

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

// dot4 is [Dot4] of integers.
func dot4(a, b, c int64) Value {
	for shift := 0; shift < 32; shift += 8 {
		c += int64(int8(a>>shift)) * int64(int8(b>>shift))
	}
	return Value{I: c}
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
