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

// Operations are those that kernels can be made of.
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
		add(t, t, integerOps...)
		add(t, dtype.F32, scalar.OpConvert)
	}
	add(dtype.I32, dtype.I32, scalar.OpNeg, scalar.OpAbs, scalar.OpSign)
	add(dtype.Bool, dtype.Bool, scalar.OpAnd, scalar.OpOr, scalar.OpXor, scalar.OpNot)
	add(dtype.Bool, dtype.F32, scalar.OpConvert)
	add(dtype.F32, dtype.I32, scalar.OpConvert)
	add(dtype.I32, dtype.U32, scalar.OpConvert)
	add(dtype.U32, dtype.I32, scalar.OpConvert)
	add(dtype.F32, dtype.Bool, scalar.OpIsNaN, scalar.OpIsFinite)
	for _, t := range []dtype.DType{dtype.F32, dtype.I32, dtype.U32} {
		add(t, dtype.Bool, comparisonOps...)
		add(t, t, scalar.OpSelect)
	}
	return out
}

// LongOperations are those on numbers of 64 bits, which long kernels can be made of.
func LongOperations() []Operation {
	var out []Operation
	add := func(from, to dtype.DType, ops ...scalar.Op) {
		for _, op := range ops {
			out = append(out, Operation{op, from, to})
		}
	}
	add(dtype.F64, dtype.F64, scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpMulZero, scalar.OpDiv, scalar.OpMin, scalar.OpMax,
		scalar.OpNeg, scalar.OpAbs, scalar.OpSign, scalar.OpFloor, scalar.OpCeil, scalar.OpRound, scalar.OpTrunc,
		scalar.OpSqrt, scalar.OpRsqrt, scalar.OpRecip)
	add(dtype.I64, dtype.I64, integerOps...)
	add(dtype.I64, dtype.I64, scalar.OpNeg, scalar.OpAbs, scalar.OpSign)
	add(dtype.U64, dtype.U64, integerOps...)
	add(dtype.I64, dtype.U64, scalar.OpConvert)
	add(dtype.U64, dtype.I64, scalar.OpConvert)
	for _, t := range []dtype.DType{dtype.F64, dtype.I64, dtype.U64} {
		add(t, dtype.Bool, comparisonOps...)
		add(t, t, scalar.OpSelect)
		add(dtype.Bool, t, scalar.OpConvert)
	}
	return out
}

// Expr returns an expression for an operation on operands 0, 1 and 2: an
// expansion with the error bounds that package scalar states.
func (o Operation) Expr() scalar.Expr {
	x, y := scalar.Arg(0, o.From), scalar.Arg(1, o.From)
	switch o.Op {
	case scalar.OpSelect:
		return scalar.Select(scalar.Arg(0, dtype.Bool), scalar.Arg(1, o.From), scalar.Arg(2, o.From))
	case scalar.OpMin, scalar.OpMax:
		switch {
		case o.From.IsFloat():
			return extreme(o.Op, x, y)
		case o.From.Size() == 8: // not all processors have these
			return scalar.Select(better(o.Op, x, y), x, y)
		}
	case scalar.OpAbs:
		if o.From == dtype.I64 {
			return scalar.Select(scalar.Lt(x, scalar.ConstI(o.From, 0)), scalar.Neg(x), x)
		}
	case scalar.OpRsqrt:
		return scalar.Div(scalar.ConstF(o.From, 1), scalar.Sqrt(x))
	case scalar.OpRound:
		return scalar.Round(x)
	case scalar.OpConvert:
		if o.From == dtype.U32 && o.To == dtype.F32 {
			return floatOfUnsigned(x)
		}
		return scalar.Expand(scalar.Convert(x, o.To), scalar.Portable)
	}
	if o.Op.Arity() == 1 {
		return fused(scalar.Expand(scalar.New(o.Op, x), scalar.Portable))
	}
	return scalar.Expand(scalar.New(o.Op, x, y), scalar.Portable)
}

// extreme is NaN where an operand is.
func extreme(op scalar.Op, x, y scalar.Expr) scalar.Expr {
	return scalar.Select(scalar.Or(better(op, x, y), scalar.Ne(x, x)), x, y)
}

// better tells whether the first of two numbers is the lesser, or the greater.
func better(op scalar.Op, x, y scalar.Expr) scalar.Expr {
	if op == scalar.OpMax {
		return scalar.Gt(x, y)
	}
	return scalar.Lt(x, y)
}

// floatOfUnsigned rounds once, when the halves are added.
func floatOfUnsigned(x scalar.Expr) scalar.Expr {
	half := func(h scalar.Expr) scalar.Expr { return scalar.Convert(scalar.Convert(h, dtype.I32), dtype.F32) }
	high := half(scalar.Shr(x, scalar.ConstI(dtype.U32, 16)))
	low := half(scalar.And(x, scalar.ConstI(dtype.U32, 0xffff)))
	return scalar.Add(scalar.Mul(high, scalar.ConstF(dtype.F32, 65536)), low)
}

// fused rounds once where a product is added to something, which expansions
// allow.
func fused(e scalar.Expr) scalar.Expr {
	done := map[scalar.Expr]scalar.Expr{}
	var visit func(n scalar.Expr) scalar.Expr
	visit = func(n scalar.Expr) scalar.Expr {
		if r, ok := done[n]; ok || len(n.Args) == 0 {
			if !ok {
				r = n
			}
			return r
		}
		args := make([]scalar.Expr, len(n.Args))
		for i, a := range n.Args {
			args[i] = visit(a)
		}
		r := scalar.Rebuild(n, args...)
		if n.Op == scalar.OpAdd && n.Type == dtype.F32 {
			switch {
			case args[0].Op == scalar.OpMul:
				r = scalar.Fma(args[0].Args[0], args[0].Args[1], args[1])
			case args[1].Op == scalar.OpMul:
				r = scalar.Fma(args[1].Args[0], args[1].Args[1], args[0])
			}
		}
		done[n] = r
		return r
	}
	return visit(e)
}
