package parallel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// largestCombined is the maximum size in bytes of a value whose all_reduce is combined with others:
// below it latency dominates.
const largestCombined = 64 << 10

// sums are all_reduces of one element type along one axis that are combined into one.
type sums struct {
	nodes []*ir.Node
	bytes int
}

// sumKey identifies the all_reduces that can be combined.
type sumKey struct {
	mesh  ops.MeshAttrs
	dtype ir.DType
}

// combiner copies a graph and combines its small all_reduces.
type combiner struct {
	b    *ir.Builder
	m    *ir.Mapping
	open map[sumKey]*sums
	of   map[*ir.Node]sumKey // the pending all_reduces
}

// combined returns a graph that computes the same with small all_reduces, such as those of the
// gradients of biases, combined up to FirstBucket bytes. A combined one runs before the first use
// of one of its values.
func combined(g *ir.Graph) (*ir.Graph, error) {
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		c := &combiner{b: b, m: ir.NewMapping(g), open: map[sumKey]*sums{}, of: map[*ir.Node]sumKey{}}
		b.CopyPorts(g, c.m)
		for _, n := range g.Nodes() {
			if n.Op() == ir.OpPort {
				continue
			}
			for _, v := range n.Inputs() {
				c.need(v.Node())
			}
			if b.Err() != nil {
				return
			}
			if !c.add(n) {
				b.CopyNode(n, c.m)
			}
		}
		for _, o := range g.Outputs() {
			if c.need(o.Value.Node()); b.Err() == nil {
				b.CopyOutput(o, c.m.Get(o.Value))
			}
		}
	})
}

// add adds a node to the pending ones and reports whether it is a small all_reduce.
func (c *combiner) add(n *ir.Node) bool {
	a, ok := n.Attrs().(*ops.AllReduceAttrs)
	if !ok || a.Reduction != ops.AllReduceSum || n.Input(0).Rank() == 0 {
		return false
	}
	size, _ := n.Input(0).Shape().Size().Const()
	bytes := size * n.Input(0).DType().Size()
	if size == 0 || bytes > largestCombined {
		return false
	}
	key := sumKey{a.MeshAttrs, n.Input(0).DType()}
	s := c.open[key]
	if s != nil && s.bytes+bytes > FirstBucket {
		c.flush(key)
		s = nil
	}
	if s == nil {
		s = &sums{}
		c.open[key] = s
	}
	s.nodes, s.bytes, c.of[n] = append(s.nodes, n), s.bytes+bytes, key
	return true
}

// need flushes the pending sums that contain an operand of a node.
func (c *combiner) need(n *ir.Node) {
	if key, ok := c.of[n]; ok {
		c.flush(key)
	}
}

// flush emits pending sums.
func (c *combiner) flush(key sumKey) {
	s := c.open[key]
	delete(c.open, key)
	for _, n := range s.nodes {
		delete(c.of, n)
	}
	if len(s.nodes) == 1 {
		n := s.nodes[0]
		c.b.CopyNode(n, c.m)
		return
	}
	flat := make([]ir.Value, len(s.nodes))
	for i, n := range s.nodes {
		flat[i] = ops.Reshape(c.b, c.m.Get(n.Input(0)), ir.N(-1))
	}
	all, from := ops.AllReduce(c.b, ops.Concatenate(c.b, 0, flat...), key.mesh, ops.AllReduceSum), 0
	for _, n := range s.nodes {
		size, _ := n.Result(0).Shape().Size().Const()
		c.m.Set(n.Result(0), ops.Reshape(c.b, ops.SliceAxis(c.b, all, 0, ir.N(from), ir.N(size)), n.Result(0).Shape()...))
		from += size
	}
}
