package ir

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// here returns the line it is called from.
func here() int {
	_, _, line, _ := runtime.Caller(1)
	return line
}

func TestBuilderRefuses(t *testing.T) {
	f2, f3 := TypeOf(F32, N(2)), TypeOf(F32, N(3))
	other := build(t, func(b *Builder) { b.Output("x", b.Input("x", F32)) }).Ports()[0].Value
	persistent := build(t, func(b *Builder) { b.Output("x", b.Param("x", F32)) })
	tests := []struct {
		name  string
		build func(b *Builder)
		kind  error
		msg   string
	}{
		{"shapes that do not fit", func(b *Builder) {
			b.Add1(opAdd, nil, b.Port(InputPort, "x", f2), b.Port(InputPort, "y", f3))
		}, ErrShape, "test.add(f32[2], f32[3])"},
		{"dtypes that do not fit", func(b *Builder) { b.Add1(opAdd, nil, b.Input("x", F32), b.Input("y", I32)) }, ErrDType, "test.add(f32[], i32[])"},
		{"unknown op", func(b *Builder) { b.Add1("nope", nil) }, ErrName, `unknown op "nope"`},
		{"too few operands", func(b *Builder) { b.Add1(opAdd, nil, b.Input("x", F32)) }, ErrShape, "1 operands given; it needs 2"},
		{"too few of any number", func(b *Builder) { b.Add1(opFirst, nil) }, ErrShape, "0 operands given; it needs at least 1"},
		{"too many operands", func(b *Builder) {
			x := b.Input("x", F32)
			b.Add1(opAttrs, &allAttrs{}, x, x, x)
		}, ErrShape, "3 operands given; it needs 1 to 2"},
		{"zero Value", func(b *Builder) { b.Add1(opTwice, nil, Value{}) }, ErrGraph, "operand 0 is not a value"},
		{"value of another graph", func(b *Builder) { b.Add1(opTwice, nil, other) }, ErrGraph, "operand 0 belongs to another graph"},
		{"value of the outer graph", func(b *Builder) {
			x := b.Input("x", F32)
			b.Subgraph("s", func(b *Builder) { b.Add1(opTwice, nil, x) })
		}, ErrGraph, "belongs to another graph"},
		{"attributes missing", func(b *Builder) { b.Add1(opShape, nil) }, ErrAttr, "attributes"},
		{"attributes not wanted", func(b *Builder) { b.Add1(opTwice, &shapeAttrs{}, b.Input("x", F32)) }, ErrAttr, "attributes"},
		{"no subgraph given", func(b *Builder) { b.Add1(opCall, nil) }, ErrGraph, "0 subgraphs given; it needs 1"},
		{"nil subgraph", func(b *Builder) { b.AddNode(opCall, nil, []*Graph{nil}) }, ErrGraph, "no subgraph given"},
		{"persistent value in a subgraph", func(b *Builder) { b.AddNode(opCall, nil, []*Graph{persistent}) }, ErrGraph, `param "x" in subgraph`},
		{"results of a negative size", func(b *Builder) { b.Add1(opShape, &shapeAttrs{[]Dim{N(-1)}}) }, ErrShape, "axis 0"},
		{"no result", func(b *Builder) {
			b.AddNode(opCall, nil, []*Graph{b.Subgraph("empty", func(*Builder) {})})
		}, ErrGraph, "no result"},
		{"port made as an op", func(b *Builder) { b.Add1(OpPort, nil) }, ErrGraph, "its own method of Builder"},
		{"constant made as an op", func(b *Builder) { b.Add1(OpConstant, &ConstantAttrs{Type: f2}) }, ErrGraph, "its own method of Builder"},

		{"port without a name", func(b *Builder) { b.Param("", F32) }, ErrName, "the param has no name"},
		{"port named twice", func(b *Builder) { b.Input("x", F32); b.Param("x", F32) }, ErrName, `: param "x": bad name: "x" is declared twice, first as input f32[]`},
		{"port of no type", func(b *Builder) { b.Input("x", 0) }, ErrDType, `input "x"`},
		{"port of an unknown type", func(b *Builder) { b.Input("x", 200) }, ErrDType, `input "x"`},
		{"port of an unknown kind", func(b *Builder) { b.Port(9, "x", f2) }, ErrGraph, "unknown port kind 9"},
		{"port of a negative size", func(b *Builder) { b.Input("x", F32, N(2), N(-1)) }, ErrShape, "axis 1"},
		{"port of too many elements", func(b *Builder) { b.Input("x", F32, N(maxDim), N(2)) }, ErrShape, "too many elements"},
		{"port with a bad symbol", func(b *Builder) { b.Input("x", F32, Sym("a b")) }, ErrShape, "axis 0"},

		{"the output has no name", func(b *Builder) { b.Output("", b.Input("x", F32)) }, ErrName, "the output has no name"},
		{"output named twice", func(b *Builder) { x := b.Input("x", F32); b.Output("y", x); b.Output("y", x) }, ErrName, `: output "y": bad name: "y" is declared twice`},
		{"output of no value", func(b *Builder) { b.Output("y", Value{}) }, ErrGraph, "no value given"},
		{"output of another graph", func(b *Builder) { b.Output("y", other) }, ErrGraph, "another graph"},
		{"state without an update", func(b *Builder) { b.State("s", F32) }, ErrGraph, `state "s" of graph "g" has no new value`},
		{"update without a state", func(b *Builder) { b.SetState("x", b.Input("x", F32)) }, ErrName, `: state "x": bad name: unknown state "x"`},
		{"update of nothing", func(b *Builder) { b.UpdateState("x", func(now Value) Value { return now }) }, ErrName, `: state "x": bad name: unknown state "x"`},
		{"update by no function", func(b *Builder) { b.State("s", F32); b.UpdateState("s", nil) }, ErrGraph, `function`},
		{"update of another type", func(b *Builder) {
			b.State("s", F32)
			b.UpdateState("s", func(Value) Value { return b.Input("x", I32) })
		}, ErrDType, `state "s" is f32[], its new value i32[]`},
		{"state updated twice", func(b *Builder) { s := b.State("s", F32); b.SetState("s", s); b.SetState("s", s) }, ErrName, `"s" is declared twice`},
		{"update of another shape", func(b *Builder) { b.State("s", F32); b.SetState("s", b.Input("x", F32, N(1))) }, ErrShape, `state "s" is f32[], its new value f32[1]`},
		{"update of another dtype", func(b *Builder) { b.State("s", F32); b.SetState("s", b.Input("x", F16)) }, ErrDType, `state "s" is f32[]`},

		{"constant of the wrong length", func(b *Builder) { b.Constant(f2, make([]byte, 7)) }, ErrShape, "the constant has 7 bytes; f32[2] needs 8"},
		{"constant of symbolic size", func(b *Builder) { b.Constant(TypeOf(F32, Sym("n"), N(0)), nil) }, ErrShape, "symbolic"},
		{"constant of no type", func(b *Builder) { b.Constant(Type{}, nil) }, ErrDType, "constant"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := Build("g", tt.build)
			if g != nil || !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.msg) {
				t.Errorf("got %v, %v; want %v: …%s…", g, err, tt.kind, tt.msg)
			}
		})
	}
}

