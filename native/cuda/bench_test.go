//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// models are the models whose training steps are timed, with the number of consecutive steps.
var models = []struct {
	name    string
	classes int
	tokens  int // of a language model
	loss    func() (*ir.Graph, error)
	half    ir.DType // of products, where that is not the type of their operands
	o       native.Options
}{
	{"MLP_784-512-512-10_batch_128", 10, 0, func() (*ir.Graph, error) { return irtest.MLP(128, 784, 512, 512, 10) }, 0, native.Options{}},
	{"MLP_784-512-512-10_batch_4096", 10, 0, func() (*ir.Graph, error) { return irtest.MLP(4096, 784, 512, 512, 10) }, 0, native.Options{}},
	{"CNN_of_MNIST_batch_256", 10, 0, func() (*ir.Graph, error) { return cnn(256) }, 0, native.Options{}},
	{"GPT_4x128_context_64_batch_12", 65, 12 * 64, irtest.GPT{Vocab: 65, Context: 64, Width: 128, Heads: 4, Blocks: 4, Batch: 12}.Loss, 0, native.Options{}},
	{"GPT_6x384_context_256_batch_64", 65, 64 * 256, irtest.CharacterGPT.Loss, 0, native.Options{}},
	{"GPT_6x384_context_256_batch_64_bf16", 65, 64 * 256, irtest.CharacterGPT.Loss, ir.BF16, native.Options{}},
	{"GPT_6x384_context_256_batch_64_tf32", 65, 64 * 256, irtest.CharacterGPT.Loss, 0, native.Options{TF32: true}},
}

// cnn has two convolutions and pools and two layers.
func cnn(batch int) (*ir.Graph, error) {
	return ir.Build("cnn", func(b *ir.Builder) {
		weight := func(name string, dims ...int) ir.Value { return b.Param(name, ir.F32, ir.Dims(dims...)...) }
		h, labels := b.Input("x", ir.F32, ir.Dims(batch, 28, 28, 1)...), b.Input("labels", ir.I32, ir.N(batch))
		h = ops.Relu(b, ops.Conv2D(b, h, weight("k0", 3, 3, 1, 32), weight("c0", 32), ops.Conv2DAttrs{}))
		h = ops.MaxPool(b, h, ops.PoolAttrs{Sizes: []int{2, 2}})
		h = ops.Relu(b, ops.Conv2D(b, h, weight("k1", 3, 3, 32, 64), weight("c1", 64), ops.Conv2DAttrs{}))
		h = ops.MaxPool(b, h, ops.PoolAttrs{Sizes: []int{2, 2}})
		h = ops.Relu(b, ops.Linear(b, ops.Reshape(b, h, ir.Dims(batch, 1600)...), weight("w0", 1600, 128), weight("b0", 128)))
		b.Output("loss", ops.CrossEntropyMean(b, ops.Linear(b, h, weight("w1", 128, 10), weight("b1", 10)), labels))
	})
}

// BenchmarkStep times training steps, Adam included: with a batch on the device, and with one that
// the host passes again. Verbose, it prints the time of each part.
func BenchmarkStep(b *testing.B) {
	d, ctx := gpu(b), context.Background()
	for _, m := range models {
		b.Run(m.name, func(b *testing.B) {
			loss, err := m.loss()
			g := step(b, loss, err)
			if m.half != 0 {
				g, err = passes.Mixed(g, m.half)
				must(b, err)
			}
			p := compileWith(b, d, g, m.o)
			in := begin(b, p, g, m.classes)
			bound, err := p.Bind(ctx, "step", in, nil)
			must(b, err)
			run := func(n int) {
				for range n {
					must(b, bound.Start(ctx))
				}
				_, err := p.Get(ctx, p.Persistent()[0].Name)
				must(b, err)
			}
			run(5)
			report := func(b *testing.B) {
				b.ReportMetric(float64(cuda.Launches(p)), "launches")
				rate := float64(b.N) / b.Elapsed().Seconds()
				b.ReportMetric(rate, "steps/s")
				if m.tokens > 0 {
					b.ReportMetric(rate*float64(m.tokens), "tokens/s")
				}
			}
			b.Run("resident", func(b *testing.B) {
				must(b, cuda.Replay(p, "step", b.N))
				report(b)
			})
			b.Run("fresh", func(b *testing.B) {
				b.ReportAllocs()
				run(b.N)
				report(b)
			})
			if testing.Verbose() {
				writeProfile(b, p)
			}
		})
	}
}

