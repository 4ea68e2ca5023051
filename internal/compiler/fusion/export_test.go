package fusion

import "github.com/rlx-go/rlx/ir"

// OnePass rewrites a graph's sums of squared deviations as if all rows were split over workgroups.
func OnePass(g *ir.Graph) (*ir.Graph, error) {
	o := DefaultOptions
	o.Policy = splitPolicy{}
	return onePass(g, o)
}

// splitPolicy splits every row.
type splitPolicy struct{ Policy }

// AllowsStages reports false.
func (splitPolicy) AllowsStages(int, int, bool) bool { return false }
