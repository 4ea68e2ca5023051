package derive

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// JVP adds the nodes of g to b, with in as the values of its ports and t as
// their tangents, and returns the values of its outputs and their tangents. A
// composite without a JVP rule is inlined if one of its operands has a tangent. The
// results of an op without a derivative have zero tangents: see [Blockers].
func JVP(b *ir.Builder, g *ir.Graph, in, t []ir.Value) (out, tout []ir.Value) {
	w := &jvp{b: b}
	return w.graph(g, in, t)
}

// JVPWithSeeds is [JVP] with additional tangents of inner values of g: at maps values to
// tangents, which are added to those that propagate from the ports.
func JVPWithSeeds(b *ir.Builder, g *ir.Graph, in, t []ir.Value, at map[ir.Value]ir.Value) (out, tout []ir.Value) {
	w := &jvp{b: b, seeds: at}
	return w.graph(g, in, t)
}

// Blockers returns the nodes of g at which the tangent of a port becomes zero on the
// way to an output: nodes with a nonzero tangent operand and a result that the output
// depends on with a zero tangent. Errors about missing gradients name them.
func Blockers(g *ir.Graph, port, output int) []*ir.Node {
	of := g.Outputs()[output].Value
	live := liveNodes(g, of)
	used := func(v ir.Value) bool {
		return v == of || slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return live[n.ID()] && slices.Contains(n.Inputs(), v) })
	}
	var out []*ir.Node
	_, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		w := &jvp{b: b, onZeroTangent: func(n *ir.Node, results []int) {
			if slices.ContainsFunc(results, func(i int) bool { return used(n.Result(i)) }) {
				out = append(out, n)
			}
		}}
		in, t := make([]ir.Value, len(g.Ports())), make([]ir.Value, len(g.Ports()))
		for i, p := range g.Ports() {
			in[i] = b.Port(ir.InputPort, portLabel("", i), p.Value.Type())
		}
		t[port] = b.Port(ir.InputPort, portLabel("t", port), in[port].Type())
		w.graph(g, in, t)
	})
	if err != nil {
		return nil
	}
	return out
}

// jvp is one forward-mode walk.
type jvp struct {
	b *ir.Builder
	// onZeroTangent, where set, is called with each node of the outermost graph that has a
	// nonzero tangent operand, and its results with zero tangents.
	onZeroTangent func(n *ir.Node, results []int)
	// seeds are additional tangents of values of the outermost graph.
	seeds map[ir.Value]ir.Value
}

// graph copies a graph with its tangents: node after node, each with the tangents of its operands.
func (w *jvp) graph(g *ir.Graph, in, t []ir.Value) (out, tout []ir.Value) {
	defer restoreOrigin(w.b)()
	value, tangent := ir.NewMapping(g), ir.NewMapping(g)
	for i, p := range g.Ports() {
		value.Set(p.Value, in[i])
		tangent.Set(p.Value, w.addSeeds(p.Value.Node(), []ir.Value{t[i]})[0])
	}
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		if w.b.Err() != nil {
			break
		}
		setOrigin(w.b, n)
		results, tangents := w.node(n, value.Inputs(n), tangent.Inputs(n))
		tangents = w.addSeeds(n, tangents)
		value.SetAll(n, results)
		tangent.SetAll(n, tangents)
		if w.onZeroTangent != nil && anyValid(tangent.Inputs(n)) {
			w.onZeroTangent(n, withoutTangent(n, tangents))
		}
	}
	return value.Outputs(g), tangent.Outputs(g)
}

// withoutTangent returns the results of n whose tangents are zero.
func withoutTangent(n *ir.Node, t []ir.Value) []int {
	var out []int
	for i := range n.NumResults() {
		if i >= len(t) || !t[i].Valid() {
			out = append(out, i)
		}
	}
	return out
}

// addSeeds adds the seed tangents of the results of n to t.
func (w *jvp) addSeeds(n *ir.Node, t []ir.Value) []ir.Value {
	for i := 0; i < n.NumResults() && len(w.seeds) > 0; i++ {
		own, ok := w.seeds[n.Result(i)]
		if !ok {
			continue
		}
		t = append(t, make([]ir.Value, n.NumResults()-len(t))...)
		if t[i].Valid() {
			own = Sum(w.b, []ir.Value{t[i], own})
		}
		t[i] = own
	}
	return t
}

// node returns the results of a node and their tangents: by its JVP, by the nodes of its body, or none.
func (w *jvp) node(n *ir.Node, in, t []ir.Value) (out, tout []ir.Value) {
	d := n.Def()
	if !anyValid(t) || d.JVP == nil && d.Body == nil {
		return w.b.Copy(n, in), nil
	}
	if d.JVP == nil {
		return w.body(n, in, t)
	}
	out = w.b.Copy(n, in)
	if w.b.Err() != nil {
		return nil, nil
	}
	tout = d.JVP(w.b, out[0].Node(), in, out, t)
	for i := range tout {
		if i < len(out) && !Differentiable(out[i].DType()) {
			tout[i] = ir.Value{}
		}
	}
	checkRule(w.b, n, "JVP", tout, out)
	return out, tout
}

// body is node for a composite without a JVP.
func (w *jvp) body(n *ir.Node, in, t []ir.Value) (out, tout []ir.Value) {
	g, err := ir.Inline(n)
	if err != nil {
		w.b.Fail(n.Fail(err))
		return nil, nil
	}
	inner := &jvp{b: w.b}
	return inner.graph(g, in, t)
}

// Differentiable reports whether values of the element type have tangents:
// floats with arithmetic and complex numbers do.
func Differentiable(d ir.DType) bool { return d.IsNumeric() && !d.IsInteger() }
