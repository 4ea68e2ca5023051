package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Ops that return their operand and say something about derivatives or memory.
const (
	// OpStopGradient ends the way of derivatives.
	OpStopGradient ir.Op = "stop_gradient"
	// OpRematerialize marks where a part of a graph is computed a second time.
	OpRematerialize ir.Op = "rematerialize"
)

func init() {
	defineIdentity(ir.Def{
		Op:  OpStopGradient,
		Doc: "x itself, with derivative 0.",
		JVP: flatJVP, NoTranspose: "its derivative is 0",
	}, "the derivative is 0 by decree")
	defineIdentity(ir.Def{
		Op: OpRematerialize,
		Doc: "x itself, from which something is computed again: what follows from it shares nothing with what follows " +
			"from x elsewhere, neither nodes nor kernels, so that what was computed first need not be kept (JAX's optimization_barrier).",
		JVP: linearJVP,
		Transpose: transposeEach(func(_ *ir.Builder, _ *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return ct
		}),
	}, "")
}

// defineIdentity completes and registers an op that returns its operand. noGrad says
// why its samples are left out of gradient checks, if they are.
func defineIdentity(d ir.Def, noGrad string) {
	d.Operands = []string{"x"}
	d.Constraints = numbered("the element type is "+plain.String(), "the result has the type of the operand")
	d.Infer = func(n *ir.Node) ([]ir.Type, error) {
		t, err := sameTypes(n, plain)
		return []ir.Type{t}, err
	}
	d.Eval = func(_ *ir.EvalContext, _ *ir.Node, in []*ir.Array) ([]*ir.Array, error) { return in, nil }
	d.Batch = batchElementwise
	d.Scalar = func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return x[0] }
	d.Samples = func() []ir.Sample {
		if !withSamples {
			return nil
		}
		s := unarySamples(unary{types: plain, from: -2, to: 2})
		for i := range s {
			s[i].NoGrad = noGrad
		}
		return s
	}
	define(&d)
}

// StopGradient returns x, which derivatives take for a constant.
func StopGradient(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpStopGradient, nil, x) }

// Rematerialize returns x, to compute again what was computed from it before.
func Rematerialize(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRematerialize, nil, x) }
