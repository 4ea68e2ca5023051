package coreml

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// allocations returns the memory of a program on the host: inputs and outputs of each entry,
// parameters, and states twice. The intermediate values of Core ML are unknown.
func allocations(m *ir.Module) (parts []native.Allocation, slots []native.Slot) {
	known := map[string]bool{}
	add := func(name string, role native.Role, v ir.Value, times int) {
		slot := native.SlotOf(name, role, v)
		bytes := int64(math.MaxInt64) // the size overflows
		if n, err := v.Type().Bytes(); err == nil {
			bytes = int64(min(n, math.MaxInt/times) * times)
		} else if _, constant := v.Shape().Ints(); !constant {
			return // compilation refuses the symbol
		}
		parts, slots = append(parts, native.AllocationOf(slot, bytes)), append(slots, slot)
	}
	for _, e := range m.Entries {
		for _, p := range e.Graph.Ports() {
			switch {
			case p.Kind == ir.InputPort:
				add(p.Name, native.Input, p.Value, 1)
			case !known[p.Name]:
				known[p.Name] = true
				add(p.Name, native.State, p.Value, 2)
			}
		}
		for _, o := range e.Graph.Outputs() {
			if !o.State {
				add(o.Name, native.Output, o.Value, 1)
			}
		}
	}
	return parts, slots
}
