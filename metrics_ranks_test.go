package rlx_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
)

// TestMetricsOfRanksCountAllExamples: confusion matrices and the histograms of an area under the curve have the
// examples of all ranks, also where ranks weigh differently, and a mean is weighted.
func TestMetricsOfRanksCountAllExamples(t *testing.T) {
	loss, err := ir.Build("counted", func(b *ir.Builder) {
		x, label, weight := b.Input("x", ir.F32, ir.N(2)), b.Input("label", ir.I32, ir.N(2)), b.Input("weight", ir.F32)
		nn.Confusion(b, "table", ops.Convert(b, ops.Gt(b, x, ops.Const(b, ir.F32, 0.5)), ir.I32), label, 2)
		nn.AUC(b, "area", x, label)
		nn.Metric(b, "mean", ops.Mean(b, x))
		b.Output("loss", ops.Mean(b, ops.Mul(b, x, b.Param("w", ir.F32, ir.N(2)))))
		b.Output("weight", weight)
	})
	if err != nil {
		t.Fatal(err)
	}
	ranksOf(t, 2, func(g *collective.Group) error {
		s, err := rlx.Open("cpu")
		if err != nil {
			return err
		}
		tr, err := s.Train(t.Context(), loss, rlx.Training{Parallel: &rlx.DataParallel{Group: g, Weight: "weight"}})
		if err != nil {
			return err
		}
		// Rank 0 has 0.2 of label 0 and 0.8 of label 1, and rank 1, which weighs three times as much, 0.6 and 0.8 of label 0.
		in := []rlx.Inputs{
			{"x": native.Float32s([]float32{0.2, 0.8}, 2), "label": native.Int32s([]int32{0, 1}, 2), "weight": rlx.Float32(1)},
			{"x": native.Float32s([]float32{0.6, 0.8}, 2), "label": native.Int32s([]int32{0, 0}, 2), "weight": rlx.Float32(3)},
		}[g.Rank()]
		for range 2 {
			if err := tr.Step(t.Context(), in); err != nil {
				return err
			}
		}
		values, err := tr.Whole(t.Context())
		if err != nil {
			return err
		}
		read := func(name string) []float32 {
			x, err := values[nn.MetricPrefix+name].Float32s()
			if err != nil {
				t.Error(err)
			}
			return x
		}
		if got := read("table"); !slices.Equal(got, []float32{2, 4, 0, 2}) {
			t.Errorf("the confusion matrix is %v", got)
		}
		area := read("area")
		if all := sum(area); all != 8 || sum(area[nn.AUCBins:]) != 2 {
			t.Errorf("the histograms have %v examples, %v with label 1", all, sum(area[nn.AUCBins:]))
		}
		if got := read("mean"); len(got) != 2 || fmt.Sprintf("%.4f", got) != "[1.3000 2.0000]" { // twice (1·0.5 + 3·0.7)/4
			t.Errorf("the mean is %v", got)
		}
		return tr.Program().Close(t.Context())
	})
}

func sum(x []float32) (s float32) {
	for _, v := range x {
		s += v
	}
	return s
}
