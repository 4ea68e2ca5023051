package parallel

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// layout cuts arrays into equal parts, one for each device: the elements in row-major order, filled up
// with zeros.
type layout struct {
	b    *ir.Builder
	mesh ops.MeshAttrs
}

// partOf returns the number of elements of a device's part of an array, and the zeros at the end of
// the last.
func (l layout) partOf(t ir.Type) (part, padding int) {
	size, _ := t.Shape.Size().Const()
	part = (size + l.mesh.Devices - 1) / l.mesh.Devices
	return part, part*l.mesh.Devices - size
}

// rows returns an array as [devices, part].
func (l layout) rows(x ir.Value) ir.Value {
	part, padding := l.partOf(x.Type())
	flat := ops.Reshape(l.b, x, ir.N(-1))
	if padding > 0 {
		flat = ops.Concatenate(l.b, 0, flat, ops.Zeros(l.b, x.DType(), ir.N(padding)))
	}
	return ops.Reshape(l.b, flat, ir.N(l.mesh.Devices), ir.N(part))
}

// gather returns the arrays of some types whose parts lie side by side in x, [1, sum of the parts], on
// each device.
func (l layout) gather(x ir.Value, types []ir.Type) []ir.Value {
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

// own returns the part of an array that belongs to this device, [part].
func (l layout) own(x, index ir.Value) ir.Value {
	if shard := l.gathered(x); shard.Valid() {
		return shard
	}
	part, _ := l.partOf(x.Type())
	start := ops.Concatenate(l.b, 0, ops.Reshape(l.b, index, ir.N(1)), ops.Zeros(l.b, ir.I32, ir.N(1)))
	return ops.Reshape(l.b, ops.DynamicSlice(l.b, l.rows(x), start, ir.N(1), ir.N(part)), ir.N(part))
}

// gathered returns the part that this device has contributed to a result of gather, or an invalid
// Value for any other array.
func (l layout) gathered(x ir.Value) ir.Value {
	n := x.Node()
	for n.Op() == ops.OpReshape || n.Op() == ops.OpSlice && n.Input(0).Rank() == 1 {
		n = n.Input(0).Node()
	}
	a, ok := n.Attrs().(*ops.SliceAttrs)
	if !ok || n.Input(0).Node().Op() != ops.OpAllGather {
		return ir.Value{}
	}
	all := n.Input(0).Node()
	mesh, _ := ops.MeshOf(all)
	part, _ := l.partOf(x.Type())
	if got, _ := a.Size[len(a.Size)-1].Const(); mesh != l.mesh || len(a.Size) != 2 || got != part || all.Input(0).Rank() != 2 {
		return ir.Value{}
	}
	return ops.Reshape(l.b, ops.SliceAxis(l.b, all.Input(0), 1, a.Start[1], a.Size[1]), ir.N(part))
}

// Shard describes the division of the states of an optimizer among the devices along an axis of the
// mesh, as stage 1 of ZeRO (Rajbhandari et al., 2020): each device keeps and updates its part, and all
// gather the parameters.
type Shard struct {
	Mesh ops.MeshAttrs
	// Bucket is the size in bytes up to which parameters are gathered together; 0 means
	// [DefaultBucket].
	Bucket int
}

// ShardReport says what [Shard.States] did.
type ShardReport struct {
	Mesh ops.MeshAttrs
	// Sharded and Whole are the states of the optimizer that are divided, and those that are not, as
	// their updates are not elementwise.
	Sharded, Whole []string
	// Bytes is the size of all states of the optimizer on a device, and Before what it was.
	Bytes, Before int64
	Sent          int64 // bytes that each device sends per step, see [Traffic]
}

// String returns a line.
func (r ShardReport) String() string {
	return format.Sprintf("optimizer states over %d devices along %q: %d divided and %d whole, %d bytes on each device instead of %d; %d bytes sent by each device per step\n",
		r.Mesh.Devices, r.Mesh.MeshAxis, len(r.Sharded), len(r.Whole), r.Bytes, r.Before, r.Sent)
}

// States returns a training step ([optim.Step]) in which states of the optimizer are divided among the
// devices: those whose updates, and those of their parameters, are elementwise, such as the moments of
// Adam, sums of gradients and averages. Each becomes a state of the same name, of rank 1 with the
// elements of this device. The step computes the same; with [Data.Scatter] it sends as many bytes as
// with whole states. A mesh of one device changes nothing. The error is of kind [ir.ErrAttr] for an
// empty axis, a device count below 1 or a negative bucket, and [ir.ErrSymbol] for a state whose size
// is not constant.
func (s Shard) States(step *ir.Graph) (*ir.Graph, ShardReport, error) {
	r := ShardReport{Mesh: s.Mesh}
	if err := step.Given(); err != nil {
		return nil, r, err
	}
	if s.Mesh.MeshAxis == "" || s.Mesh.Devices < 1 || s.Bucket < 0 {
		return nil, r, ir.Attrf("optimizer states over %d devices along %q in buckets of %d bytes; the axis must have a name, and be of 1 device or more, and the bucket not be negative", s.Mesh.Devices, s.Mesh.MeshAxis, s.Bucket)
	}
	u := &update{g: step, region: map[*ir.Node]bool{}, ports: map[string]bool{}}
	for _, p := range step.Ports() {
		if !optim.IsState(p) {
			continue
		}
		size, ok := p.Value.Shape().Size().Const()
		if !ok {
			return nil, r, ir.Errorf(ir.ErrSymbol, "state %q is %s; its size must be constant", p.Name, p.Value.Type())
		}
		bytes := int64(size * p.Value.DType().Size())
		r.Before += bytes
		if s.Mesh.Devices > 1 && u.add(p) {
			part, _ := layout{mesh: s.Mesh}.partOf(p.Value.Type())
			r.Sharded, bytes = append(r.Sharded, p.Name), int64(part*p.Value.DType().Size())
		} else if p.Value.Rank() > 0 {
			r.Whole = append(r.Whole, p.Name)
		}
		r.Bytes += bytes
	}
	if len(r.Sharded) == 0 {
		return step, r, nil
	}
	out, err := ir.Transform(step.Name(), func(b *ir.Builder) {
		c := &sharder{update: u, layout: layout{b, s.Mesh}, m: ir.NewMapping(step), parts: map[ir.Value]ir.Value{}, bucket: cmp.Or(s.Bucket, DefaultBucket)}
		c.build()
	})
	if err == nil {
		out, err = withoutDead(out)
	}
	if err != nil {
		return nil, r, err
	}
	r.Sent, err = Traffic(out)
	return out, r, err
}

// update is the part of a step that reads the states to be divided.
type update struct {
	g      *ir.Graph
	users  map[*ir.Node][]*ir.Node
	region map[*ir.Node]bool // elementwise, of the shape of a state
	ports  map[string]bool   // the states
}

// add adds a state of the optimizer if all that depends on it is elementwise, and reports whether it
// is.
func (u *update) add(p ir.Port) bool {
	if size, _ := p.Value.Shape().Size().Const(); p.Value.Rank() == 0 || size == 0 {
		return false
	}
	if u.users == nil {
		u.users = map[*ir.Node][]*ir.Node{}
		for _, n := range u.g.Nodes() {
			for _, v := range n.Inputs() {
				u.users[v.Node()] = append(u.users[v.Node()], n)
			}
		}
	}
	found, shape := map[*ir.Node]bool{}, p.Value.Shape()
	var visit func(n *ir.Node) bool
	visit = func(n *ir.Node) bool {
		for _, user := range u.users[n] {
			if found[user] {
				continue
			}
			found[user] = true
			if !isElementwise(user, shape) || !visit(user) {
				return false
			}
		}
		return true
	}
	if !visit(p.Value.Node()) {
		return false
	}
	for n := range found {
		u.region[n] = true
	}
	u.ports[p.Name] = true
	return true
}

// isElementwise reports whether a node computes each element of a shape from those at its place.
func isElementwise(n *ir.Node, shape ir.Shape) bool {
	return n.Def().Scalar != nil && n.NumResults() == 1 && n.Result(0).Shape().Equal(shape) &&
		!slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool { return !v.Shape().Equal(shape) })
}

