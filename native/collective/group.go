package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlx-go/rlx/ir"
)

// Engine moves data between the ranks of a group. It has one rank of the group. Calls come one at a
// time, except Abort, which may come at any time and ends a call that is in flight.
type Engine interface {
	// Name returns the name of the engine: "local", "tcp".
	Name() string
	// Rank and Size return the rank and the number of ranks.
	Rank() int
	Size() int
	// Do makes a call that has been checked, the collective of the given number. It fails with a
	// [*Fault], of kind [ErrDeadline] once ctx is done.
	Do(ctx context.Context, number int64, c *Call) error
	// Sub returns the engine of the group of some ranks, which include this one: members are their
	// ranks here, in the order of their new ranks. All members call it; the other ranks call it for
	// their own groups, which color numbers.
	Sub(ctx context.Context, color int, members []int) (Engine, error)
	// Down returns a channel that is closed once the group has failed: a rank was lost or has
	// aborted it. Reason returns why, as Do does, nil before.
	Down() <-chan struct{}
	Reason() error
	// Abort ends the calls of all ranks with an error of kind [ErrAborted] and that reason. It
	// does not wait for the other ranks.
	Abort(reason error)
	// Close ends the use of the engine by this rank, once no call is in flight.
	Close() error
}

// DefaultDeadline is how long a rank waits in one collective for the others: that of PyTorch.
const DefaultDeadline = 10 * time.Minute

// Options are the options of a group.
type Options struct {
	// Deadline bounds the time of one collective, which includes the time that other ranks need to
	// come to it; 0 means [DefaultDeadline].
	Deadline time.Duration
}

// Group is one rank's view of a group of processes that make the same collectives in the same
// order. Calls from several goroutines are served one after the other.
type Group struct {
	engine   Engine
	deadline time.Duration

	mu       sync.Mutex // held by the call in flight
	sequence int64      // collectives begun
	splits   int
	record   record
	failed   *failure // shared with the groups that are split from this one
	closed   atomic.Bool
	atClose  []func() error
}

// failure is the first error of a group and of the groups split from it.
type failure struct {
	mu       sync.Mutex
	err      error
	aborting sync.WaitGroup // while the other ranks are notified of err
}

func (f *failure) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// set records the first error, and reports whether err was the first.
func (f *failure) set(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return false
	}
	f.err = err
	return true
}

// NewGroup returns the group of an engine.
func NewGroup(e Engine, o Options) *Group {
	g := &Group{engine: e, deadline: o.Deadline, failed: &failure{}}
	if g.deadline <= 0 {
		g.deadline = DefaultDeadline
	}
	return g
}

// Rank returns this process's number in the group, from 0.
func (g *Group) Rank() int { return g.engine.Rank() }

// Size returns the number of ranks.
func (g *Group) Size() int { return g.engine.Size() }

// Engine returns the name of the engine.
func (g *Group) Engine() string { return g.engine.Name() }

// Deadline returns how long a collective waits for the other ranks.
func (g *Group) Deadline() time.Duration { return g.deadline }

// Do makes a collective. It returns once Recv holds the result and Send may be changed. An error of
// kind [ir.ErrAttr], [ir.ErrDType] or [ir.ErrShape] means that the call is malformed, and nothing
// was sent. Any other error is an [*Error] and aborts the group on all ranks; it comes within the
// deadline of the group, or at once when ctx is done.
func (g *Group) Do(ctx context.Context, c *Call) error {
	if err := g.given(); err != nil {
		return err
	}
	if err := c.check(g.Size()); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sequence++
	if err := g.Err(); err != nil {
		return g.wrap(g.sequence, c, err)
	}
	entry := g.record.begin(g.sequence, c)
	limited, cancel := context.WithTimeout(ctx, g.deadline)
	defer cancel()
	err := g.engine.Do(limited, g.sequence, c)
	entry.end(g.sequence, err)
	if err == nil {
		return nil
	}
	return g.fail(c, err)
}

// fail aborts the group on all ranks because of an error of the call in flight.
func (g *Group) fail(c *Call, err error) error { return g.failAt(g.sequence, c, err) }

// failAt is [Group.fail] for the call of a number.
func (g *Group) failAt(number int64, c *Call, err error) error {
	err = g.wrap(number, c, err)
	g.abort(err)
	return err
}

// abort notifies the other ranks of the error if it is the first of the group.
func (g *Group) abort(err error) {
	g.failed.aborting.Add(1)
	defer g.failed.aborting.Done()
	if g.failed.set(err) {
		g.engine.Abort(err)
	}
}

// wrap returns the error of a call.
func (g *Group) wrap(number int64, c *Call, err error) error {
	e := &Error{Kind: ErrAborted, Rank: g.Rank(), Size: g.Size(), Peer: -1, Err: err}
	if c != nil {
		e.Call, e.Sequence, e.Bytes = c.String(), number, c.bytes()
	}
	if f := (*Fault)(nil); errors.As(err, &f) {
		e.Kind, e.Peer, e.Err = f.Kind, f.Peer, f.Err
	} else if earlier := (*Error)(nil); errors.As(err, &earlier) {
		e.Kind, e.Peer = earlier.Kind, earlier.Peer
		if earlier.Call == "" {
			e.Err = earlier.Err
		}
	}
	return e
}

// AllReduce returns the reduction of send over all ranks on every rank.
func (g *Group) AllReduce(ctx context.Context, d ir.DType, r Reduction, send, recv []byte) error {
	return g.Do(ctx, &Call{Op: AllReduce, Reduction: r, DType: d, Send: send, Recv: recv})
}

