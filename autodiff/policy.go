package autodiff

import (
	"path"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Policy chooses the residuals of reverse mode: it returns for each node of the forward graph, by
// ID, whether its results are stored. The backward pass recomputes what it needs and is not stored,
// from stored values and from ports, at the point of use. This trades work for memory (Chen et al.,
// Training Deep Nets with Sublinear Memory Cost, 2016). A nil Policy stores all needed values; so
// does a choice that would save no memory.
//
// A policy is called for the body of each loop and each branch, innermost first, and for the whole
// graph. Residuals of a loop body are stacked over its steps.
type Policy func(f Forward) (keep []bool, err error)

// Forward is a forward pass for which a [Policy] chooses residuals.
type Forward struct {
	// Graph is the forward graph. Composite ops that the derivative went through are expanded. Its
	// loops also return the stacked residuals chosen for their bodies.
	Graph *ir.Graph
	// Needed are the values that the backward pass needs.
	Needed []ir.Value
	// Steps is the number of times that the graph runs before the backward pass starts: the length
	// of the loop if the graph is a loop body, and 1 otherwise.
	Steps ir.Dim
}

// KeepOps stores the results of the given ops, and of loops and branches that contain them.
func KeepOps(kept ...ir.Op) Policy {
	return keepWhere(func(n *ir.Node) bool { return slices.Contains(kept, n.Op()) })
}

// KeepProducts stores the results of matrix products, convolutions and attention, and recomputes
// the cheaper ops.
func KeepProducts() Policy {
	return KeepOps(ops.OpDotGeneral, ops.OpConvGeneral, ops.OpAttentionForward)
}

// KeepNothing stores nothing and recomputes everything from the ports. It saves memory if branches
// join at the end of the graph. For a chain of layers it saves little, since the last layer needs
// the whole chain: use [Checkpoint] or [KeepLeast] there.
func KeepNothing() Policy { return KeepOps() }

// KeepLabels stores the results of nodes whose label ([ir.Builder.Label]) matches one of the
// patterns of package path, such as "block*/out". The error is of kind [ir.ErrAttr] for a malformed
// pattern.
func KeepLabels(patterns ...string) Policy {
	return func(f Forward) ([]bool, error) {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil {
				return nil, ir.Attrf("label pattern %q: %v", p, err)
			}
		}
		return keepWhere(func(n *ir.Node) bool {
			return n.Label() != "" && slices.ContainsFunc(patterns, func(p string) bool {
				ok, _ := path.Match(p, n.Label())
				return ok
			})
		})(f)
	}
}

// keepWhere stores the results of nodes that satisfy holds, and of nodes with a subgraph that
// contains such a node.
func keepWhere(holds func(n *ir.Node) bool) Policy {
	var within func(n *ir.Node) bool
	within = func(n *ir.Node) bool {
		return holds(n) || slices.ContainsFunc(n.Subgraphs(), func(g *ir.Graph) bool { return slices.ContainsFunc(g.Nodes(), within) })
	}
	return func(f Forward) ([]bool, error) {
		keep := make([]bool, len(f.Graph.Nodes()))
		for i, n := range f.Graph.Nodes() {
			keep[i] = within(n)
		}
		return keep, nil
	}
}

// keeper returns the policy as an [ir.Keeper] that returns nil if the choice saves no memory.
func (p Policy) keeper() ir.Keeper {
	if p == nil {
		return nil
	}
	return func(forward *ir.Graph, needed []ir.Value, steps ir.Dim) ([]bool, error) {
		f := Forward{forward, needed, steps}
		keep, err := p(f)
		if err == nil && len(keep) != len(forward.Nodes()) {
			err = ir.Attrf("the policy says of %d nodes what is kept, there are %d", len(keep), len(forward.Nodes()))
		}
		if err != nil || !f.savesMemory(keep) {
			return nil, err
		}
		return keep, nil
	}
}
