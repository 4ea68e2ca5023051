package nn_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
)

// TestGlobalMaxPool takes the maxima of two channels over four positions.
func TestGlobalMaxPool(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		b.Output("y", nn.GlobalMaxPool(b, b.Input("x", ir.F32, ir.Dims(1, 2, 2, 2)...)))
	})
	if err != nil {
		t.Fatal(err)
	}
	x := ir.Floats(ir.F32, []float64{1, -8, 3, -2, 0, -4, 2, -9}, 1, 2, 2, 2)
	out, err := ir.Eval(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out[0].F, []float64{3, -2}) {
		t.Errorf("%v", out[0].F)
	}
}

// TestPositions counts from 0 without a cache.
func TestPositions(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) { b.Output("p", nn.Positions(b, ir.N(3))) })
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, nil, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out[0].I, []int64{0, 1, 2}) {
		t.Errorf("%v", out[0].I)
	}
}

// TestIsTraining follows the mode through Train and Infer.
func TestIsTraining(t *testing.T) {
	var modes []bool
	_, err := ir.Build("g", func(b *ir.Builder) {
		modes = append(modes, nn.IsTraining(b))
		nn.Train(b)
		modes = append(modes, nn.IsTraining(b))
		nn.Infer(b)
		modes = append(modes, nn.IsTraining(b))
		b.Output("y", b.Input("x", ir.F32))
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(modes, []bool{false, true, false}) {
		t.Errorf("%v", modes)
	}
}
