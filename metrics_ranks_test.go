package rlx_test

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
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
		nn.Metric(b, "weighted", ops.Mean(b, x), weight)
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
		if got := read("weighted"); len(got) != 2 || fmt.Sprintf("%.4f", got) != "[5.2000 8.0000]" { // twice 1·0.5 + 3·0.7, and 1 + 3
			t.Errorf("the weighted mean is of %v", got)
		}
		return tr.Program().Close(t.Context())
	})
}

// TestRegressionsOfRanksCountAllExamples: the errors of a regression are those of all ranks, whose targets have other means,
// at each report.
func TestRegressionsOfRanksCountAllExamples(t *testing.T) {
	loss := must(ir.Build("model", func(b *ir.Builder) {
		p, y := b.Input("p", ir.F32, ir.N(4)), b.Input("y", ir.F32, ir.N(4))
		nn.Regression(b, "price", p, y)
		b.Output("loss", ops.Mean(b, ops.Mul(b, p, b.Param("w", ir.F32, ir.N(4)))))
	}))(t)
	ranksOf(t, 2, func(g *collective.Group) error {
		s, err := rlx.Open("cpu")
		if err != nil {
			return err
		}
		tr, err := s.Train(t.Context(), loss, rlx.Training{Rate: 1e-9, Parallel: &rlx.DataParallel{Group: g}})
		if err != nil {
			return err
		}
		first := float32(1000 + 10*g.Rank())
		batch := rlx.Inputs{
			"y": rlx.Float32s([]float32{first, first + 1, first + 2, first + 3}), "p": rlx.Float32s([]float32{first + 1, first, first + 2, first + 5}),
		}
		data := func(int) iter.Seq2[rlx.Inputs, error] {
			return func(yield func(rlx.Inputs, error) bool) { yield(batch, nil) }
		}
		last, err := rlx.Fit(t.Context(), tr, rlx.Loop{Data: data, Steps: 4, Every: 2})
		if err != nil {
			return err
		}
		// Errors of 1, −1, 0 and 2; the targets are 0 to 3 and 10 to 13 above 1000, of variance 1.25 + 25.
		for name, want := range map[string]float64{"price mae": 1, "price rmse": math.Sqrt(1.5), "price r2": 1 - 1.5/26.25} {
			if got := last.Metrics[name]; !(math.Abs(got-want) <= 1e-6) {
				t.Errorf("rank %d: %s is %v, want %v", g.Rank(), name, got, want)
			}
		}
		return tr.Program().Close(t.Context())
	})
}

// TestEvaluationsOfRanksCountAllExamples: the confusion matrix of an evaluation has the examples of all ranks, at each report.
func TestEvaluationsOfRanksCountAllExamples(t *testing.T) {
	model := must(ir.Build("model", func(b *ir.Builder) {
		b.Output("loss", ops.Mean(b, ops.Mul(b, b.Input("x", ir.F32, ir.N(2)), b.Param("w", ir.F32, ir.N(2)))))
	}))(t)
	eval := must(ir.Build("eval", func(b *ir.Builder) {
		x, label := b.Input("x", ir.F32, ir.N(2)), b.Input("label", ir.I32, ir.N(2))
		nn.Confusion(b, "table", ops.Convert(b, ops.Gt(b, x, ops.Const(b, ir.F32, 0.5)), ir.I32), label, 2)
		b.Output("loss", ops.Mean(b, x))
	}))(t)
	ranksOf(t, 2, func(g *collective.Group) error {
		s, err := rlx.Open("cpu")
		if err != nil {
			return err
		}
		tr, err := s.Train(t.Context(), model, rlx.Training{Parallel: &rlx.DataParallel{Group: g}, Eval: []ir.Entry{{Name: "eval", Graph: eval}}})
		if err != nil {
			return err
		}
		one := func(in rlx.Inputs) iter.Seq2[rlx.Inputs, error] {
			return func(yield func(rlx.Inputs, error) bool) { yield(in, nil) }
		}
		x := native.Float32s([]float32{0.2, 0.8}, 2)
		tested := rlx.Inputs{"x": x, "label": [2]rlx.Tensor{rlx.Int32s([]int32{0, 1}), rlx.Int32s([]int32{1, 1})}[g.Rank()]}
		_, err = rlx.Fit(t.Context(), tr, rlx.Loop{
			Data: func(int) iter.Seq2[rlx.Inputs, error] { return one(rlx.Inputs{"x": x}) }, Steps: 2, Every: 1,
			Eval: rlx.Evaluation{Entry: "eval", Data: func() iter.Seq2[rlx.Inputs, error] { return one(tested) }},
			Callbacks: []func(rlx.Report) error{func(r rlx.Report) error {
				if want := [][]float64{{1, 0}, {1, 2}}; !reflect.DeepEqual(r.EvalConfusion["table"], want) || r.Eval["table accuracy"] != 0.75 || len(r.Metrics) != 0 {
					t.Errorf("rank %d, step %d: %v and %v, the step %v", g.Rank(), r.Step, r.EvalConfusion, r.Eval, r.Metrics)
				}
				return nil
			}},
		})
		return errors.Join(err, tr.Program().Close(t.Context()))
	})
}

func sum(x []float32) (s float32) {
	for _, v := range x {
		s += v
	}
	return s
}
