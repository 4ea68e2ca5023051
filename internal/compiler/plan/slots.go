package plan

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// slotPhase adds what the host reads and writes to an entry.
type slotPhase struct{ *entryCompiler }

// addSlots adds the slots of the entry: scalars, inputs, persistent ports, outputs, and lists its
// parameters.
func (c slotPhase) addSlots() error {
	for i, port := range c.partition.Scalars {
		at := WordBytes * i
		c.entry.Scalars = append(c.entry.Scalars, c.slot(Slot{Name: port.Name, Role: Scalar, DType: port.Value.DType(), Offset: at, Bytes: WordBytes}))
		c.entry.UniformBytes = at + WordBytes
	}
	bounds := CheckedBounds(c.partition.Graph)
	for _, t := range c.partition.Tensors {
		if t.Port == nil {
			continue
		}
		if t.Port.Kind != ir.InputPort {
			c.persistentSlot(t)
			continue
		}
		s := c.portSlot(Input, t)
		s.Hi, s.Checked = bounds[t.Port.Value]
		c.entry.Inputs = append(c.entry.Inputs, c.slot(s))
	}
	for i, o := range c.partition.Graph.Outputs() {
		if t := c.partition.Outputs[i]; t != nil {
			s := c.tensorSlot(o.Name, Output, t)
			if d, ok := c.declared.Output(o.Name); ok {
				restoreComplex(&s, d.Value.Type())
			}
			c.entry.Outputs = append(c.entry.Outputs, c.slot(s))
		}
	}
	c.addParams(c.declared)
	return nil
}

func (c slotPhase) slot(s Slot) int {
	c.plan.Slots = append(c.plan.Slots, s)
	return len(c.plan.Slots) - 1
}

func (c slotPhase) tensorSlot(name string, role Role, t *fusion.Tensor) Slot {
	r := c.regions[t]
	return Slot{Name: name, Role: role, DType: t.DType, Dims: t.Dims, Buffer: r.buffer, Offset: r.offset, Bytes: align(t.Bytes(), WordBytes)}
}

// persistentSlot adds a parameter or state once for all entries. A port that is a
// parameter of any entry is a parameter.
func (c slotPhase) persistentSlot(t *fusion.Tensor) {
	if _, ok := c.slots[t.Name]; ok {
		return
	}
	role := State
	for _, e := range c.module.Entries {
		if p, ok := e.Graph.Port(t.Name); ok && p.Kind == ir.ParamPort {
			role = Param
		}
	}
	c.slots[t.Name] = c.slot(c.portSlot(role, t))
}

// addParams lists the parameters that the entry reads and sets.
func (c slotPhase) addParams(g *ir.Graph) {
	read := g.ReadPorts()
	for _, p := range g.Ports() {
		i, ok := c.slots[p.Name]
		if !ok || c.plan.Slots[i].Role != Param {
			continue
		}
		if p.Kind == ir.ParamPort && read[p.Name] {
			c.entry.Reads = append(c.entry.Reads, i)
		}
		if g.Updates(p.Name) {
			c.entry.Sets = append(c.entry.Sets, i)
		}
	}
}

// portSlot returns the slot of a port of the graph.
func (c slotPhase) portSlot(role Role, t *fusion.Tensor) Slot {
	s := c.tensorSlot(t.Name, role, t)
	if p, ok := c.declared.Port(t.Name); ok {
		restoreComplex(&s, p.Value.Type())
	}
	return s
}

// restoreComplex restores the declared complex type of a slot: kernels see the real and imaginary
// parts along a last axis.
func restoreComplex(s *Slot, t ir.Type) {
	if t.DType.IsComplex() && !s.DType.IsComplex() {
		s.DType = t.DType
		s.Dims, _ = t.Shape.Ints()
	}
}

// CheckedBounds returns the smallest upper bound of each input of a graph whose elements the device
// checks as indices, so that the host can check them first. A single pass finds all of them: a
// graph may have many inputs.
func CheckedBounds(g *ir.Graph) map[ir.Value]int {
	out := map[ir.Value]int{}
	for _, n := range g.Nodes() {
		if n.Op() != ops.OpCheckIndex {
			continue
		}
		root := rootOf(n.Input(0))
		bound, known := n.Attrs().(*ops.CheckIndexAttrs).Bound.Const()
		if minBound, seen := out[root]; known && (!seen || bound < minBound) {
			out[root] = bound
		}
	}
	return out
}

// rootOf follows a value back through ops that only move or convert elements.
func rootOf(v ir.Value) ir.Value {
	for {
		switch v.Node().Op() {
		case ops.OpReshape, ops.OpTranspose, ops.OpBroadcastInDim, ops.OpConvert:
			v = v.Node().Input(0)
		default:
			return v
		}
	}
}
