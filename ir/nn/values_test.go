package nn_test

import (
	"math"
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

// TestTopKAccuracyOfNoClass has labels that are no classes, and scores of NaN: of the label, of another class and of all.
func TestTopKAccuracyOfNoClass(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		scores [3]float64
		label  int64
		k      int
		want   float64
	}{
		{[3]float64{1, 2, 3}, 1, 2, 1},
		{[3]float64{1, 2, 3}, 0, 2, 0},
		{[3]float64{3, 3, 3}, 2, 1, 1},
		{[3]float64{-1, -2, -3}, -1, 2, 0},
		{[3]float64{-1, -2, -3}, 3, 2, 0},
		{[3]float64{nan, nan, nan}, 1, 3, 0},
		{[3]float64{nan, 2, 1}, 1, 1, 0},
		{[3]float64{nan, 2, 1}, 1, 2, 1},
	} {
		g, err := ir.Build("g", func(b *ir.Builder) {
			b.Output("y", nn.TopKAccuracy(b, b.Input("x", ir.F32, ir.Dims(1, 3)...), b.Input("label", ir.I32, ir.N(1)), c.k))
		})
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]*ir.Array{"x": ir.Floats(ir.F32, c.scores[:], 1, 3), "label": ir.Ints(ir.I32, []int64{c.label})}
		out, err := ir.Eval(g, in, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if out[0].F[0] != c.want {
			t.Errorf("label %d is among the best %d of %v: %v, want %v", c.label, c.k, c.scores, out[0].F[0], c.want)
		}
	}
}
