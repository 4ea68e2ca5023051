package sim

import "fmt"

// Kind is a kind of fault.
type Kind uint8

// The kinds of fault.
const (
	// OutOfBounds: an index outside its array.
	OutOfBounds Kind = iota
	// Race: two threads of a workgroup touch an element, one of them writes,
	// and there is no barrier in between.
	Race
	// GroupRace: a workgroup touches what another one writes.
	GroupRace
	// DivergentBarrier: a barrier or subgroup operation that only some threads
	// of a workgroup come to.
	DivergentBarrier
	// Uninitialised: shared or private memory is read before it is written.
	Uninitialised
	// ZeroDivisor: an integer is divided by zero.
	ZeroDivisor
	// Unfinished: memory or a variable is touched, or the kernel ends, while an
	// asynchronous copy or multiply-add works on it.
	Unfinished
	// Unfenced: a multiply-add reads shared memory that was stored to without a
	// proxy fence.
	Unfenced
	// Misaligned: a copy or a multiply-add begins at an address that is no
	// multiple of what it takes, or the threads of a warp group or of a fragment at
	// different ones.
	Misaligned
	// OutOfRange: a variable has a value outside the range stated where it is
	// used.
	OutOfRange
	// Deadlock: every role that is not at its end waits for a phase that does not end.
	Deadlock
	// Overrun: a phase that is waited for is not one of the last two, or more warps arrive
	// in one than it waits for.
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

// Fault is something a kernel must not do.
type Fault struct {
	Kind   Kind
	Kernel string
	Group  [3]int // of the thread
	Thread int    // local index of the thread; for a divergent barrier, one that did not come
	Array  string // array or variable, "" where it is about neither
	Index  int    // element of the array, or value of the variable
	Other  int    // of a race: the other thread, or linear number of the other workgroup; -1 for several
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

// LaunchError says why a kernel cannot be simulated at all.
type LaunchError struct {
	Kernel string
	Reason string
}

// Error returns "kernel sum: 2 arrays for 3 bindings".
func (e *LaunchError) Error() string { return "kernel " + e.Kernel + ": " + e.Reason }
