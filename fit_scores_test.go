package rlx_test

import (
	"errors"
	"iter"
	"math"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// scoresOfSklearn are of scikit-learn 1.9.1 for the 24 examples of scored: mean_absolute_error, root_mean_squared_error and
// r2_score, without and with sample_weight; roc_auc_score of the bins of probabilities with multi_class="ovr" and
// average="macro"; the mean of calibration_curve's distances with n_bins=10, weighted by the examples of a bin; and
// accuracy_score, balanced_accuracy_score, matthews_corrcoef and f1_score.
var scoresOfSklearn = map[string]float64{
	"plain mae": 0.3297678629557292, "plain rmse": 0.3627994061014861, "plain r2": 0.9342188364039825,
	"weighted mae": 0.32808176676432294, "weighted rmse": 0.3651978060915735, "weighted r2": 0.9334090213916135,
	"areas": 0.8059895833333334, "classes ece": 0.24099720507106448, "binary ece": 0.20064255414987353,
	"table accuracy": 0.5, "table balanced accuracy": 0.48340548340548334, "table mcc": 0.22432432432432434, "table f1": 0.48951048951048953,
}

// scored returns a graph that measures batches of 12 examples, and two of them. The targets have a large mean, and weights
// leave out a third of the examples.
func scored(t *testing.T) (*ir.Graph, []rlx.Inputs) {
	t.Helper()
	const rows = 12
	loss, err := ir.Build("scored", func(b *ir.Builder) {
		p, y := b.Input("p", ir.F32, ir.N(rows)), b.Input("y", ir.F32, ir.N(rows))
		nn.Regression(b, "plain", p, y)
		nn.Regression(b, "weighted", p, y, b.Input("weights", ir.F32, ir.N(rows)))
		chances, class := b.Input("chances", ir.F32, ir.Dims(rows, 3)...), b.Input("class", ir.I32, ir.N(rows))
		nn.AUC(b, "areas", chances, class)
		nn.Calibration(b, "classes", chances, class)
		one := ops.Reshape(b, ops.SliceAxis(b, chances, -1, ir.N(1), ir.N(1)), ir.N(rows))
		nn.Calibration(b, "binary", one, ops.Convert(b, ops.Eq(b, class, ops.Const(b, ir.I32, 1)), ir.I32))
		nn.Confusion(b, "table", b.Input("predicted", ir.I32, ir.N(rows)), b.Input("labelled", ir.I32, ir.N(rows)), 3)
		b.Output("loss", ops.Mean(b, ops.Mul(b, p, b.Param("w", ir.F32, ir.N(rows)))))
	})
	if err != nil {
		t.Fatal(err)
	}
	var batches []rlx.Inputs
	for first := 0; first < 24; first += rows {
		var p, y, weights, chances []float32
		var class, predicted, labelled []int32
		for i := first; i < first+rows; i++ {
			x := float64(i)
			target := 1000 + 2*math.Sin(1.3*x)
			y, p = append(y, float32(target)), append(p, float32(target+math.Cos(0.7*x)/2))
			weights = append(weights, float32(min(i%3, 1)*(1+i%2)))
			var z [3]float64
			sum, best := 0., 0
			for k := range z {
				z[k] = math.Sin(0.9*x + 2.1*float64(k))
				if i%3 == k {
					z[k]++
				}
				z[k] = math.Exp(1.5 * z[k])
				sum += z[k]
				if z[k] > z[best] {
					best = k
				}
			}
			for _, e := range z {
				chances = append(chances, float32(e/sum))
			}
			label := i % 3
			class = append(class, int32(label))
			if i%5 == 0 {
				label = 0
			}
			if i >= 20 {
				best = 0
			}
			predicted, labelled = append(predicted, int32(best)), append(labelled, int32(label))
		}
		batches = append(batches, rlx.Inputs{
			"p": rlx.Float32s(p), "y": rlx.Float32s(y), "weights": rlx.Float32s(weights), "chances": rlx.Float32s(chances, rows, 3),
			"class": rlx.Int32s(class), "predicted": rlx.Int32s(predicted), "labelled": rlx.Int32s(labelled),
		})
	}
	return loss, batches
}

// TestFitScoresAreThoseOfSklearn measures two batches.
func TestFitScoresAreThoseOfSklearn(t *testing.T) {
	loss, batches := scored(t)
	trainer := measuring(t, loss)
	data := func(int) iter.Seq2[rlx.Inputs, error] {
		return func(yield func(rlx.Inputs, error) bool) { _ = yield(batches[0], nil) && yield(batches[1], nil) }
	}
	last, err := rlx.Fit(ctx, trainer, rlx.Loop{Data: data, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range scoresOfSklearn {
		if got, ok := last.Metrics[name]; !ok || !(math.Abs(got-want) <= 1e-5) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// measuring returns a trainer of a loss that hardly changes its parameters.
func measuring(t *testing.T, loss *ir.Graph) *rlx.Trainer {
	t.Helper()
	trainer, err := session(t).Train(ctx, loss, rlx.Training{Rate: 1e-9, Optimizer: optim.SGD{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trainer.Program().Close(ctx) })
	return trainer
}

// TestMeansOfMetricsAreWeighted: the mean over batches of 4 and 2 rows is the one over the 6 rows, with the number
// of rows as weight; a batch of none counts for nothing.
func TestMeansOfMetricsAreWeighted(t *testing.T) {
	loss, err := ir.Build("weighted", func(b *ir.Builder) {
		nn.Metric(b, "mean", b.Input("x", ir.F32), b.Input("rows", ir.I32))
		b.Output("loss", ops.ReduceSum(b, b.Param("w", ir.F32, ir.N(2))))
	})
	if err != nil {
		t.Fatal(err)
	}
	trainer := measuring(t, loss)
	data := func(int) iter.Seq2[rlx.Inputs, error] {
		return func(yield func(rlx.Inputs, error) bool) {
			_ = yield(rlx.Inputs{"x": rlx.Float32(1), "rows": rlx.Int32(4)}, nil) && yield(rlx.Inputs{"x": rlx.Float32(7), "rows": rlx.Int32(2)}, nil) &&
				yield(rlx.Inputs{"x": rlx.Float32(float32(math.NaN())), "rows": rlx.Int32(0)}, nil)
		}
	}
	last, err := rlx.Fit(ctx, trainer, rlx.Loop{Data: data, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if last.Metrics["mean"] != 3 {
		t.Errorf("the mean is %v, want 3", last.Metrics["mean"])
	}
}

// TestOtherStatesAreNoMetrics: a state of a program's own below the prefix of metrics, of a shape that none has, stays.
func TestOtherStatesAreNoMetrics(t *testing.T) {
	loss, err := ir.Build("own", func(b *ir.Builder) {
		for name, shape := range map[string]ir.Shape{"a": ir.Dims(3), "b": ir.Dims(3, 4), "c": ir.Dims(3, 1, 5), "regression/d": ir.Dims(2), "calibration/e": ir.Dims(2, 2)} {
			b.SetState(nn.MetricPrefix+name, ops.Add(b, b.State(nn.MetricPrefix+name, ir.F32, shape...), ops.Const(b, ir.F32, 1)))
		}
		b.Output("loss", ops.ReduceSum(b, b.Param("w", ir.F32, ir.N(2))))
	})
	if err != nil {
		t.Fatal(err)
	}
	trainer := measuring(t, loss)
	data := func(int) iter.Seq2[rlx.Inputs, error] {
		return func(yield func(rlx.Inputs, error) bool) { yield(rlx.Inputs{}, nil) }
	}
	last, err := rlx.Fit(ctx, trainer, rlx.Loop{Data: data, Epochs: 2})
	if err != nil || len(last.Metrics) != 0 {
		t.Errorf("the metrics are %v, error %v", last.Metrics, err)
	}
}

// TestMetricsRefuse lists wrong values of metrics.
func TestMetricsRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		kind  error
		build func(b *ir.Builder, f, i ir.Value)
	}{
		"regression of another shape":  {ir.ErrShape, func(b *ir.Builder, f, _ ir.Value) { nn.Regression(b, "m", f, ops.ExpandDims(b, f, 0)) }},
		"regression of integers":       {ir.ErrDType, func(b *ir.Builder, f, i ir.Value) { nn.Regression(b, "m", f, i) }},
		"regression without a name":    {ir.ErrName, func(b *ir.Builder, f, _ ir.Value) { nn.Regression(b, "", f, f) }},
		"two weights":                  {ir.ErrAttr, func(b *ir.Builder, f, _ ir.Value) { nn.Regression(b, "m", f, f, f, f) }},
		"weights of another shape":     {ir.ErrShape, func(b *ir.Builder, f, _ ir.Value) { nn.Regression(b, "m", f, f, ops.ExpandDims(b, f, 0)) }},
		"a weight of a mean of rank 1": {ir.ErrShape, func(b *ir.Builder, f, _ ir.Value) { nn.Metric(b, "m", ops.Mean(b, f), f) }},
		"areas of other rows":          {ir.ErrShape, func(b *ir.Builder, f, i ir.Value) { nn.AUC(b, "m", ops.BroadcastTo(b, f, ir.Dims(2, 3)), i) }},
		"labels that are floats":       {ir.ErrDType, func(b *ir.Builder, f, _ ir.Value) { nn.Calibration(b, "m", f, f) }},
	} {
		_, err := ir.Build("wrong", func(b *ir.Builder) { c.build(b, b.Input("f", ir.F32, ir.N(3)), b.Input("i", ir.I32, ir.N(3))) })
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
}
