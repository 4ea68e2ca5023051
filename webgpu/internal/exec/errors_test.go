//go:build cgo && !js

package exec

import (
	"errors"
	"testing"
)

// The texts are those of wgpu 0.19.4.
func TestErrorsOfTheBindingKeepTheirKind(t *testing.T) {
	for _, c := range []struct {
		text string
		want error
	}{
		{"wgpu.(*Device).CreateBuffer(): Device error: Not enough memory left.", ErrMemory},
		{"wgpu.(*Queue).WriteBuffer(): Validation Error\n\nCaused by:\n    Parent device is lost", ErrLost},
		{"wgpu.(*Device).CreateBindGroup(): Validation Error", ErrGPU},
	} {
		err := fromBinding(ErrGPU, "step", errors.New(c.text))
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, c.want) || e.Op != "step" || e.Msg != c.text {
			t.Errorf("%q became %v", c.text, err)
		}
	}
	if err := fromBinding(ErrGPU, "step", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

func TestDeviceLostErrorReportsLostSteps(t *testing.T) {
	s := &Session{steps: 30, savedAt: 12}
	err := s.fail(&Error{Kind: ErrLost})
	var e *Error
	if !errors.As(err, &e) || e.Steps != 18 {
		t.Errorf("got %+v, want 18 steps", err)
	}
}
