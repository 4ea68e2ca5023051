package rlx

import (
	"iter"
	"maps"
	"slices"
)

// Prefetch returns data for [Loop.Data] whose batches another goroutine prepares, at most n, 1 or
// more, ahead of the training. It copies batches, so that those of data may share memory with each
// other, and reuses the copies: a batch shares memory with later ones. When an epoch ends early,
// the goroutine ends after the current batch. Nil data give nil, and so does an epoch without an iterator, which [Fit] refuses.
func Prefetch(data func(epoch int) iter.Seq2[Inputs, error], n int) func(epoch int) iter.Seq2[Inputs, error] {
	if data == nil {
		return nil
	}
	n = max(n, 1)
	free := make(chan Inputs, n+2) // one is trained on, one is prepared
	return func(epoch int) iter.Seq2[Inputs, error] {
		batches := data(epoch)
		if batches == nil {
			return nil
		}
		return func(yield func(Inputs, error) bool) {
			ready, done := make(chan fetched, n), make(chan struct{})
			ended := make(chan struct{})
			defer func() { close(done); <-ended }()
			go func() {
				defer close(ended)
				defer close(ready)
				fetch(batches, ready, free, done)
			}()
			for f := range ready {
				more := yield(f.batch, f.err)
				select {
				case free <- f.batch:
				default:
				}
				if !more {
					return
				}
			}
		}
	}
}

// fetched is a batch, or the error in its place.
type fetched struct {
	batch Inputs
	err   error
}

// fetch sends copies of batches until done is closed. free holds copies that can be reused.
func fetch(data iter.Seq2[Inputs, error], ready chan<- fetched, free <-chan Inputs, done <-chan struct{}) {
	for batch, err := range data {
		var into Inputs
		select {
		case into = <-free:
		default:
		}
		select {
		case ready <- fetched{copyBatch(into, batch), err}:
		case <-done:
			return
		}
	}
}

// copyBatch copies a batch into another one, or into a new one for nil, reusing its memory for tensors of equal type.
func copyBatch(into, batch Inputs) Inputs {
	if into == nil {
		into = make(Inputs, len(batch))
	}
	maps.DeleteFunc(into, func(name string, _ Tensor) bool { _, ok := batch[name]; return !ok })
	for name, x := range batch {
		to := into[name]
		if to.DType != x.DType || !slices.Equal(to.Dims, x.Dims) || len(to.Data) != len(x.Data) {
			into[name] = x.Clone()
			continue
		}
		copy(to.Data, x.Data)
	}
	return into
}
