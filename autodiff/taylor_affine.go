package autodiff

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// affine is a node whose rule maps coefficients to coefficients: a linear op, or a piecewise linear
// op on the piece of its operands.
type affine struct {
	a     *applied
	parts map[string]*affinePart
}

// affinePart is the rule for a set of moving operands. Nodes that do not depend on tangents are
// added once and shared by all orders.
type affinePart struct {
	rule    *stepRule
	m       *ir.Mapping
	linear  []bool // by node: it depends on a tangent
	results map[int][]ir.Value
}

// term returns coefficient k of a result.
func (f *affine) term(result, k int) ir.Value {
	var moving []int
	var t []ir.Value
	key := ""
	for i, s := range f.a.in {
		if v := s.at(k); v.Valid() {
			moving, t = append(moving, i), append(t, v)
			key += position(" ", i)
		}
	}
	if moving == nil {
		return ir.Value{}
	}
	p := f.parts[key]
	if p == nil {
		p = f.newPart(f.a.rule(moving))
		f.parts[key] = p
	}
	if p.results[k] == nil {
		p.results[k] = p.tangents(f.a.w.b, t)
	}
	if i := slices.Index(p.rule.result, result); i >= 0 {
		return p.results[k][i]
	}
	return ir.Value{}
}

// newPart adds the nodes of the rule that depend on the operands alone.
func (f *affine) newPart(r *stepRule) *affinePart {
	p := &affinePart{rule: r, results: map[int][]ir.Value{}}
	if r.g == nil { // after an error
		return p
	}
	p.m, p.linear = ir.NewMapping(r.g), make([]bool, len(r.g.Nodes()))
	live := make([]bool, len(r.g.Nodes()))
	for _, o := range r.g.Outputs() {
		live[o.Value.Node().ID()] = true
	}
	nodes := r.g.Nodes()
	for i := len(nodes) - 1; i >= 0; i-- {
		for _, v := range nodes[i].Inputs() {
			live[v.Node().ID()] = live[v.Node().ID()] || live[i]
		}
	}
	for i, port := range r.g.Ports() {
		if i < len(f.a.in) {
			p.m.Set(port.Value, f.a.in[i].at(0))
		} else {
			p.linear[port.Value.Node().ID()] = true
		}
	}
	for _, n := range nodes {
		for _, v := range n.Inputs() {
			p.linear[n.ID()] = p.linear[n.ID()] || p.linear[v.Node().ID()]
		}
		if n.Op() != ir.OpPort && live[n.ID()] && !p.linear[n.ID()] {
			p.m.SetAll(n, f.results(n, p.m))
		}
	}
	for i := range p.linear {
		p.linear[i] = p.linear[i] && live[i]
	}
	return p
}

// results returns the results of a node of the rule. It reuses the results of the op itself, which
// rules often contain.
func (f *affine) results(n *ir.Node, m *ir.Mapping) []ir.Value {
	in := m.Inputs(n)
	var op, own strings.Builder
	writeOp(&op, n)
	writeOp(&own, f.a.n)
	if op.String() != own.String() || !slices.EqualFunc(f.a.in, in, func(s *series, v ir.Value) bool { return s.at(0) == v }) {
		return f.a.w.b.Copy(n, in)
	}
	out := make([]ir.Value, n.NumResults())
	for i := range out {
		out[i] = f.a.value(i)
	}
	return out
}

// tangents adds the nodes of the rule that are linear in the tangents.
func (p *affinePart) tangents(b *ir.Builder, t []ir.Value) []ir.Value {
	out := make([]ir.Value, len(p.rule.result))
	if p.rule.g == nil {
		return out
	}
	ports := p.rule.g.Ports()
	for i, v := range t {
		p.m.Set(ports[len(ports)-len(t)+i].Value, v)
	}
	for _, n := range p.rule.g.Nodes() {
		if n.Op() != ir.OpPort && p.linear[n.ID()] {
			b.CopyNode(n, p.m)
		}
	}
	for i, o := range p.rule.g.Outputs() {
		out[i] = p.m.Get(o.Value)
	}
	return out
}
