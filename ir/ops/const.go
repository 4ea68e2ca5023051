package ops

import (
	"github.com/rlx-go/rlx/ir"
)

// Const returns a constant of the given element type and shape with every element x.
// Floats are rounded to the type; a number that an integer type cannot represent is an
// error of kind [ir.ErrDType]; booleans take 0 and 1.
func Const(b *ir.Builder, d ir.DType, x float64, shape ...ir.Dim) ir.Value {
	a, err := number(d, x)
	if err != nil {
		b.Failf(ir.OpConstant, nil, err)
		return ir.Value{}
	}
	return BroadcastTo(b, b.Constant(ir.Type{DType: d}, a.Bytes()), shape)
}

// number returns x as an array of rank 0.
func number(d ir.DType, x float64) (*ir.Array, error) {
	if err := plain.check(d); err != nil {
		return nil, err
	}
	a := ir.NewArray(d)
	switch {
	case d.IsFloat():
		a.F[0] = x
	case d.IsComplex():
		a.C[0] = complex(x, 0)
	default:
		a.I[0] = floatToInt(d, x)
		if a.Float(0) != x {
			return nil, ir.DTypef("%v is no %s", x, d)
		}
	}
	a.Round()
	return a, nil
}

// ConstLike returns a constant with the element type and shape of like.
func ConstLike(b *ir.Builder, like ir.Value, x float64) ir.Value {
	if !like.Valid() {
		return ir.Value{}
	}
	return Const(b, like.DType(), x, like.Shape()...)
}

// Zeros returns zeros of an element type and shape.
func Zeros(b *ir.Builder, d ir.DType, shape ...ir.Dim) ir.Value { return Const(b, d, 0, shape...) }

// Ones returns ones of an element type and shape.
func Ones(b *ir.Builder, d ir.DType, shape ...ir.Dim) ir.Value { return Const(b, d, 1, shape...) }

// ZerosLike returns zeros with the element type and shape of like.
func ZerosLike(b *ir.Builder, like ir.Value) ir.Value { return ConstLike(b, like, 0) }

// OnesLike returns ones with the element type and shape of like.
func OnesLike(b *ir.Builder, like ir.Value) ir.Value { return ConstLike(b, like, 1) }

// Literal returns the array as a constant of the graph. Errors are those of
// [ir.Array.Check].
func Literal(b *ir.Builder, a *ir.Array) ir.Value {
	if err := a.Check(); err != nil {
		b.Failf(ir.OpConstant, nil, err)
		return ir.Value{}
	}
	return b.Constant(a.Type(), a.Bytes())
}
