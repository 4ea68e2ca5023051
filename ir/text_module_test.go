package ir_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestModulesRoundTripAsText(t *testing.T) {
	graph := func(name string) *ir.Graph {
		g, err := ir.Build(name, func(b *ir.Builder) {
			b.Output("y", ops.Mul(b, b.Input("x", ir.F32, ir.Sym("n")), b.Param("w", ir.F32)))
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "train", Graph: graph("a")}, ir.Entry{Name: "eval", Graph: graph("b")})
	if err != nil {
		t.Fatal(err)
	}
	read, err := ir.ParseModule("m", m.String())
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Entries) != 2 || read.Entries[0].Name != "train" || read.Entries[1].Name != "eval" || read.String() != m.String() {
		t.Errorf("%s\nreads as\n%s", m, read)
	}
	one, err := ir.ParseModule("m", " // a comment\n"+graph("a").String())
	if err != nil || len(one.Entries) != 1 || one.Entries[0].Name != "a" {
		t.Errorf("%v, %v", one, err)
	}
}

func TestParseModuleRefuses(t *testing.T) {
	a := "graph \"a\" {\n  %0 = param \"w\" : f32[]\n  output \"y\" = %0\n}\n"
	for name, c := range map[string]struct {
		text string
		kind error
		line int
	}{
		"nothing":         {"", ir.ErrSyntax, 1},
		"text behind":     {a + "x", ir.ErrSyntax, 5},
		"twice":           {a + a, ir.ErrName, 1},
		"another type":    {a + "graph \"b\" {\n  %0 = param \"w\" : f32[2]\n  output \"y\" = %0\n}\n", ir.ErrShape, 1},
		"no outputs":      {"graph \"a\" {\n}\n", ir.ErrGraph, 1},
		"bad second":      {a + "graph \"b\" {\n  %0 = nope() : f32[]\n}\n", ir.ErrSyntax, 6},
		"no closing mark": {"graph \"a\" {", ir.ErrSyntax, 1},
	} {
		_, err := ir.ParseModule("m", c.text)
		var at *ir.SyntaxError
		if !errors.As(err, &at) || !errors.Is(err, c.kind) || at.Line != c.line {
			t.Errorf("%s: %v, not of kind %v in line %d", name, err, c.kind, c.line)
		}
	}
}
