package ops_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestShapesOfTheFunctionsWithoutANode checks functions that consist of moves alone.
func TestShapesOfTheFunctionsWithoutANode(t *testing.T) {
	x := ir.Floats(ir.F64, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 3, 4)
	for name, c := range map[string]struct {
		build func(b *ir.Builder, x ir.Value) ir.Value
		dims  []int
		want  []float64
	}{
		"part of a split": {
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.Split(b, x, -1, ir.N(1), ir.N(2), ir.N(1))[1] },
			[]int{3, 2},
			[]float64{1, 2, 5, 6, 9, 10},
		},
		"part of an even split": {
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.SplitEvenly(b, x, 1, 2)[1] },
			[]int{3, 2},
			[]float64{2, 3, 6, 7, 10, 11},
		},
		"row": {func(b *ir.Builder, x ir.Value) ir.Value { return ops.Unstack(b, x, 0)[2] }, []int{4}, []float64{8, 9, 10, 11}},
		"what is left of a shape": {
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reshape(b, x, ir.N(2), ir.N(-1)) },
			[]int{2, 6},
			x.F,
		},
		"flattened": {func(b *ir.Builder, x ir.Value) ir.Value { return ops.Flatten(b, x, 0) }, []int{12}, x.F},
		"axes swapped": {
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.SwapAxes(b, x, 0, -1) },
			[]int{4, 3},
			[]float64{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11},
		},
		"grid": {
			func(b *ir.Builder, x ir.Value) ir.Value {
				rows := ops.Unstack(b, x, 1)
				return ops.Meshgrid(b, rows[0], rows[1])[1]
			},
			[]int{3, 3},
			[]float64{1, 5, 9, 1, 5, 9, 1, 5, 9},
		},
		"mean with its axis": {
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.KeepDims(b, ops.Mean, x, -1) },
			[]int{3, 1},
			[]float64{1.5, 5.5, 9.5},
		},
	} {
		g, err := ir.Build("g", func(b *ir.Builder) { b.Output("y", c.build(b, b.Input("x", ir.F64, ir.Dims(3, 4)...))) })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := evalHeld(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(out[0].Dims, c.dims) || !slices.Equal(out[0].F, c.want) {
			t.Errorf("%s: %v %v, want %v %v", name, out[0].Dims, out[0].F, c.dims, c.want)
		}
	}
}
