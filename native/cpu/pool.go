package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlx-go/rlx/internal/simd"
)

// workers is how many goroutines compute at once: the caller of a run and the
// helpers of the pool.
func workers() int {
	startPool.Do(func() {
		pool = make([]helper, min(runtime.GOMAXPROCS(0), 64)-1)
		for i := range pool {
			pool[i].wake = make(chan struct{}, 1)
			go pool[i].help(i + 1)
		}
	})
	return len(pool) + 1
}

var (
	startPool sync.Once
	pool      []helper
)

// helper is a goroutine of the pool. Before it sleeps it looks for another job for a
// while, since the steps of a run follow each other closely: to wake a thread that
// sleeps takes as long as many a step.
type helper struct {
	// offered is a job that the helper has not begun, &looking or &asleep where there is
	// none, and nil while it works.
	offered atomic.Pointer[job]
	wake    chan struct{}
	_       [cacheLine]byte // so that helpers do not look at one line
}

// What a helper does that is offered no job.
var spinning, parked job

// spinTime is how long helpers look for another job, and how long who has no more to do
// looks whether the helpers are done.
const spinTime = 50 * time.Microsecond

// task is work that can be cut into chunks, numbered from 0. Chunks are done in
// any order; worker tells which goroutine asks, so that each has its own
// registers.
type task interface {
	do(worker, chunk int)
}

// job hands out the chunks of a task. One job serves all runs of a program,
// which take turns.
type job struct {
	task   task
	chunks int
	shares []share
	busy   atomic.Int32 // helpers that may still have a chunk
	active sync.WaitGroup
	failed atomic.Pointer[failure]
}

// share is the stretch of chunks that a worker begins with, before it helps with those
// of others: so what a worker writes in one step, where steps go through memory in the
// same order, it mostly reads itself in the next, from its own cache.
type share struct {
	next atomic.Int64
	end  int64
	_    [cacheLine]byte // so that workers do not count in one line
}

// failure is a panic in a worker.
type failure struct{ reason any }

// run does all chunks and returns when they are done. Helpers that are idle
// join in; nothing is allocated.
func (j *job) run(t task, chunks int) {
	j.task, j.chunks = t, chunks
	j.share()
	helpers := min(workers(), chunks) - 1
	j.offer(helpers)
	j.work(0)
	if helpers > 0 {
		j.wait()
	}
	if f := j.failed.Swap(nil); f != nil {
		panic(f.reason)
	}
}

// share gives each worker its share.
func (j *job) share() {
	n := workers()
	if len(j.shares) == 0 {
		j.shares = make([]share, n)
	}
	for i := range j.shares {
		j.shares[i].next.Store(int64(i * j.chunks / n))
		j.shares[i].end = int64((i + 1) * j.chunks / n)
	}
}

// wait returns when no helper has a chunk any more.
func (j *job) wait() {
	j.withdraw()
	if !spinUntil(func() bool { return j.busy.Load() == 0 }) {
		j.active.Wait()
	}
}

// spinUntil reports whether something comes true within the time of patience.
func spinUntil(done func() bool) bool {
	for start := time.Now(); ; {
		for range 32 { // to look takes less time than the clock does
			if done() {
				return true
			}
			simd.Pause()
		}
		if time.Since(start) > spinTime {
			return false
		}
	}
}

// offer offers the job to some idle helpers, first to those that are awake.
func (j *job) offer(helpers int) {
	for _, idle := range []*job{&spinning, &parked} {
		for i := 0; i < len(pool) && helpers > 0; i++ {
			j.busy.Add(1)
			j.active.Add(1)
			if !pool[i].offered.CompareAndSwap(idle, j) {
				j.done()
				continue
			}
			helpers--
			if idle == &parked {
				pool[i].wake <- struct{}{}
			}
		}
	}
}

// withdraw takes the job back from helpers that have not begun: where threads are more
// than processors, they may be long in coming.
func (j *job) withdraw() {
	for i := range pool {
		if pool[i].offered.CompareAndSwap(j, &spinning) {
			j.done()
		}
	}
}

// done notes that a helper has nothing more to do with the job.
func (j *job) done() {
	j.busy.Add(-1)
	j.active.Done()
}

// work does chunks until there are none left: those of the worker's share first.
func (j *job) work(worker int) {
	defer func() {
		if x := recover(); x != nil {
			j.failed.Store(&failure{x})
			for i := range j.shares { // the others stop
				j.shares[i].next.Store(j.shares[i].end)
			}
		}
	}()
	for i := range j.shares {
		own := &j.shares[(worker+i)%len(j.shares)]
		for chunk := own.next.Add(1) - 1; chunk < own.end; chunk = own.next.Add(1) - 1 {
			j.task.do(worker, int(chunk))
		}
	}
}

// help is the life of a helper.
func (h *helper) help(worker int) {
	for {
		h.offered.Store(&spinning)
		j := h.next()
		j.work(worker)
		j.done()
	}
}

// take returns the next job that is offered.
func (h *helper) next() *job {
	var j *job
	take := func() bool {
		j = h.offered.Load()
		return j != &spinning && h.offered.CompareAndSwap(j, nil)
	}
	for !spinUntil(take) {
		if h.offered.CompareAndSwap(&spinning, &parked) {
			<-h.wake
		}
	}
	return j
}
