//go:build cgo && (darwin || linux)

package metal

import (
	"errors"
	"fmt"

	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/metal/driver"
)

// fault makes an error of this backend, and notes what is lost.
func (p *program) fault(call string, err error) error {
	if err == nil {
		return nil
	}
	var typed *native.Error
	if errors.As(err, &typed) {
		return err
	}
	out := &native.Error{Backend: Name, Call: call, Kind: native.KindOf(err), Err: err}
	var e *driver.Error
	switch {
	case !errors.As(err, &e):
	case e.Kind == driver.Lost:
		p.device.lost.Store(true)
		out.Kind, out.Steps = native.ErrLost, p.runs
	case e.Kind == driver.OutOfMemory:
		out.Kind = native.ErrMemory
	case e.Call == "run":
		p.broken = true
		out.Kind, out.Steps = native.ErrLost, p.runs
	}
	return out
}

// input is [program.fault] for one that a tensor is to blame for.
func (p *program) input(call, name string, err error) error {
	return &native.Error{Backend: Name, Call: call, Kind: native.KindOf(err), Name: name, Err: err}
}

// usable returns why the program cannot be used any more, if it cannot.
func (p *program) usable(call string) error {
	switch {
	case p.closed:
		return &native.Error{Backend: Name, Call: call, Kind: native.ErrClosed}
	case p.device.lost.Load():
		err := gone(call)
		err.Steps = p.runs
		return err
	case p.broken:
		return &native.Error{
			Backend: Name, Call: call, Kind: native.ErrLost, Steps: p.runs,
			Err: errors.New("after an earlier failure nobody knows what the program's memory holds: compile it again"),
		}
	}
	return nil
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
