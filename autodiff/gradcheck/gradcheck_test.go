package gradcheck_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// square is x ↦ x² with the derivatives given: the forward one is slope·x·t,
// the derivative of that by x is that of the expression.
func square(b *ir.Builder, x ir.Value, slope float64, second bool) ir.Value {
	return autodiff.CustomJVP(b, []ir.Value{x}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, in[0], in[0])}
	}, func(b *ir.Builder, in, t []ir.Value) []ir.Value {
		x := in[0]
		if !second {
			x = ops.StopGradient(b, x)
		}
		return []ir.Value{ops.Mul(b, t[0], ops.Mul(b, x, ops.ConstLike(b, x, slope)))}
	})[0]
}

func graphOf(t *testing.T, f func(b *ir.Builder, x, w ir.Value) ir.Value) *ir.Graph {
	t.Helper()
	g, err := ir.Build("f", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.N(2)), b.Param("w", ir.F32, ir.N(2))
		b.Output("plain", ops.Add(b, x, w))
		b.Output("y", f(b, x, w))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var point = map[string]*ir.Array{
	"x": ir.Floats(ir.F32, []float64{0.5, -3}),
	"w": ir.Floats(ir.F32, []float64{2, 1e-3}),
}

func TestCheckFindsWrongDerivatives(t *testing.T) {
	// A linear map whose transpose is not its own: forward is right, reverse is
	// three times too large.
	wrongTranspose := func(b *ir.Builder, x ir.Value) ir.Value {
		times := func(k float64) *ir.Graph {
			return b.Subgraph("times", func(s *ir.Builder) {
				v := s.Port(ir.InputPort, "v", x.Type())
				s.Output("y", ops.Mul(s, v, ops.ConstLike(s, v, k)))
			})
		}
		return ops.LinearCall(b, times(2), times(6), nil, []ir.Value{x})[0]
	}
	for _, c := range []struct {
		name    string
		f       func(b *ir.Builder, x, w ir.Value) ir.Value
		options gradcheck.Options
		want    *gradcheck.Error // nil: nothing wrong
	}{
		{"right to second order", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Mul(b, square(b, x, 2, true), ops.Sin(b, w))
		}, gradcheck.Options{Order: 2}, nil},
		{"a slope that is 1 % off", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Add(b, x, square(b, w, 2.02, true))
		}, gradcheck.Options{}, &gradcheck.Error{Check: "jvp against differences", Path: "f", Port: "w", Output: "y"}},
		{"a second derivative that is missing", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Mul(b, w, square(b, x, 2, false))
		}, gradcheck.Options{Order: 2}, &gradcheck.Error{Check: "jvp against differences", Path: "jvp of f", Port: "x", Output: "tangent/y"}},
		{"the same, not looked for", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Mul(b, w, square(b, x, 2, false))
		}, gradcheck.Options{}, nil},
		{"a wrong transpose", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Add(b, x, wrongTranspose(b, w))
		}, gradcheck.Options{}, &gradcheck.Error{Check: "vjp against jvp", Path: "f", Port: "w", Output: "y"}},
		{"the same, forward alone", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Add(b, x, wrongTranspose(b, w))
		}, gradcheck.Options{Modes: gradcheck.Forward, Order: 2}, nil},
		{"the same, by the other port", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Add(b, x, wrongTranspose(b, w))
		}, gradcheck.Options{Wrt: []string{"x"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := gradcheck.Check(graphOf(t, c.f), point, c.options)
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *gradcheck.Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want a gradcheck.Error", err)
			}
			if e.Check != c.want.Check || e.Path != c.want.Path || e.Port != c.want.Port || e.Output != c.want.Output {
				t.Errorf("error %v, want %+v", err, c.want)
			}
			for _, part := range []string{c.want.Port, c.want.Output, fmt.Sprint(e.Got), fmt.Sprint(e.Want)} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the text %q does not have %q", err, part)
				}
			}
		})
	}
}

func TestCheckEvaluatesAtGivenPoints(t *testing.T) {
	calls := 0
	err := gradcheck.Check(graphOf(t, func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.Mul(b, x, w) }), point, gradcheck.Options{
		Eps: 1e-2, Tol: 1e-3,
		Evaluate: func(g *ir.Graph, in map[string]*ir.Array) ([]*ir.Array, error) {
			calls++
			return ir.Eval(g, in, ir.EvalOptions{})
		},
	})
	if err != nil || calls == 0 {
		t.Errorf("error %v after %d evaluations", err, calls)
	}
	broken := errors.New("device lost")
	err = gradcheck.Check(graphOf(t, func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.Mul(b, x, w) }), point, gradcheck.Options{
		Evaluate: func(*ir.Graph, map[string]*ir.Array) ([]*ir.Array, error) { return nil, broken },
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the evaluation", err)
	}
}

func TestCheckRefusesComplexPorts(t *testing.T) {
	g, err := ir.Build("f", func(b *ir.Builder) { b.Output("y", ops.Neg(b, b.Input("x", ir.C64))) })
	if err != nil {
		t.Fatal(err)
	}
	if err := gradcheck.Check(g, map[string]*ir.Array{"x": ir.NewArray(ir.C64)}, gradcheck.Options{}); !errors.Is(err, ir.ErrDType) {
		t.Errorf("error %v, want one of kind ErrDType", err)
	}
}

func ExampleCheck() {
	g, err := ir.Build("f", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(3))
		b.Output("y", ops.Tanh(b, ops.Mul(b, x, x)))
	})
	if err != nil {
		panic(err)
	}
	in := map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{0.1, -0.7, 1.2})}
	fmt.Println(gradcheck.Check(g, in, gradcheck.Options{Order: 2}))
	// Output: <nil>
}
