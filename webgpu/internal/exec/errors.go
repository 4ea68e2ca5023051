package exec

import (
	"context"
	"errors"
	"strings"
)

// The kinds of error of this package, besides ErrShape, ErrDType, ErrName and ErrIndex of
// package ir for wrong inputs. [errors.Is] finds them in an [*Error].
var (
	// ErrDevice means that there is no adapter or no device.
	ErrDevice = errors.New("no device")
	// ErrLimit means that the plan exceeds the device's limits.
	ErrLimit = errors.New("over the device's limits")
	// ErrShader means that a kernel does not compile.
	ErrShader = errors.New("kernel refused")
	// ErrMemory means that the device is out of memory.
	ErrMemory = errors.New("out of device memory")
	// ErrGPU is any other error of the device.
	ErrGPU = errors.New("device error")
	// ErrLost means that the device is gone, with all state on it.
	ErrLost = errors.New("device lost")
	// ErrClosed means that the session or the device is closed.
	ErrClosed = errors.New("closed")
)

// Error is a failed call.
type Error struct {
	Kind error  // a kind of this package or of package ir
	Op   string // the entry, the kernel or the call
	Name string // the input, output, parameter or state at fault, or ""
	Node string // the node of the graph whose check failed on the device
	Msg  string
	// Steps is the number of steps lost with the device, since the state was last read or
	// written in full.
	Steps int
}

// Error returns "entry: kind: reason".
func (e *Error) Error() string {
	var sb strings.Builder
	sb.WriteString("webgpu: ")
	if e.Op != "" {
		sb.WriteString(e.Op + ": ")
	}
	sb.WriteString(e.Kind.Error())
	if e.Msg != "" {
		sb.WriteString(": " + e.Msg)
	}
	return sb.String()
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// fromBinding converts an error of the binding.
func fromBinding(kind error, op string, err error) error {
	if err == nil {
		return nil
	}
	if known := new(Error); errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err // not the binding's
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "Not enough memory"):
		kind = ErrMemory
	case strings.Contains(text, "device is lost"):
		kind = ErrLost
	}
	return &Error{Kind: kind, Op: op, Msg: text}
}
