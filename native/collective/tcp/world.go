package tcp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/rlx-go/rlx/native/collective"
)

// farewell bounds how long an aborted rank spends on sending its reason to the others.
const farewell = time.Second

// world has the connections of a rank to all others. All groups that are split from the first one
// share it.
type world struct {
	rank  int
	peers []*peer // by rank; nil for this one

	calls sync.Mutex // held by the collective in flight
	space []byte     // received parts that are to be reduced

	mu     sync.Mutex
	fault  *collective.Fault // why the world is down; its Peer is a rank of the world
	down   chan struct{}     // closed once fault is set
	sent   chan struct{}     // closed once the other ranks were sent the fault
	closed bool
}

// peer is another rank.
type peer struct {
	world *world
	rank  int
	conn  net.Conn

	writing sync.Mutex
	partial bool // a message was cut off: nothing can be sent after it

	frames chan frame    // of data, each followed by a receive of memory
	memory chan []byte   // where the data of the frame goes
	read   chan error    // the result of reading it
	gone   chan struct{} // closed once the peer has closed its group
}

func newWorld(rank int, conns []net.Conn) *world {
	w := &world{rank: rank, peers: make([]*peer, len(conns)), down: make(chan struct{}), sent: make(chan struct{})}
	for i, c := range conns {
		if c == nil {
			continue
		}
		w.peers[i] = &peer{
			world: w, rank: i, conn: c,
			frames: make(chan frame), memory: make(chan []byte), read: make(chan error), gone: make(chan struct{}),
		}
	}
	for _, p := range w.peers {
		if p != nil {
			go p.receive()
		}
	}
	return w
}

// fail records the fault, interrupts pending operations, and sends the fault to the other ranks. It
// returns the fault that came first.
func (w *world) fail(f *collective.Fault) *collective.Fault {
	w.mu.Lock()
	if w.fault != nil {
		defer w.mu.Unlock()
		return w.fault
	}
	w.fault = f
	close(w.down)
	w.mu.Unlock()
	w.hangUp(frame{kind: abort, text: f.Error()})
	close(w.sent)
	return f
}

// hangUp sends a last frame to all other ranks.
func (w *world) hangUp(last frame) {
	var sent sync.WaitGroup
	for _, p := range w.peers {
		if p != nil {
			sent.Go(func() { p.hangUp(last) })
		}
	}
	sent.Wait()
}

// reason returns why the world is down, nil while it is not.
func (w *world) reason() *collective.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

// isClosed reports whether this rank has closed its group.
func (w *world) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// close notifies all ranks that this one has closed its group. If it has failed, close waits until
// they were sent the reason.
func (w *world) close() {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	down := w.fault != nil
	w.mu.Unlock()
	if down {
		<-w.sent
	} else if !again {
		w.hangUp(frame{kind: bye})
	}
}

// hangUp interrupts pending operations, sends a last frame, and closes this side of the connection.
// The receiver closes the other side: closing a connection with unread data would discard the
// frame.
func (p *peer) hangUp(last frame) {
	if last.kind == abort {
		_ = p.conn.SetDeadline(time.Unix(1, 0))
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.conn.SetWriteDeadline(time.Now().Add(farewell))
	if !p.partial {
		p.partial = last.write(p.conn, nil) != nil
	}
	if half, ok := p.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = p.conn.SetReadDeadline(time.Now().Add(farewell))
}

// send sends a part of a collective.
func (p *peer) send(f frame, payload []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if p.partial {
		return errors.New("the connection is broken")
	}
	err := f.write(p.conn, payload)
	p.partial = err != nil
	return err
}

// offer sends a part of a collective. If that fails, it waits for the peer's last frame, which
// explains more than the error of the write.
func (p *peer) offer(ctx context.Context, f frame, payload []byte) *collective.Fault {
	stop := context.AfterFunc(ctx, func() { p.world.fail(p.late(ctx)) })
	defer stop()
	err := p.send(f, payload)
	if err == nil {
		return nil
	}
	select {
	case <-p.world.down:
	case <-time.After(farewell / 4):
	}
	return p.lost(err)
}

// receive reads frames until the connection ends.
func (p *peer) receive() {
	defer p.conn.Close()
	r := bufio.NewReaderSize(p.conn, 64<<10)
	for {
		f, err := readFrame(r)
		if err == nil && f.kind == data {
			err = p.deliver(r, f)
		}
		switch {
		case err != nil:
			p.lost(err)
			_ = p.conn.SetReadDeadline(time.Now().Add(farewell))
			_, _ = io.Copy(io.Discard, p.conn)
			return
		case f.kind == abort:
			p.world.fail(&collective.Fault{Kind: collective.ErrAborted, Peer: p.rank, Err: errors.New(f.text)})
			return
		case f.kind == bye:
			close(p.gone)
			_, _ = io.Copy(io.Discard, p.conn)
			return
		}
	}
}

// lost reports that the connection has ended before the peer closed its group.
func (p *peer) lost(err error) *collective.Fault {
	if p.world.isClosed() {
		return &collective.Fault{Kind: collective.ErrClosed, Peer: -1}
	}
	return p.world.fail(&collective.Fault{Kind: collective.ErrPeer, Peer: p.rank, Err: err})
}

// deliver hands a frame to the collective that waits for it and reads its data.
func (p *peer) deliver(r io.Reader, f frame) error {
	select {
	case p.frames <- f:
	case <-p.world.down:
		return p.world.reason()
	}
	memory, taken := <-p.memory
	if !taken {
		return errors.New("the frame has unexpected data")
	}
	_, err := io.ReadFull(r, memory)
	p.read <- err
	return err
}

// accept receives the part of a collective that frame want describes. Once it has handed memory to
// the receiver, it returns only when the receiver is done with it.
func (p *peer) accept(ctx context.Context, want frame, memory []byte) *collective.Fault {
	var got frame
	select {
	case got = <-p.frames:
	case <-p.world.down:
		return p.world.reason()
	case <-p.gone:
		return &collective.Fault{Kind: collective.ErrPeer, Peer: p.rank, Err: errors.New("it has closed the group")}
	case <-ctx.Done():
		return p.late(ctx)
	}
	if got.group != want.group || got.number != want.number || got.phase != want.phase || got.text != want.text || got.length != int64(len(memory)) {
		fault := p.world.fail(mismatch(p.rank, got, want))
		close(p.memory)
		return fault
	}
	stop := context.AfterFunc(ctx, func() { p.world.fail(p.late(ctx)) })
	defer stop()
	p.memory <- memory
	if err := <-p.read; err != nil {
		return p.lost(err)
	}
	return nil
}

// late is the fault of a rank that did not come in time.
func (p *peer) late(ctx context.Context) *collective.Fault {
	return &collective.Fault{Kind: collective.ErrDeadline, Peer: p.rank, Err: ctx.Err()}
}
