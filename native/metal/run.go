//go:build cgo && (darwin || linux)

package metal

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/internal/metal/driver"
)

// committed is a command buffer in flight.
type committed struct {
	driver.Run
	kernel string // its only kernel, in debug mode
	writes bool   // parameters or states
}

// Begin commits a run that fetches the outputs reads, all of it or up to the first point
// where the host must check a condition.
func (s *stage) Begin(reads []int) error {
	if err := s.e.checkTorn(); err != nil {
		return err
	}
	if s.e.checks { // a failed run must not fail the next
		clear(s.Status())
	}
	p := s.e.p
	p.begun++
	p.running = append(p.running, s)
	s.parts, s.next, s.times, s.number, s.torn, s.lostBy = s.commands(reads), 0, 1, p.begun, false, 0
	err := s.advance()
	if err != nil {
		s.end()
	}
	return s.failed(err)
}

// end removes the run from those in flight.
func (s *stage) end() {
	p := s.e.p
	p.running = slices.DeleteFunc(p.running, func(run *stage) bool { return run == s })
}

// Done reports whether the run is done, with its first error. It also drives the run: when
// all that was committed is done, it checks the condition and commits the next batch.
func (s *stage) Done() (bool, error) {
	over, err := s.idle()
	if over && err == nil && s.lostBy == 0 && !s.nextPart() {
		err = s.advance()
		over = err != nil
	}
	if !over {
		return false, nil
	}
	s.end()
	if err == nil && s.lostBy > 0 {
		return true, s.lostError()
	}
	return true, s.failed(err)
}

// idle reports whether all that was committed is done, with the first error.
func (s *stage) idle() (bool, error) {
	for _, r := range s.run {
		if done, _ := r.Done(); !done {
			return false, nil
		}
	}
	var first error
	for _, r := range s.run {
		_, err := r.Done()
		if err != nil && first == nil {
			first = in(r.kernel, err)
		}
		s.torn = s.torn || r.writes && !neverStarted(err)
		r.Forget()
	}
	s.run = s.run[:0]
	return true, first
}

// maxRepeats bounds how often a one-part loop is committed between checks.
const maxRepeats = 8

// nextPart selects the part after those committed, and reports whether the run has ended. A
// loop is checked less often the longer it runs.
func (s *stage) nextPart() (end bool) {
	if s.next == len(s.parts) {
		return true
	}
	p := &s.parts[s.next]
	if p.loops() && binary.LittleEndian.Uint32(p.going.Buffer.Bytes[p.going.Offset:]) != 0 {
		s.next, s.times = p.back, min(2*s.times, maxRepeats)
		return false
	}
	s.next, s.times = s.next+1, 1
	return s.next == len(s.parts)
}

// advance commits the parts up to the next check; in debug mode it waits for each. After an
// error nothing is in flight.
func (s *stage) advance() error {
	for ; s.next < len(s.parts); s.next++ {
		p, times := &s.parts[s.next], 1
		if p.loops() && p.back == s.next {
			times = s.times
		}
		for range times {
			if err := s.commit(p); err != nil {
				return err
			}
		}
		if p.loops() || p.stop {
			return nil
		}
	}
	return nil
}

func (s *stage) commit(p *part) error {
	run, err := s.e.p.device.Commit(p.list)
	if err == nil {
		s.run = append(s.run, committed{run, p.kernel, p.writes})
		if !s.e.p.debug {
			return nil
		}
	}
	if failed := s.wait(); err == nil {
		err = failed
	}
	return in(p.kernel, err)
}

// wait waits until all that was committed is done.
func (s *stage) wait() error {
	for begin := time.Now(); ; async.Pause(time.Since(begin)) {
		if over, err := s.idle(); over {
			return err
		}
	}
}

// in adds the name of a kernel to an error of the driver.
func in(kernel string, err error) error {
	var e *driver.Error
	if errors.As(err, &e) && e.Kernel == "" {
		e.Kernel = kernel
	}
	return err
}
