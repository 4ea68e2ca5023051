package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// pruneScan drops unused results, carries that neither the results nor the steps use, and
// operands that the steps do not use.
func pruneScan(b *ir.Builder, n *ir.Node, in []ir.Value, used []bool) []ir.Value {
	a, body := scanOf(n)
	out := slices.Clone(used)
	takes := portsNeeded(body, out)
	// A carry that a step uses must be computed by the step before.
	for grown := true; grown; takes = portsNeeded(body, out) {
		grown = false
		for i, needed := range takes[a.Consts : a.Consts+a.Carries] {
			if needed && !out[i] {
				out[i], grown = true, true
			}
		}
	}
	copy(takes[a.Consts:], out[:a.Carries])
	consts, carries, _ := scanGroups(a, takes)
	attrs := *a
	attrs.Consts, attrs.Carries = len(where(consts)), len(where(carries))
	return prunedNode(b, n, &attrs, in, takes, out)
}

// pruneCond drops unused results, and operands that neither branch uses.
func pruneCond(b *ir.Builder, n *ir.Node, in []ir.Value, used []bool) []ir.Value {
	branches := n.Subgraphs()
	takes := union(portsNeeded(branches[0], used), portsNeeded(branches[1], used))
	return prunedNode(b, n, nil, in, slices.Insert(takes, 0, true), used)
}

// prunedNode adds a node like n with a subset of operands and results. The operands of its
// graphs are the node's last ones.
func prunedNode(b *ir.Builder, n *ir.Node, attrs ir.Attrs, in []ir.Value, takes, out []bool) []ir.Value {
	if !slices.Contains(takes, false) && !slices.Contains(out, false) {
		return nil
	}
	subs := make([]*ir.Graph, len(n.Subgraphs()))
	for i, g := range n.Subgraphs() {
		subs[i] = restricted(b, g, takes[len(takes)-len(g.Ports()):], out)
	}
	results := b.CopyWith(n, attrs, subs, pick(in, where(takes)))
	all := make([]ir.Value, len(out))
	if b.Err() != nil {
		return all
	}
	for i, at := range where(out) {
		all[at] = results[i]
	}
	return all
}

// nodesNeeded marks, by ID, the nodes that the given outputs of g depend on.
func nodesNeeded(g *ir.Graph, out []bool) []bool {
	return needed(g, pick(outputValues(g), where(out)))
}

// needed marks, by ID, the nodes that the given values of g depend on.
func needed(g *ir.Graph, values []ir.Value) []bool {
	needed := make([]bool, len(g.Nodes()))
	for _, v := range values {
		needed[v.Node().ID()] = true
	}
	for _, n := range slices.Backward(g.Nodes()) {
		for _, v := range n.Inputs() {
			needed[v.Node().ID()] = needed[v.Node().ID()] || needed[n.ID()]
		}
	}
	return needed
}

// portsNeeded marks the ports that the given outputs of g depend on.
func portsNeeded(g *ir.Graph, out []bool) []bool {
	needed := nodesNeeded(g, out)
	ports := make([]bool, len(g.Ports()))
	for i, p := range g.Ports() {
		ports[i] = needed[p.Value.Node().ID()]
	}
	return ports
}

// restricted returns g with a subset of its outputs, and of its ports, which must include
// all that these outputs depend on.
func restricted(b *ir.Builder, g *ir.Graph, ports, out []bool) *ir.Graph {
	needed := nodesNeeded(g, out)
	return b.Subgraph(g.Name(), func(s *ir.Builder) {
		m := ir.NewMapping(g)
		for _, i := range where(ports) {
			p := g.Ports()[i]
			m.Set(p.Value, s.Port(p.Kind, p.Name, p.Value.Type()))
		}
		for _, n := range g.Nodes() {
			if needed[n.ID()] && n.Op() != ir.OpPort {
				m.SetAll(n, s.Copy(n, m.Inputs(n)))
			}
		}
		for _, i := range where(out) {
			s.CopyOutput(g.Outputs()[i], m.Get(g.Outputs()[i].Value))
		}
	})
}
