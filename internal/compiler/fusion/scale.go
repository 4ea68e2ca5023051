package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// pullScales rewrites sums of products Σ s·x·w, in which the number s is computed from a sum of as many
// terms, as s·Σ x·w, and gives each of them its own s: the weights of a layer times a row
// that is divided by its root mean square. Then both sums are one stage of one kernel, which takes a launch
// and a pass over memory less than to store the normalised row.
func pullScales(g *ir.Graph, o Options) (*ir.Graph, error) {
	p := &scalePuller{policy: o.Policy, graph: g, uses: g.Uses(), scales: map[ir.Value]ir.Value{}, pulled: map[*ir.Node]ir.Value{}, dropped: map[*ir.Node]bool{}}
	if p.find(); len(p.pulled) == 0 {
		return g, nil
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		w := &scaleWriter{p, b, ir.NewMapping(g), map[ir.Value]ir.Value{}, map[string]ir.Value{}}
		b.CopyPorts(g, w.m)
		for _, n := range g.Nodes() {
			switch {
			case n.Op() == ir.OpPort || p.dropped[n]:
			case p.pulled[n].Valid():
				w.m.Set(n.Result(0), w.product(n))
			default:
				w.m.SetAll(n, b.Copy(n, w.m.Inputs(n)))
			}
		}
		b.CopyOutputs(g, w.m)
	})
}

// scalePuller finds the sums whose scale is pulled out.
type scalePuller struct {
	policy  Policy
	graph   *ir.Graph
	uses    [][]*ir.Node
	scales  map[ir.Value]ir.Value // by value, its factor of one element or an invalid value
	pulled  map[*ir.Node]ir.Value // the scales of sums
	dropped map[*ir.Node]bool     // nodes that no other node needs then
}

// find fills pulled and dropped.
func (p *scalePuller) find() {
	users := map[ir.Value][]*ir.Node{} // sums by scale
	for _, n := range p.graph.Nodes() {
		if s := p.sumScale(n); s.Valid() {
			users[s] = append(users[s], n)
		}
	}
	if len(users) == 0 {
		return
	}
	output := map[*ir.Node]bool{}
	for _, o := range p.graph.Outputs() {
		output[o.Value.Node()] = true
	}
	for s, sums := range users {
		if p.onlySums(s, s, sums, output) {
			for _, n := range sums {
				p.pulled[n] = s
			}
		}
	}
	if len(p.pulled) == 0 {
		return
	}
	for _, n := range slices.Backward(p.graph.Nodes()) {
		uses := p.uses[n.ID()]
		unread := len(uses) > 0 && !output[n] && !slices.ContainsFunc(uses, func(u *ir.Node) bool { return !p.dropped[u] && !p.pulled[u].Valid() })
		p.dropped[n] = unread && (onPath(n) || p.scaleOf(n.Result(0)).Valid())
	}
}

// sumScale returns the scale of a node that is a sum, if it is worth pulling out.
func (p *scalePuller) sumScale(n *ir.Node) ir.Value {
	if n.Op() != ops.OpReduceSum || n.Types()[0].DType != ir.F32 {
		return ir.Value{}
	}
	s, results := p.scaleOf(n.Input(0)), sizeOf(n.Types()[0])
	if !s.Valid() || results < 2 {
		return ir.Value{}
	}
	length := sizeOf(n.Input(0).Type()) / results
	if lengthOf(s) != length || !p.policy.RepeatsRow(results, length) {
		return ir.Value{}
	}
	return s
}

// scaleOf returns the number that is a factor of all elements of a value, or an invalid value.
func (p *scalePuller) scaleOf(v ir.Value) (s ir.Value) {
	n := v.Node()
	switch n.Op() {
	case ops.OpReshape, ops.OpBroadcastInDim, ops.OpMul:
	default:
		return s
	}
	if known, ok := p.scales[v]; ok {
		return known
	}
	for _, in := range n.Inputs() {
		if s.Valid() {
			break
		}
		if s = p.broadcastScale(in); !s.Valid() || n.Op() != ops.OpMul {
			s = p.scaleOf(in)
		}
	}
	p.scales[v] = s
	return s
}

