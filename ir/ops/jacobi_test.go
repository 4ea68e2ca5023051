package ops

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
)

// TestRowsBecomeOrthogonalByBlocks rotates the rows of the second difference of 150
// points, whose eigenvalues are 2 - 2·cos(jπ/151), by blocks: the lengths of the rows
// are the eigenvalues then, since it is symmetric and positive definite.
func TestRowsBecomeOrthogonalByBlocks(t *testing.T) {
	const n = 150
	x := ir.NewArray(ir.F64, n, n)
	for i := range n {
		x.F[i*n+i] = 2
		if i > 0 {
			x.F[i*n+i-1], x.F[i*n-n+i] = -1, -1
		}
	}
	g, err := ir.Build("g", func(b *ir.Builder) {
		b.Output("y", jacobiBlocks(b, b.Input("x", ir.F64, ir.Dims(n, n)...), &JacobiAttrs{Length: n}))
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	y := matrixAt(out[0], 0)
	var lengths []float64
	for i := range n {
		for j := range i + 1 {
			dot, size := 0.0, [2]float64{}
			for c := range n {
				dot += y.at(i, c) * y.at(j, c)
				size[0] += y.at(i, c) * y.at(i, c)
				size[1] += y.at(j, c) * y.at(j, c)
			}
			if i == j {
				lengths = append(lengths, math.Sqrt(dot))
			} else if math.Abs(dot) > 1e-12*math.Sqrt(size[0]*size[1]) {
				t.Fatalf("the product of rows %d and %d is %g, their squares %g", i, j, dot, size)
			}
		}
	}
	for j := range n {
		want := 2 - 2*math.Cos(math.Pi*float64(j+1)/(n+1))
		best := math.Inf(1)
		for _, w := range lengths {
			best = math.Min(best, math.Abs(w-want))
		}
		if best > 1e-12 {
			t.Errorf("no row has length %v; the nearest is off by %g", want, best)
		}
	}
}
