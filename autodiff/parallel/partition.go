package parallel

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Axis is a named axis of a mesh and the number of devices along it.
type Axis struct {
	Name string
	Size int
}

// Sharding maps dimensions of parameters, inputs or outputs to axes of the mesh.
type Sharding struct {
	// Pattern matches names as [optim.Covers] does; after a leading "**/", at any depth:
	// "**/self_attn/q_proj/weight".
	Pattern string
	// Axes has the mesh axis of each dimension, "" for none. Dimensions beyond the list are not
	// divided.
	Axes []string
}

// DefaultLimit is the maximum size in bytes of a divided value that [Partition] gathers whole.
const DefaultLimit = 64 << 20

// Partition divides a graph that is written for one device among the devices of a mesh: tensor, sequence,
// expert and data parallelism, and ZeRO. Shardings of parameters and inputs are given. They are propagated
// through the graph by the [Factors] of its ops, and collectives are added where an operand is not on
// the device (GSPMD, Xu et al., 2021).
//
// The divided graph computes the same from this device's parts of parameters, states and inputs.
// Apply it to a training step, after differentiation, so that derivatives and updates are those of
// one device. Where one mesh axis could divide a node in two ways, the one with fewer bytes over
// the wire is chosen; weights are not moved.
type Partition struct {
	// Mesh are the axes, the last one fastest.
	Mesh []Axis
	// Shardings apply to parameters, inputs and outputs; the first that matches a name counts. A
	// state of the optimizer has the sharding of its parameter. All other values are whole.
	Shardings []Sharding
	// States, if not "", is a mesh axis that further divides the states of the optimizer, along
	// their first undivided dimension with a divisible size. Gradients are then reduced to parts
	// (ZeRO 1 and 2).
	States string
	// Params divides parameters like states. They are gathered in blocks of Bucket bytes, Ahead of
	// them before the one in use; 0 means [DefaultBucket] and [DefaultAhead] (ZeRO 3).
	Params        bool
	Bucket, Ahead int
	// Limit is the maximum size in bytes of a divided value that is gathered for an op that cannot
	// compute with parts; 0 means [DefaultLimit].
	Limit int64
}

// Megatron returns the shardings of the attention and the MLP of nn.TransformerBlock along a mesh
// axis (Shoeybi et al., Megatron-LM, 2019). They divide the heads, whose projections must be
// Separate, and the features within the MLP, whose activation must not be gated. An input divided
// along its time by the same axis divides the activations between them, too (Korthikanti et al.,
// Reducing Activation Recomputation in Large Transformer Models, 2022).
func Megatron(axis string) []Sharding {
	columns, rows := []string{"", axis}, []string{axis}
	var out []Sharding
	for _, name := range []string{"q_proj", "k_proj", "v_proj"} {
		out = append(out, Sharding{"**/" + name + "/weight", columns}, Sharding{"**/" + name + "/bias", rows})
	}
	return append(
		out, Sharding{"**/out_proj/weight", rows}, Sharding{"**/linear1/weight", columns},
		Sharding{"**/linear1/bias", rows}, Sharding{"**/linear2/weight", rows},
	)
}

// Experts returns the shardings of the experts of nn.MoE along a mesh axis (Lepikhin et al.,
// GShard, 2020).
func Experts(axis string) []Sharding {
	return []Sharding{{"**/experts/w1", []string{axis}}, {"**/experts/w2", []string{axis}}}
}

