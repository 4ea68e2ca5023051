package cpu_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// scatterGraph combines rows of u into those of x at the indices "at".
func scatterGraph(tb testing.TB, d ir.DType, rows, width, updates int, combine func(b *ir.Builder, x, at, u ir.Value, a ops.ScatterAttrs) ir.Value) *ir.Graph {
	return build(tb, func(b *ir.Builder) {
		x, u := b.Input("x", d, ir.Dims(rows, width)...), b.Input("u", d, ir.Dims(updates, width)...)
		at := b.Input("at", ir.I32, ir.Dims(updates, 1)...)
		b.Output("y", combine(b, x, at, u, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}}))
	})
}

// TestScatterOfRows compares rows of widths around that of a vector with a loop over the
// updates. Indices that are out of bounds are dropped. Half of the updates fall on few rows, whose sums are
// compensated, so that the bound is that of one rounding.
func TestScatterOfRows(t *testing.T) {
	const rows, updates = 300, 40_000
	at := make([]int32, updates)
	for i := range at {
		at[i] = int32(i*7919%(rows+20) - 10)
		if i%2 == 0 {
			at[i] = int32(i % 6 / 2)
		}
	}
	for _, width := range []int{1, 3, 16, 21, 64} {
		x, u := random(rows*width), random(updates*width)
		for name, c := range map[string]struct {
			combine func(b *ir.Builder, x, at, u ir.Value, a ops.ScatterAttrs) ir.Value
			plain   func(x, u float64) float64
		}{
			"add": {ops.ScatterAdd, func(x, u float64) float64 { return x + u }},
			"max": {ops.ScatterMax, math.Max},
			"min": {ops.ScatterMin, math.Min},
			"set": {ops.Scatter, func(_, u float64) float64 { return u }},
		} {
			t.Run(fmt.Sprint(name, width), func(t *testing.T) {
				want := make([]float64, len(x))
				for i := range x {
					want[i] = float64(x[i])
				}
				for i, row := range at {
					for w := 0; w < width && row >= 0 && row < rows; w++ {
						to := &want[int(row)*width+w]
						*to = c.plain(*to, float64(u[i*width+w]))
					}
				}
				out := map[string]native.Tensor{"y": native.Zeros(ir.F32, rows, width)}
				step := bind(t, compileGraphs(t, ir.Entry{Name: "run", Graph: scatterGraph(t, ir.F32, rows, width, updates, c.combine)}), "run", map[string]native.Tensor{
					"x": native.Float32s(x, rows, width), "u": native.Float32s(u, updates, width), "at": native.Int32s(at, updates, 1),
				}, out)
				for range 2 {
					runBound(t, step)
				}
				got, err := out["y"].Float32s()
				if err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if bound := 1e-5 * max(1, math.Abs(want[i])); !(math.Abs(float64(got[i])-want[i]) <= bound) {
						t.Fatalf("element %d is %g, not %g", i, got[i], want[i])
					}
				}
			})
		}
	}
}

// TestScatterOfShortRows combines rows of fewer numbers than a vector in all element types, at indices that are out of
// bounds, too.
func TestScatterOfShortRows(t *testing.T) {
	const rows, updates = 30, 90
	at := make([]int32, updates)
	for i := range at {
		at[i] = int32(i*7919%(rows+4) - 2)
	}
	for name, c := range map[string]struct {
		combine func(b *ir.Builder, x, at, u ir.Value, a ops.ScatterAttrs) ir.Value
		plain   func(x, u float32) float32
	}{
		"add": {ops.ScatterAdd, func(x, u float32) float32 { return x + u }},
		"mul": {ops.ScatterMul, func(x, u float32) float32 { return x * u }},
		"max": {ops.ScatterMax, func(x, u float32) float32 { return max(x, u) }},
		"min": {ops.ScatterMin, func(x, u float32) float32 { return min(x, u) }},
	} {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.I32, ir.U32, ir.I64, ir.U64, ir.I16} {
			for _, width := range []int{1, 2, 4, 7} {
				x, u := make([]float32, rows*width), make([]float32, updates*width)
				for i := range x {
					x[i] = float32(i%3 + 1)
				}
				for i := range u {
					u[i] = float32(i*31%4 + 1)
				}
				want := slices.Clone(x)
				for i, row := range at {
					for w := 0; w < width && row >= 0 && row < rows; w++ {
						to := &want[int(row)*width+w]
						*to = c.plain(*to, u[i*width+w])
					}
				}
				got := outputs(t, graph(t, func(b *ir.Builder) {
					x, u := b.Input("x", ir.F32, ir.Dims(rows, width)...), b.Input("u", ir.F32, ir.Dims(updates, width)...)
					y := c.combine(b, ops.Convert(b, x, d), b.Input("at", ir.I32, ir.Dims(updates, 1)...), ops.Convert(b, u, d), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
					b.Output("y", ops.Convert(b, y, ir.F32))
				}), map[string]native.Tensor{"x": native.Float32s(x, rows, width), "u": native.Float32s(u, updates, width), "at": native.Int32s(at, updates, 1)})
				for i, y := range got["y"] {
					if float32(y) != want[i] {
						t.Fatalf("%s of rows of %d %s: element %d is %g, want %g", name, width, d, i, y, want[i])
					}
				}
			}
		}
	}
}

// BenchmarkScatter adds rows to others in any order.
func BenchmarkScatter(b *testing.B) {
	const rows, updates = 5000, 50_000
	for _, width := range []int{1, 8, 32, 256} {
		b.Run(fmt.Sprint(width), func(b *testing.B) {
			at := make([]int32, updates)
			for i := range at {
				at[i] = int32(i * 7919 % rows)
			}
			step := bind(b, compileGraphs(b, ir.Entry{Name: "run", Graph: scatterGraph(b, ir.F32, rows, width, updates, ops.ScatterAdd)}), "run", map[string]native.Tensor{
				"x": native.Zeros(ir.F32, rows, width), "u": native.Float32s(random(updates*width), updates, width), "at": native.Int32s(at, updates, 1),
			}, map[string]native.Tensor{"y": native.Zeros(ir.F32, rows, width)})
			for b.Loop() {
				runBound(b, step)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*updates*width), "ns/element")
		})
	}
}

// TestScatterByPairsOfIndices adds many numbers at places of two indices each, every other one of which the rows copy before
// they are computed themselves.
func TestScatterByPairsOfIndices(t *testing.T) {
	const side, updates = 64, 1 << 14
	at, u := make([]int32, 2*updates), random(updates)
	want := make([]float64, side*side)
	for i := range updates {
		row, column := i*7919%(side+2)-1, i*31%side
		at[2*i], at[2*i+1] = int32(row), int32(column)
		if row >= 0 && row < side {
			want[row*side+column] += float64(u[i])
		}
	}
	everyLevel(t, func(t *testing.T) {
		got := outputs(t, graph(t, func(b *ir.Builder) {
			zero := ops.Const(b, ir.F32, 0, ir.Dims(side, side)...)
			at, u := b.Input("at", ir.I32, ir.Dims(updates, 2)...), b.Input("u", ir.F32, ir.N(updates))
			b.Output("y", ops.ScatterAdd(b, zero, at, u, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}}}))
		}), map[string]native.Tensor{"at": native.Int32s(at, updates, 2), "u": native.Float32s(u, updates)})
		for i, y := range got["y"] {
			near(t, "sum", i, y, want[i], 1e-5)
		}
	})
}
