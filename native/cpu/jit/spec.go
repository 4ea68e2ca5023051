package jit

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Operation is an operation on lanes of 32 bits: of f32, i32, u32 or bool.
type Operation struct {
	Op       scalar.Op
	From, To dtype.DType // the types of its last operand and its result
}

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
	case scalar.OpExp:
		return exp(x)
	case scalar.OpConvert:
		if o.From == dtype.U32 {
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

// exp is shorter than the expansion of package scalar, which must do without
// rounding once and with compilers that reassociate: exp(x) = 2^k·exp(r) with
// |r| ≤ ½·ln 2 and exp(r) = 1 + r + r²·q(r).
func exp(x scalar.Expr) scalar.Expr {
	f := func(x float64) scalar.Expr { return scalar.ConstF(dtype.F32, x) }
	i := func(x int64) scalar.Expr { return scalar.ConstI(dtype.I32, x) }
	const ln2High, ln2Low = 0x1.62e4p-1, 0x1.7f7d1cf8p-20 // the first times k is exact
	c := scalar.Select(scalar.Gt(x, f(-104)), x, f(-104))
	c = scalar.Select(scalar.Lt(c, f(89)), c, f(89))
	whole := scalar.Round(scalar.Mul(c, f(math.Log2E)))
	r := scalar.Fma(whole, f(-ln2Low), scalar.Fma(whole, f(-ln2High), c))
	q := f(0.0002006127469940111)
	for _, a := range []float64{0.0014001468662172556, 0.0083329351618886, 0.04166517034173012, 0.1666666865348816, 0.5000000596046448} {
		q = scalar.Fma(q, r, f(a))
	}
	y := scalar.Add(scalar.Fma(scalar.Mul(r, r), q, r), f(1))
	// Where the result may be subnormal, 2^64 is multiplied away at the end.
	k := scalar.Convert(whole, dtype.I32)
	small := scalar.Lt(k, i(-100))
	up := scalar.Shl(scalar.Select(small, scalar.Add(k, i(64)), k), i(23))
	y = scalar.Bitcast(scalar.Add(scalar.Bitcast(y, dtype.I32), up), dtype.F32)
	y = scalar.Mul(y, scalar.Select(small, f(0x1p-64), f(1)))
	y = scalar.Select(scalar.Gt(x, f(88.72283172607422)), f(math.Inf(1)), y) // the largest with a finite one
	return scalar.Select(scalar.Ne(x, x), x, y)
}
