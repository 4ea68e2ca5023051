// Package parallel rewrites graphs of gradients so that several devices train one model together.
// Its passes take a graph and return a graph with collectives ([ops.AllReduce] and others), and a
// [Report] of what they did and of the bytes that each device sends per step.
//
// [Data.Gradients] is data parallelism: every device computes the gradients of its own part of a
// batch, and all update the parameters by the mean. It is the Gradients option of package optim.
// [Shard.States] divides states and parameters of such a step (ZeRO). [Partition.Apply] divides a step that is
// written for one device among those of a mesh: tensor, sequence and expert parallelism, and these. To
// read it, start at partition.go, then factors.go, propagate.go and emit.go. [RingAttention] is a layer.
package parallel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Data describes data parallelism along an axis of the mesh.
type Data struct {
	// Mesh is the axis along which the batch is divided.
	Mesh ops.MeshAttrs
	// Loss names the output with the loss, which becomes the mean over devices; "" means "loss".
	Loss string
	// Weight, if not "", names an output of rank 0 with the weight of a device's loss, 0 or greater:
	// the number of rows, tokens or unmasked elements whose mean the loss is. The mean over devices
	// is weighted by it, and so that of all rows, however they are distributed. A device of weight
	// 0 contributes nothing, also if its loss is NaN. Without it, devices weigh the same.
	Weight string
	// Bucket is the maximum size in bytes of gradients reduced together; 0 means [DefaultBucket].
	// The first bucket has at most [FirstBucket]. A gradient of as many bytes, or of more than half a bucket, is
	// reduced alone, without a copy.
	Bucket int
	// Scatter reduces gradients by a reduce_scatter and an all_gather. [Shard] then uses the parts
	// and drops the all_gather.
	Scatter bool
}

// Maximum sizes of buckets in bytes, those of PyTorch's DistributedDataParallel. The first bucket
// is small so that communication starts early in the backward pass.
const (
	DefaultBucket = 25 << 20
	FirstBucket   = 1 << 20
)

// gradPrefix is the prefix of outputs that are gradients: see autodiff.GradWith.
const gradPrefix = "grad/"

// metricPrefix is the prefix of the states of metrics of package nn. Those of rank 1 hold a mean over runs, and others,
// such as confusion matrices and weighted means, are sums over examples.
const metricPrefix = "metric/"

// regressionPrefix is the prefix of metrics whose states are no sums: each device keeps its own.
const regressionPrefix = metricPrefix + "regression/"

// Gradients returns a graph with the ports and outputs of g, the graph of a loss and its gradients
// (autodiff.GradWith), in which the gradients, the loss, and the states of floating types that the
// loss updates, such as running statistics, are means over the devices. Other outputs stay those of
// each device. Gradients of one element type are reduced in buckets in the order in which the
// backward pass produces them. A metric that counts examples (nn.Confusion, nn.AUC, nn.Metric with a weight) counts those of all devices; of nn.Regression each device
// keeps its own. A mesh of one device changes nothing. The error is of kind
// [ir.ErrName] for a loss or weight that is no output, [ir.ErrShape] or [ir.ErrDType] if one is no
// float of rank 0 (the weight may be an integer), [ir.ErrSymbol] for a gradient whose size is not
// constant, and [ir.ErrAttr] for an empty axis, a device count below 1 or a negative bucket.
func (d Data) Gradients(g *ir.Graph) (*ir.Graph, Report, error) {
	r := Report{Mesh: d.Mesh}
	if err := g.NotNil(); err != nil {
		return nil, r, err
	}
	if d.Mesh.MeshAxis == "" || d.Mesh.Devices < 1 || d.Bucket < 0 {
		return nil, r, ir.Attrf("data parallel over %d devices along %q in buckets of %d bytes; the axis must have a name, and be of 1 device or more, and the bucket not be negative", d.Mesh.Devices, d.Mesh.MeshAxis, d.Bucket)
	}
	loss, weight, err := d.outputs(g)
	if err != nil || d.Mesh.Devices == 1 {
		return g, r, err
	}
	buckets, err := d.buckets(g)
	if err != nil {
		return nil, r, err
	}
	out, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		c := &copier{b: b, g: g, d: &d, weight: weight, buckets: buckets, m: ir.NewMapping(g), values: make([]ir.Value, len(g.Outputs()))}
		c.copyNodes()
		if b.Err() != nil {
			return
		}
		for i, o := range g.Outputs() {
			switch {
			case o.State && (!o.Value.DType().IsFloat() || isUnchanged(g, o) || strings.HasPrefix(o.Name, regressionPrefix)):
			case o.State && strings.HasPrefix(o.Name, metricPrefix) && o.Value.Rank() > 1:
				c.values[i] = c.counted(o)
			case i == loss || o.State:
				c.values[i] = c.mean.of(b, c.m.Get(o.Value))
			}
			if !c.values[i].Valid() {
				c.values[i] = c.m.Get(o.Value)
			}
			b.CopyOutput(o, c.values[i])
		}
	})
	if err != nil {
		return nil, r, err
	}
	for _, k := range buckets {
		r.Buckets = append(r.Buckets, Bucket{k.names, k.dtype, k.bytes})
	}
	r.Sent, err = Traffic(out)
	return out, r, err
}

