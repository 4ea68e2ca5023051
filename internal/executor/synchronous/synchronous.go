// Package synchronous executes programs on devices whose runs are done when the call
// returns, such as the CPU. A [Program] is a [native.Program]: it checks what callers give
// and keeps runs in order. A backend implements [Machine], which runs entries.
//
// Runs of different entries that change no parameter and no state are concurrent, with
// each other and with reads of parameters and states. Runs of one entry are serial, since
// they share temporary memory.
//
// Start reading at [Machine], then program.go and run.go.
package synchronous

import "github.com/rlx-go/rlx/native"

// Machine is the backend's part of a [Program]. Its methods are called by one goroutine at
// a time, except Read and Run of entries with OnlyReads: these are concurrent, with at most
// one Run of each entry.
type Machine interface {
	// Backend returns the name of the backend, for errors.
	Backend() string
	// Run runs an entry, given by its number. values holds a tensor for each slot; Run
	// writes the outputs in place. An output without memory, unless it is empty, is not
	// wanted. No output shares memory with another tensor. Run must not keep the tensors,
	// and must leave parameters and states unchanged if it fails. The program wraps
	// errors that hold no [*native.Error].
	Run(entry int, values []native.Tensor) error
	// Write writes element i of [Signature.Persistent].
	Write(i int, t native.Tensor)
	// Read returns a copy of element i of [Signature.Persistent].
	Read(i int) native.Tensor
	// Release frees the machine's memory.
	Release() error
}

// Signature lists the entries, parameters and states of a program.
type Signature struct {
	Entries    []Entry
	Persistent []native.Slot // parameters and states
	Memory     int64         // in bytes
}

// Entry is an entry of a program.
type Entry struct {
	Name  string
	Slots []native.Slot // inputs and outputs, in the order of [Machine.Run]
	// OnlyReads is set for an entry that changes no parameter and no state.
	OnlyReads bool
}

// values returns the tensors in the order of the slots.
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
