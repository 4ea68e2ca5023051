package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// splitConcatenations returns the graph with concatenations of more operands
// than a kernel binds besides the result made of shorter ones.
func splitConcatenations(g *ir.Graph, tensors int) (*ir.Graph, error) {
	long := func(n *ir.Node) bool { return n.Op() == ops.OpConcatenate && len(n.Inputs()) >= tensors }
	if !slices.ContainsFunc(g.Nodes(), long) {
		return g, nil
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		for _, n := range g.Nodes() {
			in := m.Inputs(n)
			if n.Op() == ir.OpPort {
				continue
			}
			if long(n) {
				in = joinedEqually(b, n.Attrs().(*ops.AxisAttrs).Axis, in, tensors-1)
			}
			m.SetAll(n, b.Copy(n, in))
		}
		for _, o := range g.Outputs() {
			b.CopyOutput(o, m.Get(o.Value))
		}
	})
}

// joinedEqually joins values along an axis until no more than most are left,
// each about as long as the others.
func joinedEqually(b *ir.Builder, axis int, in []ir.Value, most int) []ir.Value {
	for len(in) > most {
		var out []ir.Value
		for part := range slices.Chunk(in, most) {
			out = append(out, ops.Concatenate(b, axis, part...))
		}
		in = out
	}
	return in
}
