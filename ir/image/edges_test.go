package image_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/ops"
)

// slopes returns the derivatives of a sampled row of elements by the coordinates, of some order.
func slopes(t *testing.T, row, at []float64, order int, o image.GridOptions) []float64 {
	t.Helper()
	n := len(at)
	g, err := ir.Build("sample", func(b *ir.Builder) {
		x := ops.BroadcastTo(b, ops.Reshape(b, b.Input("row", ir.F64, ir.N(len(row))), ir.Dims(1, 1, len(row), 1)...), ir.Dims(1, 3, len(row), 1))
		f := func(b *ir.Builder, in []ir.Value) []ir.Value {
			grid := ops.Stack(b, -1, in[0], ops.ZerosLike(b, in[0]))
			return []ir.Value{ops.Reshape(b, image.GridSample(b, x, ops.Reshape(b, grid, ir.Dims(1, 1, n, 2)...), o), ir.N(n))}
		}
		for range order {
			before := f
			f = func(b *ir.Builder, in []ir.Value) []ir.Value {
				_, tangents := autodiff.JVPOf(b, before, in, []ir.Value{ops.OnesLike(b, in[0])})
				return tangents
			}
		}
		b.Output("y", f(b, []ir.Value{b.Input("at", ir.F64, ir.N(n))})[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{"row": ir.Floats(ir.F64, row, len(row)), "at": ir.Floats(ir.F64, at, n)}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].F
}

// TestSlopesAtElements: at an element the derivative is that of the piece on the right, and at the edge 0, as PyTorch's.
func TestSlopesAtElements(t *testing.T) {
	row, at := []float64{1, 4, -2, 3, 5}, []float64{-1, -0.5, 0, 0.5, 1} // at the elements, two apart
	for _, padding := range []string{image.Edge, image.Reflect} {
		got := slopes(t, row, at, 1, image.GridOptions{Padding: padding, AlignCorners: true})
		for i, want := range []float64{0, -12, 10, 4, 0} {
			if !(math.Abs(got[i]-want) <= 1e-12) {
				t.Errorf("%s: the derivatives are %v", padding, got)
			}
		}
	}
	const h = 1e-6
	var right []float64
	for _, x := range at {
		right = append(right, x+h)
	}
	o := image.GridOptions{Mode: image.Cubic, Padding: image.Edge, AlignCorners: true}
	for order := 1; order <= 3; order++ {
		got, want := slopes(t, row, at, order, o), slopes(t, row, right, order, o)
		for i := range at {
			if !(math.Abs(got[i]-want[i]) <= 1e-3) {
				t.Errorf("cubic: derivatives %d are %v, on the right %v", order, got, want)
				break
			}
		}
	}
}
