package collective

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// Local returns the groups of n ranks of one process, each for one goroutine: for tests, and to run
// a program of several ranks on one machine. Sums are in the order of ranks.
func Local(n int, o Options) []*Group {
	world := &localWorld{meetings: map[string]*rendezvous{}, down: make(chan struct{})}
	out := make([]*Group, n)
	for i := range out {
		out[i] = NewGroup(&local{world: world, meeting: world.meeting("world", n), rank: i, name: "world"}, o)
	}
	return out
}

// localWorld is the state that all groups of [Local] share.
type localWorld struct {
	mu       sync.Mutex
	meetings map[string]*rendezvous
	down     chan struct{} // closed by Abort
	reason   error         // set before down is closed
}

// meeting returns the rendezvous of a group, the same for all ranks.
func (h *localWorld) meeting(name string, size int) *rendezvous {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.meetings[name]
	if r == nil {
		r = &rendezvous{size: size, gone: make([]bool, size)}
		h.meetings[name] = r
	}
	return r
}

// rendezvous is where the ranks of a group wait for each other.
type rendezvous struct {
	mu    sync.Mutex
	size  int
	round *round
	gone  []bool // ranks that have closed the group
	fault error  // set once a rank has left a round before the others joined
}

// round is one collective.
type round struct {
	calls  []*Call
	number []int64
	joined int
	done   chan struct{}
	err    error // set before done is closed
}

// local is the engine of one rank of a group in one process.
type local struct {
	world   *localWorld
	meeting *rendezvous
	rank    int
	name    string
	splits  int
}

func (e *local) Name() string { return "local" }
func (e *local) Rank() int    { return e.rank }
func (e *local) Size() int    { return e.meeting.size }

func (e *local) Do(ctx context.Context, number int64, c *Call) error {
	r, err := e.meeting.join(e.rank, number, c)
	if err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	default:
	}
	select {
	case <-r.done:
		return r.err
	case <-e.world.down:
		return e.meeting.leave(r, &Fault{Kind: ErrAborted, Peer: -1, Err: e.world.reason})
	case <-ctx.Done():
		return e.meeting.leave(r, &Fault{Kind: ErrDeadline, Peer: e.meeting.missing(r), Err: ctx.Err()})
	}
}

// join adds the call of a rank to the current round. The last rank computes the results.
func (m *rendezvous) join(rank int, number int64, c *Call) (*round, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, gone := range m.gone {
		if gone {
			return nil, closed(other)
		}
	}
	if m.fault != nil {
		return nil, m.fault
	}
	if m.round == nil {
		m.round = &round{calls: make([]*Call, m.size), number: make([]int64, m.size), done: make(chan struct{})}
	}
	r := m.round
	r.calls[rank], r.number[rank] = c, number
	if r.joined++; r.joined < m.size {
		return r, nil
	}
	m.round = nil
	if r.err = r.compare(); r.err == nil {
		Reference(r.calls)
	}
	close(r.done)
	return r, nil
}

// leave ends a round that a rank no longer waits in, unless the round is complete: other ranks must
// not write the rank's memory any more. It returns the error of the rank.
func (m *rendezvous) leave(r *round, fault error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.round != r {
		return r.err
	}
	m.end(fault)
	return fault
}

// end makes the current round and all later calls fail. The rendezvous is locked.
func (m *rendezvous) end(fault error) {
	m.fault = fault
	if r := m.round; r != nil {
		m.round, r.err = nil, fault
		close(r.done)
	}
}

// compare returns an error unless all ranks make the same call.
func (r *round) compare() error {
	want := r.calls[0].String()
	for i, c := range r.calls {
		if got := c.String(); got != want || r.number[i] != r.number[0] {
			return &Fault{Kind: ErrMismatch, Peer: i, Err: fmt.Errorf("it makes collective %d, %s, and rank 0 collective %d, %s", r.number[i], got, r.number[0], want)}
		}
	}
	return nil
}

// closed is the fault of a rank that has closed the group.
func closed(rank int) error {
	return &Fault{Kind: ErrPeer, Peer: rank, Err: errors.New("it has closed the group")}
}

// missing returns a rank that has not joined a round.
func (m *rendezvous) missing(r *round) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range r.calls {
		if c == nil {
			return i
		}
	}
	return -1
}

func (e *local) Sub(_ context.Context, color int, members []int) (Engine, error) {
	e.splits++
	name := e.name + "/" + strconv.Itoa(e.splits) + "." + strconv.Itoa(color)
	rank := -1
	for i, m := range members {
		if m == e.rank {
			rank = i
		}
	}
	return &local{world: e.world, meeting: e.world.meeting(name, len(members)), rank: rank, name: name}, nil
}

func (e *local) Down() <-chan struct{} { return e.world.down }

func (e *local) Reason() error {
	e.world.mu.Lock()
	defer e.world.mu.Unlock()
	if e.world.reason == nil {
		return nil
	}
	return &Fault{Kind: ErrAborted, Peer: -1, Err: e.world.reason}
}

func (e *local) Abort(reason error) {
	e.world.mu.Lock()
	defer e.world.mu.Unlock()
	if e.world.reason == nil {
		e.world.reason = reason
		close(e.world.down)
	}
}

func (e *local) Close() error {
	e.meeting.mu.Lock()
	defer e.meeting.mu.Unlock()
	e.meeting.gone[e.rank] = true
	if r := e.meeting.round; r != nil && r.calls[e.rank] == nil {
		e.meeting.end(closed(e.rank))
	}
	return nil
}