func TestErrorsNameThePlaceOfTheCaller(t *testing.T) {
	var line int
	_, err := Build("g", func(b *Builder) {
		x, y := b.Input("x", F32), b.Input("y", I32)
		b.Label("loss")
		line = here() + 1
		b.Add1(opAdd, nil, x, y)
	})
	var e *OpError
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	if !strings.HasSuffix(e.Pos.File, "builder_test.go") || e.Pos.Line != line {
		t.Errorf("the place is %s, want line %d", e.Pos, line)
	}
	if e.Label != "loss" || e.Op != opAdd || len(e.In) != 2 {
		t.Errorf("got %+v", e)
	}
	want := fmt.Sprintf(":%d: test.add %q(f32[], i32[]): dtype mismatch: f32[] and i32[]", line, "loss")
	if !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %q, want …%q", err, want)
	}
}

func TestNodesRecordTheirPosition(t *testing.T) {
	var line int
	g := build(t, func(b *Builder) {
		line = here() + 1
		x := b.Input("x", F32)
		b.Constant(TypeOf(Bool), []byte{1})
		b.Add1(opTwice, nil, x)
		b.At(Pos{"model.go", 7})
		b.Add1(opTwice, nil, x)
		b.Output("x", x)
	})
	for i, want := range []int{line, line + 1, line + 2, 7} {
		if got := g.Nodes()[i].Pos().Line; got != want {
			t.Errorf("node %d is at line %d, want %d", i, got, want)
		}
	}
}

