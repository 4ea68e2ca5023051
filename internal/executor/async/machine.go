package async

import "github.com/rlx-go/rlx/internal/compiler/plan"

// Machine is what a backend does for one [Program]: it has the plan's memory and kernels
// on a device. Its methods are called by one goroutine at a time. Errors of the device are
// given as they are; Kind tells what they are.
type Machine interface {
	// Backend is the name of the backend, for errors.
	Backend() string
	// Lost returns why nothing can be run any more; nil while it can.
	Lost() error
	// Kind returns the kind that an error of the device has, [native.ErrLost] or
	// [native.ErrMemory], and nil where the error is none of the device or of another
	// kind. Lost tells of one of kind [native.ErrLost] from then on.
	Kind(err error) error
	// InFlight is how many runs of an entry, by its number in the plan, may be under way
	// before the next one waits; at least 1.
	InFlight(entry int) int
	// Led reports whether the host leads the runs of an entry to their end, by looking
	// again and again whether they are over: while one is under way no other begins.
	Led(entry int) bool
	// NewStage makes what one more run of an entry under way needs.
	NewStage(entry int) (Stage, error)
	// Ordered reports whether Write and Read come after the runs that were begun before.
	// Where they do not, those are waited for.
	Ordered() bool
	// Write writes a parameter or a state, where a bool is a word.
	Write(s *plan.Slot, data []byte) error
	// Read is the inverse of Write.
	Read(s *plan.Slot, data []byte) error
	// Release gives back all that the machine has, after its stages.
	Release() error
}

// Stage is what one run under way has of its own.
type Stage interface {
	// Input returns the memory that the host writes an input or a scalar of the entry to,
	// by its place in [Signature.Slots]; a bool is a word there.
	Input(i int) []byte
	// Output returns the memory of an output after a run that reads it, by its place among
	// the outputs.
	Output(i int) []byte
	// Status returns the plan's status word after a run. It is asked for where [Checks]
	// holds for the entry.
	Status() []byte
	// Begin asks for a run that reads some outputs, by their places in ascending order,
	// and begins with a clear status word. Of a run that fails here nothing is under way
	// afterwards.
	Begin(reads []int) error
	// Over reports whether the last run is over, with what went wrong.
	Over() (bool, error)
	// Release gives back what the stage is made of.
	Release() error
}
