package parallel

import (
	"maps"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func itoa(i int) string { return ir.N(i).String() }

func joined(axes []string) string { return strings.Join(axes, " ") }

// meshOf returns the attributes of collectives along an axis.
func (c *partitioner) meshOf(axis string) ops.MeshAttrs {
	return ops.MeshAttrs{MeshAxis: axis, Devices: c.size(axis)}
}

// get returns this device's part of a value with the given sharding.
func (c *partitioner) get(v ir.Value, want spec) ir.Value {
	for _, x := range c.versions[v] {
		if len(x.partial) == 0 && slices.Equal(x.s, want) {
			return x.v
		}
	}
	x := c.best(v)
	if slices.Equal(x.s, want) || c.b.Err() != nil {
		return x.v
	}
	out := c.reshard(v, x, want)
	c.versions[v] = append(c.versions[v], version{v: out, s: want})
	return out
}

// best returns the version of a value to derive others from, with all reductions done: the last
// one, which for a gathered parameter is the whole.
func (c *partitioner) best(v ir.Value) version {
	list := c.versions[v]
	if first := list[0]; len(first.partial) > 0 {
		list[0] = c.resolved(v, first)
		return list[0]
	}
	if c.Params && len(list) > 1 && c.weights[v] {
		return list[1]
	}
	return list[0]
}

// checkWhole reports whether operand i of a node may be gathered. It records an error if the
// operand is above the limit and divided along a dimension that the node needs whole.
func (c *partitioner) checkWhole(n *ir.Node, i int) bool {
	v, s := n.Input(i), c.specs[n.Input(i)]
	dim := slices.IndexFunc(s, func(axis string) bool { return axis != "" })
	for dim >= 0 && dim < len(s) && (s[dim] == "" || c.factors[n.ID()].in[i][dim] >= 0) {
		dim++
	}
	if dim < 0 || dim == len(s) || c.bytesWithout(v, s[dim]) <= float64(c.limit) {
		return true
	}
	operand := "an operand"
	if names := n.Def().Operands; i < len(names) {
		operand = "operand " + names[i]
	}
	why := "it works along that dimension"
	if ruleOf(n.Def()) == nil {
		why = "no factors are declared for it"
	}
	c.b.Fail(n.Fail(ir.Errorf(ir.ErrUnsupported, "%s, %s, is divided along %q in dimension %d, which the op needs whole, as %s: that is %.0f bytes on each device, above the limit of %d; divide it otherwise or raise the limit", operand, v.Type(), s[dim], dim, why, c.bytesWithout(v, s[dim]), c.limit)))
	return false
}

// resolved returns a version with its pending reductions done. Reductions along an axis that
// divides the value become reduce_scatters.
func (c *partitioner) resolved(v ir.Value, x version) version {
	s := slices.Clone(x.s)
	for _, axis := range slices.Sorted(maps.Keys(x.partial)) {
		dim := c.specs[v].at(axis)
		if x.partial[axis] == ops.AllReduceSum && dim >= 0 && s[dim] == "" {
			s[dim] = axis
			c.note(v, ops.OpReduceScatter, axis, x.v)
			x.v = ops.ReduceScatter(c.b, x.v, c.meshOf(axis), dim)
			continue
		}
		c.note(v, ops.OpAllReduce, axis, x.v)
		x.v = c.reduced(x.v, axis, x.partial[axis])
	}
	return version{v: x.v, s: s}
}

func (c *partitioner) reduced(x ir.Value, axis, reduction string) ir.Value {
	return ops.AllReduce(c.b, x, c.meshOf(axis), reduction)
}

// reshard returns a value with another sharding: an all_to_all for an axis that moves to another
// dimension, an all_gather for one that is dropped, and a slice of this device for a new one.
func (c *partitioner) reshard(v ir.Value, x version, want spec) ir.Value {
	out, s := x.v, slices.Clone(x.s)
	for _, a := range c.Mesh {
		from, to := s.at(a.Name), want.at(a.Name)
		if from >= 0 && to >= 0 && from != to && s[to] == "" {
			c.note(v, ops.OpAllToAll, a.Name, out)
			out = ops.AllToAll(c.b, out, c.meshOf(a.Name), to, from)
			s[from], s[to] = "", a.Name
		}
	}
	for dim, axis := range s {
		if axis != "" && axis != want[dim] {
			c.note(v, ops.OpAllGather, axis, out)
			out = ops.AllGather(c.b, out, c.meshOf(axis), dim)
			s[dim] = ""
		}
	}
	for dim, axis := range want {
		if axis != "" && s[dim] == "" {
			out = c.sliced(out, dim, axis)
		}
	}
	return out
}

// sliced returns this device's slice of a value along a dimension.
func (c *partitioner) sliced(x ir.Value, dim int, axis string) ir.Value {
	if c.b.Err() != nil {
		return ir.Value{}
	}
	sizes := x.Shape().Clone()
	size, _ := sizes[dim].Const()
	part := size / c.size(axis)
	sizes[dim] = ir.N(part)
	start := make([]ir.Value, len(sizes))
	for i := range start {
		start[i] = ops.Const(c.b, ir.I32, 0)
		if i == dim {
			start[i] = ops.Mul(c.b, c.indices[axis], ops.Const(c.b, ir.I32, float64(part)))
		}
	}
	return ops.DynamicSlice(c.b, x, ops.Stack(c.b, 0, start...), sizes...)
}
