package ops_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/ir"
)

// held are the ops of graphs whose results tests compare with values from elsewhere:
// other systems, tables, numbers worked out by hand.
var held sync.Map

// evalHeld evaluates a graph for a comparison with such values.
func evalHeld(g *ir.Graph, in map[string]*ir.Array, o ir.EvalOptions) ([]*ir.Array, error) {
	hold(g)
	return ir.Eval(g, in, o)
}

// runHeld is evalHeld of inputs in their order, in the arithmetic of f64.
func runHeld(t *testing.T, g *ir.Graph, in []*ir.Array) []*ir.Array {
	t.Helper()
	hold(g)
	return run(t, g, in)
}

func hold(g *ir.Graph) {
	for _, n := range g.Nodes() {
		held.Store(n.Op(), true)
		for _, s := range n.Subgraphs() {
			hold(s)
		}
	}
}

// heldElsewhere are ops whose values other packages compare, or that have none.
var heldElsewhere = map[ir.Op]string{
	"attention_backward": "cotangents: autodiff compares models with JAX, and all derivatives with differences",
	"checkpoint":         "the value is that of the graph it is given: autodiff, checkpoint_loops_test.go",
	"custom_jvp":         "the value is that of the graph it is given: autodiff, custom_test.go",
	"custom_vjp":         "the value is that of the graph it is given: autodiff, custom_test.go",
	"dft":                "what fft, rfft and irfft come to: golden_spectra_test.go evaluates their bodies",
	"fake_quant_lsq":     "PyTorch: autodiff, estimators_test.go",
	"linear_call":        "the value is that of the graph it is given: autodiff, custom_test.go",
	"rematerialize":      "x itself: autodiff, checkpoint_test.go",
	"stop_gradient":      "x itself: autodiff, closed_test.go",
	"check_index":        "x itself, or an error, which refusal_test.go asks for",
}

// TestMain looks, after all tests have passed, for ops that none of them holds to a
// value from elsewhere.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""; code == 0 && whole {
		if missing := withoutValues(); len(missing) > 0 {
			fmt.Fprintln(os.Stderr, "no test compares these ops with values from elsewhere:", strings.Join(missing, ", "))
			code = 1
		}
	}
	os.Exit(code)
}

func withoutValues() []string {
	var out []string
	for _, op := range ir.Ops() {
		_, compared := held.Load(op)
		if _, excused := heldElsewhere[op]; !compared && !excused {
			out = append(out, string(op))
		}
	}
	slices.Sort(out)
	return out
}
