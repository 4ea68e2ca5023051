// Package fair provides a first-come-first-served readers-writer lock whose waits end with
// a context. The executors order the calls of a program with it.
package fair

import (
	"context"
	"sync"
)

// Lock is held by one writer or by any number of readers. Requests are served first come,
// first served: a reader waits for the writers before it, so no request starves. The zero
// value is an unlocked Lock. Taking a free lock does not allocate.
type Lock struct {
	mu          sync.Mutex
	readers     int
	writing     bool
	first, last *Request // the queue; its first request cannot be granted yet
}

// Request is a request for a lock, waiting or granted.
type Request struct {
	lock    *Lock
	shared  bool
	granted chan struct{} // closed when the lock is held
	next    *Request
}

// Lock locks l for writing. If ctx is done first, it returns the error of ctx without the
// lock.
func (l *Lock) Lock(ctx context.Context) error { return l.acquire(ctx, false) }

// RLock locks l for reading, as [Lock.Lock] does for writing.
func (l *Lock) RLock(ctx context.Context) error { return l.acquire(ctx, true) }

// TryLock locks l for writing if nobody holds it or waits for it.
func (l *Lock) TryLock() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tryAcquire(false)
}

func (l *Lock) acquire(ctx context.Context, shared bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if l.tryAcquire(shared) {
		l.mu.Unlock()
		return nil
	}
	r := l.enqueue(shared)
	l.mu.Unlock()
	return r.Wait(ctx)
}

// tryAcquire acquires the lock if it is free and the queue is empty.
func (l *Lock) tryAcquire(shared bool) bool {
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

// enqueue appends a request to the queue.
func (l *Lock) enqueue(shared bool) *Request {
	r := &Request{lock: l, shared: shared, granted: make(chan struct{})}
	if l.first == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	return r
}

// Join requests the lock without waiting, which fixes its place in the queue. The caller
// must call [Request.Wait] once.
func (l *Lock) Join(shared bool) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tryAcquire(shared) {
		r := &Request{lock: l, shared: shared, granted: make(chan struct{})}
		close(r.granted)
		return r
	}
	return l.enqueue(shared)
}

// Wait waits until the lock is held. If ctx is done by then, it withdraws the request and
// returns the error of ctx.
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

// Granted reports whether the request holds the lock.
func (r *Request) Granted() bool {
	select {
	case <-r.granted:
		return true
	default:
		return false
	}
}

// Release unlocks the lock that Wait acquired.
func (r *Request) Release() {
	if r.shared {
		r.lock.RUnlock()
	} else {
		r.lock.Unlock()
	}
}

// withdraw removes the request from the queue, or unlocks if it was granted meanwhile.
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
	l.serve() // readers may have waited for a withdrawn writer
}

// Unlock unlocks a lock held for writing.
func (l *Lock) Unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing = false
	l.serve()
}

// RUnlock unlocks a lock held for reading.
func (l *Lock) RUnlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers--
	l.serve()
}

// serve grants the lock to the first requests that can hold it together.
func (l *Lock) serve() {
	for r := l.first; r != nil && l.free(r.shared); r = l.first {
		l.hold(r.shared)
		if l.first = r.next; l.first == nil {
			l.last = nil
		}
		close(r.granted)
	}
}
