package tcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/launch"
)

// JoinTime bounds how long [Join] waits for the other processes if its context has no deadline:
// that of torchrun's store.
const JoinTime = 10 * time.Minute

// hello is the first message of a connection: the process's identity and its listening address.
type hello struct {
	Token string // a hash of the token of the run
	Rank  int
	Size  int
	Port  int // of the listener for higher ranks; 0 if there are none
}

// answer is the reply of rank 0: to all ranks once they are connected, or at once to a process that it refuses.
type answer struct {
	Refused   string   // why the process is refused; "" if it is not
	Addresses []string // by rank; without a host, that of rank 0's own machine
}

// maxMessage bounds the bytes of a hello or an answer: there are 64 for the address of each rank.
const maxMessage = 1 << 20

// Join connects this process with the other ranks of a run and returns their group. Rank 0 listens
// at the address of the run; each pair of ranks is connected directly. Join returns once all are
// connected. The error is of kind [ir.ErrAttr] for a rank or an address outside its domain,
// otherwise an [*collective.Error] of kind [collective.ErrJoin]: another process has the same rank,
// another size or token, or a rank did not connect in time.
func Join(ctx context.Context, r launch.Run, o collective.Options) (*collective.Group, error) {
	if r.Size < 1 || r.Rank < 0 || r.Rank >= r.Size {
		return nil, ir.Attrf("rank %d of %d; the rank must be from 0 to size-1", r.Rank, r.Size)
	}
	if r.Size == 1 {
		return collective.Local(1, o)[0], nil
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, JoinTime)
		defer cancel()
	}
	j := &joiner{ctx: ctx, run: r, conns: make([]net.Conn, r.Size)}
	if err := j.join(); err != nil {
		for _, c := range j.conns {
			if c != nil {
				c.Close()
			}
		}
		return nil, &collective.Error{Kind: collective.ErrJoin, Rank: r.Rank, Size: r.Size, Peer: -1, Err: err}
	}
	e := &engine{world: newWorld(r.Rank, j.conns), rank: r.Rank}
	for i := range r.Size {
		e.members = append(e.members, i)
	}
	return collective.NewGroup(e, o), nil
}

// joiner connects the ranks of a run.
type joiner struct {
	ctx   context.Context
	run   launch.Run
	conns []net.Conn // by rank
	hosts []string   // of the listeners, by rank; of rank 0 alone
}

func (j *joiner) join() error {
	if j.run.Rank == 0 {
		return j.lead()
	}
	return j.follow()
}

