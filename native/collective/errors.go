package collective

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of errors of groups.
var (
	// ErrDeadline: a rank did not make the call within the deadline of the group. It is late,
	// stopped, or makes another call.
	ErrDeadline = errors.New("deadline of the group exceeded")
	// ErrPeer: the process of another rank has ended, or its connection has failed.
	ErrPeer = errors.New("rank lost")
	// ErrMismatch: ranks make different calls, or have different plans or shapes.
	ErrMismatch = errors.New("ranks differ")
	// ErrAborted: a rank has aborted the group, because of an error of its own.
	ErrAborted = errors.New("group aborted")
	// ErrClosed: the group is closed on this rank.
	ErrClosed = errors.New("group closed")
	// ErrJoin: the group could not be formed.
	ErrJoin = errors.New("group not formed")
)

// Error is a failed collective, or a group that failed between collectives. The group cannot be used
// after it: every later call fails with the same cause.
type Error struct {
	Kind       error // ErrDeadline, ErrPeer, ErrMismatch, ErrAborted, ErrClosed or ErrJoin
	Rank, Size int   // this rank, and the ranks of the group
	Peer       int   // the rank at fault in this group; -1 if unknown
	// Call describes the collective, with its entry and step; "" for a failure outside of one.
	// Sequence is its number in the group, and Bytes the size of the array that it sends.
	Call     string
	Sequence int64
	Bytes    int64
	Err      error // the reason; may be nil
}

// Error returns "rank 1 of 4: all_reduce sum f32[1000] of entry "step", step 12 (collective 57, 4000
// bytes): rank lost: rank 2: EOF".
func (e *Error) Error() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "rank %d of %d: ", e.Rank, e.Size)
	if e.Call != "" {
		fmt.Fprintf(&sb, "%s (collective %d, %d bytes): ", e.Call, e.Sequence, e.Bytes)
	}
	sb.WriteString(e.Kind.Error())
	if e.Peer >= 0 {
		fmt.Fprintf(&sb, ": rank %d", e.Peer)
	}
	if e.Err != nil {
		sb.WriteString(": " + e.Err.Error())
	}
	return sb.String()
}

// Unwrap returns the kind and the reason.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Fault is a failure that an [Engine] reports: a kind of this package, the rank at fault by its
// number in the engine's group (-1 if unknown), and the reason.
type Fault struct {
	Kind error
	Peer int
	Err  error
}

// Error returns the kind and the reason.
func (f *Fault) Error() string {
	if f.Err == nil {
		return f.Kind.Error()
	}
	return f.Kind.Error() + ": " + f.Err.Error()
}

// Unwrap returns the kind and the reason.
func (f *Fault) Unwrap() []error {
	if f.Err == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.Err}
}
