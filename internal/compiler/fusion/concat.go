package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// splitConcatenations splits each concatenation with more operands than a kernel
// can bind besides the result into a tree of shorter ones.
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
				in = joined(b, n.Attrs().(*ops.AxisAttrs).Axis, in, tensors-1)
			}
			m.SetAll(n, b.Copy(n, in))
		}
		for _, o := range g.Outputs() {
			b.CopyOutput(o, m.Get(o.Value))
		}
	})
}

// joined concatenates values in rounds until at most limit are left, all of about
// the same length.
func joined(b *ir.Builder, axis int, in []ir.Value, limit int) []ir.Value {
	for len(in) > limit {
		var out []ir.Value
		for part := range slices.Chunk(in, limit) {
			out = append(out, ops.Concatenate(b, axis, part...))
		}
		in = out
	}
	return in
}
