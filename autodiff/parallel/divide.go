package parallel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// layout divides arrays into equal parts, one for each device: consecutive elements in row-major
// order, padded with zeros.
type layout struct {
	b    *ir.Builder
	mesh ops.MeshAttrs
}

// partOf returns the number of elements of a device's part of an array, and the padding of the last
// part.
func (l layout) partOf(t ir.Type) (part, padding int) {
	size, _ := t.Shape.Size().Const()
	part = (size + l.mesh.Devices - 1) / l.mesh.Devices
	return part, part*l.mesh.Devices - size
}

// rows returns an array reshaped to [devices, part].
func (l layout) rows(x ir.Value) ir.Value {
	part, padding := l.partOf(x.Type())
	flat := ops.Reshape(l.b, x, ir.N(-1))
	if padding > 0 {
		flat = ops.Concatenate(l.b, 0, flat, ops.Zeros(l.b, x.DType(), ir.N(padding)))
	}
	return ops.Reshape(l.b, flat, ir.N(l.mesh.Devices), ir.N(part))
}

// hasEqualRows reports whether a part is a block of rows, so that dividing the array needs no copy.
func (l layout) hasEqualRows(t ir.Type) bool {
	rows, _ := t.Shape[0].Const()
	return rows > 0 && rows%l.mesh.Devices == 0
}

// scatter returns this device's parts of the sums over devices of some arrays, concatenated: [1,
// sum of the parts].
func (l layout) scatter(arrays []ir.Value) ir.Value {
	if len(arrays) == 1 && arrays[0].Rank() > 0 && l.hasEqualRows(arrays[0].Type()) {
		return ops.Reshape(l.b, ops.ReduceScatter(l.b, arrays[0], l.mesh, 0), ir.N(1), ir.N(-1))
	}
	rows := make([]ir.Value, len(arrays))
	for i, x := range arrays {
		rows[i] = l.rows(x)
	}
	return ops.ReduceScatter(l.b, ops.Concatenate(l.b, 1, rows...), l.mesh, 0)
}

// gather returns whole arrays of the given types from their concatenated parts x, [1, sum of the
// parts], on each device.
func (l layout) gather(x ir.Value, types []ir.Type) []ir.Value {
	if t := types[0]; len(types) == 1 && len(t.Shape) > 0 && l.hasEqualRows(t) {
		rows := t.Shape.Clone()
		rows[0], _ = rows[0].Div(ir.N(l.mesh.Devices))
		return []ir.Value{ops.AllGather(l.b, ops.Reshape(l.b, x, rows...), l.mesh, 0)}
	}
	all := ops.AllGather(l.b, x, l.mesh, 0)
	out, from := make([]ir.Value, len(types)), 0
	for i, t := range types {
		part, padding := l.partOf(t)
		flat := ops.Reshape(l.b, ops.SliceAxis(l.b, all, 1, ir.N(from), ir.N(part)), ir.N(-1))
		if padding > 0 {
			flat = ops.SliceAxis(l.b, flat, 0, ir.N(0), ir.N(part*l.mesh.Devices-padding))
		}
		out[i], from = ops.Reshape(l.b, flat, t.Shape...), from+part
	}
	return out
}

// own returns this device's part of an array, [part].
func (l layout) own(x, index ir.Value) ir.Value {
	if shard := l.gathered(x); shard.Valid() {
		return shard
	}
	part, _ := l.partOf(x.Type())
	start := ops.Concatenate(l.b, 0, ops.Reshape(l.b, index, ir.N(1)), ops.Zeros(l.b, ir.I32, ir.N(1)))
	return ops.Reshape(l.b, ops.DynamicSlice(l.b, l.rows(x), start, ir.N(1), ir.N(part)), ir.N(part))
}

// gathered returns the part that this device contributed to a result of gather, or an invalid Value
// for other arrays.
func (l layout) gathered(x ir.Value) ir.Value {
	n := x.Node()
	if n.Op() == ir.OpPort {
		return ir.Value{}
	}
	for n.Op() == ops.OpReshape || n.Op() == ops.OpSlice && n.Input(0).Rank() == 1 {
		n = n.Input(0).Node()
	}
	part, _ := l.partOf(x.Type())
	if size, _ := n.Input(0).Shape().Size().Const(); l.isGather(n) && size == part {
		return ops.Reshape(l.b, n.Input(0), ir.N(part)) // gathered on its own
	}
	a, ok := n.Attrs().(*ops.SliceAttrs)
	if !ok || !l.isGather(n.Input(0).Node()) || len(a.Size) != 2 {
		return ir.Value{}
	}
	all := n.Input(0).Node()
	if got, _ := a.Size[1].Const(); got != part || all.Input(0).Rank() != 2 {
		return ir.Value{}
	}
	return ops.Reshape(l.b, ops.SliceAxis(l.b, all.Input(0), 1, a.Start[1], a.Size[1]), ir.N(part))
}

