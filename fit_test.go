package rlx_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// points are 20 examples of two classes, by the sign of the sum of their coordinates.
func points() rlx.Inputs {
	x, labels := make([]float32, 40), make([]int32, 20)
	for i := range labels {
		x[2*i], x[2*i+1] = float32(math.Sin(float64(3*i))), float32(math.Cos(float64(5*i)))
		if x[2*i]+x[2*i+1] > 0 {
			labels[i] = 1
		}
	}
	return rlx.Inputs{"x": rlx.Float32s(x, 20, 2), "labels": rlx.Int32s(labels)}
}

// pointsTrainer returns a trainer of a small network with dropout and a metric, whose program has the
// entry "eval" for all points.
func pointsTrainer(t *testing.T, rate float64) *rlx.Trainer {
	t.Helper()
	return pointsTrainerOn(t, session(t), rate)
}

func pointsTrainerOn(t *testing.T, s *rlx.Session, rate float64) *rlx.Trainer {
	t.Helper()
	model := func(b *ir.Builder, rows int) (loss, accuracy ir.Value) {
		x, labels := b.Input("x", ir.F32, ir.Dims(rows, 2)...), b.Input("labels", ir.I32, ir.N(rows))
		logits := nn.Linear(b, nn.Dropout(b, ops.Relu(b, nn.Linear(b, x, 16)), 0.1), 2)
		return ops.CrossEntropyMean(b, logits, labels), nn.Accuracy(b, logits, labels)
	}
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		nn.Train(b)
		loss, accuracy := model(b, 4)
		nn.Metric(b, "accuracy", accuracy)
		b.Output("loss", loss)
	})
	if err != nil {
		t.Fatal(err)
	}
	eval, err := ir.Build("eval", func(b *ir.Builder) {
		nn.Infer(b)
		loss, accuracy := model(b, 20)
		b.Output("loss", loss)
		b.Output("accuracy", accuracy)
	})
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := s.Train(ctx, loss, rlx.Training{Rate: rate, Seed: 2, Eval: []ir.Entry{{Name: "eval", Graph: eval}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trainer.Program().Close(ctx) })
	return trainer
}

func evaluation() rlx.Evaluation {
	return rlx.Evaluation{Entry: "eval", Data: rlx.InOrder(points(), 20)}
}

