package tally

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// functions are the instructions of functions of f32 as CUDA's library has them, and those on the unit for approximations.
var functions = map[scalar.Op]Ops{
	scalar.OpExp: {Issued: 6, Special: 1}, scalar.OpExpm1: {Issued: 14, Special: 1},
	scalar.OpLog: {Issued: 12}, scalar.OpLog1p: {Issued: 16},
	scalar.OpSqrt: {Issued: 6, Special: 1}, scalar.OpRsqrt: {Issued: 3, Special: 1}, scalar.OpRecip: {Issued: 6, Special: 1},
	scalar.OpSin: {Issued: 16}, scalar.OpCos: {Issued: 16}, scalar.OpTan: {Issued: 20},
	scalar.OpAsin: {Issued: 16, Special: 1}, scalar.OpAcos: {Issued: 16, Special: 1}, scalar.OpAtan: {Issued: 14, Special: 1},
	scalar.OpSinh: {Issued: 16, Special: 2}, scalar.OpCosh: {Issued: 12, Special: 2}, scalar.OpTanh: {Issued: 14, Special: 2},
	scalar.OpSigmoid: {Issued: 12, Special: 2}, scalar.OpErf: {Issued: 18, Special: 1}, scalar.OpErfc: {Issued: 24, Special: 1},
	scalar.OpDiv: {Issued: 8, Special: 1}, scalar.OpRem: {Issued: 20, Special: 1}, scalar.OpPow: {Issued: 40, Special: 2},
	scalar.OpAtan2: {Issued: 24, Special: 1}, scalar.OpMulZero: {Issued: 3}, scalar.OpIsFinite: {Issued: 2},
	scalar.OpClamp: {Issued: 2}, scalar.OpSign: {Issued: 3},
}

// The instructions of a division of integers by a number that is known, by a power of two, and by another.
const (
	divideKnown   = 5
	dividePower   = 2
	divideUnknown = 22
)

// Cost returns the instructions of the node of an expression, without its operands.
func Cost(e scalar.Expr) Ops {
	if len(e.Args) == 0 || e.Op == scalar.OpLoad || e.Op == scalar.OpMakeComplex || e.Op == scalar.OpReal || e.Op == scalar.OpImag || e.Op == scalar.OpBitcast {
		return Ops{}
	}
	t := e.Args[len(e.Args)-1].Type
	switch {
	case t.IsComplex():
		return ofComplex(e.Op)
	case t.IsFloat():
		return ofFloat(e, t)
	}
	return ofInteger(e, t)
}

func ofComplex(op scalar.Op) Ops {
	switch op {
	case scalar.OpMul:
		return Ops{Issued: 4}
	case scalar.OpDiv, scalar.OpRecip:
		return Ops{Issued: 16, Special: 1}
	case scalar.OpAbs:
		return Ops{Issued: 12, Special: 1}
	}
	return Ops{Issued: 2}
}

func ofFloat(e scalar.Expr, t dtype.DType) Ops {
	cost, ok := functions[e.Op]
	switch {
	case !ok && (e.Op == scalar.OpAdd || e.Op == scalar.OpSub) && (isProduct(e.Args[0]) || isProduct(e.Args[1])):
		return Ops{} // a fused multiply-add
	case !ok:
		cost = Ops{Issued: 1}
	}
	if t == dtype.F64 || e.Type == dtype.F64 {
		cost = Ops{Issued: 2 * cost.Issued, F64: 2 * cost.Issued, Special: cost.Special}
		if !ok {
			cost = Ops{Issued: 1, F64: 1}
		}
	}
	return cost
}

func isProduct(e scalar.Expr) bool { return e.Op == scalar.OpMul }

func ofInteger(e scalar.Expr, t dtype.DType) Ops {
	n := 1.0
	switch e.Op {
	case scalar.OpDiv, scalar.OpFloorDiv, scalar.OpRem, scalar.OpMod:
		n = divideUnknown
		if by, ok := e.Args[1].IntConst(); ok {
			if n = divideKnown; by&(by-1) == 0 {
				n = dividePower
			}
		}
	case scalar.OpAdd, scalar.OpSub:
		if _, ok := e.Args[1].IntConst(); ok || isProduct(e.Args[0]) || isProduct(e.Args[1]) {
			return Ops{} // part of an address, or of a multiply-add
		}
	case scalar.OpSelect:
		if e.Type.IsFloat() {
			return Ops{Issued: 1}
		}
	case scalar.OpConvert:
		if e.Type.IsInteger() {
			return Ops{}
		}
	case scalar.OpNot, scalar.OpCheck:
		return Ops{}
	case scalar.OpAnd, scalar.OpOr:
		if t.IsBool() {
			return Ops{Issued: 0.5, Int: 0.5} // comparisons combine their results with a predicate
		}
	}
	if t == dtype.I64 || t == dtype.U64 {
		n *= 3
	}
	return Ops{Issued: n, Int: n}
}
