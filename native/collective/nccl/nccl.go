//go:build cgo && linux && (amd64 || arm64)

package nccl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/native/collective"
)

// Comm is this rank's part of the communicator of a group.
type Comm struct {
	group *collective.Group
	comm  *driver.Comm
	calls sync.Mutex // held while a collective is enqueued

	mu     sync.Mutex
	err    error // why the communicator has failed
	broken bool  // the device had work of the communicator when it failed
	work   map[*Work]bool
	closed chan struct{}
	users  int // graphs that hold collectives, without which the communicator is freed
}

// comms are the communicators of this process by group.
var comms struct {
	sync.Mutex
	by map[*collective.Group]*Comm
}

// Available returns nil if NCCL is installed, else why it is not found.
func Available() error {
	_, err := driver.LoadNCCL()
	return err
}

// Of returns the communicator of a group on a device, which the first call makes. All ranks call it.
// It ends with an error when a rank is lost, and at the deadline of the group.
func Of(ctx context.Context, g *collective.Group, d *driver.Device) (*Comm, error) {
	comms.Lock()
	defer comms.Unlock()
	if c := comms.by[g]; c != nil {
		return c, c.Err()
	}
	c, err := connect(ctx, g, d)
	if err != nil {
		return nil, fmt.Errorf("connecting the GPUs: %w", err)
	}
	if comms.by == nil {
		comms.by = map[*collective.Group]*Comm{}
	}
	comms.by[g] = c
	g.AtClose(c.close)
	go c.watch()
	return c, nil
}

// connect makes a communicator: rank 0 sends its id to all.
func connect(ctx context.Context, g *collective.Group, d *driver.Device) (*Comm, error) {
	lib, err := driver.LoadNCCL()
	var id driver.NCCLID
	if err == nil && g.Rank() == 0 {
		id, err = lib.NewID()
	}
	if err != nil {
		g.Abort(err) // the others wait for the id
		return nil, err
	}
	var sent driver.NCCLID
	if err := g.Broadcast(ctx, ir.U8, 0, id[:], sent[:]); err != nil {
		return nil, err
	}
	type connection struct {
		comm *driver.Comm
		err  error
	}
	made := make(chan connection, 1)
	go func() {
		c, err := lib.Connect(d, sent, g.Rank(), g.Size())
		made <- connection{c, err}
	}()
	late := time.NewTimer(g.Deadline())
	defer late.Stop()
	select {
	case x := <-made:
		if x.err != nil {
			g.Abort(x.err)
			return nil, x.err
		}
		return &Comm{group: g, comm: x.comm, work: map[*Work]bool{}, closed: make(chan struct{})}, nil
	case <-g.Down():
		return nil, g.Err()
	case <-ctx.Done():
		g.Abort(ctx.Err())
		return nil, ctx.Err()
	case <-late.C:
		g.Abort(errors.New("the GPUs are not connected within the deadline"))
		return nil, g.Err()
	}
}

// Run enqueues a collective on a stream, or adds it to the graph that the stream captures. The error
// is of kind [ir.ErrUnsupported] for a type that NCCL does not reduce.
func (c *Comm) Run(on *driver.Stream, r routine.Collective, send, recv driver.Ptr) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	if err := c.Err(); err != nil {
		return err
	}
	return c.comm.Run(on, r, send, recv)
}

// Rank returns the number of this process in the group.
func (c *Comm) Rank() int { return c.comm.Rank }

// Err returns why the communicator has failed, nil while it works.
func (c *Comm) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Broken returns the error of Err if the device had work of the communicator when it failed. The results
// of that work are then undefined.
func (c *Comm) Broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.broken {
		return nil
	}
	return c.err
}

// Hold keeps the communicator for graphs that hold collectives, until Release.
func (c *Comm) Hold() { c.count(1) }

// Release ends a Hold.
func (c *Comm) Release() { c.count(-1) }

func (c *Comm) count(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users += by
}

