package cpu_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// job is a row of the table.
type job struct {
	name  string
	graph func(tb testing.TB) *ir.Graph
}

// jobs are the benchmark's rows, which the programs of peers have by the same names.
var jobs = []job{
	{"MLP 784-128-10 step", func(tb testing.TB) *ir.Graph { return adam(tb, mlpLoss(tb, 128, 784, 128, 10)) }},
	{"MLP 784-512-512-10 step", func(tb testing.TB) *ir.Graph { return adam(tb, mlpLoss(tb, 128, 784, 512, 512, 10)) }},
	{"inference 784-128-10 batch 1", func(tb testing.TB) *ir.Graph { return mlp(tb, 1, 784, 128, 10) }},
	{"inference 784-512-512-10 batch 1", func(tb testing.TB) *ir.Graph { return mlp(tb, 1, 784, 512, 512, 10) }},
	{"inference 784-128-10 batch 128", func(tb testing.TB) *ir.Graph { return mlp(tb, 128, 784, 128, 10) }},
	{"inference 784-512-512-10 batch 128", func(tb testing.TB) *ir.Graph { return mlp(tb, 128, 784, 512, 512, 10) }},
	{"matmul 512", func(tb testing.TB) *ir.Graph { return square(tb, 512) }},
	{"matmul 1024", func(tb testing.TB) *ir.Graph { return square(tb, 1024) }},
	{"softmax 4096x1024", func(tb testing.TB) *ir.Graph {
		return unary(tb, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) }, 4096, 1024)
	}},
	{"layer norm 4096x1024", func(tb testing.TB) *ir.Graph {
		return unary(tb, func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.LayerNorm(b, x, b.Param("scale", ir.F32, ir.Dims(1024)...), b.Param("bias", ir.F32, ir.Dims(1024)...), 1e-5)
		}, 4096, 1024)
	}},
	{"gelu erf 4M", func(tb testing.TB) *ir.Graph { return unary(tb, ops.Gelu, 4<<20) }},
	{"gelu tanh 4M", func(tb testing.TB) *ir.Graph { return unary(tb, ops.GeluTanh, 4<<20) }},
	{"sum along rows", func(tb testing.TB) *ir.Graph {
		return unary(tb, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 1) }, 4096, 1024)
	}},
	{"sum along columns", func(tb testing.TB) *ir.Graph {
		return unary(tb, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 0) }, 4096, 1024)
	}},
	{"transpose 2048x2048", func(tb testing.TB) *ir.Graph {
		return unary(tb, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) }, 2048, 2048)
	}},
	{"dropout 4M", func(tb testing.TB) *ir.Graph {
		return build(tb, func(b *ir.Builder) {
			b.Output("y", ops.Dropout(b, b.Input("x", ir.F32, ir.Dims(4<<20)...), b.Input("key", ir.U32, ir.Dims(2)...), 0.1))
		})
	}},
	{"conv 3x3 32-64 forward", func(tb testing.TB) *ir.Graph { return conv(tb) }},
	{"conv 3x3 32-64 backward", func(tb testing.TB) *ir.Graph { return convBackward(tb, 32) }},
	{"GPT step width 64", func(tb testing.TB) *ir.Graph { return gptStep(tb, 64) }},
	{"GPT step width 256", func(tb testing.TB) *ir.Graph { return gptStep(tb, 256) }},
	{"transformer block", func(tb testing.TB) *ir.Graph {
		g, err := autodiff.ValueAndGrad(transformer(tb, 4, 128, 256, 8), "loss")
		return must(tb, g, err)
	}},
}