// copier copies the nodes of a graph and adds the collective of each bucket as soon as its
// gradients are computed, so that it overlaps the rest of the backward pass.
type copier struct {
	b       *ir.Builder
	g       *ir.Graph
	d       *Data
	weight  int // the output with the weight, -1 without one
	buckets []*bucket
	m       *ir.Mapping
	mean    *mean      // set once the weight is computed
	values  []ir.Value // means by output, invalid if not computed yet
}

func (c *copier) copyNodes() {
	c.b.CopyPorts(c.g, c.m)
	next := 0
	for _, n := range c.g.Nodes() {
		if n.Op() != ir.OpPort {
			c.b.CopyNode(n, c.m)
		}
		if c.b.Err() != nil {
			return
		}
		if c.mean == nil && (c.weight < 0 || c.m.Get(c.g.Outputs()[c.weight].Value).Valid()) {
			c.mean = c.newMean()
		}
		for ; c.mean != nil && next < len(c.buckets) && c.isComplete(c.buckets[next]); next++ {
			c.reduce(c.buckets[next])
		}
	}
}

// isComplete reports whether all gradients of a bucket are computed.
func (c *copier) isComplete(k *bucket) bool {
	return !slices.ContainsFunc(k.outputs, func(i int) bool { return !c.m.Get(c.g.Outputs()[i].Value).Valid() })
}

// isUnchanged reports whether an output returns a state unchanged.
func isUnchanged(g *ir.Graph, o ir.Output) bool {
	p, _ := g.Port(o.Name)
	return p.Value == o.Value
}

// outputs returns the indices of the loss and the weight among the outputs; -1 for no weight.
func (d *Data) outputs(g *ir.Graph) (loss, weight int, err error) {
	find := func(name string) (int, error) {
		i := slices.IndexFunc(g.Outputs(), func(o ir.Output) bool { return o.Name == name && !o.State })
		if i < 0 {
			return i, g.UnknownOutput(name)
		}
		if v := g.Outputs()[i].Value; v.Rank() != 0 {
			return i, ir.Shapef("output %q is %s; the loss and its weight must be of rank 0", name, v.Type())
		} else if !v.DType().IsFloat() && (name != d.Weight || !v.DType().IsInteger()) {
			return i, ir.DTypef("output %q is %s; the loss must be a float, and its weight a number", name, v.Type())
		}
		return i, nil
	}
	if loss, err = find(cmp.Or(d.Loss, "loss")); err != nil || d.Weight == "" {
		return loss, -1, err
	}
	weight, err = find(d.Weight)
	return loss, weight, err
}

// bucket is a list of outputs, gradients of one element type, that are reduced together.
type bucket struct {
	names   []string
	outputs []int
	dtype   ir.DType
	bytes   int
}

