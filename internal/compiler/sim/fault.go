package sim

import "fmt"

// Kind is a kind of fault.
type Kind uint8

// The kinds of fault.
const (
	// OutOfBounds: an index outside its array.
	OutOfBounds Kind = iota
	// Race: two threads of a workgroup access an element without a barrier in between, and
	// one of them writes.
	Race
	// GroupRace: a workgroup accesses an element that another one writes.
	GroupRace
	// DivergentBarrier: only some threads of a workgroup execute a barrier or subgroup
	// operation.
	DivergentBarrier
	// Uninitialised: shared or private memory is read before it is written.
	Uninitialised
	// ZeroDivisor: an integer is divided by zero.
	ZeroDivisor
	// Unfinished: memory or a variable is accessed, or the kernel ends, while an
	// asynchronous copy or multiply-add uses it.
	Unfinished
	// Unfenced: a multiply-add reads shared memory that was stored to without a proxy
	// fence.
	Unfenced
	// Misaligned: the address of a copy or a multiply-add is not aligned to its size, or
	// differs among the threads of a warp group or of a fragment.
	Misaligned
	// OutOfRange: a variable has a value outside the range stated where it is used.
	OutOfRange
	// Deadlock: every role that has not ended waits for a phase that does not complete.
	Deadlock
	// Overrun: a phase that is awaited is not one of the last two, or more warps arrive in
	// a phase than it expects.
	Overrun
)

var kindNames = [...]string{
	"index out of bounds", "race between threads", "race between workgroups", "divergent barrier",
	"uninitialised memory", "division by zero",
	"asynchronous work not waited for", "no proxy fence before an asynchronous read", "misaligned address", "variable out of range",
	"roles wait for each other", "phase missed",
}

// String returns the kind in words.
func (k Kind) String() string { return kindNames[k] }

// Fault is an error that a kernel makes.
type Fault struct {
	Kind   Kind
	Kernel string
	Group  [3]int // of the thread
	Thread int    // local index of the thread; for a divergent barrier, one that is missing
	Array  string // array or variable, "" if the fault concerns neither
	Index  int    // element of the array, or value of the variable
	Other  int    // of a race: the other thread, or linear index of the other workgroup; -1 for several
	Stmt   string // path of statements, from the outside in
}

// Error returns "kernel sum: race between threads: tile[3], thread 4 against 5
// of group [0 0 0], in for k > store tile".
func (f *Fault) Error() string {
	s := fmt.Sprintf("kernel %s: %s: ", f.Kernel, f.Kind)
	if f.Array != "" {
		s += fmt.Sprintf("%s[%d], ", f.Array, f.Index)
	}
	s += fmt.Sprintf("thread %d of group %d", f.Thread, f.Group)
	if f.Kind == Race || f.Kind == GroupRace {
		s += fmt.Sprintf(" against %d", f.Other)
	}
	return s + ", in " + f.Stmt
}

// LaunchError is the reason why a kernel cannot be simulated.
type LaunchError struct {
	Kernel string
	Reason string
}

// Error returns "kernel sum: 2 arrays for 3 bindings".
func (e *LaunchError) Error() string { return "kernel " + e.Kernel + ": " + e.Reason }
