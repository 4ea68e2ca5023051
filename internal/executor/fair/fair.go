// Package fair has a lock for readers and writers that is given in the order in which it
// was asked for, and for which nobody waits longer than a context allows.
package fair

import (
	"context"
	"sync"
)

// Lock is held by one writer or by any number of readers. Requests are served first come,
// first served: a reader that comes behind a waiting writer waits for it, so that calls
// without end keep nobody out. The zero value is a lock that nobody holds. A lock that is
// free is taken without allocation.
type Lock struct {
	mu      sync.Mutex
	readers int
	writing bool
	// The queue of those that wait, the first of which has to wait.
	first, last *Request
}

// Request is a place in the queue of a lock.
type Request struct {
	lock    *Lock
	shared  bool
	granted chan struct{} // closed when the lock is held
	next    *Request
}

// Lock waits until the lock is held for writing. The error is that of ctx, where it is
// done before: the lock is not held then.
func (l *Lock) Lock(ctx context.Context) error { return l.acquire(ctx, false) }

// RLock is [Lock.Lock] for reading.
func (l *Lock) RLock(ctx context.Context) error { return l.acquire(ctx, true) }

// TryLock holds the lock for writing if nobody holds it or waits for it.
func (l *Lock) TryLock() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take(false)
}

func (l *Lock) acquire(ctx context.Context, shared bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if l.take(shared) {
		l.mu.Unlock()
		return nil
	}
	r := l.join(shared)
	l.mu.Unlock()
	return r.Wait(ctx)
}

// take holds the lock if that is possible at once, without overtaking anybody.
func (l *Lock) take(shared bool) bool {
	if l.first != nil || !l.free(shared) {
		return false
	}
	l.hold(shared)
	return true
}

func (l *Lock) free(shared bool) bool { return !l.writing && (shared || l.readers == 0) }

func (l *Lock) hold(shared bool) {
	if shared {
		l.readers++
	} else {
		l.writing = true
	}
}

// join puts a request at the end of the queue.
func (l *Lock) join(shared bool) *Request {
	r := &Request{lock: l, shared: shared, granted: make(chan struct{})}
	if l.first == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	return r
}

// Join asks for the lock without waiting, to fix the order of what is done later.
// [Request.Wait] must be called, once.
func (l *Lock) Join(shared bool) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.take(shared) {
		r := &Request{lock: l, shared: shared, granted: make(chan struct{})}
		close(r.granted)
		return r
	}
	return l.join(shared)
}

// Wait waits until the lock is held. Where ctx is done before, or by the time it is held,
// the request is withdrawn and the error is that of ctx.
func (r *Request) Wait(ctx context.Context) error {
	select {
	case <-r.granted:
	case <-ctx.Done():
	}
	err := ctx.Err()
	if err != nil {
		r.withdraw()
	}
	return err
}

// Granted reports whether the lock is held for the request.
func (r *Request) Granted() bool {
	select {
	case <-r.granted:
		return true
	default:
		return false
	}
}

// Release gives back the lock that Wait has taken.
func (r *Request) Release() {
	if r.shared {
		r.lock.RUnlock()
	} else {
		r.lock.Unlock()
	}
}

// withdraw leaves the queue, or gives the lock back where it came meanwhile.
func (r *Request) withdraw() {
	l := r.lock
	l.mu.Lock()
	if r.Granted() {
		l.mu.Unlock()
		r.Release()
		return
	}
	defer l.mu.Unlock()
	var before *Request
	for at := l.first; at != r; at = at.next {
		before = at
	}
	if before == nil {
		l.first = r.next
	} else {
		before.next = r.next
	}
	if l.last == r {
		l.last = before
	}
	l.serve() // readers may have waited behind a writer that left
}

// Unlock gives back a lock that is held for writing.
func (l *Lock) Unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing = false
	l.serve()
}

// RUnlock gives back a lock that is held for reading.
func (l *Lock) RUnlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers--
	l.serve()
}

// serve gives the lock to those that can have it now, in their order.
func (l *Lock) serve() {
	for r := l.first; r != nil && l.free(r.shared); r = l.first {
		l.hold(r.shared)
		if l.first = r.next; l.first == nil {
			l.last = nil
		}
		close(r.granted)
	}
}
