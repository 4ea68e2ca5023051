package async

import "github.com/rlx-go/rlx/internal/compiler/plan"

// Machine is the backend's part of a [Program]: the plan's memory and kernels on a
// device. Its methods are called by one goroutine at a time. They return the device's
// errors unwrapped; Kind classifies them.
type Machine interface {
	// Backend returns the name of the backend, for errors.
	Backend() string
	// Lost returns the reason once the device is lost, else nil.
	Lost() error
	// Kind returns [native.ErrLost] or [native.ErrMemory] for a device error of that
	// kind, else nil. After a lost device, Lost returns the error.
	Kind(err error) error
	// InFlight returns the maximal number of runs in flight of an entry, given by its
	// number in the plan; at least 1.
	InFlight(entry int) int
	// HostDriven reports whether the host drives the runs of an entry by polling
	// [Stage.Done]. No other run begins while one is in flight.
	HostDriven(entry int) bool
	// NewStage makes a stage for one more run in flight of an entry.
	NewStage(entry int) (Stage, error)
	// Ordered reports whether the device orders Write and Read after the runs begun
	// before. If not, the program waits for those runs.
	Ordered() bool
	// Write writes a parameter or a state; a bool is a word.
	Write(s *plan.Slot, data []byte) error
	// Read is the inverse of Write.
	Read(s *plan.Slot, data []byte) error
	// Release frees the machine's memory and kernels. Its stages are released before.
	Release() error
}

// Stage is the staging memory of one run in flight.
type Stage interface {
	// Input returns the memory for input or scalar i in [Signature.Slots]; a bool is a
	// word.
	Input(i int) []byte
	// Output returns the memory of output i after a run that reads it.
	Output(i int) []byte
	// Status returns the plan's status word after a run, if [Checks] holds for the entry.
	Status() []byte
	// Begin clears the status word and begins a run that fetches the outputs reads, in
	// ascending order. After an error nothing is in flight.
	Begin(reads []int) error
	// Done reports whether the last run is done, with its error.
	Done() (bool, error)
	// Release frees the stage's memory.
	Release() error
}
