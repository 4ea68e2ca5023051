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

// Kind classifies an error of the driver and records a lost device.
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

// errDeviceGone is the reason of errors after the GPU is lost.
var errDeviceGone = errors.New("this process lost the GPU after an earlier error: restart it")

// Lost returns errDeviceGone if the device is lost.
func (p *program) Lost() error {
	if p.device.lost.Load() {
		return errDeviceGone
	}
	return nil
}

// neverStarted reports whether a command buffer failed before it executed anything.
func neverStarted(err error) bool {
	var e *driver.Error
	return err != nil && errors.As(err, &e) && e.Kind == driver.OutOfMemory
}

// shorter is the factor by which the time limit of command buffers falls after a failure.
const shorter = 4

// failed returns the error of a run whose command buffer failed, with the runs, parameters
// and states lost with it. The program goes on with shorter command buffers, since macOS
// kills those that are too long.
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
		failure.Err = fmt.Errorf("run %d is lost and has no effect: %w", s.number, err)
		return failure
	}
	behind := s.loseDependents()
	failure.Steps += behind
	failure.Err = fmt.Errorf("run %d is lost with %d queued after it, and %s may be partly written: set them, from a checkpoint for example: %w",
		s.number, behind, strings.Join(p.tornNames(), ", "), err)
	return failure
}

// loseDependents records the parameters and states that may be torn after a failed run, and
// marks the later runs in flight that use them. It returns the number of these runs.
func (s *stage) loseDependents() (lost int) {
	doubt := func(run *stage) {
		for _, slot := range run.e.writes {
			s.e.p.torn[slot] = s.number
		}
	}
	doubt(s)
	for _, run := range s.e.p.running {
		if run.number > s.number && run.lostBy == 0 && run.e.checkTorn() != nil {
			run.lostBy = s.number
			doubt(run)
			lost++
		}
	}
	return lost
}

// lostError returns the error of a run that depended on a failed one.
func (s *stage) lostError() error {
	return &native.Error{
		Backend: Name, Call: s.e.spec.Name, Kind: native.ErrDevice, Steps: 1,
		Err: fmt.Errorf("run %d is lost because run %d before it failed", s.number, s.lostBy),
	}
}

// tornNames returns the names of parameters and states that may be partly written.
func (p *program) tornNames() (names []string) {
	for s := range p.torn {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// checkTorn returns an error if the entry uses a parameter or state that may be torn.
func (e *entry) checkTorn() error {
	for _, s := range e.touches {
		if err := e.p.tornError(s, e.spec.Name); err != nil {
			return err
		}
	}
	return nil
}

// tornError returns an error if a parameter or a state may be torn.
func (p *program) tornError(s *plan.Slot, call string) error {
	run, torn := p.torn[s]
	if !torn {
		return nil
	}
	return &native.Error{
		Backend: Name, Call: call, Kind: native.ErrDevice, Name: s.Name,
		Err: fmt.Errorf("run %d failed and %q may be partly written: set it, from a checkpoint for example", run, s.Name),
	}
}

// outOfMemory adds the requested and the allocated memory to an out-of-memory error.
func (p *program) outOfMemory(what string, bytes int, err error) error {
	var e *driver.Error
	if !errors.As(err, &e) || e.Kind != driver.OutOfMemory {
		return err
	}
	i := p.device.Info()
	return fmt.Errorf("%s takes %d bytes; the device has %d of %d bytes free: %w", what, bytes, max(i.Memory-i.Allocated, 0), i.Memory, err)
}
