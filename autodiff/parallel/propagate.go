package parallel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// spec has the mesh axis along which each dimension of a value is divided, "" for none.
type spec []string

// at returns the dimension that is divided along an axis, -1 for none.
func (s spec) at(axis string) int { return slices.Index(s, axis) }

func (s spec) isDivided() bool {
	return slices.ContainsFunc(s, func(axis string) bool { return axis != "" })
}

// taken returns a graph with composites without a rule inlined, except those with kernels of their
// own.
func taken(g *ir.Graph) (*ir.Graph, error) {
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		takeApart(b, g, m)
		for _, o := range g.Outputs() {
			if b.Err() == nil {
				b.CopyOutput(o, m.Get(o.Value))
			}
		}
	})
}

// takeApart copies the nodes of a graph and inlines composites without a rule.
func takeApart(b *ir.Builder, g *ir.Graph, m *ir.Mapping) {
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		d, in := n.Def(), m.Inputs(n)
		_, kernels := d.Lower.(*ir.KernelsLowering)
		if d.Body == nil || kernels || ruleOf(d) != nil || ops.IsCollective(n) {
			m.SetAll(n, b.Copy(n, in))
			continue
		}
		body := b.Subgraph("body", func(s *ir.Builder) {
			ports := make([]ir.Value, len(in))
			for i, v := range n.Inputs() {
				ports[i] = s.Port(ir.InputPort, "x"+itoa(i), v.Type())
			}
			for i, v := range d.Body(s, n, ports) {
				s.Output("y"+itoa(i), v)
			}
		})
		if b.Err() != nil {
			return
		}
		inner := ir.NewMapping(body)
		for i, p := range body.Ports() {
			inner.Set(p.Value, in[i])
		}
		takeApart(b, body, inner)
		if b.Err() != nil {
			return
		}
		for i, o := range body.Outputs() {
			m.Set(n.Result(i), inner.Get(o.Value))
		}
	}
}

// partitioner divides one graph.
type partitioner struct {
	Partition
	g       *ir.Graph
	report  *PartitionReport
	limit   int64
	factors []*Factors        // by node
	chosen  [][]string        // by node, the mesh axis of each factor
	specs   map[ir.Value]spec // shardings of values as nodes use them
	stored  map[ir.Value]spec // shardings of ports as stored
	weights map[ir.Value]bool // parameters, and values computed from one parameter alone
	outputs []spec
	users   map[ir.Value][]*ir.Node

	b        *ir.Builder
	versions map[ir.Value][]version
	gathers  *gathers
	indices  map[string]ir.Value // this device's index along each axis
	at       *ir.Node            // the node whose operands are resharded, nil for outputs
}

// prepare finds the factors of all nodes, and the shardings of ports and outputs.
func (c *partitioner) prepare(placements map[string]Placement) error {
	c.factors, c.chosen = make([]*Factors, len(c.g.Nodes())), make([][]string, len(c.g.Nodes()))
	c.specs, c.stored, c.weights, c.users = map[ir.Value]spec{}, map[ir.Value]spec{}, map[ir.Value]bool{}, map[ir.Value][]*ir.Node{}
	for _, n := range c.g.Nodes() {
		for i := range n.NumResults() {
			if _, ok := n.Result(i).Shape().Ints(); !ok {
				return n.Fail(ir.Errorf(ir.ErrSymbol, "a value is %s; its sizes must be constant", n.Result(i).Type()))
			}
			c.specs[n.Result(i)] = make(spec, n.Result(i).Rank())
		}
		if ops.IsCollective(n) {
			return n.Fail(ir.Errorf(ir.ErrUnsupported, "the graph has a collective already"))
		}
		c.factors[n.ID()] = factorsOf(n)
		isMove := n.Op() == ops.OpTranspose || n.Op() == ops.OpReshape || n.Op() == ops.OpConvert || n.Op() == ops.OpRematerialize
		for _, v := range n.Inputs() {
			c.users[v] = append(c.users[v], n)
			if c.weights[v] && isMove {
				c.weights[n.Result(0)] = true
			}
		}
		if a, ok := n.Attrs().(*ir.PortAttrs); ok && a.Kind == ir.ParamPort {
			c.weights[n.Result(0)] = true
		}
	}
	for _, port := range c.g.Ports() {
		if err := c.preparePort(port, placements); err != nil {
			return err
		}
	}
	for _, o := range c.g.Outputs() {
		s := make(spec, o.Value.Rank())
		var err error
		if port, ok := c.g.Port(o.Name); ok && o.State {
			s = c.stored[port.Value]
		} else if i := c.match(o.Name); i >= 0 {
			s, err = c.spec(o.Name, o.Value.Type(), c.Shardings[i].Axes)
		}
		if err != nil {
			return err
		}
		c.outputs = append(c.outputs, s)
	}
	return nil
}

