package workload_test

import (
	"testing"

	_ "github.com/rlx-go/rlx/internal/ballast"
	"github.com/rlx-go/rlx/internal/workload"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestWorkByHand counts a product, a loop of products and a sum.
func TestWorkByHand(t *testing.T) {
	const m, k, n, steps = 3, 5, 7, 11
	g, err := ir.Build("g", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(m, k)...), b.Param("w", ir.F32, ir.Dims(k, n)...)
		y := ops.Tanh(b, ops.MatMul(b, x, w))
		square := b.Param("square", ir.F32, ir.Dims(n, n)...)
		z, _ := ops.Scan(b, ops.Loop{
			Consts: []ir.Value{square}, Carries: []ir.Value{y}, Length: ir.N(steps),
			Body: func(b *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.MatMul(b, carries[0], consts[0])}, nil
			},
		})
		b.Output("total", ops.ReduceSum(b, z[0], 0, 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := workload.Work{
		Operations: 2*m*k*n + steps*2*m*n*n,
		Bytes:      4 * ((m*k + k*n + m*n) + steps*(m*n+n*n+m*n) + (m*n + 1)),
		Kernels:    1 + steps + 1,
		Transfer:   4 * (m*k + 1),
	}
	if got := workload.Of(g); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// TestWorkOfPackedExperts counts a step of a decoder of the shape of Mixtral 8x7B in q4_0 that adds one token: it is that of two of
// eight experts, besides the columns of the routers.
func TestWorkOfPackedExperts(t *testing.T) {
	const width, hidden, layers, all = 4096, 14336, 32, 8
	step := func(experts, each int) workload.Work {
		c := lm.Config{
			Architecture: "mixtral", Width: width, Hidden: hidden, Layers: layers, Heads: 32, KVHeads: 8, HeadSize: 128, Vocabulary: 32000, Context: 4096,
			Epsilon: 1e-5, Rope: &lm.Rope{Base: 1e6, Size: 128}, Activation: nn.Silu, Gated: true, Experts: experts, ExpertsPerToken: each,
		}
		g, err := ir.Build("step", func(b *ir.Builder) {
			nn.Infer(b)
			nn.Stored(b, func(string) nn.Storage { return nn.Storage{Format: "q4_0"} }, func() {
				nn.Cache(b, 1024)
				b.Output("logits", lm.Decoder(b, c, b.Input("tokens", ir.I32, ir.Dims(1, 1)...)))
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return workload.Of(g)
	}
	two, one, dense := step(all, 2), step(all, 1), step(2, 2)
	const weights = layers * 3 * width * hidden // of an expert
	if got := two.Operations - one.Operations; got != 2*weights {
		t.Errorf("an expert makes %g operations, want %g", got, 2.*weights)
	}
	if got := two.Operations - dense.Operations; got != layers*2*width*(all-2) {
		t.Errorf("two of %d experts make %g operations more than two of two", all, got)
	}
	packed := weights / 32. * 18
	if got := two.Bytes - one.Bytes; got < packed || got > 1.01*packed {
		t.Errorf("an expert reads and writes %g bytes, want %g", got, packed)
	}
	if got := two.Bytes - dense.Bytes; got < 0 || got > 0.01*packed {
		t.Errorf("two of %d experts read %g bytes more than two of two", all, got)
	}
}
