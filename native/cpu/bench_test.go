package cpu_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// random returns n nonzero numbers, as gonum skips zeros.
func random(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32() - 0.5
	}
	return x
}

func compileGraphs(tb testing.TB, entries ...ir.Entry) native.Program {
	tb.Helper()
	m, err := ir.NewModule("m", entries...)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := cpu.Backend().Compile(context.Background(), m, native.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func bind(tb testing.TB, p native.Program, entry string, in, out map[string]native.Tensor) native.Bound {
	tb.Helper()
	b, err := p.Bind(context.Background(), entry, in, out)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func runBound(tb testing.TB, b native.Bound) {
	ctx := context.Background()
	if err := b.Start(ctx); err != nil {
		tb.Fatal(err)
	}
	if err := b.Wait(ctx); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkSgemm multiplies two square matrices, and does the same with gonum.
func BenchmarkSgemm(b *testing.B) {
	for _, n := range []int{64, 128, 256, 512, 1024} {
		x, y, z := random(n*n), random(n*n), make([]float32, n*n)
		report := func(b *testing.B) {
			b.ReportMetric(2*float64(n)*float64(n)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		}
		b.Run(fmt.Sprintf("rlx/%d", n), func(b *testing.B) {
			g, err := ir.Build("matmul", func(b *ir.Builder) {
				b.Output("z", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(n, n)...), b.Input("y", ir.F32, ir.Dims(n, n)...)))
			})
			if err != nil {
				b.Fatal(err)
			}
			step := bind(b, compileGraphs(b, ir.Entry{Name: "run", Graph: g}), "run",
				map[string]native.Tensor{"x": native.Float32s(x, n, n), "y": native.Float32s(y, n, n)},
				map[string]native.Tensor{"z": native.Float32s(z, n, n)})
			for b.Loop() {
				runBound(b, step)
			}
			report(b)
		})
		b.Run(fmt.Sprintf("gonum/%d", n), func(b *testing.B) {
			for b.Loop() {
				gonum.Implementation{}.Sgemm(blas.NoTrans, blas.NoTrans, n, n, n, 1, x, n, y, n, 0, z, n)
			}
			report(b)
		})
	}
}

// BenchmarkCumSum is a running sum of rows, from one long one to many short ones.
func BenchmarkCumSum(b *testing.B) {
	for _, dims := range [][2]int{{1, 100_000}, {8, 20_000}, {64, 4096}, {4096, 64}} {
		rows, n := dims[0], dims[1]
		b.Run(fmt.Sprintf("%dx%d", rows, n), func(b *testing.B) {
			g, err := ir.Build("cumsum", func(b *ir.Builder) {
				b.Output("y", ops.CumSum(b, b.Input("x", ir.F32, ir.Dims(rows, n)...), ops.CumSumAttrs{Axis: 1}))
			})
			if err != nil {
				b.Fatal(err)
			}
			step := bind(b, compileGraphs(b, ir.Entry{Name: "run", Graph: g}), "run",
				map[string]native.Tensor{"x": native.Float32s(random(rows*n), rows, n)},
				map[string]native.Tensor{"y": native.Zeros(ir.F32, rows, n)})
			for b.Loop() {
				runBound(b, step)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows*n), "ns/element")
		})
	}
}

// mlpStep returns a bound Adam step of a ReLU network.
func mlpStep(tb testing.TB, batch int, layers ...int) native.Bound {
	tb.Helper()
	loss, err := ir.Build("mlp", func(b *ir.Builder) {
		h := b.Input("x", ir.F32, ir.Dims(batch, layers[0])...)
		labels := b.Input("labels", ir.I32, ir.Dims(batch)...)
		for i, n := range layers[1:] {
			if i > 0 {
				h = ops.Relu(b, h)
			}
			h = ops.Linear(b, h, b.Param(fmt.Sprint("w", i), ir.F32, ir.Dims(layers[i], n)...), b.Param(fmt.Sprint("b", i), ir.F32, ir.Dims(n)...))
		}
		b.Output("loss", ops.CrossEntropyMean(b, h, labels))
	})
	if err != nil {
		tb.Fatal(err)
	}
	step, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Schedule: optim.Constant(1e-3)})
	if err != nil {
		tb.Fatal(err)
	}
	p := compileGraphs(tb, ir.Entry{Name: "step", Graph: step})
	for i := range layers[1:] {
		if err := p.Set(context.Background(), fmt.Sprint("w", i), native.Float32s(random(layers[i]*layers[i+1]), layers[i], layers[i+1])); err != nil {
			tb.Fatal(err)
		}
	}
	return bind(tb, p, "step", map[string]native.Tensor{
		"x": native.Float32s(random(batch*layers[0]), batch, layers[0]), "labels": native.Int32s(make([]int32, batch)),
	}, map[string]native.Tensor{"loss": native.Zeros(ir.F32)})
}

// BenchmarkMLPStep is a training step with Adam: forward, backward, update.
func BenchmarkMLPStep(b *testing.B) {
	for _, c := range []struct {
		batch  int
		layers []int
	}{{128, []int{64, 64, 10}}, {128, []int{784, 512, 512, 10}}} {
		b.Run(fmt.Sprint("rlx/", c.layers), func(b *testing.B) {
			step := mlpStep(b, c.batch, c.layers...)
			b.ReportAllocs()
			for b.Loop() {
				runBound(b, step)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
		b.Run(fmt.Sprint("products by gonum alone/", c.layers), func(b *testing.B) {
			products := mlpProducts(c.batch, c.layers)
			for b.Loop() {
				products()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// mlpProducts returns only the matrix products of a training step.
func mlpProducts(batch int, layers []int) func() {
	var run []func()
	for i, n := range layers[1:] {
		k := layers[i]
		x, w, y := random(batch*k), random(k*n), random(batch*n)
		out, dw, dx := make([]float32, batch*n), make([]float32, k*n), make([]float32, batch*k)
		var g gonum.Implementation
		run = append(run, func() {
			g.Sgemm(blas.NoTrans, blas.NoTrans, batch, n, k, 1, x, k, w, n, 0, out, n)
			g.Sgemm(blas.Trans, blas.NoTrans, k, n, batch, 1, x, k, y, n, 0, dw, n)
			if i > 0 {
				g.Sgemm(blas.NoTrans, blas.Trans, batch, k, n, 1, y, n, w, n, 0, dx, k)
			}
		})
	}
	return func() {
		for _, f := range run {
			f()
		}
	}
}
