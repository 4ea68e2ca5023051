package launch

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/rlx-go/rlx/ir"
)

// Grace is how long the other processes of [Start] may take to end once one has failed, before they
// are killed.
const Grace = 10 * time.Second

// Start runs a command as n processes on this machine, the ranks of one run, and waits for them. It
// sets the variables of [From] that begin with RLX_, and GOMAXPROCS to an equal part of the cores
// unless it is set. Each line that a process writes comes after "[rank] " on stdout or stderr. If a
// process fails, the others have [Grace] to end; the error is that of the first process that failed
// and wraps its [*exec.ExitError]. It is of kind [ir.ErrAttr] for n below 1 or no command.
func Start(ctx context.Context, n int, command []string, stdout, stderr io.Writer) error {
	if n < 1 || len(command) == 0 {
		return ir.Attrf("%d processes of command %q; there must be 1 or more, of a program", n, command)
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	token, failed := rand.Text(), make(chan error, n)
	var running sync.WaitGroup
	lines := &prefixer{}
	for rank := range n {
		c := exec.CommandContext(ctx, command[0], command[1:]...)
		c.Env = append(os.Environ(), variables(rank, n, address, token)...)
		c.WaitDelay = time.Second
		c.Stdout, c.Stderr = lines.writer(rank, stdout), lines.writer(rank, stderr)
		running.Go(func() {
			if err := c.Run(); err != nil {
				failed <- fmt.Errorf("rank %d: %w", rank, err)
			}
			for _, w := range []io.Writer{c.Stdout, c.Stderr} {
				w.(*lineWriter).flush()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case err := <-failed:
		select {
		case <-done:
		case <-time.After(Grace):
		}
		cancel()
		<-done
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// variables returns the environment of a rank.
func variables(rank, n int, address, token string) []string {
	out := []string{
		"RLX_RANK=" + strconv.Itoa(rank), "RLX_SIZE=" + strconv.Itoa(n),
		"RLX_LOCAL_RANK=" + strconv.Itoa(rank), "RLX_LOCAL_SIZE=" + strconv.Itoa(n),
		"RLX_ADDRESS=" + address, "RLX_TOKEN=" + token,
	}
	if os.Getenv("GOMAXPROCS") == "" {
		out = append(out, "GOMAXPROCS="+strconv.Itoa(max(1, runtime.GOMAXPROCS(0)/n)))
	}
	return out
}

// freeAddress returns an unused address of this machine.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// prefixer keeps the lines of several processes apart.
type prefixer struct{ mu sync.Mutex }

func (p *prefixer) writer(rank int, to io.Writer) *lineWriter {
	return &lineWriter{all: p, to: bufio.NewWriter(to), prefix: "[" + strconv.Itoa(rank) + "] "}
}

// lineWriter writes whole lines with a prefix.
type lineWriter struct {
	all    *prefixer
	to     *bufio.Writer
	prefix string
	line   []byte // begun, without its end
}

func (w *lineWriter) Write(data []byte) (int, error) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	for _, c := range data {
		w.line = append(w.line, c)
		if c != '\n' {
			continue
		}
		if err := w.write(); err != nil {
			return 0, err
		}
	}
	return len(data), w.to.Flush()
}

func (w *lineWriter) write() error {
	_, err := w.to.WriteString(w.prefix + string(w.line))
	w.line = w.line[:0]
	return err
}

// flush ends a line that the process has not ended.
func (w *lineWriter) flush() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if len(w.line) > 0 {
		w.line = append(w.line, '\n')
		_ = w.write()
		_ = w.to.Flush()
	}
}
