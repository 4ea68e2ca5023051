package passes

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// cse lets nodes that compute the same share one node, the first, which keeps
// its label and place. Random bits come from a key and are shared like all
// else, but for what is rematerialized: two parts that are computed again from one value
// at different times would live from the first time to the second. Each graph is taken by itself, because a subgraph is closed.
func cse(r *run, g *ir.Graph) (*ir.Graph, error) {
	first, found := r.firstAlike(g)
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

// firstAlike returns, by node, the first node that computes the same, which may
// be the node itself, and whether it ever is another.
func (r *run) firstAlike(g *ir.Graph) (first []*ir.Node, found bool) {
	first = make([]*ir.Node, len(g.Nodes()))
	seen := make(map[string]*ir.Node, len(g.Nodes()))
	before := map[*ir.Node]*ir.Node{} // another node with the key of this one
	var key []byte
	for i, n := range g.Nodes() {
		first[i] = n
		if n.Op() == ir.OpPort || n.Op() == ops.OpRematerialize { // what is computed again shares nothing
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

// maxKeyed bounds the bytes of a literal that take part in its key.
const maxKeyed = 64

// appendKey appends what nodes that compute the same have in common, and no others: their
// form and operands; of a long literal only how it begins.
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

// sameLiteral reports whether nodes of one key compute the same.
func sameLiteral(m, n *ir.Node) bool {
	c, ok := n.Attrs().(*ir.ConstantAttrs)
	return !ok || bytes.Equal(c.Data, m.Attrs().(*ir.ConstantAttrs).Data)
}

// mappedResults returns what the results of n were taken to.
func mappedResults(m *ir.Mapping, n *ir.Node) []ir.Value {
	out := n.Results()
	for i, v := range out {
		out[i] = m.Get(v)
	}
	return out
}
