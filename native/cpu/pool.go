package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// workers is how many goroutines compute at once: the caller of a run and the
// helpers of the pool.
func workers() int {
	startPool.Do(func() {
		poolSize = min(runtime.GOMAXPROCS(0), 64)
		for id := 1; id < poolSize; id++ {
			go help(id)
		}
	})
	return poolSize
}

var (
	startPool sync.Once
	poolSize  int
	wanted    = make(chan *job)
)

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
	next   atomic.Int64
	active sync.WaitGroup
	failed atomic.Pointer[failure]
}

// failure is a panic in a worker.
type failure struct{ reason any }

// run does all chunks and returns when they are done. Helpers that are idle
// join in; nothing is allocated.
func (j *job) run(t task, chunks int) {
	j.task, j.chunks = t, chunks
	j.next.Store(0)
	if chunks > 1 {
		j.call(workers() - 1)
	}
	j.work(0)
	j.active.Wait()
	if f := j.failed.Swap(nil); f != nil {
		panic(f.reason)
	}
}

// call wakes as many idle helpers as there is work for.
func (j *job) call(helpers int) {
	for range min(helpers, j.chunks-1) {
		j.active.Add(1)
		select {
		case wanted <- j:
		default:
			j.active.Done()
			return
		}
	}
}

func (j *job) work(worker int) {
	defer func() {
		if x := recover(); x != nil {
			j.failed.Store(&failure{x})
			j.next.Store(int64(j.chunks)) // the others stop
		}
	}()
	for {
		chunk := int(j.next.Add(1)) - 1
		if chunk >= j.chunks {
			return
		}
		j.task.do(worker, chunk)
	}
}

// help is the life of a helper.
func help(worker int) {
	for {
		j := <-wanted
		j.work(worker)
		j.active.Done()
	}
}
