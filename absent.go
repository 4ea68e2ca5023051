package rlx

import (
	"context"
	"errors"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// absent is the error of a call on a session, program or the like that is nil or was not made by the function, as it
// is after a program has ignored the error of that function.
func absent(what, call, by string) error {
	return &native.Error{Backend: what, Call: call, Kind: native.ErrClosed, Err: errors.New("it is nil or zero: rlx." + by + " did not return it")}
}

// contextGiven returns an error if ctx is nil.
func contextGiven(ctx context.Context, call string) error {
	if ctx == nil {
		return ir.Attrf("%s: ctx is nil: it must be a context, such as context.Background()", call)
	}
	return nil
}

// given returns an error unless the session was opened and ctx is given.
func (s *Session) given(ctx context.Context, call string) error {
	if s == nil || s.backend == nil {
		return absent("session", call, "Open")
	}
	return contextGiven(ctx, call)
}

// given returns an error unless the program was compiled and ctx is given.
func (p *Program) given(ctx context.Context, call string) error {
	if p == nil || p.Program == nil {
		return absent("program", call, "Session.Compile")
	}
	return contextGiven(ctx, call)
}

// trainerGiven returns an error unless the trainer has a program and ctx is given.
func trainerGiven(ctx context.Context, t *Trainer, call string) error {
	if t == nil || t.program == nil {
		return absent("trainer", call, "NewTrainer")
	}
	return contextGiven(ctx, call)
}

// given returns an error unless the trainers have a program and ctx is given.
func (j *Joint) given(ctx context.Context, call string) error {
	if j == nil || j.program == nil {
		return absent("joint", call, "Session.TrainJointly")
	}
	return contextGiven(ctx, call)
}
