package cpu

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counted is a task that counts how often each chunk is done, and detects chunks done after
// the job.
type counted struct {
	done    []atomic.Int32
	running atomic.Bool
	late    atomic.Bool
}

func (c *counted) do(_, chunk int) {
	if !c.running.Load() {
		c.late.Store(true)
	}
	c.done[chunk].Add(1)
}

// TestJobsOfManyProgramsAtOnce shares the helpers among programs, with pauses in which helpers
// park: each chunk is done once, and none after its job.
func TestJobsOfManyProgramsAtOnce(t *testing.T) {
	const programs, rounds = 5, 400
	var all sync.WaitGroup
	for p := range programs {
		all.Go(func() {
			var j job
			for r := range rounds {
				c := &counted{done: make([]atomic.Int32, 1+(7*p+r)%20)}
				c.running.Store(true)
				j.run(c, len(c.done))
				c.running.Store(false)
				for i := range c.done {
					if n := c.done[i].Load(); n != 1 {
						t.Errorf("chunk %d of %d is done %d times", i, len(c.done), n)
						return
					}
				}
				if r%50 == 0 {
					time.Sleep(3 * spinTime)
				}
				if c.late.Load() {
					t.Error("a chunk is done after its job")
				}
			}
		})
	}
	all.Wait()
}

// numbered is a task that keeps the greatest number of a worker.
type numbered struct{ greatest atomic.Int64 }

func (n *numbered) do(worker, _ int) {
	for most := n.greatest.Load(); int64(worker) > most && !n.greatest.CompareAndSwap(most, int64(worker)); {
		most = n.greatest.Load()
	}
	time.Sleep(spinTime)
}

// TestWorkersOfFewChunksAreFew runs jobs of fewer chunks than workers: their tasks have memory for as many workers as
// chunks, whichever helpers join in. It needs more workers than many machines have processors, so it runs in a process
// of its own.
func TestWorkersOfFewChunksAreFew(t *testing.T) {
	if !Alone(t, "GOMAXPROCS=16") {
		return
	}
	var all sync.WaitGroup
	for chunks := 2; chunks < 8; chunks++ {
		all.Go(func() {
			var j job
			for range 100 {
				var n numbered
				j.run(&n, chunks)
				if most := n.greatest.Load(); most >= int64(chunks) {
					t.Errorf("a worker of %d chunks is number %d", chunks, most)
					return
				}
			}
		})
	}
	all.Wait()
}

// broken is a task whose last chunk panics.
type broken struct{ last int }

func (b broken) do(_, chunk int) {
	if chunk == b.last {
		panic("broken")
	}
}

// TestAPanicInAnyWorkerIsTheCallers panics again and again: helpers survive.
func TestAPanicInAnyWorkerIsTheCallers(t *testing.T) {
	var j job
	for range 100 {
		func() {
			defer func() {
				if recover() != "broken" {
					t.Error("no panic")
				}
			}()
			j.run(broken{31}, 32)
		}()
	}
	c := &counted{done: make([]atomic.Int32, 64)}
	c.running.Store(true)
	j.run(c, len(c.done))
	for i := range c.done {
		if c.done[i].Load() != 1 {
			t.Fatalf("chunk %d is not done", i)
		}
	}
}

// TestReleaseWhileAHelperEnds releases a program when a helper is in the middle of done: run returns
// when no helper is busy.
func TestReleaseWhileAHelperEnds(t *testing.T) {
	e := &entry{runner: runner{job: new(job)}}
	j := e.runner.job
	j.busy.Add(1)
	j.active.Add(1)
	j.busy.Add(-1)
	j.wait()
	if err := (&program{entries: []*entry{e}}).Release(); err != nil {
		t.Fatal(err)
	}
	j.active.Done() // panics if the counter was reset
}
