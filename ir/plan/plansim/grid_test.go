package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/plan"
)

// TestGridsOfManyRows runs random graphs on a device whose dispatches are short
// along each axis, so that workgroups are laid out in rows, the last of them
// with workgroups that have nothing to do.
func TestGridsOfManyRows(t *testing.T) {
	target := plan.WebGPU()
	target.Limits.Groups = 3
	eachRandomGraph(t, func(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array) {
		checkTwoRuns(t, g, inputs, target)
	})
}
