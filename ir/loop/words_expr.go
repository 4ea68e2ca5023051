package loop

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// wordExpr takes the expressions of one statement to those of words.
type wordExpr struct {
	*worder
	done map[scalar.Expr]scalar.Expr
}

func (w *wordExpr) expr(n scalar.Expr) scalar.Expr {
	if r, ok := w.done[n]; ok {
		return r
	}
	var r scalar.Expr
	switch from := narrowOperand(n); {
	case n.Op == scalar.OpConvert && w.caps.stored(from):
		r = unpacked(w.bits(n.Args[0]), from)
	case n.Op == scalar.OpConvert && n.Args[0].Op == scalar.OpBitcast && w.caps.stored(narrowOperand(n.Args[0])):
		// A number of f16 that is subnormal need not last where it is computed with.
		r = scalar.Convert(scalar.Unpack(w.bits(n.Args[0].Args[0]), from), n.Type)
	case n.Op == scalar.OpBitcast && w.caps.stored(from):
		r = scalar.Convert(scalar.Unpack(w.bits(n.Args[0]), n.Type), n.Type) // to f16, where it is computed with
	case len(n.Args) == 0:
		r = n
	default:
		args := make([]scalar.Expr, len(n.Args))
		for i, a := range n.Args {
			args[i] = w.expr(a)
		}
		r = scalar.Rebuild(n, args...)
	}
	w.done[n] = r
	return r
}

// narrowOperand returns the type of the only operand.
func narrowOperand(n scalar.Expr) dtype.DType {
	if len(n.Args) != 1 {
		return dtype.Invalid
	}
	return n.Args[0].Type
}

// unpacked returns what the bits of a narrow type stand for, in the wide one.
func unpacked(bits scalar.Expr, d dtype.DType) scalar.Expr {
	switch {
	case d.IsFloat():
		return scalar.Unpack(bits, d)
	case d.IsUnsigned():
		return bits
	}
	return wrapped(scalar.Bitcast(bits, dtype.I32), d)
}

// bits returns the bits of a value of a narrow type, in the lowest ones of a u32.
func (w *wordExpr) bits(n scalar.Expr) scalar.Expr {
	d := n.Type
	mask := number(1<<d.Bits() - 1)
	switch n.Op {
	case scalar.OpConst:
		v, _ := n.Value()
		if d.IsFloat() {
			return number(int(d.FloatBits(v.F)))
		}
		return scalar.And(scalar.ConstI(dtype.U32, v.I), mask)
	case scalar.OpVar:
		if b, ok := w.vectors[n.Name]; ok {
			return b
		}
		return scalar.And(scalar.FreeVar(n.Name, dtype.U32), mask) // a scalar of the run
	case scalar.OpLoad:
		return w.element(n.Ref, w.expr(n.Args[0]))
	case scalar.OpBitcast:
		if from := n.Args[0].Type; !w.caps.stored(from) { // f16
			return scalar.Pack(scalar.Convert(w.expr(n.Args[0]), dtype.F32), from)
		}
		return w.bits(n.Args[0])
	}
	x := w.expr(n.Args[0]) // a conversion from a wide type
	if d.IsFloat() {
		return scalar.Pack(x, d)
	}
	return scalar.And(scalar.Bitcast(x, dtype.U32), mask)
}
