// Package named finds the entries, parameters and states that a call names, for the executors.
package named

import (
	"maps"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// UnknownEntry returns the error, of kind [ir.ErrName], of a call of an entry that is not among entries.
func UnknownEntry(name string, entries []string) error {
	return ir.Errorf(ir.ErrName, "unknown entry %q: have %v", name, entries)
}

// Persistent are the parameters and states of a program. They do not change.
type Persistent struct {
	slots   []native.Slot
	numbers map[string]int
}

// NewPersistent returns parameters and states, numbered in order.
func NewPersistent(slots []native.Slot) Persistent {
	p := Persistent{slots: slots, numbers: make(map[string]int, len(slots))}
	for i, s := range slots {
		p.numbers[s.Name] = i
	}
	return p
}

// Find returns the number of a parameter or a state. The error is of kind [ir.ErrName].
func (p Persistent) Find(name string) (int, error) {
	if i, found := p.numbers[name]; found {
		return i, nil
	}
	names := make([]string, len(p.slots))
	for i, s := range p.slots {
		names[i] = s.Name
	}
	return 0, ir.Errorf(ir.ErrName, "unknown parameter or state %q: have %v", name, names)
}

// Accept returns the numbers of the parameters and states that values are given for. The error is a
// [*native.Error] of the first value, by name, whose name is unknown or which does not fit.
func (p Persistent) Accept(backend string, values map[string]native.Tensor) (map[string]int, error) {
	numbers := make(map[string]int, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i, err := p.Find(name)
		if err == nil {
			err = p.slots[i].Accept(values[name])
		}
		if err != nil {
			return nil, &native.Error{Backend: backend, Call: "set", Kind: native.KindOf(err), Name: name, Err: err}
		}
		numbers[name] = i
	}
	return numbers, nil
}
