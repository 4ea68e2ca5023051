package ir

import (
	"errors"
	"strings"
	"testing"
)

func TestEval(t *testing.T) {
	g := build(t, func(b *Builder) {
		x := b.Input("x", F32, N(2))
		c := b.Constant(TypeOf(F32, N(2)), Floats(F32, []float64{10, 20}).Bytes())
		body := b.Subgraph("body", func(b *Builder) {
			b.Output("0", b.Add1(opAdd, nil, b.Input("p", F32, N(2)), b.Input("q", F32, N(2))))
		})
		y := b.AddNode(opCall, nil, []*Graph{body}, b.Add1(opTwice, nil, x), c)[0]
		parts := b.Add(opSplit, nil, y)
		b.Output("y", parts[0])
		b.Output("seven", parts[1])
	})
	out, err := Eval(g, map[string]*Array{"x": Floats(F32, []float64{1, 2})}, EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out[0].F[0] != 12 || out[0].F[1] != 24 || out[1].I[0] != 7 {
		t.Errorf("got %v %v", out[0], out[1])
	}
}

func TestReferenceModeDoesNotRound(t *testing.T) {
	g := build(t, func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, b.Input("x", F32))) })
	x := &Array{DType: F32, F: []float64{0.1}}
	for _, reference := range []bool{false, true} {
		out, err := Eval(g, map[string]*Array{"x": x}, EvalOptions{Reference: reference})
		if err != nil {
			t.Fatal(err)
		}
		if exact := out[0].F[0] == 0.2; exact != reference {
			t.Errorf("reference %v: got %v", reference, out[0].F[0])
		}
	}
}

func TestEvalRefuses(t *testing.T) {
	twice := build(t, func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, b.Input("x", F32, N(2)))) })
	symbolic := build(t, func(b *Builder) { b.Output("y", b.Input("x", F32, Sym("n"))) })
	liar := build(t, func(b *Builder) { b.Output("y", b.Add1(opLiar, nil, b.Input("x", F32))) })
	noMeaning := build(t, func(b *Builder) { b.Output("y", b.Add1(opShape, &shapeAttrs{})) })
	x2 := Floats(F32, []float64{1, 2})
	tests := []struct {
		name   string
		g      *Graph
		inputs map[string]*Array
		kind   error
		msg    string
	}{
		{"missing input", twice, nil, ErrName, `input "x": bad name: no value given`},
		{"nil input", twice, map[string]*Array{"x": nil}, ErrName, `input "x": bad name: no value given`},
		{"unknown input", twice, map[string]*Array{"x": x2, "y": x2}, ErrName, `unknown port "y"`},
		{"wrong dtype", twice, map[string]*Array{"x": Ints(I32, []int64{1, 2})}, ErrDType, `input "x": dtype mismatch: the value is i32[2]; it must be f32[2]`},
		{"wrong size", twice, map[string]*Array{"x": Floats(F32, []float64{1, 2, 3})}, ErrShape, "the value is f32[3]; it must be f32[2]"},
		{"wrong rank", twice, map[string]*Array{"x": Floats(F32, []float64{1, 2}, 1, 2)}, ErrShape, "the value is f32[1,2]; it must be f32[2]"},
		{"dims that lie", twice, map[string]*Array{"x": {DType: F32, Dims: []int{2}, F: []float64{1}}}, ErrShape, "1 elements"},
		{"elements of another kind", twice, map[string]*Array{"x": {DType: F32, Dims: []int{2}, I: []int64{1, 2}}}, ErrDType, "have another type"},
		{"symbolic size", symbolic, map[string]*Array{"x": x2}, ErrShape, "the value is f32[2]; it must be f32[n]"},
		{"meaning that does not keep to the shape rule", liar, map[string]*Array{"x": Float(F32, 1)}, ErrDType, "Eval, result 0"},
		{"no meaning", noMeaning, nil, ErrNoRule, "test.shape has no Eval"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Eval(tt.g, tt.inputs, EvalOptions{})
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.msg) {
				t.Errorf("got %v, want %v: …%s…", err, tt.kind, tt.msg)
			}
		})
	}
}
