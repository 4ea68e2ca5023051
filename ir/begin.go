package ir

import "slices"

// BeginAsOnes returns the names of the parameters and states that are best begun as ones
// where their user says nothing: some op of the graph takes them, as they are, for an
// operand that [Def.Ones] names. What bodies of loops and branches do with them does not
// count.
func (g *Graph) BeginAsOnes() map[string]bool {
	ones := map[string]bool{}
	for _, n := range g.nodes {
		if len(n.def.Ones) == 0 {
			continue
		}
		for i, in := range n.inputs {
			p, ok := in.node.attrs.(*PortAttrs)
			if ok && p.Kind != InputPort && i < len(n.def.Operands) && slices.Contains(n.def.Ones, n.def.Operands[i]) {
				ones[p.Name] = true
			}
		}
	}
	return ones
}
