package cpu_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// dividedShapes have few results over many points: channels of images, where a rest of the positions remains or not, a
// whole array, and a few long rows.
var dividedShapes = []struct {
	dims, axes []int
}{
	{[]int{25088, 24}, []int{0}},
	{[]int{25087, 10}, []int{0}}, // a prime number
	{[]int{8, 28, 31, 60}, []int{0, 1, 2}},
	{[]int{8, 60, 784}, []int{0, 2}},
	{[]int{300000}, []int{0}},
	{[]int{3, 100003}, []int{1}},
	{[]int{131, 3, 20, 41}, []int{0, 3}},
}

// normalised subtracts the mean and divides by the square root of the variance, so that there are two reductions in turn and a
// map over all points.
func normalised(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	mean := ops.KeepDims(b, ops.Mean, x, axes...)
	d := ops.Sub(b, x, mean)
	return ops.Mul(b, d, ops.Rsqrt(b, ops.KeepDims(b, ops.Mean, ops.Square(b, d), axes...)))
}

// TestDividedReductions compares reductions that workers share with sums in f64.
func TestDividedReductions(t *testing.T) {
	for _, c := range dividedShapes {
		for _, dtype := range []ir.DType{ir.F32, ir.F64} {
			t.Run(fmt.Sprint(dtype, c.dims), func(t *testing.T) {
				g := build(t, func(b *ir.Builder) {
					x := b.Input("x", dtype, ir.Dims(c.dims...)...)
					b.Output("y", normalised(b, x, c.axes...))
					b.Output("sum", ops.ReduceSum(b, x, c.axes...))
					b.Output("most", ops.ReduceMax(b, x, c.axes...))
				})
				x, place, count := dividedInput(c.dims, c.axes)
				sum, square, most := make([]float64, count), make([]float64, count), make([]float64, count)
				for i, v := range x {
					sum[place[i]] += v
					most[place[i]] = max(most[place[i]], v)
				}
				n := float64(len(x) / count)
				for i, v := range x {
					square[place[i]] += (v - sum[place[i]]/n) * (v - sum[place[i]]/n)
				}
				got := runDivided(t, g, dtype, x, c.dims)
				for i, v := range x {
					want := (v - sum[place[i]]/n) / math.Sqrt(square[place[i]]/n)
					if d := math.Abs(got["y"][i] - want); !(d <= 2e-6) {
						t.Fatalf("normalised %d is %g, want %g", i, got["y"][i], want)
					}
				}
				for i := range sum {
					if !(math.Abs(got["sum"][i]-sum[i]) <= 1e-6*math.Abs(sum[i])) || got["most"][i] != most[i] {
						t.Fatalf("result %d is %g and %g, want %g and %g", i, got["sum"][i], got["most"][i], sum[i], most[i])
					}
				}
			})
		}
	}
}

// TestDividedArgMax finds the first of equal maxima, which are in several parts.
func TestDividedArgMax(t *testing.T) {
	const n, width, first = 200_000, 3, 71_234
	x := make([]float32, n*width)
	for i := first; i < n; i += 997 {
		for c := range width {
			x[(i-c)*width+c] = 5
		}
	}
	g := build(t, func(b *ir.Builder) {
		y := b.Input("x", ir.F32, ir.Dims(n, width)...)
		b.Output("at", ops.Convert(b, ops.ArgMax(b, y, 0), ir.F32))
	})
	got := outputsOf[float32](t, ir.Entry{Name: "run", Graph: g}, native.Float32s(x, n, width))["at"]
	if want := []float32{first, first - 1, first - 2}; !slices.Equal(got, want) {
		t.Errorf("the maxima are at %v, want %v", got, want)
	}
}

