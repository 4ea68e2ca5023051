// Package synchronous is what the backends have in common whose runs are over when a call
// returns, as on the CPU: how runs are asked for, checked, kept in order and waited for
// ([Program]), whatever does them ([Machine]).
//
// Runs of different entries that change no parameter and no state go on at the same time,
// beside what reads parameters and states. Those of one entry come one after the other, as
// they share the memory for what the entry computes on the way.
package synchronous

import "github.com/rlx-go/rlx/native"

// Machine is what a backend does for one [Program]. Its methods are called by one
// goroutine at a time, but for Read, and Run of entries that only read: several of these
// are called at a time, each entry by one goroutine.
type Machine interface {
	// Backend is the name of the backend, for errors.
	Backend() string
	// Run does a run of an entry, by its number: values has a tensor for each slot, in
	// their order, and outputs are written where they lie. Those without memory are not
	// wanted, but for tensors of no elements. No output has memory of
	// another tensor. The tensors must not be kept. Parameters and
	// states are as before where a run fails. An error that is no [*native.Error] becomes
	// one.
	Run(entry int, values []native.Tensor) error
	// Write writes a parameter or a state, by its place in [Signature.Persistent].
	Write(i int, t native.Tensor)
	// Read returns a parameter or a state in memory of its own.
	Read(i int) native.Tensor
	// Release gives back all that the machine has.
	Release() error
}

// Signature is what a program looks like from outside.
type Signature struct {
	Entries    []Entry
	Persistent []native.Slot // parameters and states
	Memory     int64         // in bytes
}

// Entry is one way to run a program.
type Entry struct {
	Name  string
	Slots []native.Slot // inputs and outputs, in the order of [Machine.Run]
	// OnlyReads is set for an entry that changes no parameter and no state.
	OnlyReads bool
}

// values puts tensors into the order of the slots.
func (e *Entry) values(in, out map[string]native.Tensor) []native.Tensor {
	values := make([]native.Tensor, len(e.Slots))
	for i, s := range e.Slots {
		if s.Role == native.Output {
			values[i] = out[s.Name]
		} else {
			values[i] = in[s.Name]
		}
	}
	return values
}
