//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cuda"
)

// terms is the number of terms of the sums of the first product, enough for the library to have a workspace.
const terms = 512

// twoProducts is a chain of products, the second with an epilogue: it sums 5×terms times terms×6 times 6×9.
func twoProducts(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("products", func(b *ir.Builder) {
		x, y, z := b.Input("x", ir.F32, ir.Dims(5, terms)...), b.Input("y", ir.F32, ir.Dims(6, terms)...), b.Param("z", ir.F32, ir.Dims(6, 9)...)
		xy := ops.MatMul(b, x, ops.Transpose(b, y, 1, 0))
		b.Output("sum", ops.ReduceSum(b, ops.Relu(b, ops.MatMul(b, xy, z))))
		b.Output("xy", xy)
	})
	must(t, err)
	return g
}

// runProducts runs them with factors of ones but for the first row of x, and returns
// the sum.
func runProducts(t *testing.T, p native.Program) float32 {
	t.Helper()
	ones := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = 1
		}
		return out
	}
	x := ones(5 * terms)
	copy(x, make([]float32, terms))
	must(t, p.Set(context.Background(), "z", native.Float32s(ones(54), 6, 9)))
	r, err := p.Run(context.Background(), "step", map[string]native.Tensor{"x": native.Float32s(x, 5, terms), "y": native.Float32s(ones(6*terms), 6, terms)})
	must(t, err)
	out, err := r.Wait(context.Background())
	must(t, err)
	sum, err := out["sum"].Float32s()
	must(t, err)
	return sum[0]
}

// Four rows are not zeros, of 9 elements of terms·6.
const sumOfProducts = 4 * 9 * terms * 6

func TestProductsOfCuBLASLtAreInTheGraph(t *testing.T) {
	gpu := fake.Install(t, true)
	fake.Products(t, gpu.Dir, 13)
	b := cuda.With(loop.AllProducts)
	p := compile(t, b, twoProducts(t))
	if n := cuda.Calls(p); n != 2 {
		t.Fatalf("%d products are left to cuBLASLt, not 2", n)
	}
	if d := b.Info().Description; !strings.HasSuffix(d, "cuBLASLt 13.1.0") {
		t.Errorf("the device is %s", d)
	}
	built := gpu.Calls(t)
	for call, want := range map[string]int{"cublasLtCreate": 1, "cublasLtMatmulAlgoGetHeuristic": 2, "product 69: 1 times 6 5 512": 1} {
		if n := len(slices.DeleteFunc(slices.Clone(built), func(c string) bool { return c != call })); n != want {
			t.Errorf("building makes %d calls of %s, not %d: all products are computed once before the graph is captured", n, call, want)
		}
	}
	if sum := runProducts(t, p); sum != sumOfProducts {
		t.Errorf("the sum is %g, not %d", sum, sumOfProducts)
	}
	calls := gpu.Calls(t)
	at := slices.Index(calls, "cuGraphLaunch")
	if at < 0 || !slices.Contains(calls[at:], "product 69: 1 times 6 5 512") || !slices.Contains(calls[at:], "product 69: 1 times 9 5 6") || slices.Contains(calls, "cublasLtMatmul") {
		t.Errorf("a run makes the calls\n%s", strings.Join(calls, "\n"))
	}
	if fills := slices.DeleteFunc(slices.Clone(calls), func(c string) bool { return c != "run k_fill 1 1 1" }); len(fills) != 1 || slices.Contains(calls[at:], "clear 64") {
		t.Errorf("the library's workspace is not cleared by kernels:\n%s", strings.Join(calls, "\n"))
	}
	compile(t, b, twoProducts(t))
	if slices.Contains(gpu.Calls(t), "cublasLtMatmulAlgoGetHeuristic") {
		t.Error("what is known of a product is asked for again")
	}
}

// A driver that does not let graphs be changed keeps the nodes that fill memory.
func TestFailedGraphUpdateKeepsGraph(t *testing.T) {
	gpu := fake.Install(t, true)
	fake.Products(t, gpu.Dir, 13)
	t.Setenv("RLX_FAKE_FAIL", "cuGraphAddKernelNode 1")
	p := compile(t, cuda.With(loop.AllProducts), twoProducts(t))
	if sum := runProducts(t, p); sum != sumOfProducts {
		t.Errorf("the sum is %g, not %d", sum, sumOfProducts)
	}
	if calls := gpu.Calls(t); !slices.Contains(calls, "clear 64") || slices.Contains(calls, "run k_fill 1 1 1") {
		t.Errorf("the calls are\n%s", strings.Join(calls, "\n"))
	}
}