// listen opens a listener at a port, "0" for any, that closes when the context is done. Where rank 0
// is on the loopback interface, all ranks listen there alone.
func (j *joiner) listen(port string) (net.Listener, func(), error) {
	var config net.ListenConfig
	host, _, err := net.SplitHostPort(j.run.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("the address of the run: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		host = ""
	}
	address := net.JoinHostPort(host, port)
	l, err := config.Listen(j.ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(j.ctx, func() { l.Close() })
	return l, func() { stop(); l.Close() }, nil
}

// lead is [joiner.join] for rank 0: it waits for all ranks and sends each the addresses of the others.
func (j *joiner) lead() error {
	_, port, err := net.SplitHostPort(j.run.Address)
	if err != nil {
		return fmt.Errorf("the address of the run: %w", err)
	}
	l, closeIt, err := j.listen(port)
	if err != nil {
		return err
	}
	defer closeIt()
	j.hosts = make([]string, j.run.Size)
	if err := j.accept(l, 1); err != nil {
		return err
	}
	for _, c := range j.conns[1:] {
		if err := send(c, answer{Addresses: j.hosts}); err != nil {
			return err
		}
	}
	return nil
}

// accept accepts connections until all ranks from first on are connected. A process that does not
// belong to the run is answered and ignored.
func (j *joiner) accept(l net.Listener, first int) error {
	for missing := j.run.Size - first; missing > 0; {
		c, err := l.Accept()
		if err != nil {
			return fmt.Errorf("ranks %v of %d have not connected: %w", j.missing(first), j.run.Size, reason(j.ctx, err))
		}
		h, err := j.hello(c)
		if err != nil {
			c.Close()
			continue
		}
		if err = j.admit(c, h, first); err == nil {
			missing--
			continue
		}
		_ = send(c, answer{Refused: err.Error()})
		c.Close()
		if h.Token == hashed(j.run.Token) {
			return err
		}
	}
	return nil
}

// helloTime bounds how long a connected process may take to identify itself: others wait.
const helloTime = 5 * time.Second

func (j *joiner) hello(c net.Conn) (h hello, err error) {
	short, cancel := context.WithTimeout(j.ctx, helloTime)
	defer cancel()
	err = receive(short, c, &h)
	return h, err
}

// admit accepts the connection of a process, or returns why it is refused.
func (j *joiner) admit(c net.Conn, h hello, first int) error {
	switch {
	case subtle.ConstantTimeCompare([]byte(h.Token), []byte(hashed(j.run.Token))) == 0:
		return errors.New("the process belongs to another run: its token differs")
	case h.Size != j.run.Size:
		return fmt.Errorf("rank %d has a run of %d ranks, rank %d one of %d", h.Rank, h.Size, j.run.Rank, j.run.Size)
	case h.Rank < first || h.Rank >= j.run.Size:
		return fmt.Errorf("rank %d has connected: ranks %d to %d are expected", h.Rank, first, j.run.Size-1)
	case j.conns[h.Rank] != nil:
		return fmt.Errorf("rank %d has connected twice", h.Rank)
	}
	j.conns[h.Rank] = c
	if j.hosts != nil {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
			host = ""
		}
		j.hosts[h.Rank] = net.JoinHostPort(host, strconv.Itoa(h.Port))
	}
	return nil
}

func (j *joiner) missing(first int) []int {
	var out []int
	for i := first; i < len(j.conns); i++ {
		if j.conns[i] == nil && i != j.run.Rank {
			out = append(out, i)
		}
	}
	return out
}

// follow is [joiner.join] for other ranks: it connects to the ranks below and accepts those above.
func (j *joiner) follow() error {
	me := hello{Token: hashed(j.run.Token), Rank: j.run.Rank, Size: j.run.Size}
	l, closeIt, err := j.listen("0")
	if err != nil {
		return err
	}
	defer closeIt()
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		me.Port = at.Port
	}
	host, _, err := net.SplitHostPort(j.run.Address)
	if err != nil {
		return fmt.Errorf("the address of the run: %w", err)
	}
	if j.conns[0], err = j.dial(j.run.Address, me); err != nil {
		return fmt.Errorf("rank 0 at %s: %w", j.run.Address, err)
	}
	var a answer
	if err := receive(j.ctx, j.conns[0], &a); err != nil {
		return fmt.Errorf("rank 0 at %s has not answered: %w", j.run.Address, reason(j.ctx, err))
	}
	if a.Refused != "" || len(a.Addresses) != j.run.Size {
		return fmt.Errorf("rank 0 at %s refuses: %s", j.run.Address, a.Refused)
	}
	for i := 1; i < j.run.Rank; i++ {
		h, port, err := net.SplitHostPort(a.Addresses[i])
		if err != nil {
			return err
		}
		if h == "" {
			h = host
		}
		if j.conns[i], err = j.dial(net.JoinHostPort(h, port), me); err != nil {
			return fmt.Errorf("rank %d at %s: %w", i, a.Addresses[i], err)
		}
	}
	return j.accept(l, j.run.Rank+1)
}

// dial connects and identifies this process. It retries while nobody listens yet.
func (j *joiner) dial(address string, me hello) (net.Conn, error) {
	wait := 5 * time.Millisecond
	for {
		var d net.Dialer
		c, err := d.DialContext(j.ctx, "tcp", address)
		if err == nil {
			if err = send(c, me); err == nil {
				return c, nil
			}
			c.Close()
		}
		select {
		case <-j.ctx.Done():
			return nil, reason(j.ctx, err)
		case <-time.After(wait):
		}
		wait = min(2*wait, time.Second)
	}
}

// reason returns err, joined with the error of a context that is done.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// hashed returns the hash that is sent instead of a token.
func hashed(token string) string {
	sum := sha256.Sum256([]byte("rlx " + token))
	return fmt.Sprintf("%x", sum[:16])
}

// send writes a message: its length and JSON.
func send(c net.Conn, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// receive reads a message.
func receive(ctx context.Context, c net.Conn, message any) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxMessage {
		return fmt.Errorf("a message of %d bytes; the limit is %d", n, maxMessage)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(c, text); err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}