// broadcastScale returns the number whose broadcast a value is, if it is computed from a sum.
func (p *scalePuller) broadcastScale(v ir.Value) ir.Value {
	n := v.Node()
	if n.Op() != ops.OpBroadcastInDim || v.DType() != ir.F32 || sizeOf(n.Input(0).Type()) != 1 || lengthOf(n.Input(0)) == 0 {
		return ir.Value{}
	}
	return n.Input(0)
}

// lengthOf returns the number of terms of the one sum that a number is computed from, or 0.
func lengthOf(v ir.Value) (length int) {
	n := v.Node()
	if sizeOf(v.Type()) != 1 {
		return 0
	}
	if n.Op() == ops.OpReduceSum {
		return sizeOf(n.Input(0).Type())
	}
	if !isMap(n) {
		return 0
	}
	for _, in := range n.Inputs() {
		l := lengthOf(in)
		if l > 0 && length > 0 {
			return 0
		}
		length += l
	}
	return length
}

// onPath reports whether a node computes a number from a sum.
func onPath(n *ir.Node) bool { return lengthOf(n.Result(0)) > 0 }

// onlySums reports whether all that is computed from v, which has the scale s, are sums from which it is pulled.
func (p *scalePuller) onlySums(v, s ir.Value, sums []*ir.Node, output map[*ir.Node]bool) bool {
	if output[v.Node()] {
		return false
	}
	for _, u := range p.uses[v.Node().ID()] {
		if slices.Contains(sums, u) {
			continue
		}
		x := u.Result(0)
		if p.broadcastScale(x) != s && p.scaleOf(x) != s || !p.onlySums(x, s, sums, output) {
			return false
		}
	}
	return true
}

// scaleWriter writes the graph with scales pulled out.
type scaleWriter struct {
	*scalePuller
	b      *ir.Builder
	m      *ir.Mapping
	plain  map[ir.Value]ir.Value // values without their scales
	copies map[string]ir.Value   // scales by the shape of the sums that they are for
}

// product returns a sum of which the scale is pulled out.
func (w *scaleWriter) product(n *ir.Node) ir.Value {
	s, t := w.pulled[n], n.Types()[0]
	key := format.Sprintf("%d %v", s.Node().ID(), t)
	if !w.copies[key].Valid() {
		w.copies[key] = ops.Reshape(w.b, w.copyOf(s))
	}
	sum := w.b.Copy(n, []ir.Value{w.without(n.Input(0))})[0]
	return ops.Mul(w.b, sum, ops.BroadcastInDim(w.b, w.copies[key], t.Shape, nil))
}

// copyOf returns a copy of a number and of the sum from which it is computed.
func (w *scaleWriter) copyOf(v ir.Value) ir.Value {
	n := v.Node()
	if !onPath(n) {
		return w.m.Get(v)
	}
	if n.Op() == ops.OpReduceSum {
		return w.b.Copy(n, w.m.Inputs(n))[0]
	}
	var in []ir.Value
	for _, x := range n.Inputs() {
		in = append(in, w.copyOf(x))
	}
	return w.b.Copy(n, in)[0]
}

// without returns a value divided by its scale.
func (w *scaleWriter) without(v ir.Value) ir.Value {
	if x := w.plain[v]; x.Valid() {
		return x
	}
	n, in := v.Node(), []ir.Value{}
	for i, x := range n.Inputs() {
		switch {
		case n.Op() == ops.OpMul && w.broadcastScale(x).Valid() && w.broadcastScale(x) == w.scaleOf(v):
			w.plain[v] = w.m.Get(n.Input(1 - i))
			return w.plain[v]
		case w.scaleOf(x).Valid() && w.scaleOf(x) == w.scaleOf(v):
			in = append(in, w.without(x))
		default:
			in = append(in, w.m.Get(x))
		}
	}
	w.plain[v] = w.b.Copy(n, in)[0]
	return w.plain[v]
}

// isScaledSum reports whether a node is a sum times a number that is computed from a sum, as pullScales leaves it: stored
// instead of the sum, both are one kernel.
func isScaledSum(n *ir.Node) bool {
	if n.Op() != ops.OpMul || n.Input(0).Node().Op() != ops.OpReduceSum || sizeOf(n.Types()[0]) < 2 {
		return false
	}
	v := n.Input(1)
	return v.Node().Op() == ops.OpBroadcastInDim && sizeOf(v.Node().Input(0).Type()) == 1 && lengthOf(v.Node().Input(0)) > 0
}
