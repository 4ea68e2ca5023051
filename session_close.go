package rlx

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/rlx-go/rlx/native"
)

// programs are the open programs of a session.
type programs struct {
	mu     sync.Mutex
	open   map[*Program]bool
	closed bool
}

// add takes in a program. The error is of kind [native.ErrClosed] if the session is closed.
func (s *programs) add(p *Program) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errSessionClosed
	}
	if s.open == nil {
		s.open = map[*Program]bool{}
	}
	s.open[p] = true
	return nil
}

func (s *programs) remove(p *Program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, p)
}

// all returns the open programs; with end set, add refuses further ones.
func (s *programs) all(end bool) []*Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || end
	return slices.Collect(maps.Keys(s.open))
}

var errSessionClosed = &native.Error{Backend: "session", Call: "compile", Kind: native.ErrClosed}

// Close closes all programs of the session that are still open, each after its last run
// ([Program.Close]), and refuses further ones with an error of kind [native.ErrClosed]. A second
// call does nothing. If ctx is done first, the programs with runs in flight stay open, and Close can
// be called again. The device itself stays open, as other sessions may use it.
func (s *Session) Close(ctx context.Context) error {
	if err := s.given(ctx, "close"); err != nil {
		return err
	}
	var failed []error
	for _, p := range s.programs.all(true) {
		failed = append(failed, p.Close(ctx))
	}
	return errors.Join(failed...)
}

// Sync waits until all runs of the session's programs that were started before are done. Errors of
// runs are reported by the calls that started or wait for them. If ctx is done first, it returns the
// error of ctx.
func (s *Session) Sync(ctx context.Context) error {
	if err := s.given(ctx, "sync"); err != nil {
		return err
	}
	for _, p := range s.programs.all(false) {
		if err := p.Sync(ctx); err != nil && !errors.Is(err, native.ErrClosed) {
			return err
		}
	}
	return nil
}

// Sync waits until the runs of the program that were started before are done: see [Session.Sync].
// The error is of kind [native.ErrClosed] for a closed program.
func (p *Program) Sync(ctx context.Context) error {
	if err := p.given(ctx, "sync"); err != nil {
		return err
	}
	if s, ok := p.Program.(native.Syncer); ok {
		return s.Sync(ctx)
	}
	return p.SetAll(ctx, nil) // waits for the runs before it
}

// Close frees the program's memory after the last run: see [native.Program.Close].
func (p *Program) Close(ctx context.Context) error {
	if err := p.given(ctx, "close"); err != nil {
		return err
	}
	err := p.Program.Close(ctx)
	if err == nil && p.owner != nil {
		p.owner.remove(p)
	}
	return err
}
