// Package pending makes runs of functions that return later.
package pending

import (
	"context"

	"github.com/rlx-go/rlx/native"
)

// run is a function in a goroutine.
type run struct {
	fault func(error) error
	done  chan struct{}
	out   map[string]native.Tensor
	err   error
}

// Go calls f in a goroutine and returns a run, whose Wait returns the results of f. If the context of
// Wait ends first, its error is fault of the context's error.
func Go(fault func(error) error, f func() (map[string]native.Tensor, error)) native.Run {
	r := &run{fault: fault, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.out, r.err = f()
	}()
	return r
}

// Wait implements [native.Run]. Results that have arrived are returned even if the context is done.
func (r *run) Wait(ctx context.Context) (map[string]native.Tensor, error) {
	select {
	case <-r.done:
		return r.out, r.err
	default:
	}
	select {
	case <-r.done:
		return r.out, r.err
	case <-ctx.Done():
		return nil, r.fault(ctx.Err())
	}
}
