package autodiff

import (
	"path"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Policy chooses what a reverse transform keeps of the way forward for the way
// back: it tells by node ID of the graph forward what is kept. What the way back
// needs and is not kept is computed again, from what is kept and from ports, when it
// has come to it: less memory for more work (Chen et al., Training Deep Nets with
// Sublinear Memory Cost). A nil Policy keeps all that is needed. Where a choice would
// save nothing, all is kept that is needed.
//
// It is asked about the whole graph, and about each body of a loop and each branch in
// it, the innermost first: what is kept of a body is stacked in every step.
type Policy func(f Forward) (keep []bool, err error)

// Forward is a way forward of which a [Policy] keeps a part.
type Forward struct {
	// Graph is free of composites that a derivative went through. Of its loops it has
	// those whose results are what was chosen to be kept of their bodies.
	Graph *ir.Graph
	// Needed are the values of it that the way back needs.
	Needed []ir.Value
	// Steps is how often the graph runs before the way back begins: the length of the
	// loop whose body it is, or 1.
	Steps ir.Dim
}

// KeepOps keeps results of the given ops alone, and those of loops and branches that
// have such ops in them.
func KeepOps(kept ...ir.Op) Policy {
	return keepWhere(func(n *ir.Node) bool { return slices.Contains(kept, n.Op()) })
}

// KeepProducts keeps results of products, convolutions and attention, and
// computes again all that costs little beside them.
func KeepProducts() Policy {
	return KeepOps(ops.OpDotGeneral, ops.OpConvGeneral, ops.OpAttentionForward)
}

// KeepNothing computes everything again from the ports. It saves memory where
// branches join at the end. A chain of layers has to be gone through whole for its
// last one: [Checkpoint] and [KeepLeast] are for that.
func KeepNothing() Policy { return KeepOps() }

// KeepLabels keeps results of nodes whose label, see [ir.Builder.Label], matches
// one of some patterns of package path, such as "block*/out". A bad pattern is an
// error of kind [ir.ErrAttr].
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

// keepWhere keeps the results of the nodes for which holds is true, and of those that
// own graphs with such nodes: of these graphs it has kept what it keeps.
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

// keeper returns the policy as what splits nodes: it returns nil where the choice saves
// nothing.
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
		if err != nil || !f.saves(keep) {
			return nil, err
		}
		return keep, nil
	}
}
