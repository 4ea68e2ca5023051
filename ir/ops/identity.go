package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Identity ops that affect derivatives or memory.
const (
	// OpStopGradient blocks derivatives.
	OpStopGradient ir.Op = "stop_gradient"
	// OpRematerialize marks the start of rematerialised code.
	OpRematerialize ir.Op = "rematerialize"
)

func init() {
	defineIdentity(ir.Def{
		Op:  OpStopGradient,
		Doc: "x, with derivative 0.",
		JVP: flatJVP, NoTranspose: "its derivative is 0",
	})
	defineIdentity(ir.Def{
		Op: OpRematerialize,
		Doc: "x, as a barrier for rematerialisation: CSE and fusion do not merge its users with other users of x, " +
			"so that values computed earlier need not stay alive (JAX's optimization_barrier).",
		JVP: linearJVP,
		Transpose: transposeEach(func(_ *ir.Builder, _ *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return ct
		}),
	})
}

// defineIdentity completes and registers an op that returns its operand.
func defineIdentity(d ir.Def) {
	d.Operands = []string{"x"}
	d.Constraints = numbered("the element type is "+plain.String(), "the result has the type of the operand")
	d.Infer = func(n *ir.Node) ([]ir.Type, error) {
		t, err := sameTypes(n, plain)
		return []ir.Type{t}, err
	}
	d.Eval = func(_ *ir.EvalContext, _ *ir.Node, in []*ir.Array) ([]*ir.Array, error) { return in, nil }
	d.Batch = batchElementwise
	d.Scalar = func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return x[0] }
	define(&d)
}

// StopGradient returns x with derivative 0.
func StopGradient(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpStopGradient, nil, x) }

// Rematerialize returns x as a barrier: code that uses it is computed again and not merged
// with earlier uses of x.
func Rematerialize(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRematerialize, nil, x) }

// OpCheckIndex is a bounds check of indices.
const OpCheckIndex ir.Op = "check_index"

// CheckIndexAttrs hold the exclusive upper bound of the indices, and their name in the
// error.
type CheckIndexAttrs struct {
	Bound ir.Dim
	What  string
}

// Visit shows the attributes.
func (a *CheckIndexAttrs) Visit(v ir.AttrVisitor) {
	visitDim(v, "bound", &a.Bound)
	v.Text("what", &a.What)
}

// Failure says what a check that failed has found: "label is not in [0, 10)".
func (a *CheckIndexAttrs) Failure() string {
	return a.What + " is not in [0, " + a.Bound.String() + ")"
}

func init() {
	noGrad := "integer result"
	define(&ir.Def{
		Op: OpCheckIndex, Operands: []string{"index"}, NewAttrs: func() ir.Attrs { return &CheckIndexAttrs{What: "index"} },
		Doc: "The indices, unchanged. An index outside [0, bound) makes the run fail with an error that names this node and what the " +
			"index is; state keeps its value then.",
		Constraints: numbered(
			"the element type is "+integers.String(),
			"the result has the type of the operand",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, integers)
			if err == nil && !n.Attrs().(*CheckIndexAttrs).Bound.Valid() {
				err = ir.Attrf("bound is %s, negative", n.Attrs().(*CheckIndexAttrs).Bound)
			}
			return []ir.Type{t}, err
		},
		Eval:   evalCheckIndex,
		NoGrad: noGrad,
		Batch:  batchElementwise,
		Scalar: checkIndexBody,
	})
}

func evalCheckIndex(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a := n.Attrs().(*CheckIndexAttrs)
	bound, ok := a.Bound.Const()
	if !ok {
		return nil, ir.Errorf(ir.ErrSymbol, "the bound %s is symbolic", a.Bound)
	}
	x := in[0]
	for i := range x.I {
		if v := x.Float(i); v < 0 || v >= float64(bound) {
			return nil, ir.Errorf(ir.ErrIndex, "%s %v at element %d is not in [0, %d)", a.What, v, i, bound)
		}
	}
	return in, nil
}

// checkIndexBody compares in the index's own type: a bound beyond that type always holds.
// The code is the node's number, from 1; package fusion assigns the codes of a whole plan.
func checkIndexBody(n *ir.Node, x []scalar.Expr) scalar.Expr {
	d := x[0].Type
	bound, _ := n.Attrs().(*CheckIndexAttrs).Bound.Const()
	inside := scalar.ConstBool(true)
	if d.IsSigned() {
		inside = scalar.Ge(x[0], scalar.ConstI(d, 0))
	}
	if _, hi, ok := d.IntRange(); !ok || int64(bound) <= hi {
		inside = scalar.And(inside, scalar.Lt(x[0], scalar.ConstI(d, int64(bound))))
	}
	return scalar.Check(x[0], inside, n.ID()+1)
}

// CheckIndex returns index unchanged, and makes the run fail with an error of kind
// [ir.ErrIndex] if an element is outside [0, bound). what names the indices in the error.
func CheckIndex(b *ir.Builder, index ir.Value, bound ir.Dim, what string) ir.Value {
	return b.Add1(OpCheckIndex, &CheckIndexAttrs{bound, what}, index)
}
