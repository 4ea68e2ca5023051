package parallel

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Shard describes the division of training states among the devices along an axis of the mesh, as
// in ZeRO (Rajbhandari et al., 2020). In stage 1 each device keeps and updates its part of the
// states of the optimizer, and all gather the parameters. In stage 2, with [Data.Scatter],
// gradients are reduced to parts in buckets as the backward pass produces them, and a whole
// gradient lives no longer than its bucket. In stage 3, with Params, the parameters are divided,
// too.
type Shard struct {
	Mesh ops.MeshAttrs
	// Bucket is the maximum size in bytes of parameters gathered together; 0 means [DefaultBucket].
	Bucket int
	// Params divides the parameters. They are gathered in blocks of Bucket bytes before they are used,
	// in the forward pass and again in the backward pass, and not kept in between.
	Params bool
	// Ahead is the number of blocks that are gathered before the one in use, to overlap
	// communication with computation; 0 means [DefaultAhead]. All of them take memory at the same time.
	Ahead int
}

// ShardReport describes the result of [Shard.States].
type ShardReport struct {
	Mesh ops.MeshAttrs
	// Sharded and Whole are the states of the optimizer that are divided, and those that are not
	// because their updates are not elementwise. With [Shard.Params] they include parameters.
	Sharded, Whole []string
	// Bytes is the size of all states of the optimizer on a device after the pass, Before the size
	// before it. With [Shard.Params] they include the parameters.
	Bytes, Before int64
	Sent          int64 // bytes that each device sends per step, see [Traffic]
}

// String returns a summary line.
func (r ShardReport) String() string {
	return format.Sprintf("training states over %d devices along %q: %d divided and %d whole, %d bytes on each device instead of %d; %d bytes sent by each device per step\n",
		r.Mesh.Devices, r.Mesh.MeshAxis, len(r.Sharded), len(r.Whole), r.Bytes, r.Before, r.Sent)
}

// check returns an error of kind [ir.ErrAttr] for options outside their domain.
func (s *Shard) check() error {
	if s.Mesh.MeshAxis == "" || s.Mesh.Devices < 1 || s.Bucket < 0 || s.Ahead < 0 {
		return ir.Attrf("training states over %d devices along %q in buckets of %d bytes, %d gathered ahead; the axis must have a name, and be of 1 device or more, and the bucket and the number ahead not be negative", s.Mesh.Devices, s.Mesh.MeshAxis, s.Bucket, s.Ahead)
	}
	return nil
}

// States returns a training step ([optim.Step]) with divided states of the optimizer: those whose
// updates, and the updates of their parameters, are elementwise, such as the moments of Adam, sums
// of gradients and averages. Each becomes a state of the same name and of rank 1 with this device's
// elements. [Shard.Params] also divides parameters with elementwise updates, and those that the
// step only reads. The step computes the same; with [Data.Scatter] and whole parameters it sends as
// many bytes as before. A mesh of one device changes nothing. The error is of kind [ir.ErrAttr] for
// an empty axis, a device count below 1 or a negative number, and [ir.ErrSymbol] for a state whose
// size is not constant.
func (s Shard) States(step *ir.Graph) (*ir.Graph, ShardReport, error) {
	r := ShardReport{Mesh: s.Mesh}
	if err := step.NotNil(); err != nil {
		return nil, r, err
	}
	if err := s.check(); err != nil {
		return nil, r, err
	}
	u := &update{g: step, region: map[*ir.Node]bool{}}
	for _, p := range step.Ports() {
		isParam := s.Params && p.Kind == ir.ParamPort
		if !isParam && !optim.IsState(p) {
			continue
		}
		size, ok := p.Value.Shape().Size().Const()
		if !ok {
			return nil, r, ir.Errorf(ir.ErrSymbol, "state %q is %s; its size must be constant", p.Name, p.Value.Type())
		}
		bytes := int64(size * p.Value.DType().Size())
		r.Before += bytes
		divides := s.Mesh.Devices > 1 && size > 0 && p.Value.Rank() > 0
		if divides && (isParam && u.addParam(p) || !isParam && u.add(p)) {
			part, _ := layout{mesh: s.Mesh}.partOf(p.Value.Type())
			r.Sharded, bytes = append(r.Sharded, p.Name), int64(part*p.Value.DType().Size())
		} else if p.Value.Rank() > 0 {
			r.Whole = append(r.Whole, p.Name)
		}
		r.Bytes += bytes
	}
	out, err := s.divide(u, r.Sharded)
	if err == nil {
		r.Sent, err = Traffic(out)
	}
	if err != nil {
		return nil, r, err
	}
	return out, r, nil
}

