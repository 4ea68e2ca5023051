package async

import (
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/native"
)

// CheckMemory returns a [*native.MemoryError] where the buffers of a plan take more than
// the budget.
func CheckMemory(p *plan.Plan, budget native.Budget) error {
	var parts []native.Allocation
	var slots []native.Slot
	s := SignatureOf(p)
	rest := s.memory
	for i := range p.Slots {
		slot := &p.Slots[i]
		role, bytes := roles[slot.Role], int64(slot.Bytes)
		if slot.Role == plan.Scalar || slot.Role == plan.Output { // an output may lie where a state does
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

// roles are those of slots for callers.
var roles = map[plan.Role]native.Role{
	plan.Input: native.Input, plan.Scalar: native.Input, plan.Param: native.Param, plan.State: native.State, plan.Output: native.Output,
}
