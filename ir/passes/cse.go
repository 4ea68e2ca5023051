package passes

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// cse lets nodes that compute the same share one node, the first, which keeps
// its label and place. Random bits come from a key and are shared like all
// else. Each graph is taken by itself, because a subgraph is closed.
func cse(r *run, g *ir.Graph) (*ir.Graph, error) {
	seen := map[*ir.Mapping]map[string][]*ir.Node{} // by graph, then by key
	return r.rewrite(g, func(s site) []ir.Value {
		nodes := seen[s.to]
		if nodes == nil {
			nodes = map[string][]*ir.Node{}
			seen[s.to] = nodes
		}
		key := keyOf(s)
		for _, first := range nodes[key] {
			if same(first, s) {
				return mapped(s.to, first)
			}
		}
		nodes[key] = append(nodes[key], s.n)
		return nil
	})
}

// maxKeyed bounds the bytes of a literal that take part in its key.
const maxKeyed = 64

// keyOf returns a string that nodes which compute the same have in common, and
// few others.
func keyOf(s site) string {
	var sb strings.Builder
	sb.WriteString(string(s.n.Op()))
	if c, ok := s.n.Attrs().(*ir.ConstantAttrs); ok {
		sb.WriteString(c.Type.String())
		sb.Write(c.Data[:min(len(c.Data), maxKeyed)])
		return sb.String()
	}
	for _, v := range s.in {
		sb.WriteByte(' ')
		sb.WriteString(strconv.Itoa(v.Node().ID()))
		sb.WriteByte('.')
		sb.WriteString(strconv.Itoa(v.Index()))
	}
	sb.WriteString(ir.FormatAttrs(s.n.Attrs()))
	for _, g := range s.n.Subgraphs() {
		sb.WriteString(g.Hash().String())
	}
	return sb.String()
}

// same reports whether the node at s computes what the earlier node first
// does.
func same(first *ir.Node, s site) bool {
	if c, ok := s.n.Attrs().(*ir.ConstantAttrs); ok {
		d := first.Attrs().(*ir.ConstantAttrs)
		return c.Type.Equal(d.Type) && bytes.Equal(c.Data, d.Data)
	}
	return slices.Equal(s.to.Inputs(first), s.in) &&
		ir.FormatAttrs(first.Attrs()) == ir.FormatAttrs(s.n.Attrs()) &&
		slices.EqualFunc(first.Subgraphs(), s.n.Subgraphs(), (*ir.Graph).Equal)
}

// mapped returns what the results of n were taken to.
func mapped(m *ir.Mapping, n *ir.Node) []ir.Value {
	out := n.Results()
	for i, v := range out {
		out[i] = m.Get(v)
	}
	return out
}
