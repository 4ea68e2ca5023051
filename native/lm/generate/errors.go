package generate

import (
	"errors"
	"fmt"
)

// ErrClosed is the error of requests to a closed engine, and of those that Close interrupts.
var ErrClosed = errors.New("generate: the engine is closed")

// ErrRequest is the kind of errors for invalid requests.
var ErrRequest = errors.New("bad request")

// ContextError is the error for a prompt that fills the context. It is of kind [ErrRequest].
type ContextError struct {
	Prompt  int // tokens of the prompt
	Context int // positions of a slot
}

func (e *ContextError) Error() string {
	return fmt.Sprintf("generate: the prompt has %d tokens: it must have fewer than the context, %d", e.Prompt, e.Context)
}

// Unwrap returns [ErrRequest].
func (e *ContextError) Unwrap() error { return ErrRequest }

// refuse returns an error of kind [ErrRequest].
func refuse(text string, args ...any) error {
	return fmt.Errorf("generate: %w: %s", ErrRequest, fmt.Sprintf(text, args...))
}
