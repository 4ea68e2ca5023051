//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/nccl"
)

// TestOneRankOfAFakeNCCL makes all collectives of one rank, which a plan of one rank does not have.
func TestOneRankOfAFakeNCCL(t *testing.T) {
	fakeNCCL(t)
	oneRank(t)
}

// TestGPURankAlone does so by NCCL on one GPU.
func TestGPURankAlone(t *testing.T) {
	gpu(t)
	if err := nccl.Available(); err != nil {
		t.Log(err)
		return
	}
	oneRank(t)
}

func fakeNCCL(t *testing.T) {
	t.Helper()
	fake.Collectives(t, fake.Install(t, false).Dir)
	t.Setenv("RLX_NCCL", "")
}

// place is a stream and two arrays of four f32 of a device.
type place struct {
	device     *driver.Device
	stream     *driver.Stream
	send, recv driver.Ptr
}

func newPlace(l *driver.Library) (p place, err error) {
	if p.device, err = l.Open(0); err != nil {
		return p, err
	}
	if p.stream, err = p.device.NewStream(); err != nil {
		return p, err
	}
	if p.send, err = p.device.Alloc(16); err != nil {
		return p, err
	}
	p.recv, err = p.device.Alloc(16)
	return p, err
}

// fourOf is a collective of four f32 on each of n ranks.
func fourOf(op routine.CollectiveOp, n int) routine.Collective {
	c := routine.Collective{Op: op, DType: ir.F32, Count: 4, Unit: 4, Axis: "data", Devices: n}
	if op == routine.Permute {
		c.Pairs = routine.PairsOf([][2]int{{0, 0}})
	}
	return c
}

// oneRank makes all collectives by a communicator of one rank and by one of a split, outside of graphs and in
// one, where each copies its operand. After an abort every call fails with the reason.
func oneRank(t *testing.T) {
	l, err := driver.Load()
	must(t, err)
	p, err := newPlace(l)
	must(t, err)
	world := collective.Local(1, collective.Options{Deadline: time.Minute})[0]
	part, err := world.Split(t.Context(), 0, 0)
	must(t, err)
	var comms []*nccl.Comm
	for _, g := range []*collective.Group{world, part} {
		c, err := nccl.Of(t.Context(), g, p.device)
		must(t, err)
		comms = append(comms, c)
		for op := routine.AllReduce; op <= routine.Broadcast; op++ {
			run := func() error { return c.Run(p.stream, fourOf(op, 1), p.send, p.recv) }
			must(t, p.copies(run))
			graph, err := p.stream.Capture(nil, run)
			must(t, err)
			if err := p.copies(func() error { return p.stream.Replay(graph) }); err != nil {
				t.Errorf("collective %d in a graph: %v", op, err)
			}
			must(t, graph.Destroy())
		}
	}
	world.Abort(errors.New("out of paper"))
	for _, c := range comms {
		for begun := time.Now(); c.Err() == nil && time.Since(begun) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		err := c.Run(p.stream, fourOf(routine.AllReduce, 1), p.send, p.recv)
		if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), "out of paper") {
			t.Errorf("a call after an abort: %v", err)
		}
	}
}

// copies returns an error unless what run enqueues copies one array to the other.
func (p place) copies(run func() error) error {
	want, got := native.Float32s([]float32{1, -2, 3, 0.5}, 4).Data, make([]byte, 16)
	for _, do := range []func() error{
		func() error { return p.stream.Write(p.send, want) },
		func() error { return p.stream.Write(p.recv, bytes.Repeat([]byte{0xff}, 16)) },
		run,
		func() error { return p.stream.Read(got, p.recv) },
		p.stream.Synchronize,
	} {
		if err := do(); err != nil {
			return err
		}
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the result is %x, not %x", got, want)
	}
	return nil
}

// TestTheFakeNCCLIsStrict: what NVIDIA's would hang on, or let pass, is an error for both ranks.
func TestTheFakeNCCLIsStrict(t *testing.T) {
	fakeNCCL(t)
	l, err := driver.Load()
	must(t, err)
	lib, err := driver.LoadNCCL()
	must(t, err)
	reduce, gather := fourOf(routine.AllReduce, 2), fourOf(routine.AllGather, 2)
	fewer := reduce
	fewer.Count = 2
	gather.Count = 2
	for name, c := range map[string]struct {
		calls [2][]routine.Collective // of each rank
		want  string
	}{
		"equal calls":   {[2][]routine.Collective{{reduce, gather}, {reduce, gather}}, ""},
		"another order": {[2][]routine.Collective{{reduce, gather}, {gather, reduce}}, "ranks differ"},
		"another count": {[2][]routine.Collective{{reduce, reduce}, {fewer, reduce}}, "ranks differ"},
	} {
		errs := inPairs(t, l, lib, func(rank int, p place, comm *driver.Comm) error {
			for _, call := range c.calls[rank] {
				if err := comm.Run(p.stream, call, p.send, p.recv); err != nil {
					return err
				}
			}
			return comm.Failed()
		})
		for rank, err := range errs {
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, rank %d: %v", name, rank, err)
			}
		}
	}
	for rank, err := range inPairs(t, l, lib, func(_ int, p place, comm *driver.Comm) error {
		_, captured := p.stream.Capture(nil, func() error { return comm.Run(p.stream, reduce, p.send, p.recv) })
		if err := comm.Abort(); err != nil {
			return err
		}
		if captured == nil || !strings.Contains(captured.Error(), "a first call that is captured") {
			return fmt.Errorf("a first call in a graph: %w", captured)
		}
		if err := comm.Run(p.stream, reduce, p.send, p.recv); err == nil || !strings.Contains(err.Error(), "after an abort") {
			return fmt.Errorf("a call after an abort: %w", err)
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// inPairs calls f for the two ranks of a communicator at the same time.
func inPairs(t *testing.T, l *driver.Library, lib *driver.NCCL, f func(rank int, p place, comm *driver.Comm) error) [2]error {
	t.Helper()
	id, err := lib.NewID()
	must(t, err)
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, 2)
	for rank := range 2 {
		go func() {
			p, err := newPlace(l)
			var comm *driver.Comm
			if err == nil {
				comm, err = lib.Connect(p.device, id, rank, 2)
			}
			if err == nil {
				err = f(rank, p, comm)
			}
			ends <- end{rank, err}
		}()
	}
	var errs [2]error
	for range errs {
		e := <-ends
		errs[e.rank] = e.err
	}
	return errs
}
