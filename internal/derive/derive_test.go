package derive_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func build(t *testing.T, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build("f", f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func opsOf(g *ir.Graph) []string {
	var out []string
	for _, n := range g.Nodes() {
		if n.Op() != ir.OpPort {
			out = append(out, string(n.Op()))
		}
	}
	return out
}

func names(g *ir.Graph) []string {
	var out []string
	for _, p := range g.Ports() {
		out = append(out, p.Name)
	}
	return out
}

func TestSplitComputesKnownValuesOnce(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, y, t := b.Input("x", ir.F32, ir.N(2)), b.Input("y", ir.F32, ir.N(2)), b.Input("t", ir.F32, ir.N(2))
		e := ops.Exp(b, x)
		b.Output("known", ops.Add(b, e, y))
		b.Output("linear", ops.Mul(b, ops.Mul(b, t, e), ops.ConstLike(b, e, 3)))
		b.Output("by port", ops.Mul(b, t, y))
		b.Output("unused twin", ops.Sin(b, x))
	})
	h, err := derive.PartialEval(g, []bool{false, false, true}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []bool{false, true, true, false}; !slices.Equal(h.OutUnknown, want) {
		t.Errorf("unknown outputs %v, want %v", h.OutUnknown, want)
	}
	// exp passes between the halves, y is a separate port, 3 is added again.
	ports := slices.Clone(h.ResidualPort)
	slices.Sort(ports)
	if want := []int{-1, 1}; !slices.Equal(ports, want) {
		t.Errorf("residuals are ports %v, want %v", ports, want)
	}
	if want := []string{"exp", "add", "sin"}; !slices.Equal(opsOf(h.Known), want) {
		t.Errorf("known half %q, want %q", opsOf(h.Known), want)
	}
	if got := opsOf(h.Linear); slices.Contains(got, "exp") || !slices.Contains(got, "constant") {
		t.Errorf("linear half %q", got)
	}
	if n := len(h.Known.Outputs()); n != 2+h.Residuals() {
		t.Errorf("known half has %d outputs", n)
	}
}

func TestSplitKeepsForcedOutputsWithTheUnknown(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32)
		b.Input("t", ir.F32)
		b.Output("zero", ops.ZerosLike(b, x))
		b.Output("port", x)
	})
	h, err := derive.PartialEval(g, []bool{false, true}, []bool{true, true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Linear.Outputs()) != 2 || !slices.Equal(h.ResidualPort, []int{0}) || !slices.Equal(names(h.Linear), []string{"residual0", "1"}) {
		t.Errorf("linear half has %d outputs, ports %q, residuals %v", len(h.Linear.Outputs()), names(h.Linear), h.ResidualPort)
	}
}

func TestTransposeRefusesNonlinearGraphs(t *testing.T) {
	g := build(t, func(b *ir.Builder) { b.Output("y", ops.Exp(b, b.Input("t", ir.F32))) })
	_, err := ir.Build("transposed", func(b *ir.Builder) {
		ct := b.Input("ct", ir.F32)
		derive.Transpose(b, g, []bool{true}, []ir.Value{{}}, []ir.Value{ct})
	})
	if !errors.Is(err, ir.ErrNoRule) || !strings.Contains(err.Error(), "derive_test.go") {
		t.Errorf("error %v, want one of kind ErrNoRule with the place of exp", err)
	}
}

func TestZeroCotangentsMakeNoNodes(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		u, v := b.Input("u", ir.F32), b.Input("v", ir.F32)
		b.Output("y", ops.Neg(b, u))
		b.Output("z", ops.Neg(b, v))
	})
	var back []ir.Value
	d := build(t, func(b *ir.Builder) {
		ct := b.Input("ct", ir.F32)
		back = derive.Transpose(b, g, []bool{true, true}, make([]ir.Value, 2), []ir.Value{ct, {}})
	})
	if !back[0].Valid() || back[1].Valid() || !slices.Equal(opsOf(d), []string{"neg"}) {
		t.Errorf("cotangents %v from nodes %q", back, opsOf(d))
	}
}