// Placements returns the placements of the divided ports of a graph, by name. The error is of kind
// [ir.ErrAttr] for a mesh or a number outside its domain, an unknown axis, or a size that the
// number of devices does not divide, and [ir.ErrName] for a pattern that matches nothing.
func (p Partition) Placements(g *ir.Graph) (map[string]Placement, error) {
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	placements, used := map[string]Placement{}, make([]bool, len(p.Shardings))
	params := map[string]bool{}
	for _, port := range g.Ports() {
		params[port.Name] = params[port.Name] || port.Kind == ir.ParamPort
	}
	for _, port := range g.Ports() {
		i := p.match(paramOf(port, params))
		var axes []string
		if i >= 0 {
			used[i], axes = true, p.Shardings[i].Axes
		}
		s, err := p.spec(port.Name, port.Value.Type(), axes)
		if err != nil {
			return nil, err
		}
		if optim.IsState(port) && i >= 0 && !p.divides(s, port.Value.Type()) {
			s = make(spec, port.Value.Rank()) // a state of another shape than the parameter
		}
		if p.stores(port) {
			p.store(s, port.Value.Type())
		}
		if s.isDivided() {
			placements[port.Name] = Placement{Type: port.Value.Type(), Axes: s}
		}
	}
	for _, o := range g.Outputs() {
		if i := p.match(o.Name); i >= 0 {
			used[i] = true
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, ir.Errorf(ir.ErrName, "a sharding for %q matches no parameter, input, state or output of graph %q", p.Shardings[i].Pattern, g.Name())
	}
	return placements, nil
}

func (p *Partition) check() error {
	for i, a := range p.Mesh {
		if a.Name == "" || a.Size < 1 || slices.ContainsFunc(p.Mesh[:i], func(b Axis) bool { return a.Name == b.Name }) {
			return ir.Attrf("axis %d of the mesh is %q of size %d; names must differ and not be empty, and sizes be 1 or more", i, a.Name, a.Size)
		}
	}
	if p.Bucket < 0 || p.Ahead < 0 || p.Limit < 0 {
		return ir.Attrf("the bucket is %d, the number of blocks ahead %d and the limit %d; none must be negative", p.Bucket, p.Ahead, p.Limit)
	}
	if p.States != "" && p.size(p.States) == 0 {
		return ir.Attrf("states are divided along %q; the mesh has no such axis", p.States)
	}
	if p.Params && p.States == "" {
		return ir.Attrf("parameters are divided like states, which have no axis")
	}
	return nil
}

// size returns the number of devices along an axis, 0 for an unknown one.
func (p *Partition) size(axis string) int {
	for _, a := range p.Mesh {
		if a.Name == axis {
			return a.Size
		}
	}
	return 0
}

// match returns the index of the sharding of a name, -1 for none.
func (p *Partition) match(name string) int {
	return slices.IndexFunc(p.Shardings, func(s Sharding) bool {
		pattern, deep := strings.CutPrefix(s.Pattern, "**/")
		for rest := name; ; {
			if like, _ := path.Match(pattern, rest); like || optim.Covers(pattern, rest) {
				return true
			}
			var found bool
			if _, rest, found = strings.Cut(rest, "/"); !deep || !found {
				return false
			}
		}
	})
}

// paramOf returns the name of the parameter that a state of the optimizer belongs to, and for any
// other port its own name.
func paramOf(port ir.Port, params map[string]bool) string {
	if !optim.IsState(port) {
		return port.Name
	}
	for rest := port.Name; ; {
		var found bool
		if _, rest, found = strings.Cut(rest, "/"); !found {
			return port.Name
		}
		if params[rest] {
			return rest
		}
	}
}

// stores reports whether a port is divided along States.
func (p *Partition) stores(port ir.Port) bool {
	return p.States != "" && (optim.IsState(port) || p.Params && port.Kind == ir.ParamPort)
}

// store divides an undivided dimension along States, if that is set.
func (p *Partition) store(s spec, t ir.Type) {
	n := p.size(p.States)
	if n == 1 || s.at(p.States) >= 0 {
		return
	}
	for dim := range s {
		if size, _ := t.Shape[dim].Const(); s[dim] == "" && size > 0 && size%n == 0 {
			s[dim] = p.States
			return
		}
	}
}

// spec returns the sharding of a type by the axes of its dimensions.
func (p *Partition) spec(name string, t ir.Type, axes []string) (spec, error) {
	s := make(spec, t.Shape.Rank())
	for dim, axis := range axes {
		if axis == "" || dim >= len(s) {
			continue
		}
		n := p.size(axis)
		if n == 0 || s.at(axis) >= 0 {
			return nil, ir.Attrf("dimension %d of %q is divided along %q; the mesh must have the axis, and another dimension not be divided along it", dim, name, axis)
		}
		if n > 1 {
			s[dim] = axis
		}
	}
	if !p.divides(s, t) && !strings.HasPrefix(name, optim.StatePrefix) {
		return nil, ir.Attrf("%q is %s, divided along %q; each number of devices must divide its dimension", name, t, []string(s))
	}
	return s, nil
}

func (p *Partition) divides(s spec, t ir.Type) bool {
	for dim, axis := range s {
		if size, known := t.Shape[dim].Const(); axis != "" && (!known || size%max(1, p.size(axis)) != 0) {
			return false
		}
	}
	return true
}

// Apply returns a device's part of a graph whose ports have the given placements: its own, or those
// of a graph that shares parameters and states with it. Names of ports that g lacks are ignored.
// Inputs and outputs are divided by the shardings that match their names. The error is of kind
// [ir.ErrSymbol] for a size that is not constant, [ir.ErrUnsupported] for a value above the limit
// that an op needs whole, or for a graph with collectives, and one of [Partition.Placements].
func (p Partition) Apply(g *ir.Graph, placements map[string]Placement) (*ir.Graph, PartitionReport, error) {
	r := PartitionReport{Mesh: p.Mesh}
	if err := g.NotNil(); err != nil {
		return nil, r, err
	}
	if err := p.check(); err != nil {
		return nil, r, err
	}
	flat, err := taken(g)
	if err != nil {
		return nil, r, err
	}
	c := &partitioner{Partition: p, g: flat, report: &r, limit: cmp.Or(p.Limit, DefaultLimit)}
	if err := c.prepare(placements); err != nil {
		return nil, r, err
	}
	c.propagate()
	out, err := ir.Transform(g.Name(), c.build)
	if err == nil {
		out, err = withoutDead(out)
	}
	if err == nil {
		out, err = combined(out)
	}
	if err == nil {
		r.Sent, err = Traffic(out)
	}
	if err != nil {
		return nil, r, err
	}
	for _, n := range out.Nodes() {
		if ops.IsCollective(n) {
			r.Collectives++
		}
	}
	return out, r, nil
}
