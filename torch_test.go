package rlx_test

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// torchRun is a training of internal/recipe/testdata/torch_training.json.
type torchRun struct {
	Losses           []float64
	Doublings        []int32 // of the loss scale, before each step
	Values, Averages map[string][]float64
}

// torchRuns are all of them: of classifiers by name, and of a generator and its critic.
type torchRuns struct {
	Runs map[string]torchRun
	GAN  struct {
		Critic, Generator []float64
		Values            map[string][]float64
	}
}

func readTorchRuns(t *testing.T) (all torchRuns) {
	t.Helper()
	text, err := os.ReadFile("internal/recipe/testdata/torch_training.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

const torchRows = 6

// wave returns sin(begin + 1.3·i), times factor, plus shift.
func wave(begin, factor, shift float64, dims ...int) rlx.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(factor*float64(float32(math.Sin(begin+1.3*float64(i)))) + shift)
	}
	return rlx.Float32s(x, dims...)
}

// torchBatches are the batches of the classifiers.
func torchBatches(int) iter.Seq2[rlx.Inputs, error] {
	return func(yield func(rlx.Inputs, error) bool) {
		for step := range 20 {
			labels := make([]int32, torchRows)
			for i := range labels {
				labels[i] = int32((step + i*i) % 3)
			}
			if !yield(rlx.Inputs{"x": wave(float64(step), 1, 0, torchRows, 4), "labels": rlx.Int32s(labels)}, nil) {
				return
			}
		}
	}
}

// setWaves gives each parameter its first values, by its number in the order of names. values are those of the end.
func setWaves(t *testing.T, p *rlx.Program, values map[string][]float64) {
	t.Helper()
	slots := map[string]native.Slot{}
	for _, s := range p.Persistent() {
		slots[s.Name] = s
	}
	k := 0.
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if strings.Contains(name, "running") {
			continue
		}
		k++
		if err := p.Set(ctx, name, wave(k, 0.6, 0, slots[name].Dims...)); err != nil {
			t.Fatal(err)
		}
	}
}

// isNear compares numbers with those of PyTorch. bound is relative above 1.
func isNear(t *testing.T, what string, got, want []float64, bound float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= bound*max(1, math.Abs(want[i]))) {
			t.Errorf("%s: number %d is %v, that of PyTorch %v", what, i, got[i], want[i])
			return
		}
	}
}

// areNear compares tensors with those of PyTorch.
func areNear(t *testing.T, got map[string]rlx.Tensor, want map[string][]float64, bound float64) {
	t.Helper()
	for name := range want {
		x, err := got[name].Array()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		isNear(t, name, x.F, want[name], bound)
	}
}

func widened(x []float32) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = float64(x[i])
	}
	return out
}

// TestTrainingsAgreeWithPyTorch compares each loss of twenty steps of [rlx.Fit], and the parameters, statistics and averages
// after them, with those of PyTorch from the same start on the same batches.
func TestTrainingsAgreeWithPyTorch(t *testing.T) {
	noDecay, all := optim.AdamW{WeightDecay: optim.NoDecay}, readTorchRuns(t)
	vectors := func(name string) bool { return !strings.HasPrefix(name, "linear") || strings.HasSuffix(name, "bias") }
	for name, c := range map[string]struct {
		batchNorm         bool
		smoothing, factor float64
		o                 rlx.Training
		bound             float64
	}{
		"accumulation": {o: rlx.Training{Optimizer: optim.AdamW{WeightDecay: 0.1}, Options: optim.Options{
			Accumulate: 4, ClipNorm: 0.5, Average: 0.7, Schedule: optim.Cosine(0.05, 0, 5),
			Groups: []optim.Group{{Match: vectors, Optimizer: noDecay}, {Match: optim.Matching("linear1"), Rate: 0.5}},
		}}, bound: 2e-6},
		"statistics": {batchNorm: true, o: rlx.Training{Optimizer: optim.Adam{WeightDecay: 0.02}, Options: optim.Options{
			Accumulate: 2, Average: 0.9, Schedule: optim.Exponential(0.05, 0.9),
		}}, bound: 2e-6},
		"smoothing": {smoothing: 0.2, o: rlx.Training{Optimizer: optim.SGD{Momentum: 0.9, Nesterov: true, WeightDecay: 0.05}, Options: optim.Options{
			ClipValue: 0.05, Schedule: optim.Steps(0.1, 0.5, 6),
		}}, bound: 2e-6},
		"f16": {factor: 64, o: rlx.Training{Optimizer: optim.SGD{Momentum: 0.9}, Rate: 0.001, Precision: rlx.MixedF16, Options: optim.Options{
			ClipNorm: 20, Scale: &optim.LossScale{Interval: 4},
		}}, bound: 1e-3}, // 1e-7 here; sums in another order may round to another f16
		"bf16": {o: rlx.Training{Optimizer: optim.AdamW{}, Rate: 0.05, Precision: rlx.MixedBF16}, bound: 1e-2},
	} {
		t.Run(name, func(t *testing.T) {
			loss := must(ir.Build(name, func(b *ir.Builder) {
				nn.Train(b)
				h := nn.Linear(b, b.Input("x", ir.F32, ir.Dims(torchRows, 4)...), 5)
				if c.batchNorm {
					h = nn.BatchNorm(b, h, nn.BatchNormOptions{Name: "norm"})
				} else {
					h = nn.LayerNorm(b, h, nn.NormOptions{Name: "norm"})
				}
				logits := nn.Linear(b, ops.Gelu(b, h), 3)
				loss := ops.CrossEntropyLoss(b, logits, b.Input("labels", ir.I32, ir.N(torchRows)), ir.Value{}, ops.ClassLossAttrs{LabelSmoothing: c.smoothing})
				b.Output("loss", ops.Mul(b, loss, ops.ConstLike(b, loss, max(c.factor, 1))))
			}))(t)
			want := all.Runs[name]
			trainer := must(session(t).Train(ctx, loss, c.o))(t)
			defer trainer.Program().Close(ctx)
			setWaves(t, trainer.Program(), want.Values)
			var scales []int32
			must(rlx.Fit(ctx, trainer, rlx.Loop{Data: torchBatches, Steps: 20, Every: 1, Callbacks: []func(rlx.Report) error{func(rlx.Report) error {
				if want.Doublings == nil {
					return nil
				}
				x, err := trainer.Program().Get(ctx, optim.ScaleState)
				if err == nil {
					n, _ := x.Int32s()
					scales = append(scales, n[0])
				}
				return err
			}}}))(t)
			if want.Doublings != nil && !slices.Equal(scales[:19], want.Doublings[1:]) {
				t.Errorf("the scale is doubled %v, by PyTorch %v", scales[:19], want.Doublings[1:])
			}
			isNear(t, "losses", widened(losses(t, trainer)), want.Losses, c.bound)
			areNear(t, must(trainer.Program().Save(ctx))(t), want.Values, c.bound)
			if want.Averages != nil {
				areNear(t, must(trainer.Averages(ctx))(t), want.Averages, c.bound)
			}
		})
	}
}

