package cpu_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestArgSortIsStable compares rows of many lengths, with few values so that many are equal,
// with the standard library's stable sort.
func TestArgSortIsStable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 47, 48, 300, 5000} {
		for _, distinct := range []int{1, 7, 1 << 30} {
			const rows = 3
			x := make([]float32, rows*n)
			wide := make([]int64, rows*n)
			for i := range x {
				x[i] = float32(r.IntN(distinct)) - float32(distinct/2)
				wide[i] = int64(x[i]) << 20
			}
			x[0], x[n] = float32(math.Inf(1)), float32(math.Inf(-1))
			g := build(t, func(b *ir.Builder) {
				b.Output("f32", ops.ArgSort(b, b.Input("x", ir.F32, ir.Dims(rows, n)...), ops.SortAttrs{Axis: 1}))
				b.Output("i64", ops.ArgSort(b, b.Input("wide", ir.I64, ir.Dims(rows, n)...), ops.SortAttrs{Axis: 1, Descending: true}))
			})
			out := map[string]native.Tensor{"f32": native.Zeros(ir.I32, rows, n), "i64": native.Zeros(ir.I32, rows, n)}
			runBound(t, bind(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), "run",
				map[string]native.Tensor{"x": native.Float32s(x, rows, n), "wide": native.Int64s(wide, rows, n)}, out))
			for row := range rows {
				sameOrder(t, out["f32"], row, n, func(a, b int32) bool { return x[row*n+int(a)] < x[row*n+int(b)] })
				sameOrder(t, out["i64"], row, n, func(a, b int32) bool { return wide[row*n+int(a)] > wide[row*n+int(b)] })
			}
		}
	}
}

// sameOrder compares a row of an order with that of a stable sort.
func sameOrder(t *testing.T, got native.Tensor, row, n int, less func(a, b int32) bool) {
	t.Helper()
	want := make([]int32, n)
	for i := range want {
		want[i] = int32(i)
	}
	slices.SortStableFunc(want, func(a, b int32) int {
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})
	order, err := got.Int32s()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order[row*n:(row+1)*n], want) {
		t.Errorf("row %d of %d is not in a stable order", row, n)
	}
}

// BenchmarkSort argsorts rows of f32.
func BenchmarkSort(b *testing.B) {
	for _, dims := range [][2]int{{4096, 32}, {32, 4096}, {1, 1 << 20}} {
		b.Run(native.Zeros(ir.F32, dims[0], dims[1]).String(), func(b *testing.B) {
			g := build(b, func(gb *ir.Builder) {
				gb.Output("y", ops.ArgSort(gb, gb.Input("x", ir.F32, ir.Dims(dims[0], dims[1])...), ops.SortAttrs{Axis: 1}))
			})
			step := bindAny(b, compileGraphs(b, ir.Entry{Name: "run", Graph: g}))
			for b.Loop() {
				runBound(b, step)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*dims[0]*dims[1]), "ns/element")
		})
	}
}

// TestTopKIsStable has k below and above the bound of insertion, rows with many equal values and rows in
// both orders.
func TestTopKIsStable(t *testing.T) {
	const rows, n = 4, 700
	r := rand.New(rand.NewPCG(5, 6))
	x := make([]float32, rows*n)
	for i := range n {
		x[i], x[n+i], x[2*n+i], x[3*n+i] = float32(i), float32(-i), float32(r.IntN(9)), r.Float32()
	}
	// Equal sorts would be one: each k has a graph.
	for _, k := range []int{1, 5, 64, 65, 400, n} {
		sameFirst(t, x, rows, n, k, build(t, func(b *ir.Builder) {
			_, order := ops.TopK(b, b.Input("x", ir.F32, ir.Dims(rows, n)...), ops.TopKAttrs{K: k, Axis: 1})
			b.Output("order", order)
		}))
	}
	const many, few = 175, 16 // on several workers
	sameFirst(t, x, many, few, few/2, build(t, func(b *ir.Builder) {
		_, order := ops.TopK(b, b.Input("x", ir.F32, ir.Dims(many, few)...), ops.TopKAttrs{K: few / 2, Axis: 1})
		b.Output("order", order)
	}))
}

// sameFirst compares the first k elements of the orders of rows, the largest first, with those of a stable sort.
func sameFirst(t *testing.T, x []float32, rows, n, k int, g *ir.Graph) {
	t.Helper()
	order, err := rerun(t, g, native.Float32s(x, rows, n))["order"].Int32s()
	if err != nil {
		t.Fatal(err)
	}
	for row := range rows {
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(x[row*n+int(b)], x[row*n+int(a)]) })
		if got := order[row*k:][:k]; !slices.Equal(got, want[:k]) {
			t.Errorf("the first %d of row %d are %v, not %v", k, row, got, want[:k])
		}
	}
}
