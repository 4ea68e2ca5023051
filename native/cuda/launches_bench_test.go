//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// BenchmarkLaunches times the host's work for a step of very many small kernels, and for one in
// which every other kernel is a product of cuBLASLt: the launch of the graph alone, and the whole
// start of a run. The device is idle before each.
func BenchmarkLaunches(b *testing.B) {
	gpu(b)
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		by     native.Backend
		rounds int
	}{{"kernels", cuda.With(loop.NoProducts), 1000}, {"products", cuda.With(loop.AllProducts), 500}} {
		b.Run(c.name, func(b *testing.B) {
			g, err := ir.Build("launches", func(b *ir.Builder) {
				x, w := b.State("x", ir.F32, ir.Dims(128, 128)...), b.Param("w", ir.F32, ir.Dims(128, 128)...)
				h := x
				for range c.rounds {
					h = ops.Tanh(b, ops.MatMul(b, h, w))
				}
				b.SetState("x", h)
			})
			must(b, err)
			p := compileWith(b, c.by, g, native.Options{TF32: true})
			bound, err := p.Bind(ctx, "step", nil, nil)
			must(b, err)
			launch, err := cuda.Issue(p, "step", 20)
			must(b, err)
			var starts []time.Duration
			for b.Loop() {
				begun := time.Now()
				must(b, bound.Start(ctx))
				starts = append(starts, time.Since(begun))
				_, err := p.Get(ctx, "x")
				must(b, err)
			}
			slices.Sort(starts)
			micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
			b.ReportMetric(float64(cuda.Launches(p)), "launches")
			b.ReportMetric(float64(cuda.Calls(p)), "calls")
			b.ReportMetric(micros(launch), "launch-µs")
			b.ReportMetric(micros(starts[0]), "least-start-µs")
			b.ReportMetric(micros(starts[len(starts)/2]), "start-µs")
		})
	}
}
