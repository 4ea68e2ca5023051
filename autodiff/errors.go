package autodiff

import (
	"errors"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// ErrNoPath: a derivative is asked for by a value that it cannot depend on.
// The error that says so is a [*NoPathError].
var ErrNoPath = errors.New("no gradient path")

// Error says which transform failed at which op, and why.
type Error struct {
	Transform string // "jvp", "vjp", "grad", ...
	Op        ir.Op  // "" where no single op is to blame
	Pos       ir.Pos // where the graph was given that op
	Err       error
}

// Error returns "autodiff: grad: file.go:12: sort(f32[4]): no rule: ...".
func (e *Error) Error() string { return "autodiff: " + e.Transform + ": " + e.Err.Error() }

// Unwrap returns the reason, of one of the kinds of package ir or [ErrNoPath].
func (e *Error) Unwrap() error { return e.Err }

// wrap returns err as an [*Error] of a transform. One that is such an error
// already stays as it is: transforms are built on one another.
func wrap(transform string, err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	e := &Error{Transform: transform, Err: err}
	var op *ir.OpError
	if errors.As(err, &op) {
		e.Op, e.Pos = op.Op, op.Pos
	}
	return e
}

// given returns an [*Error] of a transform that is handed no graph.
func given(transform string, g *ir.Graph) error {
	return wrap(transform, g.Given())
}

// NoPathError says that no derivative leads from an output to a port.
type NoPathError struct {
	Port   string
	Output string // "" for all outputs together
	// Ends are the ops at which every path from the port to the output loses
	// its derivative; none where the output does not depend on the port at all.
	Ends []PathEnd
}

// PathEnd is an op that takes a value with a derivative and gives one without.
type PathEnd struct {
	Op     ir.Op
	Pos    ir.Pos
	Reason string
}

// Error names port, output and the ops in the way.
func (e *NoPathError) Error() string {
	var sb strings.Builder
	sb.WriteString(ErrNoPath.Error() + " from ")
	if e.Output == "" {
		sb.WriteString("any output")
	} else {
		sb.WriteString("output \"" + e.Output + "\"")
	}
	sb.WriteString(" to \"" + e.Port + "\": ")
	if len(e.Ends) == 0 {
		sb.WriteString("it does not depend on it")
		return sb.String()
	}
	for i, end := range e.Ends {
		if i > 0 {
			sb.WriteString("; ")
		}
		sb.WriteString("it ends at ")
		if p := end.Pos.String(); p != "" {
			sb.WriteString(p + ": ")
		}
		sb.WriteString(string(end.Op) + " (" + end.Reason + ")")
	}
	return sb.String()
}

// Unwrap returns [ErrNoPath].
func (e *NoPathError) Unwrap() error { return ErrNoPath }

// Is reports whether the error is of a kind of package ir: such a graph is
// malformed for a derivative.
func (e *NoPathError) Is(target error) bool { return target == ir.ErrGraph }
