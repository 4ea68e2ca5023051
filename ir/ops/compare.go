package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Comparisons; the results are booleans.
const (
	OpEq       ir.Op = "eq"
	OpNe       ir.Op = "ne"
	OpLt       ir.Op = "lt"
	OpLe       ir.Op = "le"
	OpGt       ir.Op = "gt"
	OpGe       ir.Op = "ge"
	OpIsFinite ir.Op = "is_finite"
	OpIsNaN    ir.Op = "is_nan"
)

// order is the result of comparing two elements; no field is true if one is NaN.
type order struct{ less, equal, greater bool }

// comparison describes an op that compares two operands.
type comparison struct {
	op     ir.Op
	doc    string
	types  domain
	holds  func(o order) bool
	scalar func(x, y scalar.Expr) scalar.Expr
}

func init() {
	for _, c := range []comparison{
		{OpEq, "Whether x = y. NaN equals nothing.", plain, func(o order) bool { return o.equal }, scalar.Eq},
		{OpNe, "Whether x ≠ y, true if one is NaN.", plain, func(o order) bool { return !o.equal }, scalar.Ne},
		{OpLt, "Whether x < y, false if one is NaN.", reals, func(o order) bool { return o.less }, scalar.Lt},
		{OpLe, "Whether x ≤ y, false if one is NaN.", reals, func(o order) bool { return o.less || o.equal }, scalar.Le},
		{OpGt, "Whether x > y, false if one is NaN.", reals, func(o order) bool { return o.greater }, scalar.Gt},
		{OpGe, "Whether x ≥ y, false if one is NaN.", reals, func(o order) bool { return o.greater || o.equal }, scalar.Ge},
	} {
		defineCompare(c)
	}
	defineTest(OpIsFinite, "Whether x is neither infinite nor NaN.", func(x float64) bool {
		return !math.IsInf(x, 0) && !math.IsNaN(x)
	}, scalar.IsFinite)
	defineTest(OpIsNaN, "Whether x is NaN.", math.IsNaN, scalar.IsNaN)
}

func defineCompare(c comparison) {
	define(&ir.Def{
		Op: c.op, Doc: c.doc, Operands: []string{"x", "y"},
		Constraints: elementwiseConstraints(c.types),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, c.types)
			t.DType = ir.Bool
			return []ir.Type{t}, err
		},
		Eval: evalResult(func(n *ir.Node, in []*ir.Array, out *ir.Array) {
			for i := range out.I {
				if c.holds(compareElements(in[0], in[1], i)) {
					out.I[i] = 1
				}
			}
		}),
		NoGrad: "boolean result",
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return c.scalar(x[0], x[1]) },
	})
}

func compareElements(x, y *ir.Array, i int) order {
	switch {
	case x.F != nil:
		return order{x.F[i] < y.F[i], x.F[i] == y.F[i], x.F[i] > y.F[i]}
	case x.C != nil:
		return order{equal: x.C[i] == y.C[i]}
	}
	c := compareInts(x.DType, x.I[i], y.I[i])
	return order{c < 0, c == 0, c > 0}
}

// defineTest defines a predicate of each float.
func defineTest(op ir.Op, doc string, holds func(x float64) bool, holdsExpr func(x scalar.Expr) scalar.Expr) {
	define(&ir.Def{
		Op: op, Doc: doc, Operands: []string{"x"},
		Constraints: elementwiseConstraints(floats),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, floats)
			t.DType = ir.Bool
			return []ir.Type{t}, err
		},
		Eval: evalResult(func(n *ir.Node, in []*ir.Array, out *ir.Array) {
			for i, x := range in[0].F {
				if holds(x) {
					out.I[i] = 1
				}
			}
		}),
		NoGrad: "boolean result",
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return holdsExpr(x[0]) },
	})
}

// Eq returns whether x = y.
func Eq(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpEq, x, y) }

// Ne returns whether x ≠ y.
func Ne(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpNe, x, y) }

// Lt returns whether x < y.
func Lt(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpLt, x, y) }

// Le returns whether x ≤ y.
func Le(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpLe, x, y) }

// Gt returns whether x > y.
func Gt(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpGt, x, y) }

// Ge returns whether x ≥ y.
func Ge(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpGe, x, y) }

// IsFinite returns whether x is neither infinite nor NaN.
func IsFinite(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpIsFinite, nil, x) }

// IsNaN returns whether x is NaN.
func IsNaN(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpIsNaN, nil, x) }