// sharder copies a step with its updates on parts.
type sharder struct {
	*update
	layout
	m      *ir.Mapping
	index  ir.Value
	parts  map[ir.Value]ir.Value // of the step's values
	bucket int
}

func (c *sharder) build() {
	for _, p := range c.g.Ports() {
		if !c.ports[p.Name] {
			c.m.Set(p.Value, c.b.CopyPort(p))
			continue
		}
		part, _ := c.partOf(p.Value.Type())
		c.parts[p.Value] = c.b.State(p.Name, p.Value.DType(), ir.N(part))
	}
	c.index = ops.AxisIndex(c.b, c.mesh)
	for _, n := range c.g.Nodes() {
		if n.Op() != ir.OpPort && !c.region[n] {
			c.m.SetAll(n, c.b.Copy(n, c.m.Inputs(n)))
		}
	}
	if c.b.Err() == nil {
		c.outputs()
	}
}

// part returns this device's part of a value of the step. That of an elementwise node is computed from
// the parts of its operands.
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

// outputs declares the outputs. What is computed in parts and is no divided state is gathered, in
// buckets of one element type.
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
		if c.ports[o.Name] && o.State || !c.region[o.Value.Node()] || slices.Contains(open, o.Value) || whole[o.Value].Valid() {
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
		case c.ports[o.Name] && o.State:
			c.b.CopyOutput(o, c.part(o.Value))
		case whole[o.Value].Valid():
			c.b.CopyOutput(o, whole[o.Value])
		default:
			c.b.CopyOutput(o, c.m.Get(o.Value))
		}
	}
}

// withoutDead returns a graph without the nodes that no output depends on: the collectives of whole
// gradients, of which only parts are used.
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
				m.SetAll(n, b.Copy(n, m.Inputs(n)))
			}
		}
		for _, o := range g.Outputs() {
			b.CopyOutput(o, m.Get(o.Value))
		}
	})
}
