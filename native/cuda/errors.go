//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"

	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda/driver"
)

// fault makes an error of this backend, and notes a device that is lost.
func (p *program) fault(call string, err error) error {
	if err == nil {
		return nil
	}
	var typed *native.Error
	if errors.As(err, &typed) {
		return err
	}
	out := &native.Error{Backend: p.name, Call: call, Kind: native.KindOf(err), Err: err}
	var e *driver.Error
	switch {
	case !errors.As(err, &e):
	case e.Lost():
		p.device.lost.Store(true)
		out.Kind, out.Steps = native.ErrLost, p.runs
	case e.OutOfMemory():
		out.Kind = native.ErrMemory
	}
	return out
}

// input is [program.fault] for one that a tensor is to blame for.
func (p *program) input(call, name string, err error) error {
	return &native.Error{Backend: p.name, Call: call, Kind: native.KindOf(err), Name: name, Err: err}
}

// usable returns why the program cannot be used any more, if it cannot.
func (p *program) usable(call string) error {
	if p.closed {
		return &native.Error{Backend: p.name, Call: call, Kind: native.ErrClosed}
	}
	if p.device.lost.Load() {
		err := gone(p.name, call)
		err.Steps = p.runs
		return err
	}
	return nil
}

// tooMuch says how much memory was asked for and how much there was.
func (p *program) tooMuch(what string, bytes int, err error) error {
	var e *driver.Error
	if !errors.As(err, &e) || !e.OutOfMemory() {
		return err
	}
	free, total, failed := p.device.MemoryInfo()
	if failed != nil {
		return errors.Join(err, failed)
	}
	return fmt.Errorf("%s takes %s, and of the %s of the device %s are free: %w", what, size(bytes), size(total), size(free), err)
}

// size prints a number of bytes.
func size(bytes int) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.2f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
