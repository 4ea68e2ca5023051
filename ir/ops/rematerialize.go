package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpRematerialize marks where a part of a graph is computed a second time.
const OpRematerialize ir.Op = "rematerialize"

func init() {
	define(&ir.Def{
		Op: OpRematerialize, Operands: []string{"x"},
		Doc: "x itself, from which something is computed again: what follows from it shares nothing with what follows " +
			"from x elsewhere, neither nodes nor kernels, so that what was computed first need not be kept (JAX's optimization_barrier).",
		Constraints: numbered(
			"the element type is "+plain.String(),
			"the result has the type of the operand",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, plain)
			return []ir.Type{t}, err
		},
		Eval: func(_ *ir.EvalContext, _ *ir.Node, in []*ir.Array) ([]*ir.Array, error) { return in, nil },
		JVP:  linearJVP,
		Transpose: transposeEach(func(_ *ir.Builder, _ *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return ct
		}),
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return x[0] },
		Samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			return unarySamples(unary{types: plain, from: -2, to: 2})
		},
	})
}

// Rematerialize returns x, to compute again what was computed from it before.
func Rematerialize(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRematerialize, nil, x) }
