package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// controlRules copies a loop or a choice. What goes into its graphs and comes out of them
// stays one value, so that a first axis of steps stays the first.
func (p *complexCopier) control(n *ir.Node) {
	subs := make([]*ir.Graph, len(n.Subgraphs()))
	for i, g := range n.Subgraphs() {
		var err error
		if subs[i], err = Pairs(g); err != nil {
			p.b.Fail(err)
			return
		}
	}
	in := make([]ir.Value, len(n.Inputs()))
	for i, v := range n.Inputs() {
		in[i] = p.packed(v)
	}
	for i, v := range p.b.CopyWith(n, n.Attrs(), subs, in) {
		if p.b.Err() == nil {
			p.setPacked(n.Result(i), v)
		}
	}
}

// associativeScan copies a running combination. Its graph is of scalars, so the parts are
// operands of their own.
func (p *complexCopier) associativeScan(n *ir.Node) {
	a, g := n.Attrs().(*ops.AssociativeAttrs), n.Subgraphs()[0]
	var in []ir.Value
	for _, v := range n.Inputs() {
		in = append(in, p.components(v)...)
	}
	out := ops.AssociativeScan(p.b, *a, in, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		inner := newComplexCopier(b, g)
		scalars := slices.Concat(x, y)
		for _, port := range g.Ports() {
			scalars = inner.setComponents(port.Value, scalars)
		}
		inner.nodes(g)
		var out []ir.Value
		for _, o := range g.Outputs() {
			out = append(out, inner.components(o.Value)...)
		}
		return out
	})
	for i := range n.NumResults() {
		out = p.setComponents(n.Result(i), out)
	}
}

// flat returns a value of the old graph as one value or, where it is complex, two.
func (p *complexCopier) components(v ir.Value) []ir.Value {
	if x, ok := p.parts[v]; ok {
		return []ir.Value{x.re, x.im}
	}
	return []ir.Value{p.to.Get(v)}
}

// setFlat takes a value of the old graph to the first values of a list, of the form
// that [pairing.list] would give, and returns the others.
func (p *complexCopier) setComponents(v ir.Value, list []ir.Value) []ir.Value {
	if v.DType().IsComplex() {
		p.parts[v] = pair{list[0], list[1]}
		return list[2:]
	}
	p.to.Set(v, list[0])
	return list[1:]
}
