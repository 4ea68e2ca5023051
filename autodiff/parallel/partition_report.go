package parallel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// PartitionedPort is a port and the mesh axis of each of its dimensions, "" for none.
type PartitionedPort struct {
	Name string
	Kind ir.PortKind
	Type ir.Type // whole
	Axes []string
}

// Moved is a collective that [Partition] has added.
type Moved struct {
	Op   ir.Op
	Axis string
	// Value is the moved value: the label of its node or its op, and its whole type.
	Value string
	// For is the op that needs the value, "" for an output or a reduction at the end of its own
	// node.
	For  ir.Op
	Sent int64 // bytes that each device sends, see [Traffic]
}

// PartitionReport describes the result of [Partition.Apply].
type PartitionReport struct {
	Mesh  []Axis
	Ports []PartitionedPort
	Moved []Moved
	// Collectives is the number of collectives of a step: small sums of Moved are combined.
	Collectives int
	Sent        int64 // bytes that each device sends per step, see [Traffic]
}

func (r *PartitionReport) add(port ir.Port, s spec) {
	r.Ports = append(r.Ports, PartitionedPort{port.Name, port.Kind, port.Value.Type(), slices.Clone(s)})
}

// note reports a collective along an axis, of a value with the part x on this device.
func (c *partitioner) note(v ir.Value, op ir.Op, axis string, x ir.Value) {
	if c.b.Err() != nil {
		return
	}
	m := Moved{Op: op, Axis: axis}
	m.Value = cmp.Or(v.Node().Label(), string(v.Node().Op())) + " " + v.Type().String()
	if a, ok := v.Node().Attrs().(*ir.PortAttrs); ok {
		m.Value = a.Name + " " + v.Type().String()
	}
	if c.at != nil {
		m.For = c.at.Op()
	}
	size, _ := x.Shape().Size().Const()
	m.Sent = sent(op, int64(size*x.DType().Size()), int64(c.size(axis)))
	c.report.Moved = append(c.report.Moved, m)
}

// Bytes returns the bytes of parameters and states on a device, and in all.
func (r PartitionReport) Bytes() (own, whole int64) {
	for _, p := range r.Ports {
		if p.Kind == ir.InputPort {
			continue
		}
		size, _ := p.Type.Shape.Size().Const()
		bytes := int64(size * p.Type.DType.Size())
		whole += bytes
		for _, axis := range p.Axes {
			for _, a := range r.Mesh {
				if a.Name == axis {
					bytes /= int64(a.Size)
				}
			}
		}
		own += bytes
	}
	return own, whole
}

// String returns a summary line, one line for each port with its mesh axes, and one for each kind
// of collective along an axis with its largest values.
func (r PartitionReport) String() string {
	var sb strings.Builder
	var mesh []string
	for _, a := range r.Mesh {
		mesh = append(mesh, format.Sprintf("%s=%d", a.Name, a.Size))
	}
	own, whole := r.Bytes()
	sb.WriteString(format.Sprintf("partition over %s: %d of %d bytes of parameters and states on each device, %d collectives, %d bytes sent by each device per step\n", joined(mesh), own, whole, r.Collectives, r.Sent))
	for _, p := range r.Ports {
		where := "replicated"
		if spec(p.Axes).isDivided() {
			where = format.Sprintf("divided along %q", p.Axes)
		}
		sb.WriteString(format.Sprintf("%s %s: %s\n", p.Name, p.Type, where))
	}
	for _, op := range []ir.Op{ops.OpAllReduce, ops.OpReduceScatter, ops.OpAllGather, ops.OpAllToAll} {
		for _, a := range r.Mesh {
			r.writeMoved(&sb, op, a.Name)
		}
	}
	return sb.String()
}

// writeMoved writes the collectives of an op along an axis.
func (r PartitionReport) writeMoved(sb *strings.Builder, op ir.Op, axis string) {
	const shown = 3
	list := slices.Clone(r.Moved)
	list = slices.DeleteFunc(list, func(m Moved) bool { return m.Op != op || m.Axis != axis })
	if len(list) == 0 {
		return
	}
	bytes := int64(0)
	for _, m := range list {
		bytes += m.Sent
	}
	slices.SortStableFunc(list, func(x, y Moved) int { return cmp.Compare(y.Sent, x.Sent) })
	var largest []string
	for _, m := range list[:min(shown, len(list))] {
		largest = append(largest, m.Value)
	}
	sb.WriteString(format.Sprintf("%s along %q: %d, %d bytes; the largest of %s\n", string(op), axis, len(list), bytes, strings.Join(largest, ", ")))
}