// buckets groups the gradients in the order of production: that of the nodes.
func (d *Data) buckets(g *ir.Graph) ([]*bucket, error) {
	var order []int
	for i, o := range g.Outputs() {
		if strings.HasPrefix(o.Name, gradPrefix) && !o.State {
			order = append(order, i)
		}
	}
	made := func(i int) int { return g.Outputs()[i].Value.Node().ID() }
	slices.SortStableFunc(order, func(i, j int) int { return made(i) - made(j) })
	full := cmp.Or(d.Bucket, DefaultBucket)
	var out []*bucket
	open := map[ir.DType]*bucket{}
	for _, i := range order {
		o := g.Outputs()[i]
		size, ok := o.Value.Shape().Size().Const()
		if !ok {
			return nil, ir.Errorf(ir.ErrSymbol, "gradient %q is %s; a bucket needs its size", o.Name, o.Value.Type())
		}
		bytes, limit := size*o.Value.DType().Size(), full
		if len(out) < 2 {
			limit = min(full, FirstBucket)
		}
		alone := bytes >= FirstBucket || 2*bytes > full
		k := open[o.Value.DType()]
		if alone || k == nil || k.bytes+bytes > limit {
			k = &bucket{dtype: o.Value.DType()}
			out = append(out, k)
			if !alone {
				open[k.dtype] = k
			}
		}
		k.names = append(k.names, strings.TrimPrefix(o.Name, gradPrefix))
		k.outputs, k.bytes = append(k.outputs, i), k.bytes+bytes
	}
	slices.SortStableFunc(out, func(a, b *bucket) int { return made(a.outputs[len(a.outputs)-1]) - made(b.outputs[len(b.outputs)-1]) })
	return out, nil
}

// reduce sets the values of a bucket to their means.
func (c *copier) reduce(k *bucket) {
	b := c.b
	own := func(i int) ir.Value { return c.m.Get(c.g.Outputs()[k.outputs[i]].Value) }
	if c.d.Scatter {
		c.scatter(k, own)
		return
	}
	if len(k.outputs) == 1 {
		c.values[k.outputs[0]] = c.mean.of(b, own(0))
		return
	}
	flat := make([]ir.Value, len(k.outputs))
	for i := range flat {
		flat[i] = ops.Reshape(b, own(i), ir.N(-1))
	}
	all := c.mean.of(b, ops.Concatenate(b, 0, flat...))
	if b.Err() != nil {
		return
	}
	from := 0
	for i, at := range k.outputs {
		size, _ := flat[i].Shape()[0].Const()
		c.values[at] = ops.Reshape(b, ops.SliceAxis(b, all, 0, ir.N(from), ir.N(size)), own(i).Shape()...)
		from += size
	}
}

// counted returns the new counts of a state that each device adds its own to.
func (c *copier) counted(o ir.Output) ir.Value {
	p, _ := c.g.Port(o.Name)
	before := c.m.Get(p.Value)
	return ops.Add(c.b, before, ops.AllReduce(c.b, ops.Sub(c.b, c.m.Get(o.Value), before), c.d.Mesh, ops.AllReduceSum))
}

// scatter is reduce by a reduce_scatter and an all_gather.
func (c *copier) scatter(k *bucket, own func(i int) ir.Value) {
	l := layout{c.b, c.d.Mesh}
	parts, types := make([]ir.Value, len(k.outputs)), make([]ir.Type, len(k.outputs))
	for i := range parts {
		types[i] = own(i).Type()
		parts[i] = c.mean.part(c.b, own(i))
	}
	for i, x := range l.gather(c.mean.whole(c.b, l.scatter(parts)), types) {
		c.values[k.outputs[i]] = x
	}
}

// mean is a mean over devices.
type mean struct {
	mesh          ops.MeshAttrs
	weight, total ir.Value // weights of this device and of all, f32 or f64; invalid for equal weights
}

func (c *copier) newMean() *mean {
	m := &mean{mesh: c.d.Mesh}
	if c.weight >= 0 {
		m.weight = c.m.Get(c.g.Outputs()[c.weight].Value)
		if m.weight.DType() != ir.F64 {
			m.weight = ops.Convert(c.b, m.weight, ir.F32)
		}
		m.total = ops.AllReduce(c.b, m.weight, c.d.Mesh, ops.AllReduceSum)
	}
	return m
}

