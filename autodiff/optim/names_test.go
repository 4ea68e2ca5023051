package optim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// lossOf returns a loss of some parameters; the last ones are only read.
func lossOf(t *testing.T, params ...string) *ir.Graph {
	t.Helper()
	g, err := ir.Build("loss", func(b *ir.Builder) {
		var sum ir.Value
		for _, name := range params {
			w := b.Param(name, ir.F32, ir.N(2))
			if sum.Valid() {
				w = ops.Add(b, sum, w)
			}
			sum = w
		}
		b.Output("loss", ops.ReduceSum(b, ops.Square(b, sum)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func stepOf(t *testing.T, loss *ir.Graph, o optim.Options) *ir.Graph {
	t.Helper()
	g, err := optim.Step(loss, "loss", optim.Adam{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Two steps of one module that train different parameters must not share a counter; those
// that train the same ones may.
func TestCheckDistinguishesOptimisers(t *testing.T) {
	loss := lossOf(t, "gen/w", "dis/w")
	gen := optim.Options{Frozen: []string{"dis"}}
	dis := optim.Options{Frozen: []string{"gen"}}
	named := optim.Options{Frozen: []string{"gen"}, Name: "dis"}
	init, err := optim.Init(stepOf(t, loss, gen))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		second  *ir.Graph
		refused bool
	}{
		{"other parameters", stepOf(t, loss, dis), true},
		{"other parameters and a name", stepOf(t, loss, named), false},
		{"the same parameters", stepOf(t, loss, gen), false},
		{"an entry that begins anew", init, false},
	} {
		m, err := ir.NewModule("gan", ir.Entry{Name: "generate", Graph: stepOf(t, loss, gen)}, ir.Entry{Name: "second", Graph: c.second})
		if err != nil {
			t.Fatal(err)
		}
		err = optim.Check(m)
		if !c.refused {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), `"generate"`) || !strings.Contains(err.Error(), `"second"`) {
			t.Errorf("%s: %v does not name both entries", c.name, err)
		}
	}
}

func TestStatesOfANamedOptimizer(t *testing.T) {
	g := stepOf(t, lossOf(t, "w"), optim.Options{Name: "gen", Accumulate: 2, Average: 0.9, Scale: &optim.LossScale{}})
	for _, p := range g.Ports() {
		if optim.IsState(p) && !strings.HasPrefix(p.Name, "optim/gen:") {
			t.Errorf("state %q lacks the name", p.Name)
		}
	}
	for name, want := range map[string]bool{
		"optim/step": true, "optim/gen:step": true, "optim/m/step": false, "optim/m/a:step": false, "step": false, "optim/gen:m/step": false,
	} {
		if optim.IsStepState(name) != want {
			t.Errorf("IsStepState(%q) is %t", name, !want)
		}
	}
	if _, err := optim.Step(lossOf(t, "w"), "loss", optim.Adam{}, optim.Options{Name: "a/b"}); !errors.Is(err, ir.ErrName) {
		t.Errorf("a name with a slash: %v", err)
	}
}

func TestGroupsWithoutMatchesAreRefused(t *testing.T) {
	loss := lossOf(t, "head/w", "body/w")
	for name, g := range map[string]optim.Group{
		"misspelt": {Match: func(name string) bool { return strings.HasPrefix(name, "heads/") }},
		"frozen":   {Match: func(name string) bool { return name == "body/w" }},
	} {
		_, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Frozen: []string{"body"}, Groups: []optim.Group{g}})
		if !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), "group 0") || !strings.Contains(err.Error(), "head/w") {
			t.Errorf("%s: %v", name, err)
		}
	}
	hidden := []optim.Group{{Match: optim.Matching("head")}, {Match: optim.Matching("head/w")}}
	if _, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Groups: hidden}); !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), "group 1") {
		t.Errorf("a group after a wider one: %v", err)
	}
	if _, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Groups: []optim.Group{{}}}); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("a group without Match: %v", err)
	}
}
