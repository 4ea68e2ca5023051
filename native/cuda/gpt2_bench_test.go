//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"testing"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// precisions are the precisions of the trainings of GPT-2.
var precisions = []struct {
	name string
	half ir.DType // of products, where they are not of f32
	o    native.Options
}{
	{"bf16", ir.BF16, native.Options{}},
	{"tf32", 0, native.Options{TF32: true}},
}

// gpt2Step is the training step that bench/peers.py has too: AdamW without clipping.
func gpt2Step(half ir.DType) (*ir.Graph, error) {
	loss, err := irtest.PeerGPT2.Loss()
	if err != nil {
		return nil, err
	}
	g, err := optim.Step(loss, "loss", optim.AdamW{}, optim.Options{Schedule: optim.Constant(3e-4)})
	if err != nil || half == 0 {
		return g, err
	}
	return passes.Mixed(g, half)
}

// BenchmarkGPT2 trains GPT-2 124M with 16 sequences of 1024 tokens: steps, the time
// from nothing to the end of the first step with and without the kernels on disk, the
// host's time for a step, and memory. It prints the time of each part.
func BenchmarkGPT2(b *testing.B) {
	d := gpu(b)
	for _, p := range precisions {
		b.Run(p.name, func(b *testing.B) { benchmarkGPT2(b, d, p.half, p.o) })
	}
}

func benchmarkGPT2(b *testing.B, d native.Backend, half ir.DType, o native.Options) {
	b.Setenv(cubin.Variable, b.TempDir())
	ctx := context.Background()
	before, err := cuda.TakenBytes(d)
	must(b, err)
	first := func() (native.Program, *ir.Graph, time.Duration) {
		begun := time.Now()
		g, err := gpt2Step(half)
		must(b, err)
		m, err := ir.NewModule("gpt2", ir.Entry{Name: "step", Graph: g})
		must(b, err)
		p, err := d.Compile(ctx, m, o)
		must(b, err)
		must(b, cuda.Replay(p, "step", 1))
		return p, g, time.Since(begun)
	}
	p, _, cold := first()
	must(b, p.Close(ctx))
	p, g, cached := first()
	defer func() { must(b, p.Close(ctx)) }()
	taken, err := cuda.TakenBytes(d)
	must(b, err)
	in := begin(b, p, g, irtest.PeerGPT2.Vocab)
	bound, err := p.Bind(ctx, "step", in, nil)
	must(b, err)
	for range 3 {
		must(b, bound.Start(ctx))
	}
	must(b, cuda.Replay(p, "step", 2))
	b.Run("step", func(b *testing.B) {
		must(b, cuda.Replay(p, "step", b.N))
		rate := float64(b.N) / b.Elapsed().Seconds()
		b.StopTimer()
		host, err := cuda.Issue(p, "step", 10)
		must(b, err)
		b.ReportMetric(rate*float64(irtest.PeerGPT2.Batch*irtest.PeerGPT2.Context), "tokens/s")
		b.ReportMetric(float64(cuda.Launches(p)), "launches")
		b.ReportMetric(float64(cuda.Calls(p)), "calls")
		b.ReportMetric(float64(cuda.Kinds(p)[0]), "kernel-nodes")
		b.ReportMetric(float64(cuda.Kinds(p)[1]), "copy-nodes")
		b.ReportMetric(float64(cuda.Kinds(p)[2]), "fill-nodes")
		b.ReportMetric(cold.Seconds(), "s/cold")
		b.ReportMetric(cached.Seconds(), "s/cached")
		b.ReportMetric(float64(host.Microseconds()), "host-µs")
		b.ReportMetric(float64(cuda.PlannedBytes(p))/(1<<20), "planned-MiB")
		b.ReportMetric(float64(taken-before)/(1<<20), "taken-MiB")
	})
	writeProfile(b, p)
}
