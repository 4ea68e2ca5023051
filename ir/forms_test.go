package ir_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Nodes have one form exactly where their definitions see no difference between them.
func TestForms(t *testing.T) {
	var x, y, ints, column ir.Value
	for _, c := range []struct {
		name  string
		other func(b *ir.Builder) ir.Value
		same  bool
	}{
		{"another operand", func(b *ir.Builder) ir.Value { return ops.ReduceSum(b, y, 0) }, true},
		{"another label", func(b *ir.Builder) ir.Value { b.Label("sum"); return ops.ReduceSum(b, x, 0) }, true},
		{"another op", func(b *ir.Builder) ir.Value { return ops.ReduceMax(b, x, 0) }, false},
		{"another attribute", func(b *ir.Builder) ir.Value { return ops.ReduceSum(b, x, 1) }, false},
		{"another element type", func(b *ir.Builder) ir.Value { return ops.ReduceSum(b, ints, 0) }, false},
		{"another shape", func(b *ir.Builder) ir.Value { return ops.ReduceSum(b, column, 0) }, false},
	} {
		var a, b ir.Value
		_, err := ir.Build("g", func(bd *ir.Builder) {
			x, y = bd.Input("x", ir.F32, ir.Dims(3, 4)...), bd.Input("y", ir.F32, ir.Dims(3, 4)...)
			ints, column = bd.Input("ints", ir.I32, ir.Dims(3, 4)...), bd.Input("column", ir.F32, ir.Sym("n"), ir.N(4))
			a = ops.ReduceSum(bd, x, 0)
			b = c.other(bd)
			bd.Output("a", a)
			bd.Output("b", b)
		})
		if err != nil {
			t.Fatal(err)
		}
		f := ir.NewForms()
		if same := f.Of(a.Node()) == f.Of(b.Node()); same != c.same {
			t.Errorf("%s: one form is %t, want %t", c.name, same, c.same)
		}
		again := ir.NewForms()
		if again.Of(x.Node()); again.Text(again.Of(a.Node())) != f.Text(0) {
			t.Errorf("%s: the text of a form depends on what was asked for before", c.name)
		}
	}
}

// What the graphs of a node compute is part of its form.
func TestFormsOfSubgraphs(t *testing.T) {
	owning := func(b *ir.Builder, x ir.Value, yes ops.Branch) *ir.Node {
		no := func(_ *ir.Builder, in []ir.Value) []ir.Value { return in }
		return ops.Cond(b, ops.Gt(b, x, x), []ir.Value{x}, yes, no)[0].Node()
	}
	sin := func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Sin(b, in[0])} }
	cos := func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Cos(b, in[0])} }
	_, err := ir.Build("g", func(b *ir.Builder) {
		x, f := b.Input("x", ir.F32), ir.NewForms()
		one, again, other := f.Of(owning(b, x, sin)), f.Of(owning(b, x, sin)), f.Of(owning(b, x, cos))
		if one != again || one == other {
			t.Errorf("forms %d, %d of equal graphs and %d of another", one, again, other)
		}
		b.Output("x", x)
	})
	if err != nil {
		t.Fatal(err)
	}
}
