//go:build cgo && (darwin || linux)

package metal_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/demo"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/metal"
)

// What follows is for a Mac, see apple.sh; elsewhere it is skipped, unless RLX_REQUIRE
// names metal.

func TestGPUReportsItsName(t *testing.T) { gpu(t) }

func TestGPUPassesTheSuite(t *testing.T) { backendtest.Run(t, metal.Backend()) }

func TestGPUBranches(t *testing.T) { backendtest.Branches(t, gpu(t)) }

func TestGPUMultipliesByFragments(t *testing.T) { checkFragments(t, gpu(t)) }

func TestGPUAttends(t *testing.T) { checkAttention(t, gpu(t)) }

func TestGPULearnsDigits(t *testing.T) {
	b := gpu(t)
	for _, name := range []string{"mlp", "cnn"} {
		t.Run(name, func(t *testing.T) { demo.Digits(t, b, name, 50) })
	}
}

func gpu(t testing.TB) native.Backend {
	t.Helper()
	b := metal.Backend()
	backendtest.Require(t, b.Name(), b.Probe())
	t.Log(b.Info().Description)
	return b
}

// count makes a graph one whose runs are counted by a state, by which the last can be
// waited for.
func count(b *ir.Builder) {
	b.SetState("runs", ops.Add(b, b.State("runs", ir.F32), ops.Const(b, ir.F32, 1)))
}

// jobs are those that apple_mlx.py measures too. Work is in units of 10⁹ for one
// run: operations, or bytes read and written.
var jobs = []struct {
	name, unit string
	work       float64
	graph      func() (*ir.Graph, error)
}{
	{"matmul 1024", "GFLOP/s", 2 * 1024 * 1024 * 1024 / 1e9, matmul(1024, ir.F32)},
	{"matmul 4096", "GFLOP/s", 2 * 4096 * 4096 * 4096 / 1e9, matmul(4096, ir.F32)},
	{"matmul 4096, f16", "GFLOP/s", 2 * 4096 * 4096 * 4096 / 1e9, matmul(4096, ir.F16)},
	{"attention 16x2048x64, causal", "GFLOP/s", 2 * 16 * 2048 * 2048 * 64 / 1e9, attention},
	{"softmax 4096x4096", "GB/s", 2 * 4 * 4096 * 4096 / 1e9, rowwise(func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) })},
	{"gelu 4096x4096", "GB/s", 2 * 4 * 4096 * 4096 / 1e9, rowwise(func(b *ir.Builder, x ir.Value) ir.Value { return ops.Gelu(b, x) })},
	{"MLP step, batch 128", "steps/s", 1, mlp(128)},
	{"MLP step, batch 4096", "steps/s", 1, mlp(4096)},
}

func matmul(n int, d ir.DType) func() (*ir.Graph, error) {
	return func() (*ir.Graph, error) {
		return ir.Build("job", func(b *ir.Builder) {
			b.Output("y", ops.MatMul(b, b.Param("x", d, ir.Dims(n, n)...), b.Param("w", d, ir.Dims(n, n)...)))
			count(b)
		})
	}
}

// attention has 16 heads of 2,048 queries and keys; half of the products are computed.
func attention() (*ir.Graph, error) {
	return ir.Build("job", func(b *ir.Builder) {
		of := func(name string) ir.Value { return b.Param(name, ir.F32, ir.Dims(16, 2048, 64)...) }
		b.Output("y", ops.Attention(b, of("q"), of("k"), of("v"), ir.Value{}, ops.AttentionAttrs{Causal: true}))
		count(b)
	})
}

func rowwise(f func(b *ir.Builder, x ir.Value) ir.Value) func() (*ir.Graph, error) {
	return func() (*ir.Graph, error) {
		return ir.Build("job", func(b *ir.Builder) {
			b.Output("y", f(b, b.Param("x", ir.F32, ir.Dims(4096, 4096)...)))
			count(b)
		})
	}
}

// mlp is an Adam step of a network 784-512-512-10.
func mlp(batch int) func() (*ir.Graph, error) {
	return func() (*ir.Graph, error) {
		loss, err := irtest.MLP(batch, 784, 512, 512, 10)
		if err != nil {
			return nil, err
		}
		return optim.Step(loss, "loss", optim.Adam{}, optim.Options{Schedule: optim.Constant(1e-3)})
	}
}

func BenchmarkGPU(b *testing.B) {
	device := gpu(b)
	for _, job := range jobs {
		b.Run(job.name, func(b *testing.B) {
			g, err := job.graph()
			must(b, err)
			p := compile(b, device, g)
			in, last := fill(b, p)
			bound, err := p.Bind(context.Background(), "step", in, nil)
			must(b, err)
			ctx := context.Background()
			run := func(times int) {
				for range times {
					must(b, bound.Start(ctx))
				}
				_, err := p.Get(ctx, last)
				must(b, err)
			}
			run(3) // which allocate
			b.ResetTimer()
			run(b.N)
			b.ReportMetric(job.work*float64(b.N)/b.Elapsed().Seconds(), job.unit)
			b.ReportMetric(0, "ns/op")
		})
	}
}

// fill gives a program small random numbers, and returns inputs and the name of its
// smallest parameter or state.
func fill(b *testing.B, p native.Program) (in map[string]native.Tensor, smallest string) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	in = map[string]native.Tensor{}
	random := func(s native.Slot) native.Tensor {
		t := native.Zeros(s.DType, s.Dims...)
		if s.DType == ir.F32 {
			values, err := t.Float32s()
			must(b, err)
			for i := range values {
				values[i] = r.Float32()/8 - 1.0/16
			}
		}
		return t
	}
	size := -1
	for _, s := range p.Persistent() {
		t := random(s)
		if s.Role == native.Param || s.DType != ir.F32 {
			must(b, p.Set(context.Background(), s.Name, t))
		}
		if size < 0 || len(t.Data) < size {
			smallest, size = s.Name, len(t.Data)
		}
	}
	for _, s := range p.Slots("step") {
		if s.Role == native.Input {
			in[s.Name] = random(s)
		}
	}
	return in, smallest
}