func TestOnlyTheFirstErrorCounts(t *testing.T) {
	first := errors.New("first")
	_, err := Build("g", func(b *Builder) {
		b.Fail(first)
		b.Fail(errors.New("second"))
		x := b.Input("x", F32)
		y := b.Add(opSplit, nil, x)[1] // panics: there is one zero Value
		b.Output("y", y)
	})
	if err != first {
		t.Errorf("got %v", err)
	}
}

func TestPanicWithoutAnErrorIsPassedOn(t *testing.T) {
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("recovered %v", r)
		}
	}()
	_, _ = Build("g", func(*Builder) { panic("mine") })
	t.Error("no panic")
}

func TestGraphBuiltOverManyCalls(t *testing.T) {
	b, finish := NewBuilder("g")
	b.Output("y", b.Add1(opTwice, nil, b.Input("x", F32)))
	g, err := finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(g); err != nil || g.Name() != "g" || len(g.Nodes()) != 2 {
		t.Errorf("got %s, %v", g, err)
	}
}

func TestErrorInASubgraphFailsTheGraph(t *testing.T) {
	_, err := Build("g", func(b *Builder) {
		s := b.Subgraph("s", func(b *Builder) { b.Output("y", b.Add1("nope", nil)) })
		b.Output("y", b.AddNode(opCall, nil, []*Graph{s})[0])
	})
	if !errors.Is(err, ErrName) {
		t.Errorf("got %v", err)
	}
}

func TestABuiltGraphDoesNotChange(t *testing.T) {
	var kept *Builder
	data := []byte{1, 2, 3, 4}
	g := build(t, func(b *Builder) {
		kept = b
		b.Output("c", b.Constant(TypeOf(I32), data))
	})
	before := g.String()
	data[0] = 9
	kept.Output("late", kept.Input("late", F32))
	if kept.Err() == nil {
		t.Error("the builder takes nodes after its graph is built")
	}
	if g.String() != before {
		t.Errorf("the graph is now %s", g)
	}
}

func TestCopyKeepsLabelAndPlace(t *testing.T) {
	g := build(t, func(b *Builder) {
		b.Label("weights")
		b.At(Pos{"model.go", 7})
		b.Output("y", b.Add1(opTwice, nil, b.Constant(TypeOf(F32), make([]byte, 4))))
	})
	copied := build(t, func(b *Builder) {
		out := b.Splice(g, nil)
		b.Output("y", out[0])
	})
	for _, n := range copied.Nodes() {
		if n.Label() != "weights" || n.Pos() != (Pos{"model.go", 7}) {
			t.Errorf("%s has label %q and place %s", n.Op(), n.Label(), n.Pos())
		}
	}
}

func TestAddSamples(t *testing.T) {
	op := Op("test.sampled")
	if err := AddSamples(op, nil); !errors.Is(err, ErrName) {
		t.Errorf("an op that is not registered: %v", err)
	}
	if err := Register(&Def{Op: op, Infer: sameTypes, Lower: &ControlLowering{}, NoGrad: "a test"}); err != nil {
		t.Fatal(err)
	}
	samples := func() []Sample { return []Sample{{Name: "one"}} }
	if err := AddSamples(op, samples); err != nil {
		t.Fatal(err)
	}
	if d, _ := Lookup(op); d.Samples()[0].Name != "one" {
		t.Error("the samples are not those added")
	}
	if err := AddSamples(op, samples); !errors.Is(err, ErrName) {
		t.Errorf("samples added twice: %v", err)
	}
}

func TestRegisterRefusesNames(t *testing.T) {
	for _, op := range []Op{"", "input", "param", "state", OpPort, OpConstant, opAdd, "a b", "a(", "ü"} {
		if err := Register(&Def{Op: op, Infer: sameTypes, Lower: &ControlLowering{}, NoGrad: "a test"}); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", op, err)
		}
	}
}
