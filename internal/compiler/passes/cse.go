package passes

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// cse is common subexpression elimination: equal nodes are replaced by the first, which
// keeps its label and position. Random bits are functions of a key and shared too.
// rematerialize nodes are not: sharing one would keep its value live between its uses.
// Each graph is handled separately, because a subgraph is closed.
func cse(r *run, g *ir.Graph) (*ir.Graph, error) {
	first, found := r.findDuplicates(g)
	if !found && !slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return len(n.Subgraphs()) > 0 }) {
		return g, nil
	}
	return r.walk(g, func(s site) ([]ir.Value, bool) {
		if f := first[s.n.ID()]; f != s.n {
			return mappedResults(s.to, f), true
		}
		return r.copyNode(s, func(g *ir.Graph) (*ir.Graph, error) { return cse(r, g) })
	})
}

// findDuplicates returns, by node, the first equal node, which may be the node itself, and
// whether any node has an earlier equal.
func (r *run) findDuplicates(g *ir.Graph) (first []*ir.Node, found bool) {
	first = make([]*ir.Node, len(g.Nodes()))
	seen := make(map[string]*ir.Node, len(g.Nodes()))
	before := map[*ir.Node]*ir.Node{} // another node with the key of this one
	var key []byte
	for i, n := range g.Nodes() {
		first[i] = n
		if n.Op() == ir.OpPort || n.Op() == ops.OpRematerialize {
			continue
		}
		key = appendKey(key[:0], r.forms.Of(n), n, first)
		last := seen[string(key)]
		same := last
		for same != nil && !sameLiteral(same, n) {
			same = before[same]
		}
		if same != nil {
			first[i], found = same, true
			continue
		}
		if last != nil {
			before[n] = last
		}
		seen[string(key)] = n
	}
	return first, found
}

// maxKeyed bounds the bytes of a literal in its key.
const maxKeyed = 64

// appendKey appends the key of a node: its form and operands, or the first bytes of a
// literal. Nodes with equal keys are equal, except long literals.
func appendKey(key []byte, form int, n *ir.Node, first []*ir.Node) []byte {
	key = binary.AppendUvarint(key, uint64(form))
	if c, ok := n.Attrs().(*ir.ConstantAttrs); ok {
		return append(key, c.Data[:min(len(c.Data), maxKeyed)]...)
	}
	for _, v := range n.Inputs() {
		key = binary.AppendUvarint(key, uint64(first[v.Node().ID()].ID()))
		key = binary.AppendUvarint(key, uint64(v.Index()))
	}
	return key
}

// sameLiteral reports whether nodes with equal keys are equal: literals are compared in
// full.
func sameLiteral(m, n *ir.Node) bool {
	c, ok := n.Attrs().(*ir.ConstantAttrs)
	return !ok || bytes.Equal(c.Data, m.Attrs().(*ir.ConstantAttrs).Data)
}

// mappedResults returns the results of n in the new graph.
func mappedResults(m *ir.Mapping, n *ir.Node) []ir.Value {
	out := n.Results()
	for i, v := range out {
		out[i] = m.Get(v)
	}
	return out
}
