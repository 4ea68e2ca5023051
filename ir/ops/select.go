package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Selection and clamping.
const (
	OpSelect ir.Op = "select"
	OpClamp  ir.Op = "clamp"
)

func init() {
	defineSelect()
	defineClamp()
}

func defineSelect() {
	define(&ir.Def{
		Op: OpSelect, Doc: "x where the condition holds and y elsewhere. The other value has no influence, also on derivatives.",
		Operands: []string{"condition", "x", "y"},
		Constraints: numbered(
			"the condition is bool; x and y have one element type, which is "+plain.String(),
			"all operands have one shape, which is that of the result",
		),
		Infer: inferSelect,
		Eval:  evalSelect,
		JVP: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			if !t[1].Valid() && !t[2].Valid() {
				return []ir.Value{{}}
			}
			return []ir.Value{Select(b, in[0], orZeros(b, t[1], in[1]), orZeros(b, t[2], in[2]))}
		},
		Transpose: transposeEach(func(b *ir.Builder, _ *ir.Node, operand int, in []ir.Value, ct ir.Value) ir.Value {
			zero := ZerosLike(b, ct)
			if operand == 1 {
				return Select(b, in[0], ct, zero)
			}
			return Select(b, in[0], zero, ct)
		}),
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return scalar.Select(x[0], x[1], x[2]) },
	})
}

func inferSelect(n *ir.Node) ([]ir.Type, error) {
	c, x, y := n.Input(0).Type(), n.Input(1).Type(), n.Input(2).Type()
	switch {
	case !c.DType.IsBool():
		return nil, ir.DTypef("condition is %s, not bool", c.DType)
	case x.DType != y.DType:
		return nil, ir.DTypef("y is %s, not %s as x is", y.DType, x.DType)
	case !x.Shape.Equal(y.Shape) || !x.Shape.Equal(c.Shape):
		return nil, ir.Shapef("the shapes are %s, %s and %s", c.Shape, x.Shape, y.Shape)
	}
	return []ir.Type{x}, plain.check(x.DType)
}

func evalSelect(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	for i, c := range in[0].I {
		from := in[2]
		if c != 0 {
			from = in[1]
		}
		copyElement(out, i, from, i)
	}
	return []*ir.Array{out}, nil
}

func defineClamp() {
	defineElementwise(elementwise{
		op: OpClamp, doc: "x clamped to [low, high]: min(max(x, low), high), so high where low > high, and NaN if one operand is NaN. " +
			"The derivative by x is 1 in [low, high] and 0 outside; that by a bound is 1 where it replaces x.",
		operands: []string{"x", "low", "high"}, types: reals,
		meaning: meaning{
			float: func(x []float64) float64 { return min(max(x[0], x[1]), x[2]) },
			integer: func(d ir.DType, x []int64) int64 {
				y := x[0]
				if compareInts(d, y, x[1]) < 0 {
					y = x[1]
				}
				if compareInts(d, y, x[2]) > 0 {
					y = x[2]
				}
				return y
			},
		},
		scalar: func(x []scalar.Expr) scalar.Expr { return scalar.Clamp(x[0], x[1], x[2]) },
		jvp:    jvpClamp,
	})
}

// jvpClamp selects the tangent of the operand that equals the result, exactly one of the
// three unless one is NaN.
func jvpClamp(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
	x, low, high := in[0], in[1], in[2]
	ordered := Le(b, low, high)
	is := [3]func() ir.Value{
		func() ir.Value { return And(b, Le(b, low, x), Le(b, x, high)) },
		func() ir.Value { return And(b, Lt(b, x, low), ordered) },
		func() ir.Value { return Gt(b, Max(b, x, low), high) },
	}
	var sum ir.Value
	for i, mask := range is {
		if t[i].Valid() {
			sum = addTangents(b, sum, Select(b, mask(), t[i], ZerosLike(b, t[i])))
		}
	}
	return []ir.Value{sum}
}

// Select returns x where condition, a bool, holds and y elsewhere (numpy.where). The
// operands are broadcast; x and y have one type.
func Select(b *ir.Builder, condition, x, y ir.Value) ir.Value {
	return broadcasting(b, OpSelect, nil, condition, x, y)
}

// Clamp returns min(max(x, low), high), for operands that are broadcast and have one real
// type.
func Clamp(b *ir.Builder, x, low, high ir.Value) ir.Value {
	return broadcasting(b, OpClamp, nil, x, low, high)
}
