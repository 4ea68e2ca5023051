package async

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/report"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Signature lists the entries, inputs, outputs and states of a plan, as
// [native.Program] returns them. It is immutable; programs embed it.
type Signature struct {
	entries    []string
	slots      map[string][]native.Slot
	persistent []native.Slot
	memory     int64
}

// SignatureOf returns the signature of a plan. The buffers of a layout, which are another program's,
// take none of its memory.
func SignatureOf(p *plan.Plan, shared plan.Layout) Signature {
	s := Signature{slots: map[string][]native.Slot{}, memory: -shared.Bytes()}
	for i := range p.Entries {
		e := &p.Entries[i]
		var slots []native.Slot
		inputs, outputs := p.SlotsOf(e)
		for _, slot := range inputs {
			slots = append(slots, SlotOf(slot, native.Input))
		}
		for _, slot := range outputs {
			slots = append(slots, SlotOf(slot, native.Output))
		}
		s.entries, s.slots[e.Name] = append(s.entries, e.Name), slots
	}
	for i := range p.Slots {
		switch slot := &p.Slots[i]; slot.Role {
		case plan.Param:
			s.persistent = append(s.persistent, SlotOf(slot, native.Param))
		case plan.State:
			s.persistent = append(s.persistent, SlotOf(slot, native.State))
		}
	}
	for _, b := range p.Buffers {
		s.memory += int64(b.Bytes)
	}
	return s
}

// Memory returns the size of the plan's buffers in bytes.
func (s *Signature) Memory() int64 { return s.memory }

// SlotOf returns a slot of a plan with its role for the caller.
func SlotOf(s *plan.Slot, role native.Role) native.Slot {
	return native.Slot{Name: s.Name, Role: role, DType: s.DType, Dims: s.Dims, Lo: s.Lo, Hi: s.Hi, Checked: s.Checked}
}

// Entries returns the names of the entries, in the order of the plan.
func (s *Signature) Entries() []string { return slices.Clone(s.entries) }

// Slots returns the inputs of an entry, buffers before scalars, and then its outputs;
// nil if there is no such entry.
func (s *Signature) Slots(entry string) []native.Slot { return slices.Clone(s.slots[entry]) }

// Persistent returns the parameters and states.
func (s *Signature) Persistent() []native.Slot { return slices.Clone(s.persistent) }

// CheckMemory returns a [*native.MemoryError] if the buffers of a plan exceed the budget. Those of a
// layout, which are another program's, do not count.
func CheckMemory(p *plan.Plan, shared plan.Layout, budget native.Budget) error {
	var parts []native.Allocation
	var slots []native.Slot
	s := SignatureOf(p, shared)
	rest := s.memory
	for i := range p.Slots {
		slot := &p.Slots[i]
		role, bytes := roles[slot.Role], int64(slot.Bytes)
		if slot.Role == plan.Scalar || slot.Role == plan.Output { // an output may alias a state
			continue
		}
		if slot.Role.Persistent() && slot.Buffer < len(shared.Buffers) {
			continue
		}
		given := SlotOf(slot, role)
		slots = append(slots, given)
		parts = append(parts, native.AllocationOf(given, bytes))
		rest -= bytes
	}
	parts = append(parts, native.Allocation{Name: "what is computed", Bytes: rest})
	return budget.Check(parts, slots)
}

// Check returns the error of compiling a plan, or a [*native.MemoryError] if it exceeds the budget.
func Check(compile func() (*plan.Plan, error), budget func() (native.Budget, error)) error {
	p, err := compile()
	if err != nil {
		return err
	}
	b, err := budget()
	if err != nil {
		return err
	}
	return CheckMemory(p, plan.Layout{}, b)
}

// roles maps the roles of a plan's slots to those for callers.
var roles = map[plan.Role]native.Role{
	plan.Input: native.Input, plan.Scalar: native.Input, plan.Param: native.Param, plan.State: native.State, plan.Output: native.Output,
}

// Support implements [native.Backend.Support] for a compilation target, by [report.OnTarget].
func Support(n *ir.Node, t plan.Target, holder string) native.Support {
	s := report.OnTarget(n, t, holder)
	return native.Support{Level: native.Level(s.Level), Reason: s.Reason}
}
