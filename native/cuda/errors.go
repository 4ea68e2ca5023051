//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"

	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/native"
)

// Kind classifies an error of the driver and records a lost device.
func (p *program) Kind(err error) error {
	var e *driver.Error
	switch {
	case !errors.As(err, &e):
	case e.Lost():
		p.device.lost.Store(true)
		return native.ErrLost
	case e.OutOfMemory():
		return native.ErrMemory
	}
	return nil
}

// Lost returns errGone if the device is lost, and the error of the rank that ended the group.
func (p *program) Lost() error {
	if p.device.lost.Load() {
		return errGone
	}
	return p.ranks.failed()
}

// outOfMemory adds the requested and the free memory to an out-of-memory error.
func (p *program) outOfMemory(what string, bytes int, err error) error {
	var e *driver.Error
	if !errors.As(err, &e) || !e.OutOfMemory() {
		return err
	}
	free, total, failed := p.device.MemoryInfo()
	if failed != nil {
		return errors.Join(err, failed)
	}
	return fmt.Errorf("%s takes %s; the device has %s of %s free: %w", what, size(bytes), size(free), size(total), err)
}

// size formats a number of bytes.
func size(bytes int) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.2f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
