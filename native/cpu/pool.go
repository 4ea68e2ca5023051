package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlx-go/rlx/internal/simd"
)

// workers returns the number of goroutines that compute at once: the caller of a run and the
// helpers of the pool, which the first call starts.
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

// helper is a goroutine of the pool. Between jobs it spins for a while before it parks, since steps
// follow each other closely and waking a thread takes as long as many steps.
type helper struct {
	// offered is the job that the helper has not started, &spinning or &parked if there is none,
	// and nil while it works.
	offered atomic.Pointer[job]
	wake    chan struct{}
	_       [cacheLine]byte // against false sharing
}

// The states of a helper without a job.
var spinning, parked job

// spinTime is how long a helper spins for the next job, and how long run spins for the helpers
// to finish, before they block.
const spinTime = 50 * time.Microsecond

// task is work that can be split into chunks, numbered from 0, which may run in any order.
// worker identifies the goroutine, so that each uses its own registers; it is less than [workers] and, of several chunks,
// than their count.
type task interface {
	do(worker, chunk int)
}

// job distributes the chunks of a task. One job serves all runs of an entry, which never
// overlap.
type job struct {
	task   task
	chunks int
	shares []share
	joined atomic.Int32 // helpers that have begun
	busy   atomic.Int32 // helpers that may still have a chunk
	active sync.WaitGroup
	failed atomic.Pointer[failure]
}

// share is the range of chunks that a worker processes before it steals from others. A worker
// mostly reads in one step what it wrote in the previous one, from its own cache, if steps visit
// memory in the same order.
type share struct {
	next atomic.Int64
	end  int64
	_    [cacheLine]byte // against false sharing
}

// failure is a panic of a worker.
type failure struct{ reason any }

// run does all chunks and returns when they are done; idle helpers join in. It allocates
// nothing, and panics with the reason of a worker's panic.
func (j *job) run(t task, chunks int) {
	if chunks <= 1 { // no helper can join in
		for i := range chunks {
			t.do(0, i)
		}
		return
	}
	j.task, j.chunks = t, chunks
	j.joined.Store(0)
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

// runCosting is run for a task that takes about cost nanoseconds: the caller does all chunks where half of them
// would not repay waking a helper.
func (j *job) runCosting(cost float64, t task, chunks int) {
	if cost >= 2*chunkCost {
		j.run(t, chunks)
		return
	}
	for i := range chunks {
		t.do(0, i)
	}
}

// share resets the share of each worker.
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

// spinUntil spins until done is true, for at most spinTime; it reports whether done was true.
func spinUntil(done func() bool) bool {
	for start := time.Now(); ; {
		for range 32 { // done is cheaper than the clock
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

// offer offers the job to idle helpers, first to those that spin.
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

// withdraw takes the job back from helpers that have not begun: with more threads than
// processors that may take them long.
func (j *job) withdraw() {
	for i := range pool {
		if pool[i].offered.CompareAndSwap(j, &spinning) {
			j.done()
		}
	}
}

// done records that a helper has finished with the job.
func (j *job) done() {
	j.busy.Add(-1)
	j.active.Done()
}

// work does chunks until there are none: those of the worker's own share first.
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

// worker returns the number of a helper in the job: its own, whose share is in its cache, or the next where chunks are
// fewer than workers, since any helpers may join in and tasks have memory for as many workers as chunks.
func (j *job) worker(helper int) int {
	if j.chunks < len(j.shares) {
		return int(j.joined.Add(1))
	}
	return helper
}

// help is the loop of a helper.
func (h *helper) help(number int) {
	for {
		h.offered.Store(&spinning)
		j := h.next()
		j.work(j.worker(number))
		j.done()
	}
}

// next waits for the next job.
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
