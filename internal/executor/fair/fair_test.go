package fair_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/executor/fair"
)

var always = context.Background()

// TestRequestsAreServedInTheirOrder has writers queue while another holds the lock.
func TestRequestsAreServedInTheirOrder(t *testing.T) {
	var l fair.Lock
	must(t, l.Lock(always))
	var order []int
	var all sync.WaitGroup
	for i := range 50 {
		r := l.Join(false)
		all.Go(func() {
			must(t, r.Wait(always))
			order = append(order, i) // by the lock
			r.Release()
		})
	}
	l.Unlock()
	all.Wait()
	if len(order) != 50 || !slices.IsSorted(order) {
		t.Errorf("served in the order %v", order)
	}
}

// TestWriterIsNotStarvedByReaders: an unending stream of readers waits after the writer.
func TestWriterIsNotStarvedByReaders(t *testing.T) {
	var l fair.Lock
	must(t, l.RLock(always))
	must(t, l.RLock(always)) // readers share it
	writer := l.Join(false)
	reader := l.Join(true)
	if l.TryLock() {
		t.Error("the lock was taken by somebody who overtook")
	}
	l.RUnlock()
	if held(writer) {
		t.Error("the writer holds the lock beside a reader")
	}
	l.RUnlock()
	must(t, writer.Wait(always))
	if held(reader) {
		t.Error("a reader holds the lock beside the writer")
	}
	writer.Release()
	must(t, reader.Wait(always))
	reader.Release()
	if !l.TryLock() {
		t.Error("the lock is not free in the end")
	}
}

// held reports whether a request is granted within a short time, without giving it up.
func held(r *fair.Request) bool {
	time.Sleep(time.Millisecond)
	return r.Granted()
}

// TestCancelledRequestIsDequeued cancels requests at each position of the queue.
func TestCancelledRequestIsDequeued(t *testing.T) {
	done, cancel := context.WithCancel(always)
	cancel()
	for left := range 3 {
		var l fair.Lock
		must(t, l.RLock(always))
		queue := []*fair.Request{l.Join(false), l.Join(true), l.Join(false)}
		if err := queue[left].Wait(done); !errors.Is(err, context.Canceled) {
			t.Fatalf("the request says %v", err)
		}
		l.RUnlock()
		for i, r := range queue {
			if i != left {
				must(t, r.Wait(always))
				r.Release()
			}
		}
		last := l.Join(false)
		must(t, last.Wait(always))
		last.Release()
	}
	var l fair.Lock
	granted := l.Join(false)
	if err := granted.Wait(done); !errors.Is(err, context.Canceled) || !l.TryLock() {
		t.Errorf("a lock that was granted to somebody whose time is up: %v", err)
	}
	if err := new(fair.Lock).Lock(done); !errors.Is(err, context.Canceled) {
		t.Errorf("a free lock for somebody whose time is up: %v", err)
	}
}

// TestReadersProceedAfterCancelledWriter: they share the lock with those who hold it.
func TestReadersProceedAfterCancelledWriter(t *testing.T) {
	var l fair.Lock
	must(t, l.RLock(always))
	short, cancel := context.WithCancel(always)
	writer, reader := l.Join(false), l.Join(true)
	cancel()
	if err := writer.Wait(short); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	must(t, reader.Wait(always))
}

func TestAFreeLockIsTakenWithoutAllocation(t *testing.T) {
	var l fair.Lock
	if n := testing.AllocsPerRun(100, func() {
		if l.Lock(always) == nil {
			l.Unlock()
		}
		if l.RLock(always) == nil {
			l.RUnlock()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestTheLockExcludes counts concurrent holders among goroutines, some of which give up.
func TestTheLockExcludes(t *testing.T) {
	var l fair.Lock
	var all sync.WaitGroup
	value := 0
	for g := range 8 {
		all.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithTimeout(always, time.Duration(g*i%7)*10*time.Microsecond)
				if g%2 == 0 {
					if l.Lock(ctx) == nil {
						value++
						l.Unlock()
					}
				} else if l.RLock(ctx) == nil {
					_ = value
					l.RUnlock()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if !l.TryLock() {
		t.Error("the lock is not free in the end")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
