package ir

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestGraphFindsThingsByName(t *testing.T) {
	g := everything(t)
	if p, ok := g.Port("w"); !ok || p.Kind != ParamPort || p.Value != g.Nodes()[1].Result(0) {
		t.Errorf("port w is %+v, %v", p, ok)
	}
	if _, ok := g.Port("y"); ok {
		t.Error("an output is found as a port")
	}
	if o, ok := g.Output("y"); !ok || o.Value.DType() != I32 {
		t.Errorf("output y is %+v, %v", o, ok)
	}
	if _, ok := g.Output("m\n\"quoted\""); ok {
		t.Error("a state update is found as an output")
	}
	if s := g.Symbols(); !slices.Equal(s, []string{"batch"}) {
		t.Errorf("symbols are %v", s)
	}
}

func TestUsesAreWithoutRepetition(t *testing.T) {
	g := build(t, func(b *Builder) {
		x := b.Input("x", F32)
		y := b.Add1(opAdd, nil, x, x)
		b.Output("z", b.Add1(opAdd, nil, y, x))
	})
	uses := g.Uses()
	n := g.Nodes()
	if !slices.Equal(uses[0], []*Node{n[1], n[2]}) || !slices.Equal(uses[1], []*Node{n[2]}) || len(uses[2]) != 0 {
		t.Errorf("got %v", uses)
	}
}

func TestValueDim(t *testing.T) {
	g := build(t, func(b *Builder) { b.Output("x", b.Input("x", F32, N(2), Sym("n"))) })
	v := g.Ports()[0].Value
	for axis, want := range map[int]Dim{0: N(2), 1: Sym("n"), -1: Sym("n"), -2: N(2), 2: invalidDim, -3: invalidDim} {
		if got := v.Dim(axis); got != want {
			t.Errorf("axis %d is %s, want %s", axis, got, want)
		}
	}
	if (Value{}).Dim(0).Valid() || (Value{}).Rank() != 0 || (Value{}).Type().DType != 0 {
		t.Error("the zero Value has a type")
	}
}

func TestNewModule(t *testing.T) {
	graph := func(kind PortKind, d DType, axes ...Dim) *Graph {
		return build(t, func(b *Builder) {
			w := b.Port(kind, "w", TypeOf(d, axes...))
			b.Output("y", w)
			if kind == StatePort {
				b.SetState("w", w)
			}
		})
	}
	f, other := graph(StatePort, F32, N(2)), graph(ParamPort, F32, N(2))
	tests := []struct {
		name    string
		entries []Entry
		kind    error
	}{
		{"shared state and parameter", []Entry{{"step", f}, {"eval", other}}, nil},
		{"input of the same name", []Entry{{"step", f}, {"eval", graph(InputPort, I32)}}, nil},
		{"two entries of one name", []Entry{{"step", f}, {"step", other}}, ErrName},
		{"entry without a name", []Entry{{"", f}}, ErrName},
		{"entry without a graph", []Entry{{"step", nil}}, ErrGraph},
		{"entry that computes nothing", []Entry{{"step", build(t, func(b *Builder) { b.Input("x", F32) })}}, ErrGraph},
		{"different shapes", []Entry{{"step", f}, {"eval", graph(ParamPort, F32, N(3))}}, ErrShape},
		{"different dtypes", []Entry{{"step", f}, {"eval", graph(ParamPort, F16, N(2))}}, ErrDType},
	}
	for _, tt := range tests {
		if m, err := NewModule("m", tt.entries...); !errors.Is(err, tt.kind) || (m == nil) != (err != nil) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.kind)
		}
	}
}

