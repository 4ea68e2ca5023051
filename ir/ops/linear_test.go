package ops_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// subgraph builds a graph on vectors of two numbers.
func subgraph(b *ir.Builder, operands int, f func(b *ir.Builder, in values) values) *ir.Graph {
	names := []string{"x0", "x1", "x2"}
	return b.Subgraph("f", func(b *ir.Builder) {
		var in values
		for i := range operands {
			in = append(in, b.Input(names[i], ir.F64, ir.N(2)))
		}
		for i, v := range f(b, in) {
			b.Output(names[i], v)
		}
	})
}

// TestReverseDerivativeWithoutTranspose gives a function a reverse derivative
// that no rule can transpose: reverse mode does not need the transpose, and
// forward mode reports that it is missing.
func TestReverseDerivativeWithoutTranspose(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		forward := subgraph(b, 1, func(b *ir.Builder, in values) values { return values{ops.Exp(b, in[0]), in[0]} })
		backward := subgraph(b, 2, func(b *ir.Builder, in values) values { return values{ops.Mul(b, in[0], ops.Abs(b, in[1]))} })
		b.Output("y", ops.CustomVJP(b, forward, backward, 1, b.Input("x", ir.F64, ir.N(2)))[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	j := slopesOf(t, g)
	x, c := ir.Floats(ir.F64, []float64{3, -2}), ir.Floats(ir.F64, []float64{-5, 7})
	back := run(t, j.backward(t, g), []*ir.Array{x, c})[0]
	compareArrays(t, back, ir.Floats(ir.F64, []float64{15, -14}))
	_, err = ir.Eval(j.forward, map[string]*ir.Array{"x": x, "t0": c}, ir.EvalOptions{})
	if !errors.Is(err, ir.ErrNoRule) || !strings.Contains(err.Error(), "abs") {
		t.Errorf("the forward derivative gives the error %v", err)
	}
}

// TestResultKeptAsResidualHasTheCustomDerivative differentiates a square root
// that keeps its result: at order two the derivative of what it kept is the
// custom one and not that of sqrt.
func TestResultKeptAsResidualHasTheCustomDerivative(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		forward := subgraph(b, 1, func(b *ir.Builder, in values) values {
			y := ops.Sqrt(b, in[0])
			return values{y, y}
		})
		// The derivative it claims to have is y², whose own derivative is 2·y·y².
		backward := subgraph(b, 2, func(b *ir.Builder, in values) values {
			return values{ops.Mul(b, ops.Mul(b, in[0], in[0]), in[1])}
		})
		b.Output("y", ops.CustomVJP(b, forward, backward, 1, b.Input("x", ir.F64, ir.N(2)))[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	second, err := ir.Build("second", func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(2))
		one := ops.OnesLike(b, x)
		first, err := ir.Build("first", func(b *ir.Builder) {
			x := b.Input("x", ir.F64, ir.N(2))
			_, t := derive.JVP(b, g, values{x}, values{ops.OnesLike(b, x)})
			b.Output("t", t[0])
		})
		if err != nil {
			b.Fail(err)
			return
		}
		_, t := derive.JVP(b, first, values{x}, values{one})
		b.Output("t", t[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{4, 9}
	got := run(t, second, []*ir.Array{ir.Floats(ir.F64, x)})[0]
	compareArrays(t, got, ir.Floats(ir.F64, []float64{2 * 2 * 4, 2 * 3 * 9}))
}

// TestAbsentGraphsSurviveTheTextForm writes and reads the derivative of a
// function whose reverse derivative has no transpose.
func TestAbsentGraphsSurviveTheTextForm(t *testing.T) {
	v := func(b *ir.Builder, name string) ir.Value { return b.Input(name, ir.F64, ir.N(2)) }
	g, err := ir.Build("g", func(b *ir.Builder) {
		absent := b.Subgraph("absent", func(*ir.Builder) {})
		present := subgraph(b, 2, func(b *ir.Builder, in values) values { return values{ops.Mul(b, in[0], ops.Abs(b, in[1]))} })
		b.Output("y", ops.LinearCall(b, absent, present, values{v(b, "r")}, values{v(b, "x")})[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	back, err := ir.Parse(g.String())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := back.String(), g.String(); got != want {
		t.Errorf("read back as\n%s\nnot\n%s", got, want)
	}
}
