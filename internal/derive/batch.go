package derive

import "github.com/rlx-go/rlx/ir"

// Batch adds the nodes of g to b with a batch axis (vmap).
// in are the values of its ports; axes has the position of the batch
// axis of the given size in each, -1 for an unbatched one. It returns the
// values of the outputs and their batch axes, -1 for an output that
// does not depend on the batch. A composite without a Batch rule is inlined
// if one of its operands is batched. The error is of kind [ir.ErrNoRule] for an
// op that cannot be batched.
func Batch(b *ir.Builder, g *ir.Graph, in []ir.Value, axes []int, size ir.Dim) (out []ir.Value, outAxes []int) {
	defer restoreOrigin(b)()
	m, at := ir.NewMapping(g), make([][]int, len(g.Nodes()))
	for i, p := range g.Ports() {
		m.Set(p.Value, in[i])
		at[p.Value.Node().ID()] = []int{axes[i]}
	}
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		if b.Err() != nil {
			break
		}
		setOrigin(b, n)
		inAxes := make([]int, len(n.Inputs()))
		for i, v := range n.Inputs() {
			inAxes[i] = at[v.Node().ID()][v.Index()]
		}
		results, resAxes := batchNode(b, n, m.Inputs(n), inAxes, size)
		m.SetAll(n, results)
		at[n.ID()] = resAxes
	}
	outAxes = make([]int, len(g.Outputs()))
	for i, o := range g.Outputs() {
		if a := at[o.Value.Node().ID()]; o.Value.Index() < len(a) {
			outAxes[i] = a[o.Value.Index()]
		}
	}
	return m.Outputs(g), outAxes
}

func batchNode(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) (out []ir.Value, outAxes []int) {
	d := n.Def()
	switch {
	case !anyBatched(axes):
		outAxes = make([]int, n.NumResults())
		for i := range outAxes {
			outAxes[i] = -1
		}
		return b.Copy(n, in), outAxes
	case d.Batch != nil:
		out, outAxes = d.Batch(b, n, in, axes, size)
		checkBatch(b, n, out, outAxes, size)
		return out, outAxes
	case d.Body != nil:
		g, err := ir.Inline(n)
		if err != nil {
			b.Fail(n.Fail(err))
			return nil, nil
		}
		return Batch(b, g, in, axes, size)
	}
	b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "%s cannot be batched: %s", n.Op(), ruleReason(d.NoBatch))))
	return nil, nil
}

// checkBatch records an error if the results of a batching rule do not have the types
// of the node's results with the batch axis inserted.
func checkBatch(b *ir.Builder, n *ir.Node, out []ir.Value, axes []int, size ir.Dim) {
	if b.Err() != nil {
		return
	}
	if len(out) != n.NumResults() || len(axes) != n.NumResults() {
		b.Fail(n.Fail(ir.Errorf(ir.ErrGraph, "the batching rule returned %d values and %d axes; it must return %d", len(out), len(axes), n.NumResults())))
		return
	}
	for i, v := range out {
		want := n.Types()[i]
		if axes[i] >= 0 {
			want = withAxis(want, axes[i], size)
		}
		if !v.Type().Equal(want) {
			b.Fail(n.Fail(ir.Shapef("the batching rule returned %s; it must return %s", v.Type(), want)))
			return
		}
	}
}

// withAxis returns t with an axis of the given size inserted.
func withAxis(t ir.Type, axis int, size ir.Dim) ir.Type {
	s := make(ir.Shape, 0, len(t.Shape)+1)
	axis = min(axis, len(t.Shape))
	s = append(append(append(s, t.Shape[:axis]...), size), t.Shape[axis:]...)
	return ir.Type{DType: t.DType, Shape: s}
}

func anyBatched(axes []int) bool {
	for _, a := range axes {
		if a >= 0 {
			return true
		}
	}
	return false
}
