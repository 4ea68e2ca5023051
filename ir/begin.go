package ir

import "slices"

// BeginAsOnes returns the names of the parameters and states that should start as ones unless
// initialised otherwise: a node of the graph uses them directly as an operand listed in [Def.Ones].
// Uses inside loop bodies and branches are ignored.
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
