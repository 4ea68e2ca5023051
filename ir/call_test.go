package ir_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// counter is y = w·x and n ← n + y.
func counter(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("counter", func(b *ir.Builder) {
		x, w, n := b.Input("x", ir.F64), b.Param("w", ir.F64), b.State("n", ir.F64)
		y := ops.Mul(b, w, x)
		b.Output("y", y)
		b.SetState("n", ops.Add(b, n, y))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCallPutsAGraphIntoAnother(t *testing.T) {
	inner := counter(t)
	g, err := ir.Build("g", func(b *ir.Builder) {
		w := b.Param("w", ir.F64)
		first := b.Call(inner, map[string]ir.Value{"x": b.Input("a", ir.F64)})
		second := b.Call(inner, map[string]ir.Value{"x": first["y"], "w": ops.Neg(b, w), "n": w})
		b.Output("y", second["y"])
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{"a": ir.Float(ir.F64, 3), "w": ir.Float(ir.F64, 5), "n": ir.Float(ir.F64, 1)}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		want := map[string]float64{"n": 16, "y": -75}[o.Name]
		if out[i].F[0] != want {
			t.Errorf("%s is %v, want %v", o.Name, out[i].F[0], want)
		}
	}
}

func TestCallRefusesWhatDoesNotFit(t *testing.T) {
	inner := counter(t)
	for name, c := range map[string]struct {
		call func(b *ir.Builder)
		want error
	}{
		"no graph":      {func(b *ir.Builder) { b.Call(nil, nil) }, ir.ErrGraph},
		"missing input": {func(b *ir.Builder) { b.Call(inner, nil) }, ir.ErrName},
		"unknown port": {func(b *ir.Builder) {
			b.Call(inner, map[string]ir.Value{"x": b.Input("x", ir.F64), "z": b.Input("z", ir.F64)})
		}, ir.ErrName},
		"shape":    {func(b *ir.Builder) { b.Call(inner, map[string]ir.Value{"x": b.Input("x", ir.F64, ir.N(2))}) }, ir.ErrShape},
		"type":     {func(b *ir.Builder) { b.Call(inner, map[string]ir.Value{"x": b.Input("x", ir.F32)}) }, ir.ErrDType},
		"no value": {func(b *ir.Builder) { b.Call(inner, map[string]ir.Value{"x": {}}) }, ir.ErrGraph},
		"own parameter of another type": {func(b *ir.Builder) {
			b.Param("w", ir.F32)
			b.Call(inner, map[string]ir.Value{"x": b.Input("x", ir.F64)})
		}, ir.ErrDType},
	} {
		if _, err := ir.Build("g", c.call); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want one of kind %v", name, err, c.want)
		}
	}
}
