package autodiff

import (
	"path"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Policy chooses what a reverse transform keeps of the way forward for the way
// back. What it needs there and is not kept is computed again, from what is kept
// and from ports, when the way back has come to it: less memory for more work
// (Chen et al., Training Deep Nets with Sublinear Memory Cost). A nil Policy
// keeps all that is needed.
//
// It is given the graph of the way forward, free of composites that a derivative
// went through, with the values of it that the way back needs, and tells by node
// ID what is kept. Where that would save nothing, all is kept that is needed.
type Policy func(forward *ir.Graph, needed []ir.Value) (keep []bool, err error)

// KeepOps keeps results of the given ops alone.
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
	return func(forward *ir.Graph, needed []ir.Value) ([]bool, error) {
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
		})(forward, needed)
	}
}

// keepWhere keeps the results of the nodes for which holds is true.
func keepWhere(holds func(n *ir.Node) bool) Policy {
	return func(forward *ir.Graph, _ []ir.Value) ([]bool, error) {
		keep := make([]bool, len(forward.Nodes()))
		for i, n := range forward.Nodes() {
			keep[i] = holds(n)
		}
		return keep, nil
	}
}
