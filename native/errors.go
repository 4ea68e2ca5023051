package native

import (
	"context"
	"errors"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// The kinds of error of devices. Backends also return the kinds ir.ErrName,
// ir.ErrDType, ir.ErrShape and ir.ErrIndex for wrong inputs, ir.ErrUnsupported for
// ops that they cannot compute, and context.Canceled and context.DeadlineExceeded
// for calls whose context was done.
var (
	// ErrUnavailable means that the device is missing or unusable.
	ErrUnavailable = errors.New("device unavailable")
	// ErrLost means that the device is gone, with all state on it.
	ErrLost = errors.New("device lost")
	// ErrMemory means that the device is out of memory or a tensor exceeds its limits.
	ErrMemory = errors.New("out of device memory")
	// ErrOverlap means that an output shares memory with another tensor.
	ErrOverlap = errors.New("overlapping memory")
	// ErrClosed means that the program is closed.
	ErrClosed = errors.New("closed")
	// ErrDevice is any other failure that the device reports.
	ErrDevice = errors.New("device error")
)

// Error is a failed call to a backend.
type Error struct {
	Backend string // the backend's name
	Call    string // the call: an entry, "set", "compile"
	Kind    error  // a kind of this package, of package ir or of package context
	Name    string // the input, output, parameter or state at fault, or ""
	Node    string // the node of the graph whose check failed, or ""
	Steps   int    // the number of runs lost with the device
	Err     error  // the reason, may be nil
}

// Error returns "cpu: step: bad name: reason".
func (e *Error) Error() string {
	var sb strings.Builder
	sb.WriteString(e.Backend)
	if e.Call != "" {
		sb.WriteString(": " + e.Call)
	}
	reason := ""
	if e.Err != nil {
		reason = e.Err.Error()
	}
	if e.Kind != nil && !strings.Contains(reason, e.Kind.Error()) {
		sb.WriteString(": " + e.Kind.Error())
	}
	if e.Node != "" {
		sb.WriteString(": " + e.Node)
	}
	if reason != "" {
		sb.WriteString(": " + reason)
	}
	return sb.String()
}

// Unwrap returns the kind and the reason, so that errors.Is and errors.As find
// both.
func (e *Error) Unwrap() []error {
	var out []error
	if e.Kind != nil {
		out = append(out, e.Kind)
	}
	if e.Err != nil {
		out = append(out, e.Err)
	}
	return out
}

// kinds lists all kinds of errors, for [KindOf].
var kinds = []error{
	context.Canceled, context.DeadlineExceeded,
	ErrUnavailable, ErrLost, ErrMemory, ErrOverlap, ErrClosed,
	ir.ErrIndex, ir.ErrShape, ir.ErrDType, ir.ErrName, ir.ErrUnsupported, ir.ErrSymbol, ir.ErrAttr, ir.ErrGraph,
	ErrDevice,
}

// KindOf returns the kind of an error, [ErrDevice] if it has none.
func KindOf(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return k
		}
	}
	return ErrDevice
}
