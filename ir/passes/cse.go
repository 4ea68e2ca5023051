package passes

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// cse lets nodes that compute the same share one node, the first, which keeps
// its label and place. Random bits come from a key and are shared like all
// else. Each graph is taken by itself, because a subgraph is closed.
func cse(r *run, g *ir.Graph) (*ir.Graph, error) {
	first, found := firstAlike(g)
	if !found && !slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return len(n.Subgraphs()) > 0 }) {
		return g, nil
	}
	return r.walk(g, func(s site) ([]ir.Value, bool) {
		if f := first[s.n.ID()]; f != s.n {
			return mapped(s.to, f), true
		}
		return r.copyNode(s, func(g *ir.Graph) (*ir.Graph, error) { return cse(r, g) })
	})
}

// firstAlike returns, by node, the first node that computes the same, which may
// be the node itself, and whether it ever is another.
func firstAlike(g *ir.Graph) (first []*ir.Node, found bool) {
	first = make([]*ir.Node, len(g.Nodes()))
	seen := make(map[string][]*ir.Node, len(g.Nodes()))
	var key []byte
	for i, n := range g.Nodes() {
		first[i] = n
		if n.Op() == ir.OpPort {
			continue
		}
		key = appendKey(key[:0], n, first)
		same := slices.IndexFunc(seen[string(key)], func(m *ir.Node) bool { return alike(m, n) })
		if same < 0 {
			seen[string(key)] = append(seen[string(key)], n)
			continue
		}
		first[i], found = seen[string(key)][same], true
	}
	return first, found
}

// maxKeyed bounds the bytes of a literal that take part in its key.
const maxKeyed = 64

// appendKey appends what nodes that compute the same have in common, and few
// others: all but the rest of a long literal, and what subgraphs say besides
// their hash.
func appendKey(key []byte, n *ir.Node, first []*ir.Node) []byte {
	key = append(append(key, n.Op()...), ' ')
	if c, ok := n.Attrs().(*ir.ConstantAttrs); ok {
		return append(append(key, c.Type.String()...), c.Data[:min(len(c.Data), maxKeyed)]...)
	}
	key = binary.AppendUvarint(key, uint64(len(n.Inputs())))
	for _, v := range n.Inputs() {
		key = binary.AppendUvarint(key, uint64(first[v.Node().ID()].ID()))
		key = binary.AppendUvarint(key, uint64(v.Index()))
	}
	key = append(key, ir.FormatAttrs(n.Attrs())...)
	for _, g := range n.Subgraphs() {
		h := g.Hash()
		key = append(key, h[:]...)
	}
	return key
}

// alike reports whether nodes of one key compute the same.
func alike(m, n *ir.Node) bool {
	if c, ok := n.Attrs().(*ir.ConstantAttrs); ok {
		d := m.Attrs().(*ir.ConstantAttrs)
		return c.Type.Equal(d.Type) && bytes.Equal(c.Data, d.Data)
	}
	return slices.EqualFunc(m.Subgraphs(), n.Subgraphs(), (*ir.Graph).Equal)
}

// mapped returns what the results of n were taken to.
func mapped(m *ir.Mapping, n *ir.Node) []ir.Value {
	out := n.Results()
	for i, v := range out {
		out[i] = m.Get(v)
	}
	return out
}