// BenchmarkTable runs the jobs one by one, each also in PyTorch and JAX where Python has them,
// and in this program on one core. It reports the minimum time of many runs in ms, and the
// ratio of the peers' times to ours. PYTHON names the interpreter. With GOMAXPROCS=1 and
// OMP_NUM_THREADS=1 it compares the processor time of one thread.
func BenchmarkTable(b *testing.B) {
	peers := []*peer{startPython(b, "PyTorch", "peers/pytorch.py"), startPython(b, "JAX", "peers/jax_cpu.py")}
	if runtime.GOMAXPROCS(0) > 1 {
		peers = append(peers, startOneCore(b))
	}
	for _, j := range jobs {
		b.Run(strings.ReplaceAll(j.name, " ", "_"), func(b *testing.B) {
			step := bindAny(b, compileGraphs(b, ir.Entry{Name: "run", Graph: j.graph(b)}))
			least := math.Inf(1)
			for b.Loop() {
				least = min(least, timed(b, step))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(least, "ms")
			for _, p := range peers {
				if theirs := p.ask(j.name); theirs > 0 {
					b.ReportMetric(theirs, "ms-"+p.name)
					b.ReportMetric(least/theirs, "x-"+p.name)
				}
			}
		})
	}
}

// timed runs a step and returns its time in ms.
func timed(tb testing.TB, step native.Bound) float64 {
	start := clock()
	runBound(tb, step)
	return (clock() - start).Seconds() * 1e3
}

// serveEnv makes the test below a peer of the benchmark.
const serveEnv = "RLX_BENCH_SERVE"

// TestEveryJobOfTheTableCompiles keeps the jobs working between runs of the benchmark.
func TestEveryJobOfTheTableCompiles(t *testing.T) {
	if os.Getenv(serveEnv) != "" {
		serveJobs(t)
		return
	}
	for _, j := range jobs {
		compileGraphs(t, ir.Entry{Name: "run", Graph: j.graph(t)})
	}
}

// jobNamed returns the job of that name.
func jobNamed(name string) job {
	return jobs[slices.IndexFunc(jobs, func(j job) bool { return j.name == name })]
}

// bindAny binds a program with random floats for everything it reads.
func bindAny(tb testing.TB, p native.Program) native.Bound {
	tb.Helper()
	in, out := tensorsOf(tb, p)
	return bind(tb, p, "run", in, out)
}

// tensorsOf sets the parameters of a program, and returns tensors for the inputs
// and the outputs of its entry "run".
func tensorsOf(tb testing.TB, p native.Program) (in, out map[string]native.Tensor) {
	tb.Helper()
	in, out = map[string]native.Tensor{}, map[string]native.Tensor{}
	fill := func(s native.Slot) native.Tensor {
		n := 1
		for _, d := range s.Dims {
			n *= d
		}
		switch {
		case s.DType == ir.F32:
			return native.Float32s(random(n), s.Dims...)
		case s.DType == ir.I32 && s.Checked: // indices
			x := make([]int32, n)
			for i := range x {
				x[i] = int32(i * 7 % s.Hi)
			}
			return native.Int32s(x, s.Dims...)
		case s.DType.IsFloat() || s.DType.IsComplex():
			a := ir.NewArray(s.DType, s.Dims...)
			for i, x := range random(n) {
				if s.DType.IsComplex() {
					a.C[i] = complex(float64(x), 0.5-float64(x*x))
				} else {
					a.F[i] = float64(x)
				}
			}
			a.Round()
			return native.FromArray(a)
		case s.DType == ir.I32 || s.DType == ir.I64:
			a := ir.NewArray(s.DType, s.Dims...)
			for i, x := range random(n) {
				a.I[i] = int64(1000 * (x + 0.5))
			}
			return native.FromArray(a)
		}
		return native.Zeros(s.DType, s.Dims...)
	}
	for _, s := range p.Persistent() {
		if s.Role == native.Param {
			if err := p.Set(context.Background(), s.Name, fill(s)); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for _, s := range p.Slots("run") {
		if s.Role == native.Input {
			in[s.Name] = fill(s)
		} else {
			out[s.Name] = native.Zeros(s.DType, s.Dims...)
		}
	}
	return in, out
}

func must(tb testing.TB, g *ir.Graph, err error) *ir.Graph {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func build(tb testing.TB, f func(b *ir.Builder)) *ir.Graph {
	tb.Helper()
	g, err := ir.Build("run", f)
	return must(tb, g, err)
}

func unary(tb testing.TB, f func(b *ir.Builder, x ir.Value) ir.Value, dims ...int) *ir.Graph {
	return build(tb, func(b *ir.Builder) { b.Output("y", f(b, b.Input("x", ir.F32, ir.Dims(dims...)...))) })
}

func square(tb testing.TB, n int) *ir.Graph {
	return build(tb, func(b *ir.Builder) {
		b.Output("z", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(n, n)...), b.Input("y", ir.F32, ir.Dims(n, n)...)))
	})
}

// layersOf returns the logits of a ReLU network.
func layersOf(b *ir.Builder, batch int, layers ...int) ir.Value {
	h := b.Input("x", ir.F32, ir.Dims(batch, layers[0])...)
	for i, n := range layers[1:] {
		if i > 0 {
			h = ops.Relu(b, h)
		}
		h = ops.Linear(b, h, b.Param(fmt.Sprint("w", i), ir.F32, ir.Dims(layers[i], n)...), b.Param(fmt.Sprint("b", i), ir.F32, ir.Dims(n)...))
	}
	return h
}

func mlp(tb testing.TB, batch int, layers ...int) *ir.Graph {
	return build(tb, func(b *ir.Builder) { b.Output("y", layersOf(b, batch, layers...)) })
}

func mlpLoss(tb testing.TB, batch int, layers ...int) *ir.Graph {
	return build(tb, func(b *ir.Builder) {
		b.Output("loss", ops.CrossEntropyMean(b, layersOf(b, batch, layers...), b.Input("labels", ir.I32, ir.Dims(batch)...)))
	})
}

func adam(tb testing.TB, loss *ir.Graph) *ir.Graph {
	g, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Schedule: optim.Constant(1e-3)})
	return must(tb, g, err)
}

