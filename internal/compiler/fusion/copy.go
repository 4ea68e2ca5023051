package fusion

import "github.com/rlx-go/rlx/ir"

// copyOutputs adds copies for plain outputs that no group computes, such as an
// input passed through.
func (p *Partition) copyOutputs() {
	var copies []Copy
	p.Outputs = make([]*Tensor, len(p.Graph.Outputs()))
	for i, o := range p.Graph.Outputs() {
		if !o.State && p.groupOf[o.Value.Node()] == nil {
			p.Outputs[i] = p.newTensor(o.Name, o.Value.Type())
			copies = append(copies, p.copyOf(o.Value, p.Outputs[i]))
		}
	}
	p.addCopies(copies)
}

// copyOf returns the copy of a value that no group computes.
func (p *Partition) copyOf(v ir.Value, to *Tensor) Copy {
	return Copy{From: p.whole(v), Literal: p.decided.literals[v], To: to}
}

// addCopies adds groups that copy values and returns them.
func (p *Partition) addCopies(copies []Copy) []*Group {
	groups := p.copyGroups(copies)
	p.groups = append(p.groups, groups...)
	return groups
}

// copyGroups fuses copies horizontally into groups.
func (p *Partition) copyGroups(copies []Copy) []*Group {
	var out []*Group
	for _, c := range copies {
		part := &Group{Kind: MapKind, Outer: squeeze(c.To.Dims), Copies: []Copy{c}, partition: p}
		if last := len(out) - 1; last < 0 || len(out[last].Parts) == maxParts {
			out = append(out, &Group{Kind: MapKind, partition: p})
		}
		last := out[len(out)-1]
		last.Parts = append(last.Parts, part)
	}
	return out
}
