package native

import (
	"context"
	"errors"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// The kinds of error of devices, besides those of package ir: ir.ErrName,
// ir.ErrDType, ir.ErrShape and ir.ErrIndex for wrong inputs, ir.ErrUnsupported
// for what a backend cannot compute; and those of package context,
// context.Canceled and context.DeadlineExceeded, for what was given up because
// its context was done.
var (
	// ErrUnavailable: the device is not there, or cannot be used; the text says
	// what is missing.
	ErrUnavailable = errors.New("device unavailable")
	// ErrLost: the device is gone, and all state on it.
	ErrLost = errors.New("device lost")
	// ErrMemory: the device is out of memory, or the tensor is over its limits.
	ErrMemory = errors.New("out of device memory")
	// ErrOverlap: an output was given memory that is another tensor's.
	ErrOverlap = errors.New("overlapping memory")
	// ErrClosed: the program was closed before.
	ErrClosed = errors.New("closed")
	// ErrDevice: any other failure that the device reports.
	ErrDevice = errors.New("device error")
)

// Error says what went wrong on which device.
type Error struct {
	Backend string // the backend's name
	Call    string // what was asked for: an entry, "set", "compile"
	Kind    error  // one of this package's, of package ir's or of package context's
	Name    string // the input, output, parameter or state, "" where none is to blame
	Node    string // the node of the graph whose check failed, "" otherwise
	Steps   int    // how many runs a lost device, or a run that failed on it, has cost
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
	if e.Kind != nil && !strings.Contains(reason, e.Kind.Error()) { // which may say it behind a name
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

// kinds are all kinds that an error may have, for [KindOf].
var kinds = []error{
	context.Canceled, context.DeadlineExceeded,
	ErrUnavailable, ErrLost, ErrMemory, ErrOverlap, ErrClosed,
	ir.ErrIndex, ir.ErrShape, ir.ErrDType, ir.ErrName, ir.ErrUnsupported, ir.ErrSymbol, ir.ErrAttr, ir.ErrGraph,
	ErrDevice,
}

// KindOf returns the kind of an error, [ErrDevice] where it has none.
func KindOf(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return k
		}
	}
	return ErrDevice
}
