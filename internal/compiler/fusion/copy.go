package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Copy copies a tensor or a literal to another tensor.
type Copy struct {
	From    *Tensor // nil for a literal
	Literal scalar.Expr
	To      *Tensor
}

// copyOf returns the copy of a value that no group computes.
func (p *Partition) copyOf(v ir.Value, to *Tensor) Copy {
	return Copy{From: p.whole(v), Literal: p.decided.literals[v], To: to}
}

// copyGroups fuses copies horizontally into groups.
func copyGroups(p *Partition, copies []Copy) []*Group {
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

// copyItems returns items that make copies.
func copyItems(p *Partition, copies []Copy) []Item {
	var items []Item
	for _, g := range copyGroups(p, copies) {
		collectLoads(g)
		items = append(items, g)
	}
	return items
}
