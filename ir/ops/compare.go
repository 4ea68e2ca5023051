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
		Eval: func(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			out, err := resultArray(n, 0)
			if err != nil {
				return nil, err
			}
			for i := range out.I {
				if c.holds(compareElements(in[0], in[1], i)) {
					out.I[i] = 1
				}
			}
			return []*ir.Array{out}, nil
		},
		NoGrad: "boolean result", NoTranspose: "boolean result",
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
		Eval: func(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			out, err := resultArray(n, 0)
			if err != nil {
				return nil, err
			}
			for i, x := range in[0].F {
				if holds(x) {
					out.I[i] = 1
				}
			}
			return []*ir.Array{out}, nil
		},
		NoGrad: "boolean result", NoTranspose: "boolean result",
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return holdsExpr(x[0]) },
	})
}

// Eq returns whether x = y.
func Eq(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpEq, nil, x, y) }

// Ne returns whether x ≠ y.
func Ne(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpNe, nil, x, y) }

// Lt returns whether x < y.
func Lt(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpLt, nil, x, y) }

// Le returns whether x ≤ y.
func Le(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpLe, nil, x, y) }

// Gt returns whether x > y.
func Gt(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpGt, nil, x, y) }

// Ge returns whether x ≥ y.
func Ge(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpGe, nil, x, y) }

// IsFinite returns whether x is neither infinite nor NaN.
func IsFinite(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpIsFinite, nil, x) }

// IsNaN returns whether x is NaN.
func IsNaN(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpIsNaN, nil, x) }