// isGather reports whether a node is an all_gather along the first axis among these devices.
func (l layout) isGather(n *ir.Node) bool {
	a, ok := n.Attrs().(*ops.AlongAttrs)
	return ok && n.Op() == ops.OpAllGather && a.Axis == 0 && a.MeshAttrs == l.mesh
}

// sharder copies a graph with its updates computed on parts.
type sharder struct {
	*update
	layout
	m       *ir.Mapping
	divided map[string]bool // names of ports
	index   ir.Value
	parts   map[ir.Value]ir.Value // of the graph's values
	bucket  int
	ahead   int
}

func (c *sharder) build() {
	for _, p := range c.g.Ports() {
		if !c.isDivided(p) {
			c.m.Set(p.Value, c.b.CopyPort(p))
			continue
		}
		part, _ := c.partOf(p.Value.Type())
		c.parts[p.Value] = c.b.PortLike(p, ir.Shape{ir.N(part)})
	}
	c.index = ops.AxisIndex(c.b, c.mesh)
	gathers := findGathers(c.g, c.uses, c.bucket, c.ahead, c.gatherParams)
	for _, n := range c.g.Nodes() {
		if n.Op() == ir.OpPort || c.region[n] {
			continue
		}
		gathers.before(n)
		if c.b.Err() != nil {
			return
		}
		c.b.CopyNode(n, c.m)
	}
	gathers.before(nil)
	if c.b.Err() == nil {
		c.outputs()
	}
}

func (c *sharder) isDivided(p ir.Port) bool { return p.Kind != ir.InputPort && c.divided[p.Name] }

// updatesDivided reports whether an output is the new value of a divided state.
func (c *sharder) updatesDivided(o ir.Output) bool { return o.State && c.divided[o.Name] }

// part returns this device's part of a value of the step. It computes elementwise nodes from the
// parts of their operands.
func (c *sharder) part(v ir.Value) ir.Value {
	if known, ok := c.parts[v]; ok {
		return known
	}
	n := v.Node()
	var out ir.Value
	switch {
	case c.m.Get(v).Valid() && c.gathered(c.m.Get(v)).Valid():
		out = c.own(c.m.Get(v), c.index)
	case isElementwise(n, v.Shape()):
		in := make([]ir.Value, len(n.Inputs()))
		for i, x := range n.Inputs() {
			in[i] = c.part(x)
		}
		out = c.b.Copy(n, in)[0]
	case n.Op() == ops.OpBroadcastInDim && n.Input(0).Rank() == 0:
		size, _ := c.partOf(v.Type())
		out = ops.BroadcastTo(c.b, c.m.Get(n.Input(0)), ir.Shape{ir.N(size)})
	default:
		out = c.own(c.m.Get(v), c.index)
	}
	c.parts[v] = out
	return out
}

// outputs declares the outputs. Values computed in parts, other than divided states, are gathered
// in buckets of one element type.
func (c *sharder) outputs() {
	whole := map[ir.Value]ir.Value{}
	var open []ir.Value
	bytes := 0
	flush := func() {
		rows, types := make([]ir.Value, len(open)), make([]ir.Type, len(open))
		for i, v := range open {
			size, _ := c.partOf(v.Type())
			rows[i], types[i] = ops.Reshape(c.b, c.part(v), ir.N(1), ir.N(size)), v.Type()
		}
		if len(open) > 0 {
			for i, x := range c.gather(ops.Concatenate(c.b, 1, rows...), types) {
				whole[open[i]] = x
			}
		}
		open, bytes = nil, 0
	}
	for _, o := range c.g.Outputs() {
		if c.updatesDivided(o) || !c.region[o.Value.Node()] || slices.Contains(open, o.Value) || whole[o.Value].Valid() {
			continue
		}
		size, _ := o.Value.Shape().Size().Const()
		add := size * o.Value.DType().Size()
		if len(open) > 0 && (bytes+add > c.bucket || open[0].DType() != o.Value.DType()) {
			flush()
		}
		open, bytes = append(open, o.Value), bytes+add
	}
	flush()
	for _, o := range c.g.Outputs() {
		switch {
		case c.updatesDivided(o):
			c.b.CopyOutput(o, c.part(o.Value))
		case whole[o.Value].Valid():
			c.b.CopyOutput(o, whole[o.Value])
		default:
			c.b.CopyOutput(o, c.m.Get(o.Value))
		}
	}
}

// withoutDead returns a graph without the nodes that no output depends on: collectives of whole
// gradients that are only used in parts.
func withoutDead(g *ir.Graph) (*ir.Graph, error) {
	live := map[*ir.Node]bool{}
	for _, o := range g.Outputs() {
		live[o.Value.Node()] = true
	}
	for _, n := range slices.Backward(g.Nodes()) {
		for _, v := range n.Inputs() {
			live[v.Node()] = live[v.Node()] || live[n]
		}
	}
	return ir.Transform(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		b.CopyPorts(g, m)
		for _, n := range g.Nodes() {
			if live[n] && n.Op() != ir.OpPort {
				b.CopyNode(n, m)
			}
		}
		for _, o := range g.Outputs() {
			b.CopyOutput(o, m.Get(o.Value))
		}
	})
}
