package parallel

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// version is a value on this device.
type version struct {
	v ir.Value
	s spec
	// partial is, per mesh axis, the pending reduction of the value over devices.
	partial map[string]string
}

// build copies the graph with this device's parts of each node.
func (c *partitioner) build(b *ir.Builder) {
	c.b, c.versions, c.indices = b, map[ir.Value][]version{}, map[string]ir.Value{}
	for _, port := range c.g.Ports() {
		s := c.stored[port.Value]
		c.versions[port.Value] = []version{{v: b.PortLike(port, c.local(port.Value.Type(), s)), s: s}}
	}
	for _, a := range c.Mesh {
		if a.Size > 1 {
			c.indices[a.Name] = ops.AxisIndex(b, ops.MeshAttrs{MeshAxis: a.Name, Devices: a.Size})
		}
	}
	c.gathers = findGathers(c.g, c.uses, cmp.Or(c.Bucket, DefaultBucket), cmp.Or(c.Ahead, DefaultAhead), c.gatherParams)
	for _, n := range c.g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		c.gathers.before(n)
		c.at = n
		b.Label(n.Label())
		c.copy(n)
		if b.Err() != nil {
			return
		}
	}
	c.gathers.before(nil)
	c.at = nil
	for i, o := range c.g.Outputs() {
		v := c.get(o.Value, c.outputs[i])
		if b.Err() != nil {
			return
		}
		b.CopyOutput(o, v)
	}
}

// local returns the shape of this device's part of a type.
func (c *partitioner) local(t ir.Type, s spec) ir.Shape {
	shape := t.Shape.Clone()
	for dim, axis := range s {
		if size, ok := shape[dim].Const(); ok && axis != "" {
			shape[dim] = ir.N(size / c.size(axis))
		}
	}
	return shape
}

// specOf returns the sharding of a value by the factors of its dimensions.
func specOf(dims []int, chosen []string) spec {
	s := make(spec, len(dims))
	for dim, k := range dims {
		if k >= 0 {
			s[dim] = chosen[k]
		}
	}
	return s
}

// uses returns the parameters that a node uses with another sharding than they are stored with. For
// a nil node it returns those of the outputs.
func (c *partitioner) uses(n *ir.Node) (out []ir.Value) {
	add := func(v ir.Value, want spec) {
		if c.Params && c.weights[v] && v.Node().Op() == ir.OpPort && !slices.Equal(want, c.stored[v]) && c.stored[v].at(c.States) >= 0 {
			out = append(out, v)
		}
	}
	if n == nil {
		for i, o := range c.g.Outputs() {
			add(o.Value, c.outputs[i])
		}
		return out
	}
	for i, v := range n.Inputs() {
		add(v, specOf(c.factors[n.ID()].in[i], c.chosen[n.ID()]))
	}
	return out
}

// gatherParams gathers stored parts of parameters to the shardings that nodes use.
func (c *partitioner) gatherParams(params []ir.Value, again bool) {
	for _, v := range params {
		own := c.versions[v][0]
		x := own.v
		if again {
			x = ops.Rematerialize(c.b, x)
		}
		c.at = v.Node()
		whole := c.reshard(v, version{v: x, s: own.s}, c.specs[v])
		c.versions[v] = []version{own, {v: whole, s: c.specs[v]}}
	}
}

// copy copies a node with this device's parts of its operands.
func (c *partitioner) copy(n *ir.Node) {
	f, chosen := c.factors[n.ID()], c.chosen[n.ID()]
	if n.Op() == ops.OpSumAll {
		c.sumAll(n)
		return
	}
	in, partial := c.partials(n, f)
	if partial != nil { // the axes are those of a deferred reduction
		chosen = slices.Clone(chosen)
		for k, axis := range chosen {
			if partial[axis] != "" {
				chosen[k] = ""
			}
		}
	} else {
		in, partial = c.operands(n, f, chosen), map[string]string{}
	}
	if c.b.Err() != nil {
		return
	}
	for k, axis := range chosen {
		if axis != "" && f.list[k].combine != "" {
			partial[axis] = f.list[k].combine
		}
		if axis != "" && f.list[k].indexed {
			in[1] = c.shifted(in[1], sizeOf(n.Input(0), slices.Index(f.in[0], k)), axis)
		}
	}
	out := c.node(n, in, chosen)
	if c.b.Err() != nil {
		return
	}
	for i, v := range out {
		s := specOf(f.out[i], chosen)
		if want := c.local(n.Result(i).Type(), s); !v.Shape().Equal(want) {
			c.b.Fail(n.Fail(ir.Shapef("a device's part is %s, not %s", v.Shape(), want)))
			return
		}
		own := version{v: v, s: s, partial: maps.Clone(partial)}
		if len(partial) > 0 && !c.defers(n.Result(i), partial) {
			own = c.resolved(n.Result(i), own)
		}
		c.versions[n.Result(i)] = []version{own}
	}
}

