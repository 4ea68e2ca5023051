//go:build cgo && !js

package webgpu

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/native"
)

// The texts are those of wgpu 0.19.4.
func TestErrorsOfTheBindingHaveKinds(t *testing.T) {
	for _, c := range []struct {
		text string
		want error
	}{
		{"wgpu.(*Device).CreateBuffer(): Device error: Not enough memory left.", native.ErrMemory},
		{"wgpu.(*Queue).WriteBuffer(): Validation Error\n\nCaused by:\n    Parent device is lost", native.ErrLost},
		{"wgpu.(*Device).CreateBindGroup(): Validation Error", native.ErrDevice},
	} {
		p := &program{device: &device{}}
		err := async.Fault(p, "step", errors.New(c.text))
		var e *native.Error
		if !errors.As(err, &e) || e.Kind != c.want || e.Call != "step" || e.Err.Error() != c.text {
			t.Errorf("%q became %v", c.text, err)
		}
		if lost := p.Lost() != nil; lost != (c.want == native.ErrLost) {
			t.Errorf("after %q the device is lost: %v", c.text, lost)
		}
	}
}
