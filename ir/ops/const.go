package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
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
			return nil, ir.DTypef("value is %v, which %s does not have", x, d)
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

// Values computed from sizes.
const (
	OpIota    ir.Op = "iota"
	OpDimSize ir.Op = "dim_size"
)

// IotaAttrs hold the type of the result and the axis of the index.
type IotaAttrs struct {
	DType ir.DType
	Axis  int
	Shape []ir.Dim
}

// Visit shows the attributes.
func (a *IotaAttrs) Visit(v ir.AttrVisitor) {
	v.DType("dtype", &a.DType)
	v.Int("axis", &a.Axis)
	v.Dims("shape", &a.Shape)
}

// DimSizeAttrs hold the element type of the result and the sizes to multiply.
type DimSizeAttrs struct {
	DType ir.DType
	Sizes []ir.Dim
}

// Visit shows the attributes.
func (a *DimSizeAttrs) Visit(v ir.AttrVisitor) {
	v.DType("dtype", &a.DType)
	v.Dims("sizes", &a.Sizes)
}

const noOperands = "no operands"

func init() {
	defineIota()
	defineDimSize()
}

func defineIota() {
	define(&ir.Def{
		Op: OpIota, Doc: "The index of each element along an axis, from 0.", NewAttrs: func() ir.Attrs { return &IotaAttrs{} },
		Constraints: numbered(
			"the element type is "+reals.String(),
			"axis is an axis of shape",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			a := n.Attrs().(*IotaAttrs)
			if err := reals.check(a.DType); err != nil {
				return nil, err
			}
			return []ir.Type{{DType: a.DType, Shape: a.Shape}}, checkAxes([]int{a.Axis}, len(a.Shape))
		},
		Eval: evalResult(func(n *ir.Node, _ []*ir.Array, out *ir.Array) {
			axis := n.Attrs().(*IotaAttrs).Axis
			positions(out.Dims, func(i int, pos []int) {
				out.SetElement(i, scalar.Value{F: float64(pos[axis]), I: int64(pos[axis])})
			})
		}),
		NoGrad: noOperands, NoBatch: noOperands,
		Lower: &ir.MapLowering{Element: func(n *ir.Node, _ int, at ir.Index, _ ir.Load) scalar.Expr {
			a := n.Attrs().(*IotaAttrs)
			return scalar.Convert(at[a.Axis], a.DType)
		}},
	})
}

func defineDimSize() {
	define(&ir.Def{
		Op: OpDimSize, Doc: "The product of sizes, symbolic ones included, as a value of rank 0; 1 for no sizes.",
		NewAttrs: func() ir.Attrs { return &DimSizeAttrs{} },
		Constraints: numbered(
			"the element type is "+numbers.String(),
			"the result has rank 0",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			a := n.Attrs().(*DimSizeAttrs)
			if !ir.Shape(a.Sizes).Size().Valid() {
				return nil, ir.Attrf("sizes is %s: one is negative, or their product too large", ir.Shape(a.Sizes))
			}
			return []ir.Type{{DType: a.DType}}, numbers.check(a.DType)
		},
		Eval: func(c *ir.EvalContext, n *ir.Node, _ []*ir.Array) ([]*ir.Array, error) {
			a := n.Attrs().(*DimSizeAttrs)
			size, ok := ir.Shape(a.Sizes).Size().Const()
			if !ok {
				return nil, ir.Errorf(ir.ErrSymbol, "sizes is %s: one is symbolic", ir.Shape(a.Sizes))
			}
			out := ir.NewArray(a.DType)
			out.SetElement(0, scalar.Value{F: float64(size), I: int64(size), C: complex(float64(size), 0)})
			return []*ir.Array{c.Round(out)}, nil
		},
		NoGrad: noOperands, NoBatch: noOperands,
		Lower: &ir.MapLowering{Element: func(n *ir.Node, _ int, _ ir.Index, _ ir.Load) scalar.Expr {
			a := n.Attrs().(*DimSizeAttrs)
			size, _ := ir.Shape(a.Sizes).Size().Const()
			return scalar.Const(a.DType, float64(size))
		}},
	})
}

// Iota returns the index of each element along axis, as a value of the given element type
// and shape.
func Iota(b *ir.Builder, d ir.DType, axis int, shape ...ir.Dim) ir.Value {
	return b.Add1(OpIota, &IotaAttrs{d, fromFront([]int{axis}, len(shape))[0], slices.Clone(shape)})
}

// DimSize returns the product of sizes, symbolic ones included, as a value of rank 0.
func DimSize(b *ir.Builder, d ir.DType, of ...ir.Dim) ir.Value {
	return b.Add1(OpDimSize, &DimSizeAttrs{d, slices.Clone(of)})
}