// Logic on booleans, and on the bits of integers.
const (
	OpAnd        ir.Op = "and"
	OpOr         ir.Op = "or"
	OpXor        ir.Op = "xor"
	OpNot        ir.Op = "not"
	OpShiftLeft  ir.Op = "shift_left"
	OpShiftRight ir.Op = "shift_right"
)

func init() {
	noGrad := "boolean or integer result"
	for _, l := range []struct {
		op      ir.Op
		doc     string
		types   domain
		integer func(d ir.DType, x []int64) int64
		scalar  func(x, y scalar.Expr) scalar.Expr
	}{
		{
			OpAnd, "The conjunction of x and y, or of each pair of their bits.", bits,
			func(_ ir.DType, x []int64) int64 { return x[0] & x[1] }, scalar.And,
		},
		{
			OpOr, "The disjunction of x and y, or of each pair of their bits.", bits,
			func(_ ir.DType, x []int64) int64 { return x[0] | x[1] }, scalar.Or,
		},
		{
			OpXor, "The exclusive or of x and y, or of each pair of their bits.", bits,
			func(_ ir.DType, x []int64) int64 { return x[0] ^ x[1] }, scalar.Xor,
		},
		{
			OpShiftLeft, "x shifted left by y bits, with y modulo the width of the type.", integers,
			func(d ir.DType, x []int64) int64 { return x[0] << shiftCount(d, x[1]) }, scalar.Shl,
		},
		{
			OpShiftRight, "x shifted right by y bits, with y modulo the width of the type; arithmetic for signed types.",
			integers, shiftRight, scalar.Shr,
		},
	} {
		defineBinary(binary{
			op: l.op, doc: l.doc, types: l.types, scalar: l.scalar, reference: scalarReference{integer: l.integer},
			noGrad: noGrad,
		})
	}
	defineUnary(unary{
		op: OpNot, doc: "The negation of x, or the complement of each bit.", types: bits, scalar: scalar.Not,
		reference: scalarReference{integer: func(d ir.DType, x []int64) int64 {
			if d.IsBool() {
				return 1 - x[0]
			}
			return ^x[0]
		}},
		noGrad: noGrad,
	})
}

func shiftCount(d ir.DType, y int64) uint64 { return uint64(y) % uint64(d.Bits()) }

func shiftRight(d ir.DType, x []int64) int64 {
	if d == ir.U64 {
		return int64(uint64(x[0]) >> shiftCount(d, x[1]))
	}
	return x[0] >> shiftCount(d, x[1])
}

// And returns the conjunction of x and y, bitwise for integers, broadcast.
func And(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpAnd, x, y) }

// Or returns the disjunction of x and y, bitwise for integers, broadcast.
func Or(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpOr, x, y) }

// Xor returns the exclusive or of x and y, bitwise for integers, broadcast.
func Xor(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpXor, x, y) }

// Not returns the negation of x, bitwise for integers.
func Not(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpNot, nil, x) }

// ShiftLeft returns the integer x shifted left by y bits, with y modulo the width,
// broadcast.
func ShiftLeft(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpShiftLeft, x, y) }

// ShiftRight returns the integer x shifted right by y bits, with y modulo the width,
// broadcast. The shift is arithmetic for signed types.
func ShiftRight(b *ir.Builder, x, y ir.Value) ir.Value {
	return broadcasting(b, OpShiftRight, x, y)
}

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
		Eval:  evalResult(evalSelect),
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
		return nil, ir.Shapef("condition, x and y are %s, %s and %s, not of one shape", c.Shape, x.Shape, y.Shape)
	}
	return []ir.Type{x}, plain.check(x.DType)
}

func evalSelect(n *ir.Node, in []*ir.Array, out *ir.Array) {
	for i, c := range in[0].I {
		from := in[2]
		if c != 0 {
			from = in[1]
		}
		copyElement(out, i, from, i)
	}
}

func defineClamp() {
	defineElementwise(elementwise{
		op: OpClamp, doc: "x clamped to [low, high]: min(max(x, low), high), so high where low > high, and NaN if one operand is NaN. " +
			"The derivative by x is 1 in [low, high] and 0 outside; that by a bound is 1 where it replaces x.",
		operands: []string{"x", "low", "high"}, types: reals,
		reference: scalarReference{
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
	return broadcasting(b, OpSelect, condition, x, y)
}

// Clamp returns min(max(x, low), high), for operands that are broadcast and have one real
// type.
func Clamp(b *ir.Builder, x, low, high ir.Value) ir.Value {
	return broadcasting(b, OpClamp, x, low, high)
}