// TestJointTrainingAgreesWithPyTorch compares twenty steps of a critic and a generator in turns.
func TestJointTrainingAgreesWithPyTorch(t *testing.T) {
	want := readTorchRuns(t).GAN
	generate := func(b *ir.Builder) ir.Value {
		h := ops.Tanh(b, nn.Linear(b, b.Input("z", ir.F32, ir.Dims(torchRows, 2)...), 4, nn.LinearOptions{Name: "g0"}))
		return nn.Linear(b, h, 3, nn.LinearOptions{Name: "g1"})
	}
	score := func(b *ir.Builder, x ir.Value, real float64) ir.Value {
		h := ops.LeakyRelu(b, nn.Linear(b, x, 4, nn.LinearOptions{Name: "d0"}), 0.2)
		y := nn.Linear(b, h, 1, nn.LinearOptions{Name: "d1"})
		return ops.BCEWithLogits(b, y, ops.ConstLike(b, y, real), ops.LossMean)
	}
	critic := must(ir.Build("critic", func(b *ir.Builder) {
		on := score(b, b.Input("real", ir.F32, ir.Dims(torchRows, 3)...), 1)
		nn.Shared(b, func() { on = ops.Add(b, on, score(b, generate(b), 0)) })
		b.Output("loss", on)
	}))(t)
	generator := must(ir.Build("generator", func(b *ir.Builder) { b.Output("loss", score(b, generate(b), 1)) }))(t)
	adam := optim.Adam{Beta1: 0.5}
	joint := must(session(t).TrainJointly(ctx, rlx.JointTraining{Objectives: []rlx.Objective{
		{Name: "critic", Loss: critic, Optimizer: adam, Rate: 0.02, Options: optim.Options{Frozen: []string{"g[01]"}}},
		{Name: "generator", Loss: generator, Optimizer: adam, Options: optim.Options{Frozen: []string{"d[01]"}, Schedule: optim.OneCycle(0.01, 20, 0.3)}},
	}}))(t)
	defer joint.Program().Close(ctx)
	setWaves(t, joint.Program(), want.Values)
	for step := range 20 {
		z := wave(2*float64(step), 1, 0, torchRows, 2)
		if err := joint.Trainer("critic").Step(ctx, rlx.Inputs{"real": wave(float64(step), 0.5, 1, torchRows, 3), "z": z}); err != nil {
			t.Fatal(err)
		}
		if err := joint.Trainer("generator").Step(ctx, rlx.Inputs{"z": z}); err != nil {
			t.Fatal(err)
		}
	}
	isNear(t, "critic", widened(losses(t, joint.Trainer("critic"))), want.Critic, 2e-6)
	isNear(t, "generator", widened(losses(t, joint.Trainer("generator"))), want.Generator, 2e-6)
	areNear(t, must(joint.Program().Save(ctx))(t), want.Values, 2e-6)
}
