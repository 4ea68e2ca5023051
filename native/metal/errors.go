//go:build cgo && (darwin || linux)

package metal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/metal/driver"
)

// Kind returns what an error of the driver is, and notes what is lost.
func (p *program) Kind(err error) error {
	var e *driver.Error
	switch {
	case !errors.As(err, &e):
		return nil
	case e.Kind == driver.Lost:
		p.device.lost.Store(true)
		return native.ErrLost
	case e.Kind == driver.OutOfMemory:
		return native.ErrMemory
	}
	return nil
}

// errGone is the reason of calls for a GPU that is lost.
var errGone = errors.New("after an earlier error this process cannot use the GPU any more: start it again")

// Lost returns why the program cannot be used any more.
func (p *program) Lost() error {
	if p.device.lost.Load() {
		return errGone
	}
	return nil
}

// notBegun reports whether a command buffer failed before it did anything.
func notBegun(err error) bool {
	var e *driver.Error
	return err != nil && errors.As(err, &e) && e.Kind == driver.OutOfMemory
}

// shorter is by how much less command buffers may take after one was ended.
const shorter = 4

// failed returns the error of a run that a failure of a command buffer ended: which runs are
// lost by it, and what parameters and states. The program goes on, by shorter command
// buffers: those that are too long are what macOS ends.
func (s *stage) failed(err error) error {
	if err == nil {
		return nil
	}
	var e *driver.Error
	p := s.e.p
	if !errors.As(err, &e) || e.Kind == driver.Lost {
		return err
	}
	failure := &native.Error{Backend: Name, Call: s.e.spec.Name, Kind: native.ErrDevice, Steps: 1}
	if e.Kind == driver.OutOfMemory {
		failure.Kind = native.ErrMemory
	} else {
		p.limit = max(p.limit/shorter, 1)
	}
	if !s.torn || len(s.e.writes) == 0 {
		failure.Err = fmt.Errorf("run %d is lost, and changes nothing: %w", s.number, err)
		return failure
	}
	var names []string
	for _, slot := range s.e.writes {
		p.doubt[slot], names = s.number, append(names, slot.Name)
	}
	p.lost = [2]int{s.number, p.begun}
	failure.Steps = p.begun - s.number + 1
	failure.Err = fmt.Errorf("runs %d to %d are lost, and %s may be written in part: set what is, as from a checkpoint: %w",
		s.number, p.begun, strings.Join(names, ", "), err)
	return failure
}

// behindLost reports whether the run was begun behind one that is lost, before that was known.
func (s *stage) behindLost() bool { return s.number > s.e.p.lost[0] && s.number <= s.e.p.lost[1] }

func (s *stage) lostBehind() error {
	return &native.Error{
		Backend: Name, Call: s.e.spec.Name, Kind: native.ErrDevice, Steps: s.e.p.lost[1] - s.e.p.lost[0] + 1,
		Err: fmt.Errorf("run %d is lost, as run %d before it has failed", s.number, s.e.p.lost[0]),
	}
}

// doubtful returns an error where the entry uses what may be written in part.
func (e *entry) doubtful() error {
	for _, s := range e.touches {
		if err := e.p.doubtOf(s, e.spec.Name); err != nil {
			return err
		}
	}
	return nil
}

// doubtOf returns the error of a call that wants a parameter or a state that may be written
// in part, nil for others.
func (p *program) doubtOf(s *plan.Slot, call string) error {
	run, torn := p.doubt[s]
	if !torn {
		return nil
	}
	return &native.Error{
		Backend: Name, Call: call, Kind: native.ErrDevice, Name: s.Name,
		Err: fmt.Errorf("run %d has failed and may have written %q in part: set it, as from a checkpoint", run, s.Name),
	}
}

// tooMuch says how much memory was asked for and how much there was.
func (p *program) tooMuch(what string, bytes int, err error) error {
	var e *driver.Error
	if !errors.As(err, &e) || e.Kind != driver.OutOfMemory {
		return err
	}
	i := p.device.Info()
	return fmt.Errorf("%s takes %d bytes, and of the %d bytes of the device %d are free: %w", what, bytes, i.Memory, max(i.Memory-i.Allocated, 0), err)
}
