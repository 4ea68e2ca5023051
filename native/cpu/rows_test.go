package cpu_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// rowsGraph reduces rows in the ways that kernels distinguish: one accumulator, two, one
// reduction after the other, and stored lanes.
func rowsGraph(tb testing.TB, rows, n int) ir.Entry {
	return graph(tb, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(rows, n)...)
		b.Output("sum", ops.ReduceSum(b, x, 1))
		b.Output("max", ops.ReduceMax(b, x, 1))
		b.Output("place", ops.Convert(b, ops.ArgMax(b, x, 1), ir.F32))
		b.Output("logsumexp", ops.LogSumExp(b, x, 1))
		b.Output("softmax", ops.Softmax(b, x, 1))
		b.Output("norm", ops.LayerNorm(b, x, b.Input("scale", ir.F32, ir.N(n)), b.Input("bias", ir.F32, ir.N(n)), 1e-5))
	})
}

// TestRowsOfNeighbours sums windows of x, which have no remainder: the rows are of several runs.
func TestRowsOfNeighbours(t *testing.T) {
	for _, w := range [][2]int{{2, 2}, {3, 2}, {2, 5}, {1, 4}} {
		const high, wide, channels = 5, 6, 12
		dims := []int{high, w[0], wide, w[1], channels}
		g := build(t, func(b *ir.Builder) {
			x := ops.Transpose(b, b.Input("x", ir.F32, ir.Dims(dims...)...), 0, 2, 1, 3, 4)
			b.Output("y", ops.ReduceSum(b, ops.Reshape(b, x, ir.Dims(high*wide, w[0]*w[1]*channels)...), 1))
		})
		x, want := make([]float32, high*w[0]*wide*w[1]*channels), make([]float32, high*wide)
		for i := range x {
			x[i] = float32(i % 101)
			row, column := i/(channels*w[1]*wide*w[0]), i/(channels*w[1])%wide
			want[row*wide+column] += x[i]
		}
		got := floatsOf(t, g, map[string]native.Tensor{"x": native.Float32s(x, dims...)}, high*wide)
		if !slices.Equal(got, want) {
			t.Errorf("windows of %d: %v, want %v", w, got, want)
		}
	}
}

// TestRowsOfEveryLength has rows that are multiples of vectors and blocks, and rows with a
// remainder. The expected values are computed in float64.
func TestRowsOfEveryLength(t *testing.T) {
	const rows = 3
	everyLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 65, 127, 128, 511, 512, 513, 1000, 1024, 4095, 4096, 4097, 4160, 9000} {
			x, scale, bias := random(rows*n), random(n), random(n)
			got := outputs(t, rowsGraph(t, rows, n), map[string]native.Tensor{
				"x": native.Float32s(x, rows, n), "scale": native.Float32s(scale, n), "bias": native.Float32s(bias, n),
			})
			for r := range rows {
				row := x[r*n : (r+1)*n]
				largest := slices.Max(row)
				sum, squares, exps := 0.0, 0.0, 0.0
				for _, v := range row {
					sum, exps = sum+float64(v), exps+math.Exp(float64(v))
				}
				mean := sum / float64(n)
				for _, v := range row {
					squares += (float64(v) - mean) * (float64(v) - mean)
				}
				near(t, fmt.Sprint("sum of ", n), r, got["sum"][r], sum, 1e-5)
				near(t, fmt.Sprint("max of ", n), r, got["max"][r], float64(largest), 0)
				near(t, fmt.Sprint("place of ", n), r, got["place"][r], float64(slices.Index(row, largest)), 0)
				near(t, fmt.Sprint("logsumexp of ", n), r, got["logsumexp"][r], math.Log(exps), 1e-5)
				for j, v := range row {
					at := r*n + j
					near(t, fmt.Sprint("softmax of ", n), at, got["softmax"][at], math.Exp(float64(v))/exps, 1e-6)
					normal := (float64(v) - mean) / math.Sqrt(squares/float64(n)+1e-5)
					near(t, fmt.Sprint("norm of ", n), at, got["norm"][at], normal*float64(scale[j])+float64(bias[j]), 1e-4)
				}
			}
		}
	})
}

