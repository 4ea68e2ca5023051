package rlx_test

import (
	"errors"
	"iter"
	"math"
	"reflect"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestFitMetrics holds the metrics of two equal batches to the examples of scikit-learn's f1_score
// (macro, 0.2667), precision_score (0.2222), recall_score (0.3333), roc_auc_score (0.75) and top_k_accuracy_score (0.75), and to closed forms.
func TestFitMetrics(t *testing.T) {
	loss, err := ir.Build("measured", func(b *ir.Builder) {
		w := b.Param("w", ir.F32, ir.N(2))
		nn.Confusion(b, "confusion", b.Input("predictions", ir.I32, ir.N(6)), b.Input("labels", ir.I32, ir.N(6)), 3)
		nn.AUC(b, "auc", b.Input("scores", ir.F32, ir.N(4)), b.Input("binary", ir.I32, ir.N(4)))
		nn.Perplexity(b, b.Input("given", ir.F32))
		logits, classes := b.Input("logits", ir.F32, ir.Dims(4, 3)...), b.Input("classes", ir.I32, ir.N(4))
		nn.Metric(b, "top 2", nn.TopKAccuracy(b, logits, classes, 2))
		nn.Metric(b, "top 1", nn.Accuracy(b, logits, classes))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, w, b.Input("probe", ir.F32, ir.N(2)))))
	})
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := session(t).Train(ctx, loss, rlx.Training{Rate: 1e-9, Optimizer: optim.SGD{}, Options: optim.Options{MeasureNorm: true, ClipNorm: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trainer.Program().Close(ctx) })
	batch := func(given float32) rlx.Inputs {
		return rlx.Inputs{
			"labels": rlx.Int32s([]int32{0, 1, 2, 0, 1, 2}), "predictions": rlx.Int32s([]int32{0, 2, 1, 0, 0, 1}),
			"binary": rlx.Int32s([]int32{0, 0, 1, 1}), "scores": rlx.Float32s([]float32{0.1, 0.4, 0.35, 0.8}),
			"classes": rlx.Int32s([]int32{0, 1, 2, 2}), "logits": rlx.Float32s([]float32{0.5, 0.2, 0.2, 0.3, 0.4, 0.2, 0.2, 0.4, 0.3, 0.7, 0.2, 0.1}, 4, 3),
			"probe": rlx.Float32s([]float32{3, 4}), "given": rlx.Float32(given),
		}
	}
	data := func(int) iter.Seq2[rlx.Inputs, error] {
		return func(yield func(rlx.Inputs, error) bool) { _ = yield(batch(1), nil) && yield(batch(3), nil) }
	}
	last, err := rlx.Fit(ctx, trainer, rlx.Loop{Data: data, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string][][]float64{"confusion": {{4, 0, 0}, {2, 0, 2}, {0, 4, 0}}}; !reflect.DeepEqual(last.Confusion, want) {
		t.Errorf("confusion is %v, want %v", last.Confusion, want)
	}
	want := map[string]float64{
		"gradient norm": 5, "auc": 0.75, "confusion accuracy": 2. / 6, "confusion f1": 0.8 / 3, "confusion precision": 2. / 9, "confusion recall": 1. / 3,
		"confusion balanced accuracy": 1. / 3, "confusion mcc": 0, "perplexity": math.Exp(2), "top 2": 0.75, "top 1": 0.5,
	}
	for name, v := range want {
		if got, ok := last.Metrics[name]; !ok || !(math.Abs(got-v) <= 1e-6) {
			t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
	if len(last.Metrics) != len(want) || !(math.Abs(last.Throughput/last.Rate-6) <= 1e-9) {
		t.Errorf("the report is %+v", last)
	}
	x, err := trainer.Program().Get(ctx, "metric/confusion")
	if err != nil {
		t.Fatal(err)
	}
	if sums, _ := x.Float32s(); len(sums) != 9 || sums[0] != 0 {
		t.Errorf("the matrix is %v after a report, want zeros", sums)
	}
}

// TestFitMetricsOfEvaluations trains and evaluates by graphs with metrics of the same names: those of the evaluation
// are over its batches alone, choose when to stop, and do not count as those of the steps.
func TestFitMetricsOfEvaluations(t *testing.T) {
	model := func(b *ir.Builder) ir.Value {
		x, label := b.Input("x", ir.F32, ir.N(4)), b.Input("label", ir.I32, ir.N(4))
		nn.Confusion(b, "table", ops.Convert(b, ops.Gt(b, x, ops.Const(b, ir.F32, 0.5)), ir.I32), label, 2)
		nn.Metric(b, "mean", ops.Mean(b, x))
		return ops.Mean(b, ops.Mul(b, x, b.Param("w", ir.F32, ir.N(4))))
	}
	loss, err := ir.Build("loss", func(b *ir.Builder) { b.Output("loss", model(b)) })
	if err != nil {
		t.Fatal(err)
	}
	eval, err := ir.Build("eval", func(b *ir.Builder) {
		b.Output("loss", model(b))
		nn.AUC(b, "area", b.Input("score", ir.F32, ir.N(4)), b.Input("positive", ir.I32, ir.N(4)))
	})
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := session(t).Train(ctx, loss, rlx.Training{Rate: 1e-9, Optimizer: optim.SGD{}, Eval: []ir.Entry{{Name: "eval", Graph: eval}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trainer.Program().Close(ctx) })
	all := func(x float32, label int32) rlx.Inputs {
		return rlx.Inputs{"x": rlx.Float32s([]float32{x, x, x, x}), "label": rlx.Int32s([]int32{label, label, label, 1})}
	}
	batches := func(of ...rlx.Inputs) func() iter.Seq2[rlx.Inputs, error] {
		return func() iter.Seq2[rlx.Inputs, error] {
			return func(yield func(rlx.Inputs, error) bool) {
				for _, batch := range of {
					if !yield(batch, nil) {
						return
					}
				}
			}
		}
	}
	tested := []rlx.Inputs{all(0.9, 1), all(0.1, 1)}
	for _, in := range tested {
		in["score"], in["positive"] = rlx.Float32s([]float32{0.1, 0.4, 0.35, 0.8}), rlx.Int32s([]int32{0, 0, 1, 1})
	}
	trained := batches(all(0.2, 0))
	var reports []rlx.Report
	last, err := rlx.Fit(ctx, trainer, rlx.Loop{
		Data: func(int) iter.Seq2[rlx.Inputs, error] { return trained() }, Steps: 20, Every: 1,
		Eval: rlx.Evaluation{Entry: "eval", Data: batches(tested...)}, Stop: rlx.EarlyStop{Patience: 2, Metric: "table f1", Larger: true},
		Callbacks: []func(rlx.Report) error{func(r rlx.Report) error { reports = append(reports, r); return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if last.Step != 3 || len(reports) != 3 || !reports[0].Best {
		t.Fatalf("%d reports, the last %+v: the metric should end the training after three steps", len(reports), last)
	}
	for _, r := range reports {
		if want := [][]float64{{3, 0}, {1, 0}}; !reflect.DeepEqual(r.Confusion["table"], want) || !(math.Abs(r.Metrics["mean"]-0.2) <= 1e-6) || len(r.Metrics) != 7 {
			t.Errorf("step %d: the steps measure %v and %v", r.Step, r.Confusion, r.Metrics)
		}
		if want := [][]float64{{0, 0}, {4, 4}}; !reflect.DeepEqual(r.EvalConfusion["table"], want) || !(math.Abs(r.Eval["mean"]-0.5) <= 1e-6) || r.Eval["area"] != 0.75 {
			t.Errorf("step %d: the evaluation measures %v and %v", r.Step, r.EvalConfusion, r.Eval)
		}
	}
	_, err = rlx.Fit(ctx, trainer, rlx.Loop{Data: func(int) iter.Seq2[rlx.Inputs, error] { return trained() }, Steps: 9, Every: 1, Eval: rlx.Evaluation{Entry: "eval", Data: batches()}})
	if !errors.Is(err, ir.ErrAttr) {
		t.Errorf("an evaluation without batches: %v", err)
	}
}
