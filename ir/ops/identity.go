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
