//go:build cgo && (darwin || linux)

package metal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/metal/driver"
	"github.com/rlx-go/rlx/native"
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
	behind := s.loseBehind()
	failure.Steps += behind
	failure.Err = fmt.Errorf("run %d is lost, with %d begun behind it, and %s may be written in part: set them, as from a checkpoint: %w",
		s.number, behind, strings.Join(p.doubtful(), ", "), err)
	return failure
}

// loseBehind notes what may be written in part after a run that failed, and by which of the
// runs under way that were begun behind it: those that read it. It returns how many they are.
func (s *stage) loseBehind() (lost int) {
	doubt := func(run *stage) {
		for _, slot := range run.e.writes {
			s.e.p.doubt[slot] = s.number
		}
	}
	doubt(s)
	for _, run := range s.e.p.running {
		if run.number > s.number && run.lostBy == 0 && run.e.doubtful() != nil {
			run.lostBy = s.number
			doubt(run)
			lost++
		}
	}
	return lost
}

// lostBehind returns the error of a run that was begun behind one that failed.
func (s *stage) lostBehind() error {
	return &native.Error{
		Backend: Name, Call: s.e.spec.Name, Kind: native.ErrDevice, Steps: 1,
		Err: fmt.Errorf("run %d is lost, as run %d before it has failed", s.number, s.lostBy),
	}
}

// doubtful returns the names of parameters and states that may be written in part.
func (p *program) doubtful() (names []string) {
	for s := range p.doubt {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
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
