package cpu_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestGatheredLoads computes with elements in the order of other axes, in reverse, some elements apart, and at places that
// are known at run time only, in rows around the length of a vector.
func TestGatheredLoads(t *testing.T) {
	const rows, groups = 37, 3
	everyLevel(t, func(t *testing.T) {
		for _, width := range []int{2, 5, 6, 11, 20, 64, 200} {
			n := groups * width
			x, bias, places := random(rows*n), random(n), make([]int32, rows*n)
			for i := range places {
				places[i] = int32(i*7919%(n+4) - 2) // some are outside
			}
			got := outputs(t, graph(t, func(b *ir.Builder) {
				x, bias := b.Input("x", ir.F32, ir.Dims(rows, n)...), b.Input("bias", ir.F32, ir.N(n))
				y := ops.Relu(b, ops.Add(b, x, bias))
				shuffled := ops.Transpose(b, ops.Reshape(b, y, ir.Dims(rows, groups, width)...), 0, 2, 1)
				b.Output("shuffled", ops.Reshape(b, shuffled, ir.Dims(rows, n)...))
				b.Output("mirrored", ops.Add(b, x, ops.Reverse(b, x, 1)))
				third := ops.SliceAxis(b, ops.Reshape(b, x, ir.Dims(rows, width, groups)...), 2, ir.N(1), ir.N(1))
				b.Output("third", ops.Mul(b, third, third))
				at := b.Input("at", ir.I32, ir.Dims(rows, n)...)
				b.Output("taken", ops.Mul(b, ops.TakeAlongAxis(b, x, at, 1, ops.OutsideClip), bias))
			}), map[string]native.Tensor{"x": native.Float32s(x, rows, n), "bias": native.Float32s(bias, n), "at": native.Int32s(places, rows, n)})
			for row := range rows {
				x := x[row*n:][:n]
				for i := range n {
					from := i%groups*width + i/groups
					near(t, fmt.Sprint("shuffled ", width), i, got["shuffled"][row*n+i], float64(max(0, x[from]+bias[from])), 0)
					near(t, fmt.Sprint("mirrored ", width), i, got["mirrored"][row*n+i], float64(x[i]+x[n-1-i]), 0)
					near(t, fmt.Sprint("taken ", width), i, got["taken"][row*n+i], float64(x[min(max(places[row*n+i], 0), int32(n-1))]*bias[i]), 0)
				}
				for i := range width {
					near(t, fmt.Sprint("third ", width), i, got["third"][row*width+i], float64(x[i*groups+1]*x[i*groups+1]), 0)
				}
			}
		}
	})
}

// TestPlacesOfColumnsAreComputedOnce takes columns at places that are computed, not again for each row.
func TestPlacesOfColumnsAreComputedOnce(t *testing.T) {
	const rows, n = 128, 100
	x, ids := random(rows*n), make([]int32, n)
	for i := range ids {
		ids[i] = int32(i * i)
	}
	everyLevel(t, func(t *testing.T) {
		p := compileGraphs(t, graph(t, func(b *ir.Builder) {
			x, at := b.Input("x", ir.F32, ir.Dims(rows, n)...), b.Input("ids", ir.I32, ir.N(n))
			at = ops.Rem(b, ops.Mul(b, at, ops.ConstLike(b, at, 7)), ops.ConstLike(b, at, n))
			b.Output("y", ops.Take(b, x, at, 1, ops.OutsideClip))
		}))
		got, err := run(t, p, map[string]native.Tensor{"x": native.Float32s(x, rows, n), "ids": native.Int32s(ids, n)})["y"].Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for i, y := range got {
			near(t, "y", i, y, float64(x[i/n*n+int(ids[i%n]*7%n)]), 0)
		}
		timings, err := p.(native.Profiler).Profile(t.Context(), "run", 1)
		if err != nil {
			t.Fatal(err)
		}
		launches := 0
		for _, x := range timings {
			launches += x.Launches
		}
		if launches != 2 && !strings.HasSuffix(t.Name(), "/go") {
			t.Errorf("%d launches, not one for the places and one for the columns: %v", launches, timings)
		}
	})
}