// TestFitTrains trains with reports, metrics and evaluations.
func TestFitTrains(t *testing.T) {
	var reports []rlx.Report
	var lines strings.Builder
	trainer := pointsTrainer(t, 0.05)
	last, err := rlx.Fit(ctx, trainer, rlx.Loop{
		Data: rlx.Shuffled(points(), 4, 1), Epochs: 30, Every: 10, Eval: evaluation(), Progress: &lines,
		Callbacks: []func(r rlx.Report) error{func(r rlx.Report) error { reports = append(reports, r); return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(reports) != 16 || last.Step != 150 || last.Epoch != 30 || !last.Done { // the last one reports the end
		t.Fatalf("%d reports, the last %+v", len(reports), last)
	}
	losses, err := trainer.Losses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range reports[:15] {
		sum := 0.
		for _, x := range losses[10*i : 10*i+10] {
			sum += float64(x)
		}
		if r.Step != 10*(i+1) || !(math.Abs(r.Loss-sum/10) <= 1e-9) || r.Rate <= 0 {
			t.Errorf("report %d is %+v; the mean loss is %v", i, r, sum/10)
		}
		if a := r.Metrics["accuracy"] * 40; !(math.Abs(a-math.Round(a)) <= 1e-4) || a > 40 { // of ten batches of four
			t.Errorf("report %d has an accuracy of %v", i, r.Metrics)
		}
	}
	first, end := reports[0], reports[14]
	if !(end.Eval["loss"] < first.Eval["loss"]/2) || end.Eval["accuracy"] < 0.95 || end.Metrics["accuracy"] < 0.9 {
		t.Errorf("it did not learn: %+v, then %+v", first, end)
	}
	text := strings.Split(lines.String(), "\n")
	if len(text) != 17 || !strings.HasPrefix(text[0], "step 10, epoch 1/30, loss 0.") || !strings.Contains(text[0], ", accuracy 0.") || !strings.Contains(text[0], "eval accuracy") {
		t.Errorf("the progress is\n%s", lines.String())
	}
}

// TestFitResumes cuts a training at several steps: by its last checkpoint it ends with the same
// parameters, to the bit, though dropout and the order of the data are random.
func TestFitResumes(t *testing.T) {
	loop := rlx.Loop{Data: rlx.Shuffled(points(), 4, 7), Steps: 23, Eval: evaluation()}
	whole := pointsTrainer(t, 0.01)
	if _, err := rlx.Fit(ctx, whole, loop); err != nil {
		t.Fatal(err)
	}
	want, err := whole.Params(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range 4 {
		folder, cuts := t.TempDir(), []int{1 + cut, 4 + 2*cut, 6 + 3*cut, 19}
		loop := loop
		loop.Save = rlx.Checkpoints{Folder: folder, Every: 1 + cut, Last: 2, Resume: true}
		if loop.EpochSteps = 0; cut%2 == 1 {
			loop.EpochSteps = 5
		}
		trainer := pointsTrainer(t, 0.01)
		for _, at := range cuts {
			inner, cancel := context.WithCancel(ctx)
			data := loop.Data
			loop.Data = func(epoch int) iter.Seq2[rlx.Inputs, error] {
				return func(yield func(rlx.Inputs, error) bool) {
					for batch, err := range data(epoch) {
						if trainer.Steps() >= at {
							cancel()
						}
						if !yield(batch, err) {
							return
						}
					}
				}
			}
			_, err := rlx.Fit(inner, trainer, loop)
			cancel()
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), fmt.Sprintf("step %d: ", trainer.Steps())) {
				t.Fatalf("cut at %d: %v", at, err)
			}
			trainer, loop.Data = pointsTrainer(t, 0.01), data
		}
		if _, err := rlx.Fit(ctx, trainer, loop); err != nil {
			t.Fatal(err)
		}
		got, err := trainer.Params(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("%d parameters, not %d", len(got), len(want))
		}
		for name, x := range want {
			if !slices.Equal(got[name].Data, x.Data) {
				t.Errorf("cut at %v, %s differs", cuts, name)
			}
		}
		files, err := filepath.Glob(filepath.Join(folder, "step-*"))
		if err != nil || len(files) != 2 || filepath.Base(files[1]) != "step-00000023.safetensors" {
			t.Errorf("the folder has %v, %v", files, err)
		}
	}
}

// TestFitStopsEarly evaluates by an entry that gets worse after the third time: the training ends
// when patience does, and the best checkpoint is that of the third.
func TestFitStopsEarly(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		w := b.Param("w", ir.F32)
		b.Output("loss", ops.Neg(b, ops.Mul(b, w, b.Input("x", ir.F32)))) // each step adds the rate to w
	})
	if err != nil {
		t.Fatal(err)
	}
	eval, err := ir.Build("eval", func(b *ir.Builder) {
		away := ops.Sub(b, b.Param("w", ir.F32), ops.Const(b, ir.F32, 3))
		b.Output("error", ops.Add(b, ops.Abs(b, away), b.Input("more", ir.F32)))
		b.Output("count", b.Input("n", ir.I32))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, larger := range []bool{false, true} {
		trainer, err := session(t).Train(ctx, loss, rlx.Training{Optimizer: optim.SGD{}, Rate: 1, Eval: []ir.Entry{{Name: "eval", Graph: eval}}})
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		var best []int
		last, err := rlx.Fit(ctx, trainer, rlx.Loop{
			Data: func(int) iter.Seq2[rlx.Inputs, error] {
				return func(yield func(rlx.Inputs, error) bool) { yield(rlx.Inputs{"x": rlx.Float32(1)}, nil) }
			},
			Epochs: 100,
			Eval: rlx.Evaluation{Entry: "eval", Weight: "count", Data: func() iter.Seq2[rlx.Inputs, error] {
				return func(yield func(rlx.Inputs, error) bool) { // the mean of 0 and 8, weighted 3 to 1, is 2
					_ = yield(rlx.Inputs{"more": rlx.Float32(0), "n": rlx.Int32s([]int32{3}, []int{}...)}, nil) &&
						yield(rlx.Inputs{"more": rlx.Float32(8), "n": rlx.Int32s([]int32{1}, []int{}...)}, nil)
				}
			}},
			Stop: rlx.EarlyStop{Patience: 4, Metric: "error", Larger: larger, MinDelta: 0.5},
			Save: rlx.Checkpoints{Folder: folder},
			Callbacks: []func(r rlx.Report) error{func(r rlx.Report) error {
				if want := math.Abs(float64(r.Step)-3) + 2; r.Eval["error"] != want || len(r.Eval) != 1 {
					t.Errorf("after %d steps the evaluation is %v, not %v", r.Step, r.Eval, want)
				}
				if r.Best {
					best = append(best, r.Step)
				}
				if r.Step == 12 {
					return rlx.ErrStop
				}
				return nil
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		wantLast, wantBest := 7, []int{1, 2, 3}
		if larger { // errors of 4, 3, 2, 3, 4 and then 5, which is the first improvement
			wantLast, wantBest = 5, []int{1}
		}
		if last.Step != wantLast || !last.Done || !slices.Equal(best, wantBest) {
			t.Errorf("it ended after %d steps, best after %v", last.Step, best)
		}
		value, err := os.ReadFile(filepath.Join(folder, "best.txt"))
		if err != nil || string(value) != map[bool]string{false: "2\n", true: "4\n"}[larger] {
			t.Errorf("the best value is %q, %v", value, err)
		}
		if err := trainer.LoadFile(ctx, filepath.Join(folder, "best.safetensors")); err != nil || trainer.Steps() != wantBest[len(wantBest)-1] {
			t.Errorf("the best checkpoint is after %d steps, %v", trainer.Steps(), err)
		}
	}
}

// TestFitStopsByCallback ends a training by [rlx.ErrStop] and by another error.
func TestFitStopsByCallback(t *testing.T) {
	wrong := errors.New("wrong")
	for _, c := range []struct{ give, want error }{{rlx.ErrStop, nil}, {wrong, wrong}} {
		trainer := pointsTrainer(t, 0.01)
		last, err := rlx.Fit(ctx, trainer, rlx.Loop{Data: rlx.Shuffled(points(), 4, 1), Steps: 100, Every: 3, Callbacks: []func(r rlx.Report) error{func(r rlx.Report) error {
			if r.Step == 6 {
				return c.give
			}
			return nil
		}}})
		if !errors.Is(err, c.want) || trainer.Steps() != 6 || last.Step != 6 {
			t.Errorf("%v: %v after %d steps", c.give, err, trainer.Steps())
		}
	}
}

// TestFitRefusesBadLoops gives loops that are incomplete and data that is wrong.
func TestFitRefusesBadLoops(t *testing.T) {
	data := rlx.Shuffled(points(), 4, 1)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		loop rlx.Loop
		kind error
	}{
		"no data":           {rlx.Loop{Steps: 1}, ir.ErrAttr},
		"prefetched nil":    {rlx.Loop{Steps: 1, Data: rlx.Prefetch(nil, 2)}, ir.ErrAttr},
		"nil callback":      {rlx.Loop{Steps: 1, Data: data, Callbacks: []func(r rlx.Report) error{nil}}, ir.ErrAttr},
		"no end":            {rlx.Loop{Data: data}, ir.ErrAttr},
		"negative":          {rlx.Loop{Data: data, Steps: 3, Every: -1}, ir.ErrAttr},
		"no evaluation":     {rlx.Loop{Data: data, Steps: 3, Stop: rlx.EarlyStop{Patience: 1}}, ir.ErrAttr},
		"metric of nothing": {rlx.Loop{Data: data, Steps: 3, Stop: rlx.EarlyStop{Metric: "f1"}}, ir.ErrAttr},
		"no data of eval":   {rlx.Loop{Data: data, Steps: 3, Eval: rlx.Evaluation{Entry: "eval"}}, ir.ErrAttr},
		"unknown entry":     {rlx.Loop{Data: data, Steps: 3, Eval: rlx.Evaluation{Entry: "test", Data: rlx.InOrder(points(), 20)}}, ir.ErrName},
		"unknown metric":    {rlx.Loop{Data: data, Steps: 3, Eval: evaluation(), Stop: rlx.EarlyStop{Patience: 1, Metric: "f1"}}, ir.ErrName},
		"misspelt metric":   {rlx.Loop{Data: data, Steps: 3, Eval: evaluation(), Stop: rlx.EarlyStop{Metric: "f1"}}, ir.ErrName},
		"unknown weight":    {rlx.Loop{Data: data, Steps: 3, Eval: rlx.Evaluation{Entry: "eval", Data: rlx.InOrder(points(), 20), Weight: "n"}}, ir.ErrName},
		"no folder":         {rlx.Loop{Data: data, Steps: 3, Save: rlx.Checkpoints{Last: 2}}, ir.ErrAttr},
		"folder is a file":  {rlx.Loop{Data: data, Steps: 3, Save: rlx.Checkpoints{Folder: file}}, os.ErrExist},
		"large batches":     {rlx.Loop{Data: rlx.Shuffled(points(), 21, 1), Steps: 3}, ir.ErrShape},
		"empty batches":     {rlx.Loop{Data: rlx.Shuffled(points(), 0, 1), Steps: 3}, ir.ErrAttr},
		"rows":              {rlx.Loop{Data: rlx.Shuffled(rlx.Inputs{"x": points()["x"], "labels": rlx.Int32s([]int32{1})}, 1, 1), Steps: 3}, ir.ErrShape},
		"too few elements":  {rlx.Loop{Data: rlx.Shuffled(rlx.Inputs{"x": rlx.Float32s(make([]float32, 3), 4, 2)}, 2, 1), Steps: 3}, ir.ErrShape},
		"a nil epoch":       {rlx.Loop{Data: func(int) iter.Seq2[rlx.Inputs, error] { return nil }, Steps: 3}, ir.ErrAttr},
		"scalars":           {rlx.Loop{Data: rlx.Shuffled(rlx.Inputs{"x": rlx.Float32(1)}, 1, 1), Steps: 3}, ir.ErrShape},
		"other batch":       {rlx.Loop{Data: rlx.Shuffled(points(), 5, 1), Steps: 3}, ir.ErrShape},
		"broken":            {rlx.Loop{Data: func(int) iter.Seq2[rlx.Inputs, error] { return func(y func(rlx.Inputs, error) bool) { y(nil, broken) } }, Steps: 3}, broken},
		"empty epoch":       {rlx.Loop{Data: func(int) iter.Seq2[rlx.Inputs, error] { return func(func(rlx.Inputs, error) bool) {} }, Steps: 3}, ir.ErrAttr},
		"broken evaluation": {rlx.Loop{Data: data, Steps: 3, Eval: rlx.Evaluation{Entry: "eval", Data: func() iter.Seq2[rlx.Inputs, error] { return func(y func(rlx.Inputs, error) bool) { y(nil, broken) } }}}, broken},
	} {
		_, err := rlx.Fit(ctx, pointsTrainer(t, 0.01), c.loop)
		if name == "folder is a file" && err != nil {
			continue // the kind is the system's
		}
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, not of kind %v", name, err, c.kind)
		}
	}
	for _, none := range []*rlx.Trainer{nil, {}} {
		if _, err := rlx.Fit(ctx, none, rlx.Loop{}); !errors.Is(err, ir.ErrGraph) {
			t.Errorf("no trainer: %v", err)
		}
	}
}

// TestShuffledEpochs asserts that an epoch has each row once, in the order of its seed.
func TestShuffledEpochs(t *testing.T) {
	rows := func(data iter.Seq2[rlx.Inputs, error]) (all []int32) {
		for batch, err := range data {
			if err != nil {
				t.Fatal(err)
			}
			x, err := batch["i"].Int32s()
			if err != nil || len(x) != 3 || !slices.Equal(batch["twice"].Dims, []int{3, 2}) {
				t.Fatal(batch, err)
			}
			twice, _ := batch["twice"].Int32s()
			for k, i := range x {
				if twice[2*k] != i || twice[2*k+1] != 2*i {
					t.Errorf("row %d is %v", i, twice[2*k:2*k+2])
				}
			}
			all = append(all, x...)
		}
		return all
	}
	i, twice := make([]int32, 10), make([]int32, 20)
	for k := range i {
		i[k], twice[2*k], twice[2*k+1] = int32(k), int32(k), int32(2*k)
	}
	data := rlx.Inputs{"i": rlx.Int32s(i), "twice": rlx.Int32s(twice, 10, 2)}
	f := rlx.Shuffled(data, 3, 5)
	first, again, next := rows(f(0)), rows(f(0)), rows(f(1))
	if !slices.Equal(first, again) || slices.Equal(first, next) || len(first) != 9 {
		t.Errorf("epochs %v, %v, %v", first, again, next)
	}
	slices.Sort(first)
	if len(slices.Compact(first)) != 9 {
		t.Errorf("an epoch repeats rows: %v", first)
	}
	if got := rows(rlx.InOrder(data, 3)()); !slices.Equal(got, i[:9]) {
		t.Errorf("in order: %v", got)
	}
	var sizes []int
	var read []int32
	for batch, err := range rlx.AllInOrder(data, 4)() {
		got, _ := batch["i"].Int32s()
		if err != nil {
			t.Fatal(err)
		}
		read, sizes = append(read, got...), append(sizes, batch["i"].Dims[0])
		if batch["twice"].Dims[0] != batch["i"].Dims[0] || len(batch["twice"].Data) != 8*batch["twice"].Dims[0] {
			t.Errorf("a batch has %v and %v", batch["i"], batch["twice"])
		}
	}
	if !slices.Equal(read, i) || !slices.Equal(sizes, []int{4, 4, 2}) {
		t.Errorf("all in order: %v in batches of %v", read, sizes)
	}
	for batch, err := range rlx.AllInOrder(data, math.MaxInt)() {
		if got, _ := batch["i"].Int32s(); err != nil || !slices.Equal(got, i) || batch["i"].Dims[0] != len(i) {
			t.Errorf("one batch of all: %v, %v", batch, err)
		}
	}
	for _, err := range rlx.AllInOrder(data, 0)() {
		if !errors.Is(err, ir.ErrAttr) {
			t.Errorf("batches of 0 rows: %v", err)
		}
	}
}
