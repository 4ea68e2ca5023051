package derive

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// opRematerialize is the op of package ops that parts the two times a value is
// computed.
const opRematerialize ir.Op = "rematerialize"

// Recomputation gives values of a graph a second time, each as late as it is
// asked for: from those that were kept, through all that is in between.
type Recomputation struct {
	b     *ir.Builder
	keep  []bool      // by node
	first *ir.Mapping // the values of ports and of what is kept
	again *ir.Mapping // what was computed again, and what is kept as it goes in there
}

// Recompute adds g to b for the values in of its ports, and returns those of its
// outputs and what gives any value of g again. Of the nodes of g those marked by
// keep are kept, and its ports.
func Recompute(b *ir.Builder, g *ir.Graph, keep []bool, in []ir.Value) ([]ir.Value, *Recomputation) {
	r := &Recomputation{b: b, keep: keep, first: ir.NewMapping(g), again: ir.NewMapping(g)}
	for i, p := range g.Ports() {
		r.first.Set(p.Value, in[i])
	}
	for _, n := range g.Nodes() {
		if n.Op() != ir.OpPort {
			r.first.SetAll(n, b.Copy(n, r.first.Inputs(n)))
		}
	}
	return outputs(g, r.first), r
}

// Value returns v, a value of the graph.
func (r *Recomputation) Value(v ir.Value) ir.Value {
	if r.isKept(v.Node()) {
		return r.first.Get(v)
	}
	if !r.again.Get(v).Valid() && r.b.Err() == nil {
		r.compute(v.Node())
	}
	return r.again.Get(v)
}

func (r *Recomputation) isKept(n *ir.Node) bool { return n.Op() == ir.OpPort || r.keep[n.ID()] }

// compute adds n again, and all that it needs and is not there yet: first what
// goes into it, side by side, so that it is known for one part.
func (r *Recomputation) compute(n *ir.Node) {
	defer restoreOrigin(r.b)()
	var nodes []*ir.Node
	var entering []ir.Value
	seen := map[*ir.Node]bool{n: true}
	for queue := []*ir.Node{n}; len(queue) > 0; queue = queue[1:] {
		nodes = append(nodes, queue[0])
		for _, v := range queue[0].Inputs() {
			switch x := v.Node(); {
			case r.again.Get(v).Valid():
			case r.isKept(x):
				r.again.Set(v, r.first.Get(v)) // until it is marked below
				entering = append(entering, v)
			case !seen[x]:
				seen[x] = true
				queue = append(queue, x)
			}
		}
	}
	for _, v := range entering {
		r.again.Set(v, r.b.Add1(opRematerialize, nil, r.first.Get(v)))
	}
	slices.SortFunc(nodes, func(x, y *ir.Node) int { return x.ID() - y.ID() })
	for _, x := range nodes {
		if r.b.Err() == nil {
			r.again.SetAll(x, r.b.Copy(x, r.again.Inputs(x)))
		}
	}
}
