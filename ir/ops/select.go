package ops

import (
	"math"

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
		Batch:   batchElementwise,
		Scalar:  func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return scalar.Select(x[0], x[1], x[2]) },
		Samples: selectSamples,
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

func selectSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{
			draw(1, ir.Bool, 0, 1, dims...), draw(2, ir.F32, -2, 2, dims...), draw(3, ir.F32, -2, 2, dims...),
		}})
	}
	for _, d := range []ir.DType{ir.Bool, ir.I8, ir.I64, ir.U32, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{
			draw(1, ir.Bool, 0, 1, 5), draw(2, d, -2, 2, 5), draw(3, d, -2, 2, 5),
		}})
	}
	return append(out, ir.Sample{Name: "masked poison", NoGrad: "infinite and NaN operands", In: []*ir.Array{
		ir.Ints(ir.Bool, []int64{1, 0, 1}), ir.Floats(ir.F32, []float64{1, math.NaN(), 2}), ir.Floats(ir.F32, []float64{math.Inf(1), 3, math.NaN()}),
	}})
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
		scalar:  func(x []scalar.Expr) scalar.Expr { return scalar.Clamp(x[0], x[1], x[2]) },
		jvp:     jvpClamp,
		samples: clampSamples,
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

func clampSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{
			draw(1, ir.F32, -3, 3, dims...), draw(2, ir.F32, -2, -1, dims...), draw(4, ir.F32, 0.5, 2, dims...),
		}})
	}
	for _, d := range []ir.DType{ir.I32, ir.U8, ir.U64, ir.F16, ir.F64} {
		out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{
			draw(1, d, 0, 9, 7), draw(2, d, 2, 3, 7), draw(4, d, 5, 6, 7),
		}})
	}
	vec := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	return append(out,
		ir.Sample{Name: "at the bounds", NoGrad: "kinks", In: []*ir.Array{vec(-1, 1, -1, 1), vec(-1, -1, -1, 1), vec(1, 1, -1, 1)}},
		ir.Sample{Name: "bounds crossed", In: []*ir.Array{vec(0, 5, -5, 2.5), vec(3, 3, 3, 3), vec(2, 2, 2, 2)}},
		ir.Sample{Name: "nan", NoGrad: "NaN operands", In: []*ir.Array{vec(math.NaN(), 0, 0, math.NaN()), vec(0, math.NaN(), 0, math.Inf(-1)), vec(1, 1, math.NaN(), math.Inf(1))}},
	)
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
