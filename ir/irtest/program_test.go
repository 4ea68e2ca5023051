package irtest_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestEveryOpStandsInARandomProgram looks for ops that no program has.
func TestEveryOpStandsInARandomProgram(t *testing.T) {
	found := map[ir.Op]bool{}
	for n := range irtest.Programs(nil) {
		p := irtest.RandomProgram(n, nil)
		if _, err := ir.Eval(p.Graph, p.Inputs, ir.EvalOptions{Reference: true}); err != nil {
			t.Errorf("program %d: %v", n, err)
		}
		note(found, p.Graph)
	}
	for _, op := range ir.Ops() {
		if strings.HasPrefix(string(op), "test_") {
			continue // of tests beside this one
		}
		if !found[op] {
			t.Errorf("no program has %s", op)
		}
	}
}

func note(found map[ir.Op]bool, g *ir.Graph) {
	for _, n := range g.Nodes() {
		found[n.Op()] = true
		for _, s := range n.Subgraphs() {
			note(found, s)
		}
	}
}
