package onnx

import (
	"errors"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
)

// ErrDamaged is the kind of the errors for data that are no ONNX model.
var ErrDamaged = errors.New("damaged ONNX model")

func damaged(text string, args ...any) error {
	return format.Errorf("%w: %s", ErrDamaged, format.Sprintf(text, args...))
}

// Error reports a node of a model that could not be imported. It wraps the reason, of a kind of
// package ir: [ir.ErrUnsupported] for an op, an element type or an attribute that the importer does
// not support.
type Error struct {
	Node   string // the node's name, or that of its first output
	Op     string // with its domain, if that is not the default one
	Opset  int64  // the version of the domain's operator set
	Reason error
}

// Error returns 'node "conv1": Conv (opset 13): reason'.
func (e *Error) Error() string {
	return format.Sprintf("node %q: %s (opset %d): %v", e.Node, e.Op, e.Opset, e.Reason)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// NeedError is the error for a value that determines a shape and is not known at import: an axis, a
// size, a number of repeats. [Options.Values] sets the values of inputs.
type NeedError struct {
	Value string   // the value that the node needs
	Type  ir.Type  // its type
	From  []string // the inputs of the graph that it depends on; with none, it depends on sizes or the steps of a loop
	// Reason is why a branch cannot be imported that the value decides about; nil for other values.
	Reason error
}

// Error returns the reason.
func (e *NeedError) Error() string {
	text := format.Sprintf("the elements of %q, %s, must be known at import; it depends on the inputs %q", e.Value, e.Type, e.From)
	if len(e.From) == 0 {
		text = format.Sprintf("the elements of %q, %s, must be known at import; it depends on sizes, which Options.Sizes sets, or on the steps of a loop",
			e.Value, e.Type)
	}
	if e.Reason != nil {
		text += format.Sprintf("; of the branches, both of which would be in the graph, one cannot be: %v", e.Reason)
	}
	return text
}

// Unwrap returns the reason of a branch.
func (e *NeedError) Unwrap() error { return e.Reason }

// Is reports the kind, [ir.ErrUnsupported].
func (e *NeedError) Is(kind error) bool { return kind == ir.ErrUnsupported }
