package ops_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestFunctionsAtHardPoints holds the reference of elementwise functions and their
// expressions to the error bounds of the package's documentation.
func TestFunctionsAtHardPoints(t *testing.T) {
	for _, d := range []ir.DType{ir.F32, ir.F64} {
		cases, err := irtest.FunctionCases(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			g, n, err := irtest.SampleGraph(c.Op, c.Sample)
			if err != nil {
				t.Fatal(err)
			}
			body := must(passes.Run(g, passes.Options{}))(t)
			for way, g := range map[string]*ir.Graph{"reference": g, "body": body} {
				out, err := ir.Eval(g, irtest.SampleInputs(c.Sample), ir.EvalOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if fault := c.Check(out[0], false); fault != "" {
					t.Errorf("%s, %s: %s", c.Op, way, fault)
				}
			}
			if def, _ := ir.Lookup(c.Op); def.Scalar != nil {
				if fault := c.Check(byExpression(t, def, n, c), false); fault != "" {
					t.Errorf("%s, expression: %s", c.Op, fault)
				}
			}
		}
	}
}

// byExpression evaluates the expression of an op, for f32 the expanded one.
func byExpression(t *testing.T, def *ir.Def, n *ir.Node, c irtest.FunctionCase) *ir.Array {
	t.Helper()
	args := make([]scalar.Expr, len(c.Sample.In))
	for i := range args {
		args[i] = scalar.Arg(i, c.DType)
	}
	e := def.Scalar(n, args)
	if c.DType == ir.F32 {
		e = scalar.Expand(e, scalar.Portable)
	}
	p, out := scalar.Compile(e), ir.NewArray(c.DType, len(c.Want))
	env := &scalar.Env{Args: make([]scalar.Value, len(args))}
	for i := range out.F {
		for k, a := range c.Sample.In {
			env.Args[k].F = a.F[i]
		}
		mem, err := p.Run(env, nil)
		if err != nil {
			t.Fatal(err)
		}
		out.F[i] = mem[0].F
	}
	return out
}
