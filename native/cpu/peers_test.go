package cpu_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// serveJobs times jobs on request, as bench/serve.py does.
func serveJobs(t *testing.T) {
	fmt.Println("ready")
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		fmt.Println(minTime(t, bindAny(t, compileGraphs(t, ir.Entry{Name: "run", Graph: jobNamed(asked.Text()).graph(t)}))))
	}
}

// minTime returns the minimum time of a step in ms, as bench/serve.py measures it: for 0.3 seconds, or as many as
// RLX_BENCH_SECONDS has.
func minTime(tb testing.TB, step native.Bound) float64 {
	enough := 300 * time.Millisecond
	if s, err := strconv.ParseFloat(os.Getenv("RLX_BENCH_SECONDS"), 64); err == nil {
		enough = time.Duration(s * float64(time.Second))
	}
	begin := clock()
	least := timed(tb, step)
	for runs := 1; runs < 5 && clock() < begin+3*time.Second || clock() < begin+enough; runs++ {
		least = min(least, timed(tb, step))
	}
	return least
}

// peer is a process that times the jobs; nil without one.
type peer struct {
	name string
	in   io.Writer
	out  *bufio.Scanner
}

// startPython starts a peer in Python.
func startPython(b *testing.B, name, script string) *peer {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	cmd := exec.Command(python, script)
	cmd.Env = append(os.Environ(), peerClock(), "PYTHONPATH=../bench")
	return startPeer(b, name, cmd)
}

// startOneCore starts this program again, with one core.
func startOneCore(b *testing.B) *peer {
	cmd := exec.Command(os.Args[0], "-test.run=^TestEveryJobOfTheTableCompiles$", "-test.timeout=1h")
	cmd.Env = append(os.Environ(), serveEnv+"=1", "GOMAXPROCS=1")
	return startPeer(b, "one-core", cmd)
}

func startPeer(b *testing.B, name string, cmd *exec.Cmd) *peer {
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Logf("no %s: %v", name, err)
		return nil
	}
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	p := &peer{name, in, bufio.NewScanner(out)}
	if !p.out.Scan() || p.out.Text() != "ready" {
		b.Logf("no %s: %s", name, p.out.Text())
		return nil
	}
	return p
}

// ask returns the minimum time of a job in ms, 0 where the peer does not have it.
func (p *peer) ask(name string) float64 {
	if p == nil {
		return 0
	}
	fmt.Fprintln(p.in, name)
	if !p.out.Scan() {
		return 0
	}
	ms, _ := strconv.ParseFloat(p.out.Text(), 64)
	return ms
}