// writeProfile prints the parts of a step, by the time that they take one after the other.
func writeProfile(b *testing.B, p native.Program) { writeProfileOf(b, p, "step") }

func writeProfileOf(b *testing.B, p native.Program, entry string) {
	timings, err := p.(native.Profiler).Profile(context.Background(), entry, 3)
	must(b, err)
	fmt.Printf("%s, by part of a step:\n", b.Name())
	must(b, native.WriteTimings(os.Stdout, timings))
}

// BenchmarkUpdate times an optimizer without a model: AdamW updates the parameters of language
// models from gradients in memory, clipped by their norm. Bytes are the minimum to read and write.
func BenchmarkUpdate(b *testing.B) {
	d := gpu(b)
	for _, c := range []struct {
		name string
		gpt  irtest.GPT
	}{{"GPT_6x384", irtest.CharacterGPT}, {"GPT_2", irtest.GPT2}} {
		b.Run(c.name, func(b *testing.B) {
			g, params := update(b, c.gpt)
			module, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: g})
			must(b, err)
			p, err := d.Compile(context.Background(), module, native.Options{})
			must(b, err)
			defer func() { must(b, p.Close(context.Background())) }()
			bound, err := p.Bind(context.Background(), "step", nil, nil)
			must(b, err)
			for range 5 {
				must(b, bound.Start(context.Background()))
			}
			_, err = p.Get(context.Background(), "count")
			must(b, err)
			b.ResetTimer()
			must(b, cuda.Replay(p, "step", b.N))
			b.ReportMetric(float64(cuda.Launches(p)), "launches")
			b.ReportMetric(32*float64(params)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
}

// update returns the graph of an optimiser's step for the parameters of a model,
// and how many there are.
func update(b *testing.B, gpt irtest.GPT) (*ir.Graph, int) {
	model, err := gpt.Loss()
	must(b, err)
	params := 0
	g, err := ir.Build("update", func(b *ir.Builder) {
		count := ops.Add(b, b.State("count", ir.F32), ops.Const(b, ir.F32, 1))
		b.SetState("count", count)
		rule := optim.AdamW{}.Begin(b, ops.Const(b, ir.F32, 1e-3), count)
		var names []string
		var weights, grads []ir.Value
		for _, p := range model.Ports() {
			if t := p.Value.Type(); p.Kind == ir.ParamPort {
				size, _ := t.Shape.Size().Const()
				params += size
				names = append(names, p.Name)
				weights = append(weights, b.State(p.Name, t.DType, t.Shape...))
				grads = append(grads, b.Param("grad/"+p.Name, t.DType, t.Shape...))
			}
		}
		norm := ops.Add(b, optim.GlobalNorm(b, grads), ops.Const(b, ir.F32, 1e-6))
		scale := ops.Min(b, ops.Div(b, ops.Const(b, ir.F32, 1), norm), ops.Const(b, ir.F32, 1))
		for i, name := range names {
			t := weights[i].Type()
			m, v := b.State("m/"+name, t.DType, t.Shape...), b.State("v/"+name, t.DType, t.Shape...)
			value, slots := rule(b, weights[i], ops.Mul(b, grads[i], scale), []ir.Value{m, v})
			b.SetState(name, value)
			b.SetState("m/"+name, slots[0])
			b.SetState("v/"+name, slots[1])
		}
	})
	must(b, err)
	return g, params
}

// BenchmarkCompile times the way from a graph to a program, with all kernels
// compiled again and with those on disk.
func BenchmarkCompile(b *testing.B) {
	d := gpu(b)
	for _, m := range models {
		loss, err := m.loss()
		g := step(b, loss, err)
		module, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: g})
		must(b, err)
		cache := b.TempDir()
		for _, c := range []struct{ name, cache string }{{"cold", "off"}, {"cached", cache}} {
			b.Run(m.name+"/"+c.name, func(b *testing.B) {
				b.Setenv(cubin.Variable, c.cache)
				once := func() {
					p, err := d.Compile(context.Background(), module, native.Options{})
					must(b, err)
					must(b, p.Close(context.Background()))
				}
				if c.name == "cached" {
					once()
				}
				for b.Loop() {
					once()
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/compile")
			})
		}
	}
}

// BenchmarkMatMul times products of square matrices, and one of a language model's
// shape: its sums are short.
func BenchmarkMatMul(b *testing.B) {
	d := gpu(b)
	for _, c := range []struct {
		name    string
		m, n, k int
		dtype   ir.DType
		o       native.Options
	}{
		{"1024", 1024, 1024, 1024, ir.F32, native.Options{}},
		{"4096", 4096, 4096, 4096, ir.F32, native.Options{}},
		{"4096_tf32", 4096, 4096, 4096, ir.F32, native.Options{TF32: true}},
		{"8192_tf32", 8192, 8192, 8192, ir.F32, native.Options{TF32: true}},
		{"1024_bf16", 1024, 1024, 1024, ir.BF16, native.Options{}},
		{"4096_bf16", 4096, 4096, 4096, ir.BF16, native.Options{}},
		{"8192_bf16", 8192, 8192, 8192, ir.BF16, native.Options{}},
		{"8192_f16", 8192, 8192, 8192, ir.F16, native.Options{}},
		{"16384x1536x384_bf16", 16384, 1536, 384, ir.BF16, native.Options{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			g, err := ir.Build("matmul", func(b *ir.Builder) {
				b.State("z", c.dtype, ir.Dims(c.m, c.n)...)
				x, y := b.Param("x", c.dtype, ir.Dims(c.m, c.k)...), b.Param("y", c.dtype, ir.Dims(c.k, c.n)...)
				b.SetState("z", ops.MatMul(b, x, y))
			})
			must(b, err)
			p := compileWith(b, d, g, c.o)
			begin(b, p, g, 1)
			must(b, cuda.Replay(p, "step", 3))
			b.ResetTimer()
			must(b, cuda.Replay(p, "step", b.N))
			operations := 2 * float64(c.m) * float64(c.n) * float64(c.k)
			b.ReportMetric(operations*float64(b.N)/b.Elapsed().Seconds()/1e12, "TFLOP/s")
		})
	}
}

// matVec adds a product of x with weights of n rows and k columns.
type matVec = func(b *ir.Builder, x ir.Value, n, k int) ir.Value

// matVecForms are the forms of weights by name. Those that end in _8 have the vector rounded to 8 bits.
func matVecForms() map[string]matVec {
	dense := func(t ir.DType) matVec {
		return func(b *ir.Builder, x ir.Value, n, k int) ir.Value {
			w := ops.Convert(b, b.Param("w", t, ir.Dims(n, k)...), ir.F32)
			return ops.DotGeneral(b, x, w, ops.DotAttrs{LhsContract: []int{1}, RhsContract: []int{1}})
		}
	}
	packed := func(format string, product func(b *ir.Builder, x, w ir.Value, format string) ir.Value) matVec {
		each, bytes, _ := ops.PackedBlock(format)
		return func(b *ir.Builder, x ir.Value, n, k int) ir.Value {
			return product(b, x, b.Param("w", ir.U8, ir.Dims(n, k/each*bytes)...), format)
		}
	}
	forms := map[string]matVec{"f32": dense(ir.F32), "bf16": dense(ir.BF16), "f8_e4m3fn": dense(ir.F8E4M3)}
	for _, format := range []string{"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "nvfp4"} {
		forms[format], forms[format+"_8"] = packed(format, ops.QuantizedMatMul), packed(format, ops.QuantizedMatMul8)
	}
	return forms
}

// BenchmarkMatVec times products of a matrix of weights in some form with a vector,
// by the bytes of the weights.
func BenchmarkMatVec(b *testing.B) {
	d, forms := gpu(b), matVecForms()
	few := []string{"bf16", "q4_0", "q4_0_8", "q8_0", "q8_0_8", "q4_k", "q4_k_8", "q6_k", "q6_k_8"}
	for _, c := range []struct {
		n, k  int
		forms []string
	}{{8192, 8192, slices.Sorted(maps.Keys(forms))}, {4096, 4096, few}, {14336, 4096, few}, {4096, 14336, few}, {128256, 4096, few}} {
		for _, form := range c.forms {
			b.Run(fmt.Sprintf("%dx%d_%s", c.n, c.k, form), func(b *testing.B) { benchmarkMatVec(b, d, 1, c.n, c.k, forms[form]) })
		}
	}
}

// BenchmarkFewRows is BenchmarkMatVec for several rows, those of a decoder with several sequences or of a prompt.
func BenchmarkFewRows(b *testing.B) {
	d, forms := gpu(b), matVecForms()
	for _, c := range []struct{ n, k int }{{14336, 4096}, {4096, 14336}, {4096, 4096}} {
		for _, form := range []string{"bf16", "q4_0", "q8_0", "q4_k", "q6_k"} {
			for _, rows := range []int{2, 8, 32, 64, 128, 512} {
				b.Run(fmt.Sprintf("%dx%dx%d_%s", rows, c.n, c.k, form), func(b *testing.B) { benchmarkMatVec(b, d, rows, c.n, c.k, forms[form]) })
			}
		}
	}
}

// matVecBytes is the number of bytes of weights read in turn, so that none come from the cache.
const matVecBytes = 256 << 20

// benchmarkMatVec times products with several matrices in turn. The bytes of the weights are random
// but small, so that no scale is above 1.
func benchmarkMatVec(b *testing.B, d native.Backend, rows, n, k int, times matVec) {
	bytes, copies := 0, 1
	build := func() *ir.Graph {
		g, err := ir.Build("matvec", func(b *ir.Builder) {
			x := b.Param("x", ir.F32, ir.Dims(rows, k)...)
			own := x
			for i := range copies {
				b.Scope(fmt.Sprint(i), func() {
					b.State("y", ir.F32, ir.Dims(rows, n)...)
					y := times(b, own, n, k)
					b.SetState("y", y)
					one := ops.SliceAxis(b, y, 1, ir.N(0), ir.N(1)) // the next product depends on it: one kernel each
					own = ops.Add(b, x, ops.Mul(b, one, ops.Const(b, ir.F32, 1e-30)))
				})
			}
		})
		must(b, err)
		return g
	}
	for _, p := range build().Ports() {
		if size, _ := p.Value.Shape().Size().Const(); size > rows*k && p.Kind == ir.ParamPort {
			bytes = size * p.Value.DType().Size()
		}
	}
	copies = min(max(matVecBytes/bytes, 1), 16)
	g := build()
	fill, err := lmFill(g)
	must(b, err)
	m, err := ir.NewModule("matvec", ir.Entry{Name: "step", Graph: g}, ir.Entry{Name: "fill", Graph: fill})
	must(b, err)
	p, err := d.Compile(context.Background(), m, native.Options{})
	must(b, err)
	defer func() { must(b, p.Close(context.Background())) }()
	must(b, cuda.Replay(p, "fill", 1))
	must(b, cuda.Replay(p, "step", 3))
	b.ResetTimer()
	must(b, cuda.Replay(p, "step", b.N))
	b.ReportMetric(float64(cuda.Launches(p)), "launches")
	b.ReportMetric(float64(bytes*copies)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
	if testing.Verbose() {
		writeProfileOf(b, p, "step")
	}
}

// BenchmarkRows times what memory bounds.
func BenchmarkRows(b *testing.B) {
	d := gpu(b)
	const rows, columns = 16384, 4096
	for _, c := range []struct {
		name string
		f    func(b *ir.Builder, x ir.Value) ir.Value
	}{
		{"softmax", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) }},
		{"layer_norm", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.LayerNorm(b, x, b.Param("scale", ir.F32, ir.N(columns)), b.Param("bias", ir.F32, ir.N(columns)), 1e-5)
		}},
		{"gelu", ops.Gelu},
	} {
		b.Run(c.name, func(b *testing.B) {
			dims := ir.Dims(rows, columns)
			g, err := ir.Build("rows", func(b *ir.Builder) {
				b.State("y", ir.F32, dims...)
				b.SetState("y", c.f(b, b.Param("x", ir.F32, dims...)))
			})
			must(b, err)
			p := compile(b, d, g)
			must(b, cuda.Replay(p, "step", 3))
			b.ResetTimer()
			must(b, cuda.Replay(p, "step", b.N))
			b.ReportMetric(2*4*rows*columns*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
}

// BenchmarkMemory times scatters, sorts and running combinations of numbers drawn
// on the device.
func BenchmarkMemory(b *testing.B) {
	d := gpu(b)
	jobs, err := irtest.MemoryJobs(1 << 30)
	must(b, err)
	for _, j := range jobs {
		b.Run(j.Name, func(b *testing.B) {
			m, err := j.Module()
			must(b, err)
			p, err := d.Compile(context.Background(), m, native.Options{})
			must(b, err)
			defer p.Close(context.Background())
			must(b, cuda.Replay(p, "fill", 1))
			must(b, cuda.Replay(p, "step", 3))
			b.ResetTimer()
			must(b, cuda.Replay(p, "step", b.N))
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(float64(cuda.Launches(p)), "launches")
			if j.Bytes > 0 {
				b.ReportMetric(j.Bytes*rate/1e9, "GB/s")
			}
			if j.Keys > 0 {
				b.ReportMetric(j.Keys*rate/1e9, "Gkeys/s")
			}
		})
	}
}
