package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Logic on booleans, and on the bits of integers.
const (
	OpAnd        ir.Op = "and"
	OpOr         ir.Op = "or"
	OpXor        ir.Op = "xor"
	OpNot        ir.Op = "not"
	OpShiftLeft  ir.Op = "shift_left"
	OpShiftRight ir.Op = "shift_right"
)

func init() {
	noGrad := "boolean or integer result"
	for _, l := range []struct {
		op      ir.Op
		doc     string
		types   domain
		integer func(d ir.DType, x []int64) int64
		scalar  func(x, y scalar.Expr) scalar.Expr
	}{
		{
			OpAnd, "The conjunction of x and y, or of each pair of their bits.", bits,
			func(_ ir.DType, x []int64) int64 { return x[0] & x[1] }, scalar.And,
		},
		{
			OpOr, "The disjunction of x and y, or of each pair of their bits.", bits,
			func(_ ir.DType, x []int64) int64 { return x[0] | x[1] }, scalar.Or,
		},
		{
			OpXor, "The exclusive or of x and y, or of each pair of their bits.", bits,
			func(_ ir.DType, x []int64) int64 { return x[0] ^ x[1] }, scalar.Xor,
		},
		{
			OpShiftLeft, "x shifted left by y bits, with y modulo the width of the type.", integers,
			func(d ir.DType, x []int64) int64 { return x[0] << shiftCount(d, x[1]) }, scalar.Shl,
		},
		{
			OpShiftRight, "x shifted right by y bits, with y modulo the width of the type; arithmetic for signed types.",
			integers, shiftRight, scalar.Shr,
		},
	} {
		defineBinary(binary{
			op: l.op, doc: l.doc, types: l.types, scalar: l.scalar, meaning: meaning{integer: l.integer},
			noGrad: noGrad, noTranspose: noGrad,
		})
	}
	defineUnary(unary{
		op: OpNot, doc: "The negation of x, or the complement of each bit.", types: bits, scalar: scalar.Not,
		meaning: meaning{integer: func(d ir.DType, x []int64) int64 {
			if d.IsBool() {
				return 1 - x[0]
			}
			return ^x[0]
		}},
		noGrad: noGrad,
	})
}

func shiftCount(d ir.DType, y int64) uint64 { return uint64(y) % uint64(d.Bits()) }

func shiftRight(d ir.DType, x []int64) int64 {
	if d == ir.U64 {
		return int64(uint64(x[0]) >> shiftCount(d, x[1]))
	}
	return x[0] >> shiftCount(d, x[1])
}

// And returns the conjunction of x and y, bitwise for integers, broadcast.
func And(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpAnd, nil, x, y) }

// Or returns the disjunction of x and y, bitwise for integers, broadcast.
func Or(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpOr, nil, x, y) }

// Xor returns the exclusive or of x and y, bitwise for integers, broadcast.
func Xor(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpXor, nil, x, y) }

// Not returns the negation of x, bitwise for integers.
func Not(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpNot, nil, x) }

// ShiftLeft returns the integer x shifted left by y bits, with y modulo the width,
// broadcast.
func ShiftLeft(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpShiftLeft, nil, x, y) }

// ShiftRight returns the integer x shifted right by y bits, with y modulo the width,
// broadcast. The shift is arithmetic for signed types.
func ShiftRight(b *ir.Builder, x, y ir.Value) ir.Value {
	return broadcasting(b, OpShiftRight, nil, x, y)
}
