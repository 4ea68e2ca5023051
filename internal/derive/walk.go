package derive

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
)

// setOrigin gives the nodes that b adds next the label and position of n.
func setOrigin(b *ir.Builder, n *ir.Node) {
	b.Label(n.Label())
	b.At(n.Pos())
}

// restoreOrigin returns a function that restores the current label and position of b,
// for rules that walk a graph of their own.
func restoreOrigin(b *ir.Builder) func() {
	label, at := b.Origin()
	return func() {
		b.Label(label)
		b.At(at)
	}
}

func portLabel(prefix string, i int) string { return prefix + strconv.Itoa(i) }

func anyValid(vs []ir.Value) bool {
	for _, v := range vs {
		if v.Valid() {
			return true
		}
	}
	return false
}

// liveNodes marks, by ID, the nodes of g that the given values depend on.
func liveNodes(g *ir.Graph, of ...ir.Value) []bool {
	live := make([]bool, len(g.Nodes()))
	for _, v := range of {
		live[v.Node().ID()] = true
	}
	nodes := g.Nodes()
	for i := len(nodes) - 1; i >= 0; i-- {
		if !live[i] {
			continue
		}
		for _, in := range nodes[i].Inputs() {
			live[in.Node().ID()] = true
		}
	}
	return live
}

// checkRule records an error if the values of a rule do not have the types of their
// counterparts: a bug in the op, not in the graph.
func checkRule(b *ir.Builder, n *ir.Node, rule string, got, want []ir.Value) {
	if b.Err() != nil {
		return
	}
	if len(got) > len(want) {
		b.Fail(n.Fail(ir.Errorf(ir.ErrGraph, "the %s rule returned %d values; it must return %d", rule, len(got), len(want))))
		return
	}
	for i, v := range got {
		if v.Valid() && want[i].Valid() && !v.Type().Equal(want[i].Type()) {
			b.Fail(n.Fail(ir.Shapef("the %s rule returned %s; it must return %s", rule, v.Type(), want[i].Type())))
			return
		}
	}
}

// ruleReason returns the reason that a definition gives for lacking a rule.
func ruleReason(reason string) string {
	if reason == "" {
		return "its definition has no such rule"
	}
	return reason
}
