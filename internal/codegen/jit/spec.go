package jit

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Operation is an operation on lanes: of f32, i32, u32 or bool, or of f64, i64, u64 or bool.
type Operation struct {
	Op       scalar.Op
	From, To dtype.DType // the types of its last operand and its result
}

// integerOps are those on two integers, or one, of either sign.
var integerOps = []scalar.Op{
	scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpMin, scalar.OpMax, scalar.OpAnd, scalar.OpOr, scalar.OpXor,
	scalar.OpShl, scalar.OpShr, scalar.OpNot,
}

var comparisonOps = []scalar.Op{scalar.OpEq, scalar.OpNe, scalar.OpLt, scalar.OpLe, scalar.OpGt, scalar.OpGe}

// operations is a list of operations.
type operations []Operation

func (l *operations) add(from, to dtype.DType, ops ...scalar.Op) {
	for _, op := range ops {
		*l = append(*l, Operation{op, from, to})
	}
}

// Operations are those on numbers of 32 bits and truths, which kernels can be made of.
// Those on narrower types are made of them.
func Operations() []Operation {
	var l operations
	l.add(dtype.F32, dtype.F32, floatOperations...)
	l.add(dtype.F32, dtype.F32, scalar.OpExp, scalar.OpExpm1, scalar.OpLog, scalar.OpLog1p, scalar.OpPow,
		scalar.OpSinh, scalar.OpCosh, scalar.OpTanh, scalar.OpSigmoid, scalar.OpErf, scalar.OpErfc,
		scalar.OpAsin, scalar.OpAcos, scalar.OpAtan, scalar.OpAtan2, scalar.OpSin, scalar.OpCos, scalar.OpTan)
	l.add(dtype.F32, dtype.Bool, scalar.OpIsNaN, scalar.OpIsFinite)
	l.add(dtype.Bool, dtype.Bool, scalar.OpAnd, scalar.OpOr, scalar.OpXor, scalar.OpNot, scalar.OpEq, scalar.OpNe)
	for _, t := range []dtype.DType{dtype.I8, dtype.I16, dtype.I32, dtype.U8, dtype.U16, dtype.U32} {
		l.add(dtype.F32, t, scalar.OpConvert)
	}
	l.add(dtype.I32, dtype.F32, scalar.OpConvert)
	l.add(dtype.U32, dtype.F32, scalar.OpConvert)
	l.integers(dtype.I32, dtype.U32)
	l.choices(dtype.F32, dtype.I32, dtype.U32)
	return l
}

// LongOperations are those on numbers of 64 bits, which long kernels can be made of, but
// for functions.
func LongOperations() []Operation {
	var l operations
	l.add(dtype.F64, dtype.F64, floatOperations...)
	l.integers(dtype.I64, dtype.U64)
	l.choices(dtype.F64, dtype.I64, dtype.U64)
	return append(l, widthOperations()...)
}

// floatOperations are those that processors have, or nearly.
var floatOperations = []scalar.Op{
	scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpMulZero, scalar.OpDiv, scalar.OpMin, scalar.OpMax,
	scalar.OpNeg, scalar.OpAbs, scalar.OpSign, scalar.OpFloor, scalar.OpCeil, scalar.OpRound, scalar.OpTrunc,
	scalar.OpSqrt, scalar.OpRsqrt, scalar.OpRecip,
}

// integers adds operations on integers of a width.
func (l *operations) integers(signed, unsigned dtype.DType) {
	l.add(signed, signed, integerOps...)
	l.add(signed, signed, scalar.OpNeg, scalar.OpAbs, scalar.OpSign)
	l.add(unsigned, unsigned, integerOps...)
	l.add(signed, unsigned, scalar.OpConvert)
	l.add(unsigned, signed, scalar.OpConvert)
}

// choices adds what all numbers have that have to do with truths.
func (l *operations) choices(types ...dtype.DType) {
	for _, t := range types {
		l.add(t, dtype.Bool, comparisonOps...)
		l.add(t, t, scalar.OpSelect)
		l.add(dtype.Bool, t, scalar.OpConvert)
	}
}

// widthOperations are conversions between numbers of 32 and of 64 bits, which long kernels
// can be made of: they read and write the former as they do f16.
func widthOperations() []Operation {
	out := []Operation{{scalar.OpConvert, dtype.F32, dtype.F64}, {scalar.OpConvert, dtype.F64, dtype.F32}}
	for _, long := range []dtype.DType{dtype.I64, dtype.U64} {
		out = append(out, Operation{scalar.OpConvert, long, dtype.F64})
		for _, word := range []dtype.DType{dtype.I32, dtype.U32} {
			out = append(out, Operation{scalar.OpConvert, word, long}, Operation{scalar.OpConvert, long, word})
		}
	}
	return append(out, Operation{scalar.OpConvert, dtype.I32, dtype.F64}, Operation{scalar.OpConvert, dtype.U32, dtype.F64})
}