// operands returns this device's parts of the operands of a node.
func (c *partitioner) operands(n *ir.Node, f *Factors, chosen []string) []ir.Value {
	in := make([]ir.Value, len(n.Inputs()))
	for i, v := range n.Inputs() {
		if !c.checkWhole(n, i) {
			break
		}
		if in[i] = c.get(v, specOf(f.in[i], chosen)); c.b.Err() != nil {
			break
		}
	}
	return in
}

// partials returns the operands of a linear node unreduced, with their common pending reduction.
// It returns nil if their pending reductions differ or the sharding differs from the node's.
func (c *partitioner) partials(n *ir.Node, f *Factors) ([]ir.Value, map[string]string) {
	if !isLinear(n) {
		return nil, nil
	}
	in, first := make([]ir.Value, len(n.Inputs())), c.versions[n.Input(0)][0]
	for i, v := range n.Inputs() {
		x, want := c.versions[v][0], specOf(f.in[i], c.chosen[n.ID()])
		for dim, axis := range want {
			if first.partial[axis] != "" {
				want[dim] = ""
			}
		}
		if len(x.partial) == 0 || !maps.Equal(x.partial, first.partial) || !slices.Equal(x.s, want) {
			return nil, nil
		}
		in[i] = x.v
	}
	return in, maps.Clone(first.partial)
}

// isLinear reports whether a node adds or moves elements, so that a reduction over devices commutes
// with it.
func isLinear(n *ir.Node) bool {
	switch n.Op() {
	case ops.OpAdd, ops.OpSub, ops.OpNeg, ops.OpTranspose, ops.OpReshape:
		return true
	}
	return false
}

// defers reports whether the reduction of a value over devices is left to its only user.
func (c *partitioner) defers(v ir.Value, partial map[string]string) bool {
	for _, reduction := range partial {
		if reduction != ops.AllReduceSum {
			return false
		}
	}
	users := c.users[v]
	isOutput := slices.ContainsFunc(c.g.Outputs(), func(o ir.Output) bool { return o.Value == v })
	return len(users) == 1 && isLinear(users[0]) && !isOutput
}

// node adds a node with divided operands, with the sizes in its attributes divided too.
func (c *partitioner) node(n *ir.Node, in []ir.Value, chosen []string) []ir.Value {
	f := c.factors[n.ID()]
	shape := func() ir.Shape { return c.local(n.Result(0).Type(), specOf(f.out[0], chosen)) }
	switch a := n.Attrs().(type) {
	case *ops.BroadcastAttrs:
		return c.b.CopyWith(n, &ops.BroadcastAttrs{Shape: shape(), Axes: a.Axes}, nil, in)
	case *ops.ReshapeAttrs:
		return c.b.CopyWith(n, &ops.ReshapeAttrs{Shape: shape()}, nil, in)
	case *ops.IotaAttrs:
		return c.b.CopyWith(n, &ops.IotaAttrs{DType: a.DType, Axis: a.Axis, Shape: shape()}, nil, in)
	case *ops.SliceAttrs:
		return c.b.CopyWith(n, &ops.SliceAttrs{Start: a.Start, Size: shape(), Stride: a.Stride}, nil, in)
	}
	return c.b.CopyWith(n, n.Attrs(), n.Subgraphs(), in)
}

// shifted returns indices of a dimension relative to this device's part; indices of other parts are
// out of range.
func (c *partitioner) shifted(indices ir.Value, size int, axis string) ir.Value {
	part := ops.Const(c.b, indices.DType(), float64(size/c.size(axis)))
	from := ops.Mul(c.b, ops.Convert(c.b, c.indices[axis], indices.DType()), part)
	return ops.Sub(c.b, indices, ops.BroadcastTo(c.b, from, indices.Shape()))
}

// sumAll adds the operands on this device, grouped by the axes that they are partial along, so that
// each group needs one all_reduce.
func (c *partitioner) sumAll(n *ir.Node) {
	groups := map[string][]ir.Value{}
	axes := map[string][]string{}
	var order []string
	for _, v := range n.Inputs() {
		x := c.best(v)
		var own []string
		for _, a := range c.Mesh {
			if x.s.at(a.Name) >= 0 {
				own = append(own, a.Name)
			}
		}
		key := joined(own)
		if groups[key] == nil {
			order, axes[key] = append(order, key), own
		}
		groups[key] = append(groups[key], x.v)
	}
	var sum ir.Value
	for _, key := range order {
		part := c.b.CopyWith(n, n.Attrs(), nil, groups[key])[0]
		for _, axis := range axes[key] {
			part = c.reduced(part, axis, ops.AllReduceSum)
		}
		if sum.Valid() {
			part = ops.Add(c.b, sum, part)
		}
		sum = part
	}
	if c.b.Err() == nil {
		c.versions[n.Result(0)] = []version{{v: sum, s: spec{}}}
	}
}