// AllGather returns the arrays of all ranks, in their order, on every rank.
func (g *Group) AllGather(ctx context.Context, d ir.DType, send, recv []byte) error {
	return g.Do(ctx, &Call{Op: AllGather, DType: d, Send: send, Recv: recv})
}

// ReduceScatter returns part i of the reduction of send over all ranks on rank i.
func (g *Group) ReduceScatter(ctx context.Context, d ir.DType, r Reduction, send, recv []byte) error {
	return g.Do(ctx, &Call{Op: ReduceScatter, Reduction: r, DType: d, Send: send, Recv: recv})
}

// AllToAll returns on rank i part i of the array of every rank, in the order of ranks.
func (g *Group) AllToAll(ctx context.Context, d ir.DType, send, recv []byte) error {
	return g.Do(ctx, &Call{Op: AllToAll, DType: d, Send: send, Recv: recv})
}

// Permute sends the array of each pair's sender to its receiver; other ranks get zeros.
func (g *Group) Permute(ctx context.Context, d ir.DType, pairs [][2]int, send, recv []byte) error {
	return g.Do(ctx, &Call{Op: Permute, DType: d, Pairs: pairs, Send: send, Recv: recv})
}

// Broadcast returns the array of the root on every rank.
func (g *Group) Broadcast(ctx context.Context, d ir.DType, root int, send, recv []byte) error {
	return g.Do(ctx, &Call{Op: Broadcast, DType: d, Root: root, Send: send, Recv: recv})
}

// Barrier returns once all ranks have called it.
func (g *Group) Barrier(ctx context.Context) error {
	return g.AllReduce(ctx, ir.I32, Max, make([]byte, 4), make([]byte, 4))
}

// Split divides the group: ranks with the same color, 0 or greater, form a group, in the order of
// key and then of their ranks here. All ranks call it. The groups fail together: an error of one
// aborts all.
func (g *Group) Split(ctx context.Context, color, key int) (*Group, error) {
	if err := g.given(); err != nil {
		return nil, err
	}
	if color < 0 {
		return nil, ir.Attrf("color is %d; it must be 0 or greater", color)
	}
	own := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(color)), uint64(key))
	all := make([]byte, len(own)*g.Size())
	if err := g.AllGather(ctx, ir.I64, own, all); err != nil {
		return nil, err
	}
	at := func(rank, i int) int { return int(binary.LittleEndian.Uint64(all[16*rank+8*i:])) }
	var members []int
	for rank := range g.Size() {
		if at(rank, 0) == color {
			members = append(members, rank)
		}
	}
	slices.SortStableFunc(members, func(a, b int) int { return at(a, 1) - at(b, 1) })
	g.mu.Lock()
	defer g.mu.Unlock()
	g.splits++
	e, err := g.engine.Sub(ctx, color, members)
	if err != nil {
		return nil, g.fail(nil, err)
	}
	return &Group{engine: e, deadline: g.deadline, failed: g.failed}, nil
}

// Agree returns an error of kind [ErrMismatch] on every rank unless all ranks pass the same digest,
// such as that of a plan. The error names the first rank that differs from rank 0.
func (g *Group) Agree(ctx context.Context, what string, digest [32]byte) error {
	if err := g.given(); err != nil {
		return err
	}
	all := make([]byte, len(digest)*g.Size())
	c := &Call{Op: AllGather, DType: ir.U8, Send: digest[:], Recv: all}
	if err := g.Do(ctx, c); err != nil {
		return fmt.Errorf("comparing %s: %w", what, err)
	}
	for rank := range g.Size() {
		if other := part(all, rank, g.Size()); [32]byte(other) != [32]byte(all) {
			_ = g.Barrier(ctx) // all ranks have compared before one aborts the group
			fault := &Fault{Kind: ErrMismatch, Peer: rank, Err: fmt.Errorf("%s is %.4x, and %.4x on rank 0", what, other, all)}
			return g.fail(nil, fault)
		}
	}
	return nil
}

// Abort ends the collectives of all ranks with an error of kind [ErrAborted], for a rank that
// cannot continue. The group cannot be used after it.
func (g *Group) Abort(reason error) {
	if reason == nil {
		reason = errors.New("no reason given")
	}
	g.abort(&Error{Kind: ErrAborted, Rank: g.Rank(), Size: g.Size(), Peer: g.Rank(), Err: reason})
}

// Down returns a channel that is closed once a rank is lost or has aborted the group, or this rank
// has: [Group.Err] is then the reason.
func (g *Group) Down() <-chan struct{} { return g.engine.Down() }

// Err returns the error that ended the group, nil while it can be used.
func (g *Group) Err() error {
	if err := g.given(); err != nil {
		return err
	}
	if g.failed.get() == nil {
		if why := g.engine.Reason(); why != nil {
			g.failed.set(g.wrap(0, nil, why))
		}
	}
	if err := g.failed.get(); err != nil || !g.closed.Load() {
		return err
	}
	return &Error{Kind: ErrClosed, Rank: g.Rank(), Size: g.Size(), Peer: -1}
}

// Close ends the use of the group by this rank, after the call in flight, and that of the groups that
// are split from it. The other ranks may close theirs later; a collective with a rank that has closed
// its group fails with [ErrPeer].
func (g *Group) Close() error {
	if err := g.given(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed.Store(true)
	var failed error
	for _, f := range g.atClose {
		failed = errors.Join(failed, f())
	}
	g.atClose = nil
	g.failed.aborting.Wait() // a process may end after Close, and the others would learn no reason
	return errors.Join(failed, g.engine.Close())
}

// given returns an error unless the group has an engine.
func (g *Group) given() error {
	if g == nil || g.engine == nil {
		return ir.Attrf("the group is nil or zero: it must be from Local, NewGroup or the package of an engine")
	}
	return nil
}
