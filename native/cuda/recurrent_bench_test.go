//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/cuda"
)

// BenchmarkRecurrent times recurrent networks of one layer, as wide as their inputs:
// forward, and a step of plain gradient descent.
func BenchmarkRecurrent(b *testing.B) {
	d := gpu(b)
	for _, c := range []struct {
		name                string
		gates               int
		steps, batch, width int
	}{{"gru", 3, 500, 8, 128}, {"lstm", 4, 128, 64, 128}, {"lstm", 4, 128, 64, 512}} {
		loss := func(train bool) *ir.Graph {
			g, err := ir.Build("recurrent", func(b *ir.Builder) {
				p := func(name string, dims ...int) ir.Value { return b.Param(name, ir.F32, ir.Dims(dims...)...) }
				x, h := p("x", c.steps, c.batch, c.width), ops.Zeros(b, ir.F32, ir.Dims(1, c.batch, c.width)...)
				n := c.gates * c.width
				weights := []ir.Value{p("w", c.width, n), p("u", c.width, n), p("bw", n), p("bu", n)}
				var y ir.Value
				if c.gates == 4 {
					y, _, _ = ops.LSTM(b, x, h, h, weights, ops.RecurrentAttrs{})
				} else {
					y, _ = ops.GRU(b, x, h, weights, ops.RecurrentAttrs{})
				}
				sum := ops.ReduceSum(b, ops.Mul(b, y, y))
				if b.Output("loss", sum); !train {
					b.State("s", ir.F32)
					b.SetState("s", sum)
				}
			})
			must(b, err)
			if train {
				g, err = optim.Step(g, "loss", optim.SGD{}, optim.Options{})
				must(b, err)
			}
			return g
		}
		for _, train := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s_%dx%dx%d_train_%t", c.name, c.steps, c.batch, c.width, train), func(b *testing.B) {
				p := compile(b, d, loss(train))
				must(b, cuda.Replay(p, "step", 3))
				b.ResetTimer()
				must(b, cuda.Replay(p, "step", b.N))
				b.ReportMetric(float64(cuda.Launches(p)), "launches")
				b.ReportMetric(1e6*b.Elapsed().Seconds()/float64(b.N), "µs")
			})
		}
	}
}
