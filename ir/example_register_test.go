package ir_test

import (
	"fmt"
	"log"
	"math"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// softSign is an op of a program's own: x/√(1 + x²).
const softSign ir.Op = "example.soft_sign"

// An op that a program brings: its shape rule, its meaning, its derivative, and what
// every device computes for one element. An op that is no elementwise one has a Body
// of other ops, or a Lower, in place of Scalar.
func ExampleRegister() {
	err := ir.Register(&ir.Def{
		Op: softSign, Doc: "x/√(1 + x²)", Operands: []string{"x"},
		Constraints: []string{"C1: x is of a float type"},
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			if t := n.Input(0).Type(); !t.DType.IsFloat() {
				return nil, ir.DTypef("x is %s, no float", t.DType)
			}
			return n.InTypes(), nil
		},
		Eval: func(c *ir.EvalContext, _ *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			out := in[0].Clone()
			for i, x := range out.F {
				out.F[i] = x / math.Sqrt(1+x*x)
			}
			return []*ir.Array{c.Round(out)}, nil
		},
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr {
			one := scalar.ConstF(x[0].Type, 1)
			return scalar.Mul(x[0], scalar.Rsqrt(scalar.Add(one, scalar.Mul(x[0], x[0]))))
		},
		JVP: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			root := ops.Rsqrt(b, ops.Add(b, ops.OnesLike(b, in[0]), ops.Square(b, in[0])))
			return []ir.Value{ops.Mul(b, t[0], ops.Mul(b, root, ops.Square(b, root)))}
		},
		NoTranspose: "not linear",
		Batch: func(b *ir.Builder, _ *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
			return []ir.Value{b.Add1(softSign, nil, in[0])}, axes
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	g, err := ir.Build("example", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(3))
		b.Output("y", ops.ReduceSum(b, b.Add1(softSign, nil, x)))
	})
	if err != nil {
		log.Fatal(err)
	}
	slope, err := autodiff.Grad(g, "y", "x")
	if err != nil {
		log.Fatal(err)
	}
	out, err := ir.Eval(slope, map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{-1, 0, 1}, 3)}, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f\n", out[0].F)
	// Output: [0.3536 1.0000 0.3536]
}
