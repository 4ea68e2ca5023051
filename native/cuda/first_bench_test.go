//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// BenchmarkFirst times a process from its start to the end of GPT-2's first step, on a device that
// the process has not opened before: with empty caches on disk, and with those that the first run
// wrote. It prints the parts.
func BenchmarkFirst(b *testing.B) {
	const child = "RLX_TEST_FIRST"
	if os.Getenv(child) != "" {
		first(b)
		return
	}
	gpu(b)
	for _, p := range precisions {
		b.Run(p.name, func(b *testing.B) {
			b.Setenv(child, p.name)
			b.Setenv(cubin.Variable, b.TempDir())
			for _, disk := range []string{"empty", "full", "full again"} {
				fmt.Printf("%s, with a cache that is %s:\n", p.name, disk)
				c := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkFirst$", "-test.benchtime=1x")
				c.Stdout, c.Stderr = os.Stdout, os.Stderr
				must(b, c.Run())
			}
		})
	}
}

// first makes the first step of the process and prints what takes its time.
func first(b *testing.B) {
	if b.N > 1 {
		return
	}
	var parts []native.Timing
	begun := time.Now()
	part := func(name string, since time.Time) {
		parts = append(parts, native.Timing{Name: name, Launches: 1, Time: time.Since(since)})
	}
	for _, p := range precisions {
		if p.name != os.Getenv("RLX_TEST_FIRST") {
			continue
		}
		g, err := gpt2Step(p.half)
		must(b, err)
		m, err := ir.NewModule("gpt2", ir.Entry{Name: "step", Graph: g})
		must(b, err)
		part("graph", begun)
		now, d := time.Now(), cuda.Backend()
		must(b, d.Probe())
		part("device", now)
		made, err := d.Compile(context.Background(), m, p.o)
		must(b, err)
		now, parts = time.Now(), append(parts, cuda.Made(made)...)
		must(b, cuda.Replay(made, "step", 1))
		part("first step", now)
		part("all", begun)
		must(b, made.Close(context.Background()))
	}
	for _, t := range parts {
		fmt.Printf("%9.1f ms  %s\n", float64(t.Time.Microseconds())/1e3, t.Name)
	}
}
