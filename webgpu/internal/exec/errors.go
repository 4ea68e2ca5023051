package exec

import (
	"context"
	"errors"
	"strings"
)

// The kinds of error of this package besides those of package ir (ErrShape,
// ErrDType, ErrName and ErrIndex for wrong inputs); each [*Error] says to
// [errors.Is] which it is.
var (
	// ErrDevice: there is no adapter, or it gives no device.
	ErrDevice = errors.New("no device")
	// ErrLimit: the plan needs more than the device has.
	ErrLimit = errors.New("over the device's limits")
	// ErrShader: a kernel does not compile.
	ErrShader = errors.New("kernel refused")
	// ErrMemory: the device is out of memory.
	ErrMemory = errors.New("out of device memory")
	// ErrGPU: any other error that the device reports.
	ErrGPU = errors.New("device error")
	// ErrLost: the device is gone, and all state on it.
	ErrLost = errors.New("device lost")
	// ErrClosed: the session or the device was closed before.
	ErrClosed = errors.New("closed")
)

// Error says what went wrong where.
type Error struct {
	Kind error  // one of this package's or of package ir's
	Op   string // the entry, the kernel or the call
	Name string // the input, output, parameter or state, "" where none is to blame
	Node string // the node of the graph whose check failed on the device
	Msg  string
	// Steps is how many steps a lost device has cost: those since the state was
	// last read or written in full.
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

// fromBinding makes an error of what a call of the binding returned.
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
