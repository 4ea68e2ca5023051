//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cuda"
)

// Products large enough for warp-group multiply-adds, of integers so small that nothing is rounded,
// equal integer products: for each type and layout, with partial tiles, with epilogues, and split.
func TestGPUMultipliesByWarpGroups(t *testing.T) {
	gpu(t)
	b := cuda.With(loop.NoProducts)
	if !strings.Contains(b.Info().Description, "compute capability 9.0") {
		backendtest.Require(t, "wgmma", errors.New("multiply-adds of warp groups are of compute capability 9.0"))
	}
	for _, s := range []struct{ m, n, k int }{{1000, 520, 1032}, {1003, 517, 1031}, {256, 128, 16384}, {18000, 128, 192}, {16, 1032, 4096}, {61, 2056, 1024}} {
		for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F32} {
			for _, layout := range []string{"nn", "tn", "nt", "tt"} {
				t.Run(fmt.Sprintf("%s %dx%dx%d %s", d, s.m, s.n, s.k, layout), func(t *testing.T) {
					checkProduct(t, b, d, s.m, s.n, s.k, layout)
				})
			}
		}
	}
}

// Products of few columns and terms, whose operand along the columns stays in shared memory, do the same: of whole vectors
// and not, and of more row tiles than workgroups run at once.
func TestGPUMultipliesByStationaryOperands(t *testing.T) {
	gpu(t)
	for name, b := range map[string]native.Backend{"warp groups": cuda.With(loop.NoProducts), "warps": cuda.ByWarps()} {
		for _, s := range []struct{ m, n, k int }{{40000, 32, 32}, {9001, 33, 18}, {300000, 10, 20}, {8192, 128, 31}} {
			for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F32} {
				for _, layout := range []string{"nn", "nt"} {
					t.Run(fmt.Sprintf("%s %s %dx%dx%d %s", name, d, s.m, s.n, s.k, layout), func(t *testing.T) {
						checkProduct(t, b, d, s.m, s.n, s.k, layout)
					})
				}
			}
		}
	}
}

// Warps that multiply by themselves, as on devices without warp groups, do the same, where
// products are large enough for them.
func TestGPUMultipliesByWarps(t *testing.T) {
	gpu(t)
	b := cuda.ByWarps()
	for _, s := range []struct{ m, n, k int }{{1500, 1040, 2048}, {1503, 1037, 2047}, {512, 256, 16384}} {
		for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F32} {
			for _, layout := range []string{"nn", "tn", "nt", "tt"} {
				t.Run(fmt.Sprintf("%s %dx%dx%d %s", d, s.m, s.n, s.k, layout), func(t *testing.T) {
					checkProduct(t, b, d, s.m, s.n, s.k, layout)
				})
			}
		}
	}
}

func checkProduct(t *testing.T, b native.Backend, d ir.DType, m, n, k int, layout string) {
	t.Helper()
	p := productOf(t, b, d, m, n, k, layout, native.Options{TF32: true})
	if !multiplies(p) {
		t.Fatal("no multiply-adds")
	}
	checkResults(t, p, d, m, n, k, layout)
}

// productOf compiles a product.
func productOf(t *testing.T, b native.Backend, d ir.DType, m, n, k int, layout string, o native.Options) native.Program {
	t.Helper()
	return compileWith(t, b, productGraph(t, d, m, n, k, layout), o)
}

// productGraph is a product of m×k times k×n, each as stored or transposed, with an epilogue.
func productGraph(t *testing.T, d ir.DType, m, n, k int, layout string) *ir.Graph {
	t.Helper()
	g, err := ir.Build("product", func(b *ir.Builder) {
		operand := func(name string, r, c int, turned bool) ir.Value {
			if !turned {
				return b.Input(name, d, ir.Dims(r, c)...)
			}
			return ops.Transpose(b, b.Input(name, d, ir.Dims(c, r)...), 1, 0)
		}
		x, y := operand("x", m, k, layout[0] == 't'), operand("y", k, n, layout[1] == 't')
		z := ops.MatMul(b, x, y)
		b.Output("z", ops.Relu(b, ops.Convert(b, z, ir.F32)))
	})
	must(t, err)
	return g
}

// checkResults runs a product of small whole numbers and looks at 64 of its rows.
func checkResults(t *testing.T, p native.Program, d ir.DType, m, n, k int, layout string) {
	t.Helper()
	x, y := sparse(1, m*k), sparse(2, k*n)
	in := map[string]native.Tensor{"x": tensor(d, x, m, k, layout[0] == 't'), "y": tensor(d, y, k, n, layout[1] == 't')}
	out := native.Zeros(ir.F32, m, n)
	bound, err := p.Bind(context.Background(), "step", in, map[string]native.Tensor{"z": out})
	must(t, err)
	must(t, bound.Start(context.Background()))
	must(t, bound.Wait(context.Background()))
	got, err := out.Float32s()
	must(t, err)
	for i := range 64 {
		row := i * (m - 1) / 63
		for column := range n {
			want := 0
			for j := range k {
				want += int(x[row*k+j]) * int(y[j*n+column])
			}
			if got[row*n+column] != float32(max(want, 0)) {
				t.Fatalf("(%d, %d) is %g, want %d", row, column, got[row*n+column], max(want, 0))
			}
		}
	}
}

// sparse returns numbers from -1 to 1, most of them 0, so that sums stay small.
func sparse(seed uint64, n int) []int8 {
	rng := rand.New(rand.NewPCG(seed, 0))
	out := make([]int8, n)
	for i := range out {
		if rng.IntN(8) == 0 {
			out[i] = int8(rng.IntN(3) - 1)
		}
	}
	return out
}

// tensor returns a matrix of the given rows and columns, transposed if turned.
func tensor(d ir.DType, x []int8, rows, columns int, turned bool) native.Tensor {
	out := native.Zeros(d, rows, columns)
	if turned {
		out = native.Zeros(d, columns, rows)
	}
	for i, v := range x {
		at := i
		if turned {
			at = i%columns*rows + i/columns
		}
		bits := d.FloatBits(float64(v))
		for j := range d.Size() {
			out.Data[at*d.Size()+j] = byte(bits >> (8 * j))
		}
	}
	return out
}

// multiplies reports whether kernels of a program have multiply-adds.
func multiplies(p native.Program) bool {
	text := strings.Join(cuda.Sources(p), "")
	return strings.Contains(text, "wgmma.mma_async") || strings.Contains(text, "mma.sync")
}

// f32 products by our own kernels equal integer products, with partial tiles: operands are copied
// during the arithmetic, in wide tiles and in others.
func TestGPUPipelinesProducts(t *testing.T) {
	gpu(t)
	for _, s := range []struct{ m, n, k int }{{4092, 4092, 2056}, {1000, 520, 2056}} {
		for _, layout := range []string{"nn", "tn", "nt", "tt"} {
			t.Run(fmt.Sprintf("%dx%dx%d %s", s.m, s.n, s.k, layout), func(t *testing.T) {
				p := productOf(t, cuda.With(loop.NoProducts), ir.F32, s.m, s.n, s.k, layout, native.Options{})
				if !strings.Contains(strings.Join(cuda.Sources(p), ""), "copy_async") {
					t.Fatal("no copies beside the arithmetic")
				}
				checkResults(t, p, ir.F32, s.m, s.n, s.k, layout)
			})
		}
	}
}
