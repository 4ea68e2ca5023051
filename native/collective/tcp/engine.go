package tcp

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/rlx-go/rlx/native/collective"
)

// engine is a group of ranks of a world.
type engine struct {
	world   *world
	members []int // ranks of the world
	rank    int   // of this process among members
	id      uint64
	splits  int
	split   bool // from another group, whose connections it shares
}

func (e *engine) Name() string { return "tcp" }
func (e *engine) Rank() int    { return e.rank }
func (e *engine) Size() int    { return len(e.members) }

// transfer is data to or from a rank of the group.
type transfer struct {
	rank int
	data []byte
}

// smallest is the size in bytes from which an all-reduce is a reduce-scatter and an all-gather. The
// ranks exchange smaller arrays as a whole, which takes half the messages one after the other.
const smallest = 16 << 10

func (e *engine) Do(ctx context.Context, number int64, c *collective.Call) error {
	e.world.calls.Lock()
	defer e.world.calls.Unlock()
	if f := e.world.reason(); f != nil {
		return e.local(f)
	}
	if e.world.isClosed() {
		return &collective.Fault{Kind: collective.ErrClosed, Peer: -1}
	}
	x := &exchange{engine: e, ctx: ctx, frame: frame{kind: data, group: e.id, number: number, text: c.String()}}
	if f := x.do(c); f != nil {
		return e.local(f)
	}
	return nil
}

// local returns a fault with the rank in this group.
func (e *engine) local(f *collective.Fault) error {
	g := *f
	if g.Peer >= 0 {
		if g.Peer = slices.Index(e.members, f.Peer); g.Peer < 0 {
			g.Err = fmt.Errorf("rank %d of the whole group: %w", f.Peer, f)
		}
	}
	return &g
}

func (e *engine) Sub(_ context.Context, color int, members []int) (collective.Engine, error) {
	e.splits++
	h := fnv.New64a()
	fmt.Fprintf(h, "%x/%d.%d", e.id, e.splits, color)
	sub := &engine{world: e.world, split: true, id: h.Sum64(), rank: slices.Index(members, e.rank)}
	for _, m := range members {
		sub.members = append(sub.members, e.members[m])
	}
	if sub.rank < 0 {
		return nil, errors.New("this rank is no member of its group")
	}
	return sub, nil
}

func (e *engine) Down() <-chan struct{} { return e.world.down }

func (e *engine) Reason() error {
	if f := e.world.reason(); f != nil {
		return e.local(f)
	}
	return nil
}

func (e *engine) Abort(reason error) {
	e.world.fail(&collective.Fault{Kind: collective.ErrAborted, Peer: e.members[e.rank], Err: reason})
}

// Close notifies the other ranks. Groups split from this one share its connections.
func (e *engine) Close() error {
	if !e.split {
		e.world.close()
	}
	return nil
}

// exchange is a collective in flight.
type exchange struct {
	*engine
	ctx   context.Context
	frame frame
}

// do makes the collective. Sums are in the order of ranks, so that all ranks have the same bits.
func (x *exchange) do(c *collective.Call) *collective.Fault {
	n := x.Size()
	switch c.Op {
	case collective.AllReduce:
		if len(c.Send) < smallest {
			return x.reduceWhole(c)
		}
		parts := partition(len(c.Send), c.DType.Size(), n)
		if f := x.reduceParts(c, parts, c.Recv[parts[x.rank]:parts[x.rank+1]]); f != nil {
			return f
		}
		return x.gather(c.Recv[parts[x.rank]:parts[x.rank+1]], c.Recv, parts)
	case collective.ReduceScatter:
		return x.reduceParts(c, partition(len(c.Send), len(c.Send)/n, n), c.Recv)
	case collective.AllGather:
		return x.gather(c.Send, c.Recv, partition(len(c.Recv), len(c.Send), n))
	case collective.AllToAll:
		return x.allToAll(c)
	case collective.Permute:
		return x.permute(c)
	}
	return x.broadcast(c)
}

// partition cuts bytes into n parts of whole elements, as equal as they can be: part i is
// [parts[i], parts[i+1]).
func partition(bytes, element, n int) []int {
	parts := make([]int, n+1)
	for i := range parts {
		parts[i] = bytes
		if element > 0 {
			parts[i] = bytes / element * i / n * element
		}
	}
	return parts
}

// others returns the transfers with all other ranks, each with its memory from f.
func (x *exchange) others(f func(rank int) []byte) []transfer {
	var out []transfer
	for i := range x.Size() {
		if i != x.rank {
			out = append(out, transfer{i, f(i)})
		}
	}
	return out
}