// preparePort sets the stored sharding of a port and the sharding that nodes use: for parameters
// divided like states, that without States.
func (c *partitioner) preparePort(port ir.Port, placements map[string]Placement) error {
	v := port.Value
	placement, ok := placements[port.Name]
	s := make(spec, v.Rank())
	switch i := c.match(port.Name); {
	case port.Kind == ir.InputPort && i >= 0:
		var err error
		if s, err = c.spec(port.Name, v.Type(), c.Shardings[i].Axes); err != nil {
			return err
		}
	case port.Kind == ir.InputPort || !ok:
	case len(placement.Axes) != v.Rank() || !placement.Type.Equal(v.Type()) || !c.divides(placement.Axes, v.Type()):
		return ir.Attrf("%q is %s, and its placement is for %s along %q", port.Name, v.Type(), placement.Type, placement.Axes)
	default:
		for dim, axis := range placement.Axes {
			if c.size(axis) > 1 {
				s[dim] = axis
			}
		}
	}
	c.stored[v], c.specs[v] = s, slices.Clone(s)
	c.report.add(port, s)
	if port.Kind == ir.ParamPort && c.Params {
		own := make(spec, v.Rank())
		if i := c.match(port.Name); i >= 0 {
			var err error
			if own, err = c.spec(port.Name, v.Type(), c.Shardings[i].Axes); err != nil {
				return err
			}
		}
		c.specs[v] = own
	}
	return nil
}

// propagate finds the shardings of all values: from operands to results, and from the results of
// elementwise ops and moves back to operands, until nothing changes.
func (c *partitioner) propagate() {
	const rounds = 8
	nodes := c.g.Nodes()
	for range rounds {
		changed := false
		for _, n := range nodes {
			chosen := c.choose(n)
			for i, dims := range c.factors[n.ID()].out {
				changed = c.assign(n.Result(i), dims, chosen) || changed
			}
		}
		for _, n := range slices.Backward(nodes) {
			if !passesBack(n) {
				continue
			}
			chosen := c.choose(n)
			for i, v := range n.Inputs() {
				if v.Node().Op() != ir.OpPort {
					changed = c.assign(v, c.factors[n.ID()].in[i], chosen) || changed
				}
			}
		}
		if !changed {
			break
		}
	}
	for _, n := range nodes {
		c.chosen[n.ID()] = c.choose(n)
	}
}

// passesBack reports whether operands take the sharding of the result.
func passesBack(n *ir.Node) bool {
	switch n.Op() {
	case ops.OpTranspose, ops.OpReshape, ops.OpBroadcastInDim:
		return true
	}
	return n.Def().Scalar != nil
}

// assign divides the undivided dimensions of a value by the axes of a node's factors, and reports
// whether it changed any.
func (c *partitioner) assign(v ir.Value, dims []int, chosen []string) (changed bool) {
	s := c.specs[v]
	for dim, k := range dims {
		if k < 0 || chosen[k] == "" || s[dim] != "" || s.at(chosen[k]) >= 0 {
			continue
		}
		if sizeOf(v, dim)%c.size(chosen[k]) == 0 {
			s[dim], changed = chosen[k], true
		}
	}
	return changed
}

// choose returns the mesh axis that divides each factor of a node, "" for none. Among the factors
// that an axis divides in an operand or result it picks the one with the fewest bytes over the
// wire. It always picks one, since otherwise all devices would compute the same.
func (c *partitioner) choose(n *ir.Node) []string {
	f := c.factors[n.ID()]
	chosen := make([]string, len(f.list))
	for _, a := range c.Mesh {
		if a.Size == 1 {
			continue
		}
		best, least := -1, 0.0
		for k := range f.list {
			if chosen[k] != "" || f.list[k].size%a.Size != 0 || !c.isDividedBy(n, f, a.Name, k) {
				continue
			}
			if cost := c.cost(n, f, a, k); best < 0 || cost < least {
				best, least = k, cost
			}
		}
		if best >= 0 {
			chosen[best] = a.Name
		}
	}
	return chosen
}

// isDividedBy reports whether an operand or result is divided along an axis by a factor.
func (c *partitioner) isDividedBy(n *ir.Node, f *Factors, axis string, k int) bool {
	for i, v := range n.Inputs() {
		if d := c.specs[v].at(axis); d >= 0 && f.in[i][d] == k {
			return true
		}
	}
	for i, dims := range f.out {
		if d := c.specs[n.Result(i)].at(axis); d >= 0 && dims[d] == k {
			return true
		}
	}
	return false
}

// weightCost is the factor by which moving a weight costs more than moving an activation, so that
// divided weights stay divided.
const weightCost = 1000

// cost returns the bytes that a device sends along an axis if a factor of a node is divided.
func (c *partitioner) cost(n *ir.Node, f *Factors, a Axis, k int) float64 {
	share := float64(a.Size-1) / float64(a.Size)
	sum := 0.0
	for i, v := range n.Inputs() {
		d := c.specs[v].at(a.Name)
		if d < 0 || f.in[i][d] == k {
			continue
		}
		bytes := c.bytesWithout(v, a.Name) * share
		if slices.Contains(f.in[i], k) {
			bytes /= float64(a.Size) // an all_to_all
		}
		if c.weights[v] {
			bytes *= weightCost
		}
		sum += bytes
	}
	for i, dims := range f.out {
		d := c.specs[n.Result(i)].at(a.Name)
		bytes := c.bytesWithout(n.Result(i), a.Name) * share
		switch {
		case f.list[k].combine != "":
			if sum += bytes; d < 0 {
				sum += bytes
			}
		case d >= 0 && dims[d] != k && slices.Contains(dims, k):
			sum += bytes / float64(a.Size)
		}
	}
	return sum
}

// bytesWithout returns the bytes of a value on a device if the axis does not divide it.
func (c *partitioner) bytesWithout(v ir.Value, axis string) float64 {
	size, _ := v.Shape().Size().Const()
	bytes := float64(size * v.DType().Size())
	for _, other := range c.specs[v] {
		if other != "" && other != axis {
			bytes /= float64(c.size(other))
		}
	}
	return bytes
}
