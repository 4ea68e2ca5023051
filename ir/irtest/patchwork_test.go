package irtest_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestPatchworksCoverEveryOp looks for ops that no patchwork has.
func TestPatchworksCoverEveryOp(t *testing.T) {
	found := map[ir.Op]bool{}
	for n := range irtest.Patchworks(nil) {
		p := irtest.RandomPatchwork(n, nil)
		if _, err := ir.Eval(p.Graph, p.Inputs, ir.EvalOptions{Reference: true}); err != nil {
			t.Errorf("patchwork %d: %v", n, err)
		}
		note(found, p.Graph)
	}
	for _, op := range ir.Ops() {
		if strings.HasPrefix(string(op), "test_") {
			continue // of tests beside this one
		}
		if !found[op] {
			t.Errorf("no patchwork has %s", op)
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
