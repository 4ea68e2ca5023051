package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// dce eliminates dead code: nodes, and with [ir.Def.Prune] results and
// operands of nodes with subgraphs, such as an unused carry of a scan.
// Ports stay: they are the graph's interface.
func dce(r *run, g *ir.Graph) (*ir.Graph, error) {
	// Pruning a node may make its operands and nodes of its subgraphs dead.
	for {
		out, err := r.sweep(g)
		if err != nil || out == g {
			return out, err
		}
		g = out
	}
}

// sweep eliminates the dead code of g and its subgraphs once.
func (r *run) sweep(g *ir.Graph) (*ir.Graph, error) {
	live := liveResults(g)
	if !hasDead(g, live) {
		return g, nil
	}
	return r.walk(g, func(s site) ([]ir.Value, bool) {
		used := live[s.n.ID()]
		if used == nil {
			return nil, true
		}
		if prune := s.n.Def().Prune; prune != nil {
			if results := prune(s.b, s.n, s.in, used); results != nil {
				return results, true
			}
		}
		return r.copyNode(s, r.sweep)
	})
}

// hasDead reports whether g may have dead code. Nodes with subgraphs or a prune rule
// always may.
func hasDead(g *ir.Graph, live [][]bool) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		if n.Op() == ir.OpPort {
			return false
		}
		return live[n.ID()] == nil || len(n.Subgraphs()) > 0 || n.Def().Prune != nil
	})
}

// liveResults returns the liveness of results by node ID; nil for a dead node.
func liveResults(g *ir.Graph) [][]bool {
	live := make([][]bool, len(g.Nodes()))
	mark := func(v ir.Value) {
		n := v.Node()
		if live[n.ID()] == nil {
			live[n.ID()] = make([]bool, n.NumResults())
		}
		live[n.ID()][v.Index()] = true
	}
	for _, o := range g.Outputs() {
		mark(o.Value)
	}
	for i := len(g.Nodes()) - 1; i >= 0; i-- {
		if live[i] == nil {
			continue
		}
		for _, v := range g.Nodes()[i].Inputs() {
			mark(v)
		}
	}
	return live
}
