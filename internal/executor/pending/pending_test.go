package pending_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rlx-go/rlx/internal/executor/pending"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

func TestWaitEndsWithTheContextOrTheFunction(t *testing.T) {
	release := make(chan struct{})
	want, wrapped := errors.New("of the function"), errors.New("wrapped")
	r := pending.Go(func(err error) error { return errors.Join(wrapped, err) }, func() (map[string]native.Tensor, error) {
		<-release
		return map[string]native.Tensor{"y": native.Zeros(ir.F32, 1)}, want
	})
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := r.Wait(ended); !errors.Is(err, context.Canceled) || !errors.Is(err, wrapped) {
		t.Errorf("before the function returns: %v", err)
	}
	close(release)
	if out, err := r.Wait(t.Context()); err != want || out["y"].Dims[0] != 1 {
		t.Errorf("results %v, error %v", out, err)
	}
	if _, err := r.Wait(ended); err != want {
		t.Errorf("with an ended context, after the function: %v", err)
	}
}