// of returns the mean of x over devices: Σ w·x / Σ w. Terms of devices with weight 0 are ignored,
// and the mean is 0 if all weights are.
func (m *mean) of(b *ir.Builder, x ir.Value) ir.Value {
	if !m.weight.Valid() {
		return ops.AllReduce(b, x, m.mesh, ops.AllReduceMean)
	}
	return ops.AllReduce(b, m.part(b, x), m.mesh, ops.AllReduceSum)
}

// part returns this device's term of the sum that whole divides.
func (m *mean) part(b *ir.Builder, x ir.Value) ir.Value {
	if !m.weight.Valid() {
		return x
	}
	zero := ops.ZerosLike(b, m.weight)
	part := ops.Convert(b, ops.Div(b, m.weight, ops.Select(b, ops.Gt(b, m.total, zero), m.total, ops.OnesLike(b, m.total))), x.DType())
	counts := ops.BroadcastTo(b, ops.Gt(b, m.weight, zero), x.Shape())
	return ops.Select(b, counts, ops.Mul(b, x, part), ops.ZerosLike(b, x))
}

// whole returns the mean, given the sum of all parts.
func (m *mean) whole(b *ir.Builder, sum ir.Value) ir.Value {
	if m.weight.Valid() {
		return sum
	}
	return ops.Div(b, sum, ops.ConstLike(b, sum, float64(m.mesh.Devices)))
}

// Bucket is a list of gradients that are reduced together, by the names of their parameters.
type Bucket struct {
	Params []string
	DType  ir.DType
	Bytes  int // of the gradients
}

// Report describes the result of a pass.
type Report struct {
	Mesh    ops.MeshAttrs
	Buckets []Bucket
	Sent    int64 // bytes that each device sends per step, see [Traffic]
}

// String returns a summary line and one line for each bucket.
func (r Report) String() string {
	var sb strings.Builder
	gradients, bytes := 0, 0
	for _, k := range r.Buckets {
		gradients, bytes = gradients+len(k.Params), bytes+k.Bytes
	}
	sb.WriteString(format.Sprintf("data parallel over %d devices along %q: %d gradients of %d bytes in %d buckets, %d bytes sent by each device per step\n", r.Mesh.Devices, r.Mesh.MeshAxis, gradients, bytes, len(r.Buckets), r.Sent))
	for i, k := range r.Buckets {
		sb.WriteString(format.Sprintf("bucket %d: %s, %d bytes, from %s to %s\n", i, k.DType, k.Bytes, k.Params[0], k.Params[len(k.Params)-1]))
	}
	return sb.String()
}

// Traffic returns the bytes that each device sends in the collectives of one run of a graph, by the
// lower bound for algorithms without help of the network (for an all-reduce 2·(n−1)/n of the array:
// Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009). The body of a loop counts
// once. The error is of kind [ir.ErrSymbol] if a size is not constant.
func Traffic(g *ir.Graph) (int64, error) {
	if err := g.NotNil(); err != nil {
		return 0, err
	}
	var sum int64
	for _, n := range g.Nodes() {
		for _, sub := range n.Subgraphs() {
			inner, err := Traffic(sub)
			if err != nil {
				return 0, err
			}
			sum += inner
		}
		if !ops.IsCollective(n) {
			continue
		}
		size, ok := n.Input(0).Shape().Size().Const()
		if !ok {
			return 0, n.Fail(ir.Errorf(ir.ErrSymbol, "its size is not constant"))
		}
		mesh, _ := ops.MeshOf(n)
		sum += sent(n.Op(), int64(size*n.Input(0).DType().Size()), int64(mesh.Devices))
	}
	return sum, nil
}

// sent returns the bytes that each of n devices sends in a collective of an array.
func sent(op ir.Op, bytes, devices int64) int64 {
	switch op {
	case ops.OpAllReduce:
		return 2 * bytes * (devices - 1) / devices
	case ops.OpAllGather:
		return bytes * (devices - 1)
	case ops.OpReduceScatter, ops.OpAllToAll:
		return bytes * (devices - 1) / devices
	}
	return bytes
}
