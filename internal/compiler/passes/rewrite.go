package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// site is a node of the old graph that is rewritten into a new graph.
type site struct {
	b  *ir.Builder
	n  *ir.Node    // in the old graph
	in []ir.Value  // its operands in the new graph, valid until the next node
	to *ir.Mapping // from the old graph to the new one; nil in run.applies

	users []int // of the old graph's nodes, outputs included
}

// sole reports whether n is the only user of the node that defines an operand.
func (s site) sole(operand int) bool { return s.users[s.n.Input(operand).Node().ID()] == 1 }

// countUsers returns, by node, the number of nodes and outputs that use its
// results; a node that uses several counts once.
func countUsers(g *ir.Graph) []int {
	users := make([]int, len(g.Nodes()))
	for _, n := range g.Nodes() {
		for i, v := range n.Inputs() {
			of := v.Node()
			if !slices.ContainsFunc(n.Inputs()[:i], func(u ir.Value) bool { return u.Node() == of }) {
				users[of.ID()]++
			}
		}
	}
	for _, o := range g.Outputs() {
		users[o.Value.Node().ID()]++
	}
	return users
}

// walk copies g: node adds the replacement of a node and returns its results (the zero
// Value for an unused one), and whether the replacement differs from the node. Ports and
// outputs stay. If nothing differs, walk returns g itself.
func (r *run) walk(g *ir.Graph, node func(s site) ([]ir.Value, bool)) (*ir.Graph, error) {
	changed := false
	out, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		b.Reserve(g)
		to, users := ir.NewMapping(g), countUsers(g)
		var in []ir.Value
		for _, n := range g.Nodes() {
			if b.Err() != nil {
				return
			}
			r.node = n
			b.Label(n.Label())
			b.At(n.Pos())
			if p, ok := n.Attrs().(*ir.PortAttrs); ok {
				to.Set(n.Result(0), b.CopyPort(ir.Port{Name: p.Name, Kind: p.Kind, Value: n.Result(0)}))
				continue
			}
			in = to.AppendInputs(in[:0], n)
			s := site{b, n, in, to, users}
			results, differs := node(s)
			r.checkResults(s, results)
			to.SetAll(n, results)
			changed = changed || differs
		}
		if b.Err() != nil {
			return
		}
		r.node = nil
		b.CopyOutputs(g, to)
	})
	if err == nil && !changed {
		return g, nil
	}
	return out, err
}

// Replace replaces nodes with one result, in bodies too, by what f computes from their operands. Nodes for which that is the
// zero Value stay. Replace returns g itself where all do.
func Replace(g *ir.Graph, f func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value) (*ir.Graph, error) {
	r := newRun(Options{})
	return r.walk(g, func(s site) ([]ir.Value, bool) {
		if v := f(s.b, s.n, s.in); v.Valid() {
			return []ir.Value{v}, true
		}
		return r.copyNode(s, func(body *ir.Graph) (*ir.Graph, error) { return Replace(body, f) })
	})
}

// checkResults checks that a replacement preserves the types of a node's results.
func (r *run) checkResults(s site, results []ir.Value) {
	for i, v := range results {
		if i >= s.n.NumResults() || v.Valid() && !v.Type().Equal(s.n.Types()[i]) {
			s.b.Fail(ir.Errorf(ir.ErrGraph, "result %d is replaced by %s", i, v.Type()))
			return
		}
	}
}

// copyNode copies a node with its subgraphs rewritten.
func (r *run) copyNode(s site, subgraph func(g *ir.Graph) (*ir.Graph, error)) (results []ir.Value, differs bool) {
	subs := slices.Clone(s.n.Subgraphs())
	for i, g := range subs {
		var err error
		if subs[i], err = subgraph(g); err != nil {
			s.b.Fail(err)
			return nil, false
		}
		differs = differs || subs[i] != g
	}
	r.node = s.n
	return s.b.CopyWith(s.n, s.n.Attrs(), subs, s.in), differs
}

// rule returns values of the new graph to replace the results of a node, or
// nil if it does not apply.
type rule func(s site) []ir.Value

// rewrite applies a rule to all nodes of g and of its subgraphs, operands
// first. The graph is copied only if the rule applies to some node.
func (r *run) rewrite(g *ir.Graph, f rule) (*ir.Graph, error) {
	if !r.applies(g, f) {
		return g, nil
	}
	return r.walk(g, func(s site) ([]ir.Value, bool) {
		if results := f(s); results != nil {
			return results, true
		}
		return r.copyNode(s, func(g *ir.Graph) (*ir.Graph, error) { return r.rewrite(g, f) })
	})
}

// applies reports whether a rule applies to a node of g or of its subgraphs. It calls
// the rule with operands of g and a scratch builder, whose nodes and errors are dropped.
func (r *run) applies(g *ir.Graph, f rule) (found bool) {
	_, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		users := countUsers(g)
		found = slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
			if n.Op() == ir.OpPort {
				return false
			}
			r.node = n
			applies := f(site{b: b, n: n, in: n.Inputs(), users: users}) != nil || b.Err() != nil
			return applies || slices.ContainsFunc(n.Subgraphs(), func(g *ir.Graph) bool { return r.applies(g, f) })
		})
		r.node = nil
	})
	return found || err != nil
}
