package jit

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

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
			return minMaxNaN(o.Op, x, y)
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
		if o.To == dtype.F64 && o.From.IsInteger() {
			return doubleOf(o.From.IsSigned())
		}
		return rewrite(scalar.Expand(scalar.Convert(x, o.To), scalar.Portable), convertViaI32)
	}
	if o.Op.Arity() == 1 {
		return rewrite(scalar.Expand(scalar.New(o.Op, x), scalar.Portable), convertViaI32, contractFMA)
	}
	return rewrite(scalar.Expand(scalar.New(o.Op, x, y), scalar.Portable), convertViaI32, equalBools)
}

// minMaxNaN is NaN where an operand is.
func minMaxNaN(op scalar.Op, x, y scalar.Expr) scalar.Expr {
	return scalar.Select(scalar.Or(better(op, x, y), scalar.Ne(x, x)), x, y)
}

// better tells whether the first of two numbers is the lesser, or the greater.
func better(op scalar.Op, x, y scalar.Expr) scalar.Expr {
	if op == scalar.OpMax {
		return scalar.Gt(x, y)
	}
	return scalar.Lt(x, y)
}

// rewrite returns e with each node, whose operands are rewritten already, replaced by
// what the rules make of it.
func rewrite(e scalar.Expr, rules ...func(n scalar.Expr) scalar.Expr) scalar.Expr {
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

// contractFMA rounds once where a product is added to something, which expansions of one
// operand allow.
func contractFMA(n scalar.Expr) scalar.Expr {
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

// equalBools writes that truths are equal with operations that masks have.
func equalBools(n scalar.Expr) scalar.Expr {
	if n.Op == scalar.OpEq && n.Args[0].Type.IsBool() {
		return scalar.Not(scalar.Xor(n.Args[0], n.Args[1]))
	}
	return n
}

// convertViaI32 converts to and from integers other than i32 as all processors can: unsigned ones
// become f32 by halves, which rounds once, when they are added; those made of f32 go
// through i32.
func convertViaI32(n scalar.Expr) scalar.Expr {
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
		large := scalar.Ge(x, scalar.ConstF(dtype.F32, 1<<31))
		rest := scalar.Select(large, scalar.Sub(x, scalar.ConstF(dtype.F32, 1<<31)), x)
		u := scalar.Convert(scalar.Convert(rest, dtype.I32), dtype.U32)
		return scalar.Xor(u, scalar.Select(large, scalar.ConstI(dtype.U32, 1<<31), scalar.ConstI(dtype.U32, 0)))
	case n.Type.IsInteger() && n.Type != dtype.I32 && x.Type == dtype.F32:
		return scalar.Convert(scalar.Convert(x, dtype.I32), n.Type)
	}
	return n
}

// doubleOf converts operand 0, an integer of 64 bits, or of 32 that long kernels have as
// such, to f64: its halves become the last bits of large numbers, whose sum without what was
// added rounds once.
func doubleOf(signed bool) scalar.Expr {
	const (
		low  = 1 << 52 // of which 1 is the last place
		high = 1 << 84 // of which 2³² is
	)
	t, added := dtype.U64, high+float64(low)
	top := math.Float64bits(high)
	if signed {
		top |= 1 << 31 // as if 2⁶³ were added to x
		added += 1 << 63
	}
	u := scalar.Arg(0, t)
	word := func(bits uint64) scalar.Expr { return scalar.ConstI(t, int64(bits)) }
	upper := scalar.Bitcast(scalar.Xor(scalar.Shr(u, word(32)), word(top)), dtype.F64)
	lower := scalar.Bitcast(scalar.Or(scalar.And(u, word(math.MaxUint32)), word(math.Float64bits(low))), dtype.F64)
	return scalar.Add(scalar.Sub(upper, scalar.ConstF(dtype.F64, added)), lower)
}
