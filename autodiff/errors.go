package autodiff

import (
	"errors"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// ErrNoPath is the kind of a [*NoPathError]: an output does not depend differentiably on a port.
var ErrNoPath = errors.New("no gradient path")

// Error reports a failed transform.
type Error struct {
	Transform string // "jvp", "vjp", "grad", ...
	Op        ir.Op  // the op that failed; "" if the failure has no single op
	Pos       ir.Pos // where the op was added to the graph
	Err       error
}

// Error returns "autodiff: grad: file.go:12: sort(f32[4]): no rule: ...".
func (e *Error) Error() string { return "autodiff: " + e.Transform + ": " + e.Err.Error() }

// Unwrap returns the cause, of one of the kinds of package ir or [ErrNoPath].
func (e *Error) Unwrap() error { return e.Err }

// wrap returns err as an [*Error] of a transform. It returns an existing [*Error] unchanged, since
// transforms call one another.
func wrap(transform string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	e := &Error{Transform: transform, Err: err}
	if op, ok := errors.AsType[*ir.OpError](err); ok {
		e.Op, e.Pos = op.Op, op.Pos
	}
	return e
}

// checkGraph returns an [*Error] if the graph is nil.
func checkGraph(transform string, g *ir.Graph) error {
	return wrap(transform, g.NotNil())
}

// NoPathError reports that an output does not depend differentiably on a port.
type NoPathError struct {
	Port   string
	Output string // "" for all outputs
	// Ends are the ops at which every path from the port to the output loses its derivative. It is
	// empty if the output does not depend on the port at all.
	Ends []PathEnd
}

// PathEnd is an op with a differentiable operand and no differentiable result.
type PathEnd struct {
	Op     ir.Op
	Pos    ir.Pos
	Reason string
}

// Error names the port, the output and the ops that end the paths.
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

// Is reports whether target is [ir.ErrGraph]: a graph without the requested path is malformed for
// differentiation.
func (e *NoPathError) Is(target error) bool { return target == ir.ErrGraph }
