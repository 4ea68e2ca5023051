package derive

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// opRematerialize is the op of package ops that separates the original value from the
// recomputed one, so that CSE does not merge the two.
const opRematerialize ir.Op = "rematerialize"

// Recomputation recomputes values of a graph for the backward pass, each at its first
// use, from the values that are kept (rematerialisation).
type Recomputation struct {
	b     *ir.Builder
	keep  []bool      // by node
	first *ir.Mapping // the values of the forward pass
	again *ir.Mapping // recomputed values, and their kept operands
}

// Recompute adds g to b with in as the values of its ports. It returns the values of its
// outputs and a Recomputation for the other values of g. The nodes marked by
// keep, and the ports, are kept rather than recomputed.
func Recompute(b *ir.Builder, g *ir.Graph, keep []bool, in []ir.Value) ([]ir.Value, *Recomputation) {
	r := &Recomputation{b: b, keep: keep, first: ir.NewMapping(g), again: ir.NewMapping(g)}
	r.first.SetPorts(g, in)
	for _, n := range g.Nodes() {
		if n.Op() != ir.OpPort {
			b.CopyNode(n, r.first)
		}
	}
	return r.first.Outputs(g), r
}

// Value returns v, a value of the graph, and recomputes it if it is not kept.
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

// compute recomputes n and all operands that are not available yet. The kept values that
// it needs are rematerialized first, next to each other, so that CSE and scheduling
// treat them as one.
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
				r.again.Set(v, r.first.Get(v)) // replaced by a rematerialize below
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
			r.b.CopyNode(x, r.again)
		}
	}
}
