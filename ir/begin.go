package ir

import "slices"

// BeginsAsOnes reports whether a parameter or state is best begun as ones where its
// user says nothing: some op of the graph takes it, as it is, for an operand that
// [Def.Ones] names. What bodies of loops and branches do with it does not count.
func (g *Graph) BeginsAsOnes(p Port) bool {
	if p.Kind == InputPort {
		return false
	}
	for _, n := range g.nodes {
		d := n.Def()
		for i, name := range d.Operands {
			if i < len(n.inputs) && n.inputs[i] == p.Value && slices.Contains(d.Ones, name) {
				return true
			}
		}
	}
	return false
}