func TestWithoutCuBLASLtKernelsMultiply(t *testing.T) {
	for what, prepare := range map[string]func(t *testing.T, dir string){
		"no library":                  func(*testing.T, string) {},
		"one of an older version":     func(t *testing.T, dir string) { fake.Products(t, dir, 12) },
		"no algorithm":                func(t *testing.T, dir string) { fake.Products(t, dir, 13); t.Setenv("RLX_FAKE_PRODUCTS", "none") },
		"products that are too small": func(t *testing.T, dir string) { fake.Products(t, dir, 13) },
	} {
		t.Run(what, func(t *testing.T) {
			prepare(t, fake.Install(t, true).Dir)
			b := cuda.With(loop.AllProducts)
			if strings.HasPrefix(what, "products") {
				b = cuda.New(0)
			}
			p := compile(t, b, twoProducts(t))
			if n := cuda.Calls(p); n != 0 {
				t.Errorf("%d products are left to cuBLASLt", n)
			}
			if sum := runProducts(t, p); sum != sumOfProducts {
				t.Errorf("the sum is %g, not %d", sum, sumOfProducts)
			}
		})
	}
}

// A product that cuBLASLt has no algorithm for is computed by kernels, and no other: whether
// it fails when an algorithm is requested, or when it is called.
func TestOnlyProductsWithoutAlgorithmUseKernels(t *testing.T) {
	for _, when := range []string{"none", "later"} {
		t.Run(when, func(t *testing.T) {
			gpu := fake.Install(t, true)
			fake.Products(t, gpu.Dir, 13)
			t.Setenv("RLX_FAKE_PRODUCTS", when+" 9 5 6")
			b := cuda.With(loop.AllProducts)
			p := compile(t, b, twoProducts(t))
			if n := cuda.Calls(p); n != 1 {
				t.Errorf("%d products are left to cuBLASLt, not 1 of 2", n)
			}
			if sum := runProducts(t, p); sum != sumOfProducts {
				t.Errorf("the sum is %g, not %d", sum, sumOfProducts)
			}
			if calls := gpu.Calls(t); !slices.Contains(calls, "product 69: 1 times 6 5 512") {
				t.Errorf("the other product is not computed by cuBLASLt:\n%s", strings.Join(calls, "\n"))
			}
			if n := cuda.Calls(compile(t, b, twoProducts(t))); n != 1 {
				t.Errorf("%d products of the next program are left to cuBLASLt", n)
			}
			if slices.Contains(gpu.Calls(t), "cublasLtMatmulAlgoGetHeuristic") {
				t.Error("what is known of a product is asked for again")
			}
		})
	}
}

// A product without an algorithm that adds its bias is computed without the bias, which a kernel
// adds.
func TestBiasIsAddedByKernelIfUnsupported(t *testing.T) {
	fake.Products(t, fake.Install(t, true).Dir, 13)
	g, err := ir.Build("dense", func(b *ir.Builder) {
		x, w, bias := b.Input("x", ir.F32, ir.Dims(5, 7)...), b.Param("w", ir.F32, ir.Dims(7, 6)...), b.Param("bias", ir.F32, ir.N(6))
		b.Output("y", ops.Add(b, ops.MatMul(b, x, w), ops.BroadcastInDim(b, bias, ir.Dims(5, 6), []int{1})))
	})
	must(t, err)
	for refused, kernels := range map[string]int{"": 0, "bias": 1} {
		t.Setenv("RLX_FAKE_PRODUCTS", refused)
		p := compile(t, cuda.With(loop.AllProducts), g)
		if n, k := cuda.Calls(p), len(cuda.Sources(p)); n != 1 || k != kernels {
			t.Errorf("refusing %q: %d products are left to cuBLASLt and %d kernels are behind it, not 1 and %d", refused, n, k, kernels)
		}
		w, bias, x := make([]float32, 42), []float32{1, 2, 3, 4, 5, 6}, make([]float32, 35)
		for i := range w {
			w[i] = float32(i % 5)
		}
		for i := range x {
			x[i] = float32(i % 3)
		}
		must(t, p.Set(t.Context(), "w", native.Float32s(w, 7, 6)))
		must(t, p.Set(t.Context(), "bias", native.Float32s(bias)))
		r, err := p.Run(context.Background(), "step", map[string]native.Tensor{"x": native.Float32s(x, 5, 7)})
		must(t, err)
		out, err := r.Wait(context.Background())
		must(t, err)
		y, err := out["y"].Float32s()
		must(t, err)
		for i, got := range y {
			want := bias[i%6]
			for k := range 7 {
				want += x[i/6*7+k] * w[k*6+i%6]
			}
			if got != want {
				t.Fatalf("refusing %q: (%d, %d) is %g, not %g", refused, i/6, i%6, got, want)
			}
		}
	}
}