// reduceWhole sends the whole array to all ranks.
func (x *exchange) reduceWhole(c *collective.Call) *collective.Fault {
	arrays := x.scratch(len(c.Send))
	arrays[x.rank] = c.Send
	f := x.run(x.others(func(int) []byte { return c.Send }), x.others(func(rank int) []byte { return arrays[rank] }))
	if f == nil {
		collective.Reduce(c.DType, c.Reduction, c.Recv, arrays)
	}
	return f
}

// reduceParts computes on rank i the reduction of part i of the arrays of all ranks.
func (x *exchange) reduceParts(c *collective.Call, parts []int, to []byte) *collective.Fault {
	arrays := x.scratch(len(to))
	arrays[x.rank] = c.Send[parts[x.rank]:parts[x.rank+1]]
	f := x.run(
		x.others(func(rank int) []byte { return c.Send[parts[rank]:parts[rank+1]] }),
		x.others(func(rank int) []byte { return arrays[rank] }),
	)
	if f == nil {
		collective.Reduce(c.DType, c.Reduction, to, arrays)
	}
	return f
}

// scratch returns memory for an array of each rank, aligned as Go aligns large arrays.
func (x *exchange) scratch(bytes int) [][]byte {
	const align = 64
	stride := (bytes + align - 1) &^ (align - 1)
	if need := stride * x.Size(); len(x.world.space) < need {
		x.world.space = make([]byte, need)
	}
	out := make([][]byte, x.Size())
	for i := range out {
		out[i] = x.world.space[i*stride:][:bytes]
	}
	return out
}

// gather sends the part of each rank to every rank.
func (x *exchange) gather(own, to []byte, parts []int) *collective.Fault {
	f := x.run(
		x.others(func(int) []byte { return own }),
		x.others(func(rank int) []byte { return to[parts[rank]:parts[rank+1]] }),
	)
	copy(to[parts[x.rank]:parts[x.rank+1]], own)
	return f
}

func (x *exchange) allToAll(c *collective.Call) *collective.Fault {
	size := len(c.Send) / x.Size()
	part := func(data []byte, i int) []byte { return data[i*size : (i+1)*size] }
	copy(part(c.Recv, x.rank), part(c.Send, x.rank))
	return x.run(
		x.others(func(rank int) []byte { return part(c.Send, rank) }),
		x.others(func(rank int) []byte { return part(c.Recv, rank) }),
	)
}

func (x *exchange) permute(c *collective.Call) *collective.Fault {
	from, to := c.Sender(x.rank), c.Receiver(x.rank)
	var out, in []transfer
	switch {
	case from == x.rank:
		copy(c.Recv, c.Send)
	case from >= 0:
		in = []transfer{{from, c.Recv}}
	default:
		clear(c.Recv)
	}
	if to >= 0 && to != x.rank {
		out = []transfer{{to, c.Send}}
	}
	return x.run(out, in)
}

func (x *exchange) broadcast(c *collective.Call) *collective.Fault {
	if x.rank != c.Root {
		return x.run(nil, []transfer{{c.Root, c.Recv}})
	}
	copy(c.Recv, c.Send)
	return x.run(x.others(func(int) []byte { return c.Send }), nil)
}

// run sends and receives at the same time. It returns once nothing of the transfers is in flight:
// the first fault brings the world down, which ends the others.
func (x *exchange) run(out, in []transfer) *collective.Fault {
	x.frame.phase++
	faults := make(chan *collective.Fault, len(out)+len(in))
	for _, t := range out {
		p := x.world.peers[x.members[t.rank]]
		go func() { faults <- p.offer(x.ctx, x.frame, t.data) }()
	}
	for _, t := range in {
		p := x.world.peers[x.members[t.rank]]
		go func() {
			f := p.accept(x.ctx, x.frame, t.data)
			if f != nil {
				f = x.world.fail(f)
			}
			faults <- f
		}()
	}
	var first *collective.Fault
	for range cap(faults) {
		if f := <-faults; first == nil {
			first = f
		}
	}
	return first
}

// mismatch is the fault of a rank that makes another call.
func mismatch(rank int, got, want frame) *collective.Fault {
	return &collective.Fault{Kind: collective.ErrMismatch, Peer: rank, Err: fmt.Errorf(
		"it makes collective %d, %s, with %d bytes to this rank, which makes collective %d, %s",
		got.number, got.text, got.length, want.number, want.text,
	)}
}
