// Package planned is what the backends that run plans have in common: what a plan looks
// like from outside ([Signature], [Support]), and how its runs are asked for, kept in order
// and waited for ([Program]), whatever the device ([Machine]).
//
// A plan's entries share temporary memory, so that the device computes one run at a time,
// those that only read as well. Runs are begun one after the other, without waiting for
// each other's end, and what needs no kernels, such as copies of inputs, goes on beside
// them where the [Machine] does so.
package async

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/native"
)

// Signature tells the entries, inputs, outputs and states of a plan, as
// [native.Program] has them. It is embedded by programs and does not change.
type Signature struct {
	entries    []string
	slots      map[string][]native.Slot
	persistent []native.Slot
	memory     int64
}

// SignatureOf returns the signature of a plan.
func SignatureOf(p *plan.Plan) Signature {
	s := Signature{slots: map[string][]native.Slot{}}
	for i := range p.Entries {
		e := &p.Entries[i]
		var slots []native.Slot
		for _, n := range slices.Concat(e.Inputs, e.Scalars) {
			slots = append(slots, SlotOf(&p.Slots[n], native.Input))
		}
		for _, n := range e.Outputs {
			slots = append(slots, SlotOf(&p.Slots[n], native.Output))
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

// Memory returns how many bytes the buffers of the plan take on the device.
func (s *Signature) Memory() int64 { return s.memory }

// SlotOf returns a slot of a plan in a role that it has for a caller.
func SlotOf(s *plan.Slot, role native.Role) native.Slot {
	return native.Slot{Name: s.Name, Role: role, DType: s.DType, Dims: s.Dims, Lo: s.Lo, Hi: s.Hi, Checked: s.Checked}
}

// Entries returns the names of the entries, in the order of the plan.
func (s *Signature) Entries() []string { return slices.Clone(s.entries) }

// Slots returns the inputs of an entry, those in memory before those that are
// passed by value, and then its outputs; nil where there is no such entry.
func (s *Signature) Slots(entry string) []native.Slot { return slices.Clone(s.slots[entry]) }

// Persistent returns the parameters and states.
func (s *Signature) Persistent() []native.Slot { return slices.Clone(s.persistent) }
