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

// given returns an error unless what a call is on is there, which was made by a function, and ctx is given.
func given(ctx context.Context, there bool, what, call, by string) error {
	if !there {
		return absent(what, call, by)
	}
	return contextGiven(ctx, call)
}

func (s *Session) given(ctx context.Context, call string) error {
	return given(ctx, s != nil && s.backend != nil, "session", call, "Open")
}

func (p *Program) given(ctx context.Context, call string) error {
	return given(ctx, p != nil && p.Program != nil, "program", call, "Session.Compile")
}

func trainerGiven(ctx context.Context, t *Trainer, call string) error {
	return given(ctx, t != nil && t.program != nil, "trainer", call, "NewTrainer")
}

func (j *Joint) given(ctx context.Context, call string) error {
	return given(ctx, j != nil && j.program != nil, "joint", call, "Session.TrainJointly")
}