// Work is a collective on the device, which the watch of the communicator bounds by the deadline of
// the group.
type Work struct {
	comm    *Comm
	pending *collective.Pending
	done    func() bool // may be called by any goroutine
}

// Begin enters a collective that is enqueued now in the record of the group. done reports whether the
// device has finished it.
func (c *Comm) Begin(call *collective.Call, done func() bool) (*Work, error) {
	p, err := c.group.Enqueue(call)
	if err != nil {
		return nil, err
	}
	if err := c.Err(); err != nil {
		p.End(err)
		return nil, err
	}
	w := &Work{c, p, done}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work[w] = true
	return w, nil
}

// End ends the work, with the error of the run that it is part of.
func (w *Work) End(err error) {
	w.comm.mu.Lock()
	delete(w.comm.work, w)
	w.comm.mu.Unlock()
	w.pending.End(err)
}

// period is how often the watch looks for errors of NCCL and for late work.
const period = 100 * time.Millisecond

// watch aborts the communicator when the group is down, an error occurs on the device, or work is
// late.
func (c *Comm) watch() {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-c.closed:
			return
		case <-c.group.Down():
			c.settle()
			c.abort(c.group.Err())
			return
		case <-tick.C:
			if err := c.look(); err != nil {
				c.abort(err)
				return
			}
		}
	}
}

// grace is how long work may take to end once the group is down: a process that has finished its own work
// may have ended without an error.
const grace = 500 * time.Millisecond

func (c *Comm) settle() {
	for begun := time.Now(); time.Since(begun) < grace && c.first() != nil; {
		time.Sleep(time.Millisecond)
	}
}

// look returns the error of the communicator or of work that is late, which ends the group.
func (c *Comm) look() error {
	if c.calls.TryLock() { // NCCL's calls are not made at the same time
		err := c.comm.Failed()
		c.calls.Unlock()
		if err != nil {
			return c.blame(&collective.Fault{Kind: collective.ErrPeer, Peer: -1, Err: err})
		}
	}
	if w := c.first(); w != nil && time.Since(w.pending.Started()) > c.group.Deadline() {
		return w.pending.Fail(&collective.Fault{Kind: collective.ErrDeadline, Peer: -1, Err: context.DeadlineExceeded})
	}
	return nil
}

// first returns the oldest work that the device has not finished, nil without any.
func (c *Comm) first() (first *Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.work {
		if (first == nil || w.pending.Started().Before(first.pending.Started())) && !w.done() {
			first = w
		}
	}
	return first
}

// blame ends the group because of a fault, which names the oldest work if there is any.
func (c *Comm) blame(f *collective.Fault) error {
	if w := c.first(); w != nil {
		return w.pending.Fail(f)
	}
	c.group.Abort(f)
	return c.group.Err()
}

// patience is how long an abort waits for a call that is enqueuing a collective, which may itself
// wait for a rank that is lost.
const patience = time.Second

// abort ends the work of the communicator: its kernels end, and all later calls fail.
func (c *Comm) abort(why error) {
	first := c.first()
	c.mu.Lock()
	c.err, c.broken = why, first != nil
	if e := (*collective.Error)(nil); first != nil && errors.As(why, &e) && e.Call == "" {
		c.err = first.pending.Fail(&collective.Fault{Kind: e.Kind, Peer: e.Peer, Err: e.Err})
	}
	c.mu.Unlock()
	for begun := time.Now(); !c.calls.TryLock(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			_ = c.comm.Abort()
			return
		}
	}
	defer c.calls.Unlock()
	_ = c.comm.Abort()
}

// close frees the communicator, unless graphs hold collectives of it: then the end of the process
// does.
func (c *Comm) close() error {
	comms.Lock()
	delete(comms.by, c.group)
	comms.Unlock()
	c.mu.Lock()
	failed, users := c.err, c.users
	if failed == nil {
		c.err = collective.ErrClosed
	}
	c.mu.Unlock()
	close(c.closed)
	if failed != nil || users > 0 {
		return nil
	}
	return c.comm.Destroy()
}
