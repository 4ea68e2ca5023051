package chat

import (
	"errors"
	"fmt"
)

// The kinds of errors.
var (
	// ErrSyntax: the text is no template, or uses a part of Jinja that the package does not
	// support.
	ErrSyntax = errors.New("syntax error")
	// ErrValue: an operation does not fit a value, or a value is not defined.
	ErrValue = errors.New("bad value")
	// ErrLimit: the template takes too many steps, nests too deeply, or writes too much text.
	ErrLimit = errors.New("limit exceeded")
	// ErrRaised: the template refused the conversation by raise_exception.
	ErrRaised = errors.New("refused by the template")
)

// Error is an error of a template.
type Error struct {
	Line   int    // of the template, from 1
	Kind   error  // one of the kinds of the package
	Reason string // for [ErrRaised], the template's message
}

// Error returns "chat template, line 3: bad value: ...".
func (e *Error) Error() string {
	return fmt.Sprintf("chat template, line %d: %v: %s", e.Line, e.Kind, e.Reason)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// failure is an error without its line, which the node that is evaluated adds.
type failure struct {
	kind   error
	reason string
}

func (f *failure) Error() string { return f.reason }

func failf(kind error, text string, args ...any) error {
	return &failure{kind, fmt.Sprintf(text, args...)}
}

// at adds the line to an error that has none.
func at(line int, err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return &Error{line, f.kind, f.reason}
	}
	return err
}
