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
		scalar.OpAsin, scalar.OpAcos, scalar.OpAtan, scalar.OpAtan2, scalar.OpSin, scalar.OpCos, scalar.OpTan, scalar.OpPow)
	for _, t := range []dtype.DType{dtype.I32, dtype.U32} {
		add(t, t, integerOps...)
		add(t, dtype.F32, scalar.OpConvert)
	}
	add(dtype.I32, dtype.I32, scalar.OpNeg, scalar.OpAbs, scalar.OpSign)
	add(dtype.Bool, dtype.Bool, scalar.OpAnd, scalar.OpOr, scalar.OpXor, scalar.OpNot, scalar.OpEq, scalar.OpNe)
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
		return rewritten(scalar.Expand(scalar.Convert(x, o.To), scalar.Portable), signed)
	}
	if o.Op.Arity() == 1 {
		return rewritten(scalar.Expand(scalar.New(o.Op, x), scalar.Portable), signed, fused)
	}
	return rewritten(scalar.Expand(scalar.New(o.Op, x, y), scalar.Portable), signed, equalTruths)
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

// rewritten returns e with each node, whose operands are rewritten already, replaced by
// what the rules make of it.
func rewritten(e scalar.Expr, rules ...func(n scalar.Expr) scalar.Expr) scalar.Expr {
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
		for _, rule := range rules {
			r = rule(r)
		}
		done[n] = r
		return r
	}
	return visit(e)
}

// fused rounds once where a product is added to something, which expansions of one
// operand allow.
func fused(n scalar.Expr) scalar.Expr {
	if n.Op != scalar.OpAdd || n.Type != dtype.F32 {
		return n
	}
	a, b := n.Args[0], n.Args[1]
	switch {
	case a.Op == scalar.OpMul:
		return scalar.Fma(a.Args[0], a.Args[1], b)
	case b.Op == scalar.OpMul:
		return scalar.Fma(b.Args[0], b.Args[1], a)
	}
	return n
}

// equalTruths writes that truths are equal with operations that masks have.
func equalTruths(n scalar.Expr) scalar.Expr {
	if n.Op == scalar.OpEq && n.Args[0].Type.IsBool() {
		return scalar.Not(scalar.Xor(n.Args[0], n.Args[1]))
	}
	return n
}

// signed converts to and from unsigned integers as all processors can: those that become
// f32 by halves, which rounds once, when they are added; those made of f32 are small, where
// expansions have them.
func signed(n scalar.Expr) scalar.Expr {
	if n.Op != scalar.OpConvert {
		return n
	}
	x := n.Args[0]
	float := func(u scalar.Expr) scalar.Expr { return scalar.Convert(scalar.Convert(u, dtype.I32), dtype.F32) }
	switch {
	case n.Type == dtype.F32 && x.Type == dtype.U32:
		high := float(scalar.Shr(x, scalar.ConstI(dtype.U32, 16)))
		low := float(scalar.And(x, scalar.ConstI(dtype.U32, 0xffff)))
		return scalar.Fma(high, scalar.ConstF(dtype.F32, 65536), low)
	case n.Type == dtype.U32 && x.Type == dtype.F32:
		return scalar.Convert(scalar.Convert(x, dtype.I32), dtype.U32)
	}
	return n
}