// gptStep is a step with AdamW of a language model of two blocks, over 8 texts of 64
// characters.
func gptStep(tb testing.TB, width int) *ir.Graph {
	g, err := irtest.GPT{Vocab: 65, Context: 64, Width: width, Heads: 4, Blocks: 2, Batch: 8}.Loss()
	g, err = optim.Step(must(tb, g, err), "loss", optim.AdamW{}, optim.Options{Schedule: optim.Constant(1e-3)})
	return must(tb, g, err)
}

// convolved is the convolution of images of 28×28 with 64 filters of 3×3.
func convolved(b *ir.Builder, images int) ir.Value {
	return ops.ConvGeneral(b, b.Input("x", ir.F32, ir.Dims(images, 32, 28, 28)...), b.Param("w", ir.F32, ir.Dims(64, 32, 3, 3)...),
		ops.ConvAttrs{Strides: []int{1, 1}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
}

func conv(tb testing.TB) *ir.Graph {
	return build(tb, func(b *ir.Builder) { b.Output("y", convolved(b, 32)) })
}

func convBackward(tb testing.TB, images int) *ir.Graph {
	loss := build(tb, func(b *ir.Builder) {
		y := convolved(b, images)
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, y)))
	})
	g, err := autodiff.ValueAndGrad(loss, "loss", "x", "w")
	return must(tb, g, err)
}

// transformer is the loss of a block of attention and two layers, with norms
// before them.
func transformer(tb testing.TB, batch, length, width, heads int) *ir.Graph {
	return build(tb, func(b *ir.Builder) {
		param := func(name string, dims ...int) ir.Value { return b.Param(name, ir.F32, ir.Dims(dims...)...) }
		norm := func(name string, x ir.Value) ir.Value {
			return ops.LayerNorm(b, x, param(name+".scale", width), param(name+".bias", width), 1e-5)
		}
		linear := func(name string, x ir.Value, in, out int) ir.Value {
			return ops.Linear(b, x, param(name+".w", in, out), param(name+".b", out))
		}
		x := param("x", batch, length, width)
		h := norm("norm1", x)
		split := func(name string) ir.Value {
			y := ops.Reshape(b, linear(name, h, width, width), ir.Dims(batch, length, heads, width/heads)...)
			return ops.Transpose(b, y, 0, 2, 1, 3)
		}
		y := ops.Attention(b, split("q"), split("k"), split("v"), ir.Value{}, ops.AttentionAttrs{Scale: 1 / math.Sqrt(float64(width/heads)), Causal: true})
		y = ops.Reshape(b, ops.Transpose(b, y, 0, 2, 1, 3), ir.Dims(batch, length, width)...)
		x = ops.Add(b, x, linear("out", y, width, width))
		y = linear("down", ops.Gelu(b, linear("up", norm("norm2", x), width, 4*width)), 4*width, width)
		x = ops.Add(b, x, y)
		b.Output("loss", ops.Mean(b, ops.Mul(b, x, x), 0, 1, 2))
	})
}
