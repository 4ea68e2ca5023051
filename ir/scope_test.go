package ir_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// names lists the ports of a graph, and the states that it updates.
func names(g *ir.Graph) []string {
	var all []string
	for _, p := range g.Ports() {
		all = append(all, p.Name)
	}
	for _, o := range g.Outputs() {
		all = append(all, "= "+o.Name)
	}
	return all
}

func TestScopesNestAndEnd(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("before", ir.F32)
		b.Label("outside")
		b.Scope("a", func() {
			x = ops.Add(b, x, b.Param("w", ir.F32))
			b.Scope("b", func() {
				b.Label("inner")
				n := ops.Add(b, b.State("n", ir.F32), x)
				b.SetState("n", n)
				x = ops.Mul(b, n, b.Input("x", ir.F32))
			})
			x = ops.Neg(b, x)
		})
		b.Output("y", ops.Exp(b, ops.Mul(b, x, b.Param("w", ir.F32))))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(g), []string{"before", "a/w", "a/b/n", "x", "w", "= a/b/n", "= y"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	labels := map[ir.Op]string{}
	for _, n := range g.Nodes() {
		labels[n.Op()] = n.Label()
	}
	for op, want := range map[ir.Op]string{ops.OpNeg: "a", ops.OpExp: "outside"} {
		if labels[op] != want {
			t.Errorf("%s has the label %q, want %q", op, labels[op], want)
		}
	}
	if n, ok := nodeOf(g, ops.OpMul, 0); !ok || n.Label() != "a/b/inner" {
		t.Errorf("the first product has the label %q", n.Label())
	}
}

// nodeOf returns a node of an op, counted from 0.
func nodeOf(g *ir.Graph, op ir.Op, k int) (*ir.Node, bool) {
	for _, n := range g.Nodes() {
		if n.Op() == op {
			if k == 0 {
				return n, true
			}
			k--
		}
	}
	return nil, false
}

// A graph called in two scopes has separate parameters and states in each.
func TestACalledGraphBelongsToTheScope(t *testing.T) {
	inner := counter(t)
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F64)
		for _, name := range []string{"first", "second"} {
			b.Scope(name, func() { x = b.Call(inner, map[string]ir.Value{"x": x})["y"] })
		}
		b.Output("y", x)
	})
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*ir.Array{
		"x": ir.Float(ir.F64, 3), "first/w": ir.Float(ir.F64, 5), "second/w": ir.Float(ir.F64, 7), "first/n": ir.Float(ir.F64, 1), "second/n": ir.Float(ir.F64, 2),
	}
	out, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		if want := map[string]float64{"first/n": 16, "second/n": 107, "y": 105}[o.Name]; out[i].F[0] != want {
			t.Errorf("%s is %v, want %v", o.Name, out[i].F[0], want)
		}
	}
}

func TestScopesRefuseInvalidOperands(t *testing.T) {
	for name, build := range map[string]func(b *ir.Builder){
		"no name":                 func(b *ir.Builder) { b.Scope("", func() {}) },
		"no function":             func(b *ir.Builder) { b.Scope("a", nil) },
		"a parameter of no name":  func(b *ir.Builder) { b.Scope("a", func() { b.Param("", ir.F32) }) },
		"a state that is outside": func(b *ir.Builder) { n := b.State("n", ir.F32); b.Scope("a", func() { b.SetState("n", n) }) },
		"a name taken":            func(b *ir.Builder) { b.Param("a/w", ir.F32); b.Scope("a", func() { b.Param("w", ir.F32) }) },
	} {
		_, err := ir.Build("g", build)
		var op *ir.OpError
		if !errors.As(err, &op) || !errors.Is(err, ir.ErrGraph) && !errors.Is(err, ir.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Layers are functions, or graphs that are called. A scope keeps the parameters of one
// distinct from those of the next.
func ExampleBuilder_Scope() {
	dense := func(b *ir.Builder, x ir.Value, out int) ir.Value {
		return ops.Linear(b, x, b.Param("w", ir.F32, x.Dim(-1), ir.N(out)), b.Param("b", ir.F32, ir.N(out)))
	}
	g, err := ir.Build("perceptron", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(8, 4)...)
		b.Scope("hidden", func() { x = ops.Relu(b, dense(b, x, 16)) })
		b.Scope("out", func() { x = dense(b, x, 3) })
		b.Output("logits", x)
	})
	if err != nil {
		panic(err)
	}
	for _, p := range g.Ports() {
		fmt.Println(p.Kind, p.Name, p.Value.Type())
	}
	// Output:
	// input x f32[8,4]
	// param hidden/w f32[4,16]
	// param hidden/b f32[16]
	// param out/w f32[16,3]
	// param out/b f32[3]
}
