package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// placement gives the tensors of one entry buffers, and those memory: that of the program, or temporary memory in
// an arena.
type placement struct {
	program *program
	entry   *entry
	buffers map[int]*buffer
	nextID  int // see [placement.bufferID]; those of tensors are not negative
	// Temporary memory: the index of the last item that uses each tensor, and the
	// placement of each in the arena.
	last  map[*fusion.Tensor]int
	item  int
	arena arena
	temps []temporary
	// largest is the largest tensor of the arena, for error messages.
	largest native.Allocation
}

// temporary is a buffer at an offset of the arena.
type temporary struct {
	buf    *buffer
	offset int
}

func newPlacement(p *program, e *entry, of *fusion.Partition) placement {
	return placement{program: p, entry: e, buffers: map[int]*buffer{}, nextID: resultID - 1, last: lastUses(of)}
}

// placePersistent creates the buffers of tensors that outlive a run: inputs, constants,
// parameters and states.
func (p *placement) placePersistent(prog *fusion.Partition) {
	for _, port := range prog.Scalars {
		p.entry.scalar(native.SlotOf(port.Name, native.Input, port.Value))
	}
	bounds := plan.CheckedBounds(prog.Graph)
	for _, t := range prog.Tensors {
		switch {
		case t.Port == nil && t.Constant == nil:
		case t.Constant != nil:
			p.constant(t)
		case t.Port.Kind == ir.InputPort:
			s := native.SlotOf(t.Name, native.Input, t.Port.Value)
			s.Hi, s.Checked = bounds[t.Port.Value]
			p.input(s, t)
		default:
			p.buffers[t.ID] = p.program.store(t)
		}
	}
}

// constant reserves memory for a literal and copies its elements there.
func (p *placement) constant(t *fusion.Tensor) {
	b := p.buffer(t)
	p.program.memory.reserve(allocationOf(t), func(data []byte) {
		b.data = data
		copy(data, t.Constant)
	})
}

// input adds an input, with a buffer for caller's values that cannot be used in place.
func (p *placement) input(s native.Slot, t *fusion.Tensor) {
	b, at := p.buffer(t), len(p.entry.inputs)
	p.entry.inputs = append(p.entry.inputs, input{slot: len(p.entry.slots), buf: b})
	p.entry.slots = append(p.entry.slots, s)
	p.program.memory.reserve(allocationOf(t), func(data []byte) { b.data, p.entry.inputs[at].held = data, data })
}

// buffer creates the buffer of a tensor, without memory.
func (p *placement) buffer(t *fusion.Tensor) *buffer {
	b := &buffer{dtype: t.DType, elems: t.Len()}
	p.buffers[t.ID] = b
	return b
}

// placeTemporary places a tensor that an item writes in the arena, unless it has a buffer. The
// tensors of a loop's body are live as long as the loop.
func (p *placement) placeTemporary(t *fusion.Tensor) {
	if p.buffers[t.ID] != nil || t.Outer != nil {
		return
	}
	last := max(p.last[t], p.item)
	if a := allocationOf(t); a.Bytes > p.largest.Bytes {
		p.largest = a
	}
	p.temps = append(p.temps, temporary{p.buffer(t), p.arena.alloc(t.Len()*t.DType.Size(), p.item, last)})
}

// scratch returns a buffer that is live during the current item only.
func (p *placement) scratch(d ir.DType, elems int) *buffer {
	b := &buffer{dtype: d, elems: elems}
	p.temps = append(p.temps, temporary{b, p.arena.alloc(b.bytes(), p.item, p.item)})
	return b
}

// bufferID gives a buffer that is no tensor's an ID, for loads and stores.
func (p *placement) bufferID(b *buffer) int {
	id := p.nextID
	p.nextID--
	p.buffers[id] = b
	return id
}

// finish reserves the arena and records the outputs.
func (p *placement) finish(prog *fusion.Partition) {
	p.program.memory.reserve(arenaAllocation(p.entry.name, p.arena.bytes(), p.largest), func(memory []byte) {
		for _, t := range p.temps {
			t.buf.data = memory[t.offset : t.offset+max(t.buf.bytes(), 16)]
		}
	})
	seen := map[*buffer]bool{}
	for i, o := range prog.Graph.Outputs() {
		if t := prog.Outputs[i]; t != nil {
			b := p.buffers[t.ID]
			own := !seen[b] && t.Port == nil && t.Constant == nil
			seen[b] = true
			p.entry.output(native.SlotOf(o.Name, native.Output, o.Value), b, own)
		}
	}
}
