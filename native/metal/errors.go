//go:build cgo && (darwin || linux)

package metal

import (
	"errors"
	"fmt"

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
	case e.Call == "run":
		p.broken = true
		return native.ErrLost
	}
	return nil
}

var (
	// errGone is the reason of calls for a GPU that is lost.
	errGone = errors.New("after an earlier error this process cannot use the GPU any more: start it again")
	// errBroken is that of calls for a program of which a run failed in the middle.
	errBroken = errors.New("after an earlier failure nobody knows what the program's memory holds: compile it again")
)

// Lost returns why the program cannot be used any more.
func (p *program) Lost() error {
	switch {
	case p.device.lost.Load():
		return errGone
	case p.broken:
		return errBroken
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