// Divide returns a graph whose ports and states with the given names are divided as in the step
// ([ShardReport.Sharded]): an entry that shares them with the step, such as one that sets their
// initial values or one that evaluates. Names that are not in the graph are ignored. The errors are
// those of [Shard.States].
func (s Shard) Divide(g *ir.Graph, names []string) (*ir.Graph, error) {
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(g.Ports(), func(p ir.Port) bool { return p.Name == name && p.Kind != ir.InputPort })
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !has(name) })
	for _, name := range names {
		p, _ := g.Port(name)
		if _, ok := p.Value.Shape().Size().Const(); !ok {
			return nil, ir.Errorf(ir.ErrSymbol, "state %q is %s; its size must be constant", name, p.Value.Type())
		}
	}
	return s.divide(&update{g: g}, names)
}

// divide returns the graph of an update with the named ports divided.
func (s *Shard) divide(u *update, names []string) (*ir.Graph, error) {
	if len(names) == 0 || s.Mesh.Devices == 1 {
		return u.g, nil
	}
	out, err := ir.Transform(u.g.Name(), func(b *ir.Builder) {
		c := &sharder{
			update: u, layout: layout{b, s.Mesh}, m: ir.NewMapping(u.g), divided: map[string]bool{},
			parts: map[ir.Value]ir.Value{}, bucket: cmp.Or(s.Bucket, DefaultBucket), ahead: cmp.Or(s.Ahead, DefaultAhead),
		}
		for _, name := range names {
			c.divided[name] = true
		}
		c.build()
	})
	if err != nil {
		return nil, err
	}
	return withoutDead(out)
}

// update is the part of a step that reads the states to be divided.
type update struct {
	g      *ir.Graph
	users  map[*ir.Node][]*ir.Node
	region map[*ir.Node]bool // elementwise, of the shape of a state
}

// add adds a state of the optimizer if all nodes that depend on it are elementwise, and reports
// whether they are.
func (u *update) add(p ir.Port) bool {
	u.findUsers()
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
	return true
}

func (u *update) findUsers() {
	if u.users != nil {
		return
	}
	u.users = map[*ir.Node][]*ir.Node{}
	for _, n := range u.g.Nodes() {
		for _, v := range n.Inputs() {
			u.users[v.Node()] = append(u.users[v.Node()], n)
		}
	}
}

// addParam adds the elementwise nodes that only compute the new value of a parameter. It reports
// whether the parameter can be divided: it has no new value or an elementwise one.
func (u *update) addParam(p ir.Port) bool {
	i := slices.IndexFunc(u.g.Outputs(), func(o ir.Output) bool { return o.State && o.Name == p.Name })
	if i < 0 || u.g.Outputs()[i].Value == p.Value {
		return true
	}
	last, shape := u.g.Outputs()[i].Value.Node(), p.Value.Shape()
	if !isElementwise(last, shape) {
		return false
	}
	u.findUsers()
	isOutput := map[*ir.Node]bool{}
	for k, o := range u.g.Outputs() {
		isOutput[o.Value.Node()] = isOutput[o.Value.Node()] || k != i && !u.region[o.Value.Node()]
	}
	var visit func(n *ir.Node)
	visit = func(n *ir.Node) {
		outside := func(user *ir.Node) bool { return !u.region[user] }
		if u.region[n] || isOutput[n] || !isElementwise(n, shape) || slices.ContainsFunc(u.users[n], outside) {
			return
		}
		u.region[n] = true
		for _, v := range n.Inputs() {
			visit(v.Node())
		}
	}
	visit(last)
	return true
}

// isElementwise reports whether a node computes each element of the shape from the elements at the
// same position.
func isElementwise(n *ir.Node, shape ir.Shape) bool {
	return n.Def().Scalar != nil && n.NumResults() == 1 && n.Result(0).Shape().Equal(shape) &&
		!slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool { return !v.Shape().Equal(shape) })
}