func TestBlockersAreTheNodesThatStopEveryPath(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32)
		b.Output("y", ops.Convert(b, ops.Gt(b, ops.Exp(b, x), ops.ConstLike(b, x, 1)), ir.F32))
		b.Output("z", ops.Floor(b, x))
		b.Output("w", ops.Sin(b, x))
	})
	for output, want := range []string{"gt", "floor", ""} {
		got := ""
		for _, n := range derive.Blockers(g, 0, output) {
			got += string(n.Op())
		}
		if got != want {
			t.Errorf("output %d is cut at %q, want %q", output, got, want)
		}
	}
}

func TestDerivedNodesHaveThePlaceAndLabelOfTheirOrigin(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32)
		b.Label("activation")
		b.Output("y", ops.Gelu(b, x))
	})
	origin := g.Outputs()[0].Value.Node()
	d := build(t, func(b *ir.Builder) {
		x, dx := b.Input("x", ir.F32), b.Input("dx", ir.F32)
		derive.JVP(b, g, []ir.Value{x}, []ir.Value{dx})
	})
	if len(d.Nodes()) < 5 {
		t.Fatalf("only %d nodes", len(d.Nodes()))
	}
	for _, n := range d.Nodes() {
		if n.Op() != ir.OpPort && n.Op() != ir.OpConstant && (n.Pos() != origin.Pos() || n.Label() != "activation") {
			t.Errorf("%s %q is placed at %s, want %s", n.Op(), n.Label(), n.Pos(), origin.Pos())
		}
	}
}

// Ops with rules that break their contract.
func init() {
	same := func(n *ir.Node) ([]ir.Type, error) { return n.InTypes(), nil }
	wide := func(b *ir.Builder, v ir.Value) ir.Value { return ops.BroadcastTo(b, v, ir.Dims(7)) }
	for _, d := range []*ir.Def{
		{
			Op: "wrong_rules", Operands: []string{"x"}, Infer: same, Lower: &ir.ControlLowering{},
			JVP: func(b *ir.Builder, _ *ir.Node, _, _, t []ir.Value) []ir.Value { return []ir.Value{wide(b, t[0])} },
			Transpose: func(b *ir.Builder, _ *ir.Node, _ []bool, _, ct []ir.Value) []ir.Value {
				return []ir.Value{wide(b, ct[0])}
			},
			Batch: func(_ *ir.Builder, _ *ir.Node, in []ir.Value, _ []int, _ ir.Dim) ([]ir.Value, []int) {
				return in, []int{-1}
			},
		},
		{
			Op: "no_rules", Operands: []string{"x"}, Infer: same, Lower: &ir.ControlLowering{},
			NoGrad: "a test", NoTranspose: "a test", NoBatch: "a test",
		},
	} {
		if err := ir.Register(d); err != nil {
			panic(err)
		}
	}
}

func TestRulesThatBreakTheirContractAreFound(t *testing.T) {
	one := func(op ir.Op) *ir.Graph {
		return build(t, func(b *ir.Builder) { b.Output("y", b.Add1(op, nil, b.Input("x", ir.F32))) })
	}
	for _, c := range []struct {
		name string
		f    func(b *ir.Builder)
		want error
	}{
		{"jvp of a wrong type", func(b *ir.Builder) {
			x := b.Input("x", ir.F32)
			derive.JVP(b, one("wrong_rules"), []ir.Value{x}, []ir.Value{x})
		}, ir.ErrShape},
		{"transpose of a wrong type", func(b *ir.Builder) {
			x := b.Input("x", ir.F32)
			derive.Transpose(b, one("wrong_rules"), []bool{true}, []ir.Value{{}}, []ir.Value{x})
		}, ir.ErrShape},
		{"batching of a wrong type", func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.N(2))
			derive.Batch(b, one("wrong_rules"), []ir.Value{x}, []int{0}, ir.N(2))
		}, ir.ErrShape},
		{"no batching", func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.N(2))
			derive.Batch(b, one("no_rules"), []ir.Value{x}, []int{0}, ir.N(2))
		}, ir.ErrNoRule},
		{"no transpose", func(b *ir.Builder) {
			x := b.Input("x", ir.F32)
			derive.Transpose(b, one("no_rules"), []bool{true}, []ir.Value{{}}, []ir.Value{x})
		}, ir.ErrNoRule},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := ir.Build("f", c.f); !errors.Is(err, c.want) {
				t.Errorf("error %v, want one of kind %q", err, c.want)
			}
		})
	}
}