func TestBind(t *testing.T) {
	g := everything(t)
	bound, err := g.Bind(map[string]int{"batch": 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(bound); err != nil {
		t.Error(err)
	}
	if len(bound.Symbols()) != 0 || !bound.Ports()[0].Value.Shape().Equal(Dims(3, 4)) {
		t.Errorf("got %s", bound)
	}
	if n := bound.Nodes()[4].Attrs().(*allAttrs).N[1]; !n.Is(6) {
		t.Errorf("batch*batch-3 is bound to %s", n)
	}
	if p := bound.Nodes()[7].Subgraphs()[0].Ports()[0]; !p.Value.Shape().Equal(Dims(3, 4)) {
		t.Errorf("in the subgraph %s has shape %s", p.Name, p.Value.Shape())
	}
	if l := bound.Nodes()[3].Label(); l != "sum of x and w" {
		t.Errorf("the label is %q", l)
	}
	for i, n := range bound.Nodes() {
		if want := g.Nodes()[i].Pos(); n.Pos() != want {
			t.Errorf("%s has moved from %s to %s", n.Op(), want, n.Pos())
		}
	}
	if n := g.Nodes()[4].Attrs().(*allAttrs).N[1]; n.String() != "batch*batch-3" {
		t.Errorf("Bind has changed the graph it was given: %s", n)
	}
}

func TestBindRefuses(t *testing.T) {
	g := everything(t)
	half := build(t, func(b *Builder) { b.Output("x", b.Input("x", F32, parseDim(t, "n/2"))) })
	tests := []struct {
		name   string
		g      *Graph
		values map[string]int
		kind   error
	}{
		{"symbol missing", g, nil, ErrSymbol},
		{"negative symbol", g, map[string]int{"batch": -1}, ErrShape},
		{"negative size in an attribute", g, map[string]int{"batch": 1}, ErrShape},
		{"half of an odd number", half, map[string]int{"n": 3}, ErrShape},
	}
	for _, tt := range tests {
		if bound, err := tt.g.Bind(tt.values); bound != nil || !errors.Is(err, tt.kind) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.kind)
		}
	}
}

func TestSpliceTakesPortsInOrder(t *testing.T) {
	inner := build(t, func(b *Builder) {
		x, y := b.Input("x", F32), b.Input("y", F32)
		b.Output("y", y)
		b.Output("sum", b.Add1(opAdd, nil, x, y))
	})
	g := build(t, func(b *Builder) {
		p, q := b.Input("p", F32), b.Input("q", F32)
		for i, v := range b.Splice(inner, []Value{p, q}) {
			b.Output(itoa(i), v)
		}
	})
	if g.Outputs()[0].Value != g.Ports()[1].Value {
		t.Error("a port that is an output is not passed through")
	}
	if in := g.Outputs()[1].Value.Node().Inputs(); in[0] != g.Ports()[0].Value || in[1] != g.Ports()[1].Value {
		t.Errorf("operands are %v", in)
	}
	_, err := Build("g", func(b *Builder) { b.Splice(inner, []Value{b.Input("p", F32)}) })
	if !errors.Is(err, ErrGraph) {
		t.Errorf("a missing operand gives %v", err)
	}
}

func TestCopyAttrsDoesNotShareMemory(t *testing.T) {
	g := everything(t)
	c := CopyAttrs(g.Nodes()[4]).(*allAttrs)
	text := FormatAttrs(c)
	if text != FormatAttrs(g.Nodes()[4].Attrs()) {
		t.Errorf("the copy is %s", text)
	}
	c.L[0], c.N[0] = 99, N(99)
	if FormatAttrs(g.Nodes()[4].Attrs()) != text {
		t.Error("the copy shares a list with the node")
	}
	port, constant := g.Nodes()[0], g.Nodes()[6]
	if CopyAttrs(port) != port.Attrs() || CopyAttrs(constant) != constant.Attrs() {
		t.Error("ports and constants")
	}
}

func TestInline(t *testing.T) {
	g := build(t, func(b *Builder) {
		b.Label("double")
		b.At(Pos{"model.go", 3})
		b.Output("y", b.Add1(opTwice, nil, b.Input("x", F32)))
	})
	body, err := Inline(g.Nodes()[1])
	if err != nil {
		t.Fatal(err)
	}
	want := "graph \"test.twice\" {\n  %0 = input \"0\" : f32[]\n  %1 = test.add(%0, %0) : f32[] #\"double\"\n  output \"0\" = %1\n}\n"
	if body.String() != want {
		t.Errorf("the body is %s", body)
	}
	if _, err := Inline(build(t, func(b *Builder) { b.Output("y", b.Add1(opFirst, nil, b.Input("x", F32))) }).Nodes()[1]); !errors.Is(err, ErrNoRule) {
		t.Errorf("a primitive gives %v", err)
	}
}

func TestANodePrintsItsOpItsNameAndItsTypes(t *testing.T) {
	g := build(t, func(b *Builder) {
		w := b.Param("w", F32, N(3), Sym("batch"))
		b.Label("head")
		b.Output("z", b.Add1(opAdd, nil, w, w))
	})
	for i, want := range []string{`param "w" f32[3,batch]`, `test.add "head" f32[3,batch]`} {
		if got := fmt.Sprintf("%v %s", g.Nodes()[i], g.Nodes()[i]); got != want+" "+want {
			t.Errorf("node %d prints as %s, not %s", i, got, want)
		}
	}
	if got := fmt.Sprint((*Node)(nil)); got != "no node" {
		t.Errorf("nil prints as %s", got)
	}
}
