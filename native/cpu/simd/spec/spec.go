// Package spec says which operations package simd has kernels for, and what each
// computes: the assembly is written from it and tested against it.
package spec

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Operation is an operation on lanes of 32 bits: of f32, i32, u32 or bool, which
// is 0 or 1.
type Operation struct {
	Op       scalar.Op
	From, To dtype.DType // the types of its last operand and its result
}

// Operations are those that there are kernels for.
func Operations() []Operation {
	var out []Operation
	add := func(from, to dtype.DType, ops ...scalar.Op) {
		for _, op := range ops {
			out = append(out, Operation{op, from, to})
		}
	}
	add(dtype.F32, dtype.F32, scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpMulZero, scalar.OpDiv, scalar.OpMin, scalar.OpMax,
		scalar.OpNeg, scalar.OpAbs, scalar.OpSign, scalar.OpFloor, scalar.OpCeil, scalar.OpRound, scalar.OpTrunc,
		scalar.OpSqrt, scalar.OpRsqrt, scalar.OpRecip, scalar.OpExp, scalar.OpExpm1, scalar.OpLog, scalar.OpLog1p,
		scalar.OpSinh, scalar.OpCosh, scalar.OpTanh, scalar.OpSigmoid, scalar.OpErf, scalar.OpErfc,
		scalar.OpAsin, scalar.OpAcos, scalar.OpAtan)
	for _, t := range []dtype.DType{dtype.I32, dtype.U32} {
		add(t, t, scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpMin, scalar.OpMax, scalar.OpAnd, scalar.OpOr, scalar.OpXor, scalar.OpShl, scalar.OpShr, scalar.OpNot)
		add(t, dtype.F32, scalar.OpConvert)
	}
	add(dtype.Bool, dtype.Bool, scalar.OpAnd, scalar.OpOr, scalar.OpXor, scalar.OpNot)
	add(dtype.Bool, dtype.F32, scalar.OpConvert)
	add(dtype.F32, dtype.I32, scalar.OpConvert)
	add(dtype.F32, dtype.Bool, scalar.OpIsNaN, scalar.OpIsFinite)
	for _, t := range []dtype.DType{dtype.F32, dtype.I32, dtype.U32} {
		add(t, dtype.Bool, scalar.OpEq, scalar.OpNe, scalar.OpLt, scalar.OpLe, scalar.OpGt, scalar.OpGe)
		add(t, t, scalar.OpSelect)
	}
	return out
}

// Expr returns what the kernel of an operation computes of operands 0, 1 and 2:
// an expansion with the error bounds that package scalar states.
func (o Operation) Expr() scalar.Expr {
	x, y := scalar.Arg(0, o.From), scalar.Arg(1, o.From)
	switch o.Op {
	case scalar.OpSelect:
		return scalar.Select(scalar.Arg(0, dtype.Bool), scalar.Arg(1, o.From), scalar.Arg(2, o.From))
	case scalar.OpMin, scalar.OpMax:
		if o.From == dtype.F32 {
			return extreme(o.Op, x, y)
		}
	case scalar.OpRsqrt:
		return scalar.Div(scalar.ConstF(dtype.F32, 1), scalar.Sqrt(x))
	case scalar.OpRound:
		return scalar.Round(x)
	case scalar.OpConvert:
		if o.From == dtype.U32 {
			return floatOfUnsigned(x)
		}
		return scalar.Expand(scalar.Convert(x, o.To), scalar.Portable)
	}
	if o.Op.Arity() == 1 {
		return scalar.Expand(scalar.New(o.Op, x), scalar.Portable)
	}
	return scalar.Expand(scalar.New(o.Op, x, y), scalar.Portable)
}

// extreme is NaN where an operand is.
func extreme(op scalar.Op, x, y scalar.Expr) scalar.Expr {
	better := scalar.Lt(x, y)
	if op == scalar.OpMax {
		better = scalar.Gt(x, y)
	}
	return scalar.Select(scalar.Or(better, scalar.Ne(x, x)), x, y)
}

// floatOfUnsigned rounds once, when the halves are added.
func floatOfUnsigned(x scalar.Expr) scalar.Expr {
	half := func(h scalar.Expr) scalar.Expr { return scalar.Convert(scalar.Convert(h, dtype.I32), dtype.F32) }
	high := half(scalar.Shr(x, scalar.ConstI(dtype.U32, 16)))
	low := half(scalar.And(x, scalar.ConstI(dtype.U32, 0xffff)))
	return scalar.Add(scalar.Mul(high, scalar.ConstF(dtype.F32, 65536)), low)
}