func TestAProductThatFailsIsNamed(t *testing.T) {
	fake.Products(t, fake.Install(t, false).Dir, 13)
	t.Setenv("RLX_FAKE_PRODUCTS", "7")
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: twoProducts(t)})
	must(t, err)
	_, err = cuda.With(loop.AllProducts).Compile(context.Background(), m, native.Options{})
	if !errors.Is(err, native.ErrDevice) || errors.Is(err, native.ErrLost) || !strings.Contains(err.Error(), "product: cublasLtMatmul: CUBLAS_STATUS_INVALID_VALUE (7)") {
		t.Errorf("error %v", err)
	}
}

// Products of integers so small that nothing is rounded equal integer products, for each type and
// layout, with epilogues.
func TestGPUMultipliesByCuBLASLt(t *testing.T) {
	gpu(t)
	b := cuda.With(loop.AllProducts)
	if !strings.Contains(b.Info().Description, "cuBLASLt") {
		backendtest.Require(t, "cublaslt", errors.New("the library is not installed"))
	}
	for _, s := range []struct{ m, n, k int }{{1000, 520, 1032}, {1003, 517, 1031}} {
		for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F32} {
			for _, layout := range []string{"nn", "tn", "nt", "tt"} {
				for _, tf32 := range []bool{false, true} {
					p := productOf(t, b, d, s.m, s.n, s.k, layout, native.Options{TF32: tf32})
					if n := cuda.Calls(p); n != 1 {
						t.Fatalf("%s %s: %d calls", d, layout, n)
					}
					checkResults(t, p, d, s.m, s.n, s.k, layout)
				}
			}
		}
	}
}

// NaN stays NaN in a relu after a product of cuBLASLt, as in [ops.Relu]; nonpositive numbers become
// 0.
func TestGPUReluKeepsNaN(t *testing.T) {
	gpu(t)
	const m, n, k = 256, 384, 192
	graph := func(bias bool) *ir.Graph {
		g, err := ir.Build("relu", func(b *ir.Builder) {
			z := ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(m, k)...), b.Input("y", ir.F32, ir.Dims(k, n)...))
			if bias {
				z = ops.Add(b, z, ops.BroadcastInDim(b, b.Input("bias", ir.F32, ir.N(n)), ir.Dims(m, n), []int{1}))
			}
			b.Output("z", ops.Relu(b, z))
		})
		must(t, err)
		return g
	}
	x, y, bias := make([]float32, m*k), make([]float32, k*n), make([]float32, n)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	for i := range y {
		y[i] = float32(i%5) - 2
	}
	nan := float32(math.NaN())
	x[3*k+5], bias[7] = nan, nan // row 3, and column 7 if there is a bias
	in := map[string]native.Tensor{"x": native.Float32s(x, m, k), "y": native.Float32s(y, k, n), "bias": native.Float32s(bias)}
	for _, withBias := range []bool{false, true} {
		for _, tf32 := range []bool{false, true} {
			p := compileWith(t, cuda.With(loop.AllProducts), graph(withBias), native.Options{TF32: tf32})
			if n := cuda.Calls(p); n != 1 {
				t.Fatalf("%d products are left to cuBLASLt", n)
			}
			given := maps.Clone(in)
			if !withBias {
				delete(given, "bias")
			}
			r, err := p.Run(context.Background(), "step", given)
			must(t, err)
			out, err := r.Wait(context.Background())
			must(t, err)
			z, err := out["z"].Float32s()
			must(t, err)
			for i, v := range z {
				none := i/n == 3 || withBias && i%n == 7
				want := float32(0)
				for j := range k {
					want += x[i/n*k+j] * y[j*n+i%n]
				}
				if none && !math.IsNaN(float64(v)) || !none && v != max(want, 0) {
					t.Fatalf("bias %t, tf32 %t: (%d, %d) is %g, not %g; NaN %t", withBias, tf32, i/n, i%n, v, max(want, 0), none)
				}
			}
		}
	}
}
