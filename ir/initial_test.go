package ir_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func normal(deviation float64) ir.Initial {
	return ir.Initial{Rule: "normal", Args: []float64{0, deviation}}
}

// TestPortsKeepTheirOptions follows options through the text form, calls and bindings, and asserts
// that a graph with other options has the same hash.
func TestPortsKeepTheirOptions(t *testing.T) {
	form := func(o ir.PortOptions) *ir.Graph {
		g, err := ir.Build("g", func(b *ir.Builder) {
			w := b.ParamWith("w", o, ir.F32, ir.N(3))
			s := b.StateWith("s", ir.PortOptions{Initial: o.Initial}, ir.F32, ir.N(3))
			b.SetState("s", ops.Add(b, s, w))
			b.Output("y", ops.Mul(b, b.Input("x", ir.F32, ir.Sym("n"), ir.N(3)), ops.BroadcastInDim(b, w, ir.Shape{ir.Sym("n"), ir.N(3)}, []int{1})))
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	o := ir.PortOptions{Initial: normal(0.5), Frozen: true}
	g := form(o)
	if plain := form(ir.PortOptions{}); plain.Hash() != g.Hash() || !plain.Equal(g) {
		t.Error("options change the hash")
	}
	if text := g.String(); !strings.Contains(text, `param "w" : f32[3] init normal(0,0.5) frozen`) || !strings.Contains(text, `state "s" : f32[3] init normal(0,0.5)`) {
		t.Errorf("the text form is\n%s", text)
	}
	parsed, err := ir.Parse(strings.Replace(g.String(), "normal(0,0.5)", "normal ( 0 , 5e-1 )", 1))
	if err != nil {
		t.Fatal(err)
	}
	bound, err := g.Bind(map[string]int{"n": 2})
	if err != nil {
		t.Fatal(err)
	}
	called, err := ir.Build("outer", func(b *ir.Builder) {
		b.Scope("in", func() {
			b.Output("y", b.Call(g, map[string]ir.Value{"x": b.Input("x", ir.F32, ir.Dims(4, 3)...)})["y"])
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		g      *ir.Graph
		prefix string
	}{{parsed, ""}, {bound, ""}, {called, "in/"}} {
		w, _ := c.g.Port(c.prefix + "w")
		s, _ := c.g.Port(c.prefix + "s")
		if got := w.Options(); !got.Initial.Equal(o.Initial) || !got.Frozen || !s.Options().Initial.Equal(o.Initial) || s.Options().Frozen {
			t.Errorf("graph %s has w %+v, s %+v", c.g.Name(), got, s.Options())
		}
	}
	if (ir.Port{}).Options().Frozen {
		t.Error("no port is frozen")
	}
}

// TestBadRulesAreRefused gives rules that do not exist or whose numbers are outside their domain, to
// the builder and in the text form.
func TestBadRulesAreRefused(t *testing.T) {
	for _, rule := range []ir.Initial{
		{Rule: "gaussian"},
		{Rule: "normal"},
		normal(-1),
		{Args: []float64{1}},
		{Rule: "uniform", Args: []float64{2, 1}},
		{Rule: "truncated_normal", Args: []float64{0, 1, 3, 2}},
		{Rule: "softplus_inverse", Args: []float64{0, 1}},
		{Rule: "orthogonal", Args: []float64{1, 0.5}},
		{Rule: "he_normal", Args: []float64{1}},
	} {
		_, err := ir.Build("g", func(b *ir.Builder) {
			b.Output("w", b.ParamWith("w", ir.PortOptions{Initial: rule}, ir.F32, ir.N(3)))
		})
		if op := (*ir.OpError)(nil); !errors.Is(err, ir.ErrAttr) || !errors.As(err, &op) || op.Label != "w" {
			t.Errorf("%v: %v", rule, err)
		}
		if rule.Rule == "" {
			continue
		}
		text := "graph \"g\" {\n  %0 = param \"w\" : f32[3] init " + rule.String() + "\n  output \"w\" = %0\n}\n"
		if _, err := ir.Parse(text); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"init", "init normal(0", "init normal(0,x)", "init normal(0 1)", "frozen init key"} {
		if _, err := ir.Parse("graph \"g\" {\n  %0 = param \"w\" : f32[3] " + text + "\n  output \"w\" = %0\n}\n"); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// TestContextAndScopes sets context values, and declares outside of all scopes.
func TestContextAndScopes(t *testing.T) {
	type key struct{}
	_, err := ir.Build("g", func(b *ir.Builder) {
		if b.Context(key{}) != nil {
			t.Error("a new builder has a context")
		}
		b.SetContext(key{}, 7)
		b.Scope("outer", func() {
			if name := b.ScopeName(); name != "outer" {
				t.Errorf("the scope is %q", name)
			}
			b.Unscoped(func() {
				b.Output("y", ops.Neg(b, b.Param("w", ir.F32)))
				if name := b.ScopeName(); name != "" {
					t.Errorf("outside of scopes the scope is %q", name)
				}
			})
			b.Param("v", ir.F32)
			b.Subgraph("inner", func(s *ir.Builder) {
				if s.Context(key{}) != nil {
					t.Error("a subgraph has the context")
				}
			})
		})
		if b.Context(key{}) != 7 {
			t.Errorf("the context is %v", b.Context(key{}))
		}
		for _, name := range []string{"w", "outer/v"} {
			if p, ok := b.Declared(name); !ok || p.Name != name || p.Kind != ir.ParamPort {
				t.Errorf("%q is declared as %v", name, p)
			}
		}
		if _, ok := b.Declared("v"); ok || len(b.Ports()) != 2 {
			t.Errorf("%d ports, v among them: %t", len(b.Ports()), ok)
		}
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := ir.Build("g", func(b *ir.Builder) { b.Unscoped(nil) }); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("no function: %v", err)
	}
}