// TestSpecialNumbersInRows puts one special number at every position of a row.
func TestSpecialNumbersInRows(t *testing.T) {
	const n = 70 // vectors and a remainder
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	sum := func(x float32) float32 { return x + (n - 1) }
	everyLevel(t, func(t *testing.T) {
		for _, c := range []struct{ special, sum, max float32 }{
			{nan, nan, nan}, {inf, inf, inf}, {-inf, -inf, 1}, {0x1p-149, sum(0), 1}, {-0x1p-149, sum(0), 1}, {math.MaxFloat32, math.MaxFloat32, math.MaxFloat32},
		} {
			x, scale, bias := make([]float32, n*n), random(n), random(n)
			for i := range x {
				x[i] = 1
			}
			for i := range n {
				x[i*n+i] = c.special
			}
			got := outputs(t, rowsGraph(t, n, n), map[string]native.Tensor{
				"x": native.Float32s(x, n, n), "scale": native.Float32s(scale, n), "bias": native.Float32s(bias, n),
			})
			for i := range n {
				if s := got["sum"][i]; s != c.sum && !(s != s && c.sum != c.sum) {
					t.Errorf("%v at %d: the sum is %v, not %v", c.special, i, s, c.sum)
				}
				if m := got["max"][i]; m != c.max && !(m != m && c.max != c.max) {
					t.Errorf("%v at %d: the maximum is %v, not %v", c.special, i, m, c.max)
				}
				if p := got["softmax"][i*n+i]; c.special == -inf && p != 0 || c.special != c.special && p == p {
					t.Errorf("%v at %d: the softmax there is %v", c.special, i, p)
				}
			}
		}
	})
}

// TestSubnormalsAreKept adds numbers that a flush to zero would make 0.
func TestSubnormalsAreKept(t *testing.T) {
	const n = 100
	x := make([]float32, n)
	for i := range x {
		x[i] = 0x1p-149
	}
	everyLevel(t, func(t *testing.T) {
		got := outputs(t, graph(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.N(n))
			b.Output("sum", ops.ReduceSum(b, x, 0))
			b.Output("twice", ops.Add(b, x, x))
		}), map[string]native.Tensor{"x": native.Float32s(x, n)})
		if got["sum"][0] != n*0x1p-149 || got["twice"][n-1] != 0x1p-148 {
			t.Errorf("the sum is %v, twice the last %v", got["sum"][0], got["twice"][n-1])
		}
	})
}

// digestEnv makes the test binary print only the digest of results.
const digestEnv = "RLX_TEST_DIGEST"

// emulatorEnv names a program that runs the test binary, such as an emulator.
const emulatorEnv = "RLX_TEST_EMULATOR"

// TestCoresDoNotChangeTheResult compares the bits of results on one, two and seven cores, in an emulator, where
// each takes long, on one and seven.
func TestCoresDoNotChangeTheResult(t *testing.T) {
	if os.Getenv(digestEnv) != "" {
		fmt.Printf("digest %x\n", resultDigest(t))
		return
	}
	digests, counts := map[string]string{}, []string{"1", "7", "2"}
	again := []string{os.Args[0], "-test.run=^TestCoresDoNotChangeTheResult$"}
	if emulator := os.Getenv(emulatorEnv); emulator != "" {
		again, counts = append([]string{emulator}, again...), counts[:2]
	}
	for _, cores := range counts {
		cmd := exec.Command(again[0], again[1:]...)
		cmd.Env = append(os.Environ(), digestEnv+"=1", "GOMAXPROCS="+cores)
		out, err := cmd.CombinedOutput()
		_, digest, ok := strings.Cut(string(out), "digest ")
		if err != nil || !ok {
			t.Fatalf("on %s cores: %v\n%s", cores, err, out)
		}
		digests[cores], _, _ = strings.Cut(digest, "\n")
	}
	for _, digest := range digests {
		if digest != digests["1"] {
			t.Errorf("digests by cores: %v", digests)
			break
		}
	}
}

// resultDigest computes programs that are split into chunks: rows, columns, products and
// convolutions with their gradients.
func resultDigest(t *testing.T) [32]byte {
	hash := sha256.New()
	add := func(values map[string][]float32) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			_ = binary.Write(hash, binary.LittleEndian, values[name])
		}
	}
	const rows, n = 300, 777
	add(outputs(t, rowsGraph(t, rows, n), map[string]native.Tensor{
		"x": native.Float32s(random(rows*n), rows, n), "scale": native.Float32s(random(n), n), "bias": native.Float32s(random(n), n),
	}))
	for _, g := range []*ir.Graph{square(t, 300), unary(t, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 0) }, 500, 300), convBackward(t, 8)} {
		p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
		in, out := tensorsOf(t, p)
		runBound(t, bind(t, p, "run", in, out))
		values := map[string][]float32{}
		for name, x := range out {
			values[name], _ = x.Float32s()
		}
		add(values)
	}
	return [32]byte(hash.Sum(nil))
}