// dividedInput returns numbers that f32 has, and the place of each among the results, of which there are count.
func dividedInput(dims, axes []int) (x []float64, place []int, count int) {
	n := 1
	for _, d := range dims {
		n *= d
	}
	x, place = make([]float64, n), make([]int, n)
	for i := range x {
		x[i] = float64((i*7919+i/512)%1013)/8 + 1
		at, by := i, 1
		count = 1
		for k := len(dims) - 1; k >= 0; k-- {
			reduced := false
			for _, a := range axes {
				reduced = reduced || a == k
			}
			if !reduced {
				place[i] += at % dims[k] * by
				by *= dims[k]
			}
			at /= dims[k]
		}
		count = by
	}
	return x, place, count
}

// runDivided returns the outputs of a graph.
func runDivided(t *testing.T, g *ir.Graph, dtype ir.DType, x []float64, dims []int) map[string][]float64 {
	t.Helper()
	e := ir.Entry{Name: "run", Graph: g}
	if dtype == ir.F64 {
		return outputsOf[float64](t, e, native.Float64s(x, dims...))
	}
	short, got := make([]float32, len(x)), map[string][]float64{}
	for i, v := range x {
		short[i] = float32(v)
	}
	for name, list := range outputsOf[float32](t, e, native.Float32s(short, dims...)) {
		for _, v := range list {
			got[name] = append(got[name], float64(v))
		}
	}
	return got
}

func TestReductionsAreShared(t *testing.T) {
	for _, c := range dividedShapes {
		checkShared(t, fmt.Sprint(c.dims), build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(c.dims...)...)
			b.Output("y", normalised(b, x, c.axes...))
		}))
	}
}

// TestSumsOfShuffledChannelsAreDivided adds products of channels with those of a shuffle, whose places are quotients and remainders.
func TestSumsOfShuffledChannelsAreDivided(t *testing.T) {
	const n, groups, width = 12544, 3, 20
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(n, groups*width)...)
		y := ops.Transpose(b, ops.Reshape(b, x, ir.Dims(n, groups, width)...), 0, 2, 1)
		b.Output("sum", ops.ReduceSum(b, ops.Mul(b, x, ops.Reshape(b, y, ir.Dims(n, groups*width)...)), 0))
	})
	x, want := make([]float32, n*groups*width), make([]float32, groups*width)
	for i := range x {
		x[i] = float32(i*7919%5 - i*31%3)
	}
	for i := range n {
		row := x[i*groups*width:][:groups*width]
		for c := range row {
			want[c] += row[c] * row[c%groups*width+c/groups]
		}
	}
	if got := outputsOf[float32](t, ir.Entry{Name: "run", Graph: g}, native.Float32s(x, n, groups*width))["sum"]; !slices.Equal(got, want) {
		t.Errorf("sums %v, want %v", got, want)
	}
	checkShared(t, "shuffled channels", g)
}

// checkShared checks that all nests of some work have chunks for four workers.
func checkShared(t *testing.T, name string, g *ir.Graph) {
	t.Helper()
	work, chunks, err := cpu.NestChunks(g)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range work {
		if chunks[i] < min(4, int(w/40e3)) && jit.Available() {
			t.Errorf("%s: a nest of %g µs has %d chunks", name, w/1000, chunks[i])
		}
	}
}

// TestProductsAreShared checks that workers have about as much of products with few results, as the gradients of filters
// are.
func TestProductsAreShared(t *testing.T) {
	for _, c := range [][4]int{{3, 80, 20, 25088}, {1, 24, 240, 25088}, {1, 256, 256, 6272}, {3, 20, 80, 6272}, {3, 25088, 20, 80}, {1, 27, 24, 25088}, {1, 64, 64, 100352}} {
		for _, workers := range []int{2, 4, 8, 16} {
			if chunks, excess := cpu.DividedProduct(c[0], c[1], c[2], c[3], workers); excess > 0.25 {
				t.Errorf("%v on %d workers: %d chunks, one has %.0f %% more than the mean", c, workers, chunks, 100*excess)
			}
		}
	}
}
