package train_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml/train"
)

// The problem: y = x·w for eight points and w = (0.5, −1, 2), from w = 0.
var (
	points  = [8][3]float32{{1, 0, 0.5}, {0, 1, -0.5}, {0.5, -1, 1}, {-1, 0.5, 0}, {0.25, 0.75, -1}, {-0.5, -0.25, 0.5}, {1, 1, 1}, {-0.75, 0.5, -1}}
	weights = [3]float32{0.5, -1, 2}
)

func linear(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("linear", func(b *ir.Builder) {
		n := ir.Sym("n")
		x, y := b.Input("x", ir.F32, n, ir.N(3)), b.Input("y", ir.F32, n, ir.N(1))
		off := ops.Sub(b, ops.MatMul(b, x, b.Param("w", ir.F32, ir.Dims(3, 1)...)), y)
		b.Output("loss", ops.Mean(b, ops.Mul(b, off, off)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// bound is the problem for a number of points.
func bound(t *testing.T, n int) *ir.Graph {
	t.Helper()
	g, err := linear(t).Bind(map[string]int{"n": n})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// batch returns the points from one to another.
func batch(from, to int) map[string]native.Tensor {
	var x, y []float32
	for _, p := range points[from:to] {
		x = append(x, p[:]...)
		y = append(y, p[0]*weights[0]+p[1]*weights[1]+p[2]*weights[2])
	}
	return map[string]native.Tensor{"x": native.Float32s(x, to-from, 3), "y": native.Float32s(y, to-from, 1)}
}

func open(t *testing.T, g *ir.Graph, o train.Options) *train.Trainer {
	t.Helper()
	rt := &software.Runtime{}
	s, err := train.New(rt, g, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil || rt.Open != 0 {
			t.Errorf("%d models are open after Close: %v", rt.Open, err)
		}
	})
	return s
}

// run does steps with all points and returns the first and the last loss.
func run(t *testing.T, s *train.Trainer, steps int) (first, last float64) {
	t.Helper()
	for i := range steps {
		r, err := s.Step(context.Background(), batch(0, 8))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = r.Loss
		}
		last = r.Loss
	}
	return first, last
}

func param(t *testing.T, s *train.Trainer) []float32 {
	t.Helper()
	w, ok := s.Param("w")
	if !ok {
		t.Fatal("there is no w")
	}
	x, err := w.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestSGDFindsTheWeights(t *testing.T) {
	s := open(t, bound(t, 8), train.Options{Optimizer: optim.SGD{}, Rate: 0.2})
	first, last := run(t, s, 60)
	if last >= 1e-2*first || last >= 1e-3 {
		t.Errorf("the loss went from %g to %g", first, last)
	}
	for i, w := range param(t, s) {
		if math.Abs(float64(w-weights[i])) > 5e-2 {
			t.Errorf("weight %d is %g, not %g", i, w, weights[i])
		}
	}
	if s.Steps() != 60 {
		t.Errorf("%d steps were counted", s.Steps())
	}
}

// TestFusedEqualsHost: the update within the model is that of the host, step for
// step.
func TestFusedEqualsHost(t *testing.T) {
	for name, o := range map[string]train.Options{
		"sgd":   {Optimizer: optim.SGD{Momentum: 0.9}, Rate: 0.05},
		"adam":  {Optimizer: optim.Adam{}, Rate: 0.05},
		"adamw": {Optimizer: optim.AdamW{}, Rate: 0.05},
	} {
		host := open(t, bound(t, 8), o)
		o.Fuse = true
		fused := open(t, bound(t, 8), o)
		if !fused.FusedActive() || host.FusedActive() {
			t.Errorf("%s: fused is %t where it was asked for and %t where not", name, fused.FusedActive(), host.FusedActive())
		}
		for step := range 41 {
			a, err := host.Step(context.Background(), batch(0, 8))
			if err != nil {
				t.Fatal(err)
			}
			b, err := fused.Step(context.Background(), batch(0, 8))
			if err != nil {
				t.Fatal(err)
			}
			if a.Path != train.Gradient || b.Path != train.Fused || !(math.Abs(a.Loss-b.Loss) <= 1e-4) {
				t.Fatalf("%s, step %d: %v and %v", name, step, a, b)
			}
		}
		x, y := param(t, host), param(t, fused)
		for i := range x {
			if math.Abs(float64(x[i]-y[i])) > 1e-4 {
				t.Errorf("%s: weight %d is %g and %g", name, i, x[i], y[i])
			}
		}
	}
}

// TestAccumulationEqualsOneStep: equal parts of a batch make the step of the batch.
func TestAccumulationEqualsOneStep(t *testing.T) {
	o := train.Options{Optimizer: optim.SGD{}, Rate: 0.2}
	whole, parts := open(t, bound(t, 8), o), open(t, bound(t, 2), o)
	for range 3 {
		if _, err := whole.Step(context.Background(), batch(0, 8)); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			if _, err := parts.Accumulate(batch(2*i, 2*i+2)); err != nil {
				t.Fatal(err)
			}
			if parts.Pending() != i+1 {
				t.Errorf("%d batches are pending after %d", parts.Pending(), i+1)
			}
		}
		if n, err := parts.StepAccumulated(context.Background()); n != 4 || err != nil {
			t.Fatalf("a step of %d batches: %v", n, err)
		}
	}
	x, y := param(t, whole), param(t, parts)
	for i := range x {
		if math.Abs(float64(x[i]-y[i])) > 1e-4 {
			t.Errorf("weight %d is %g in whole batches and %g in parts", i, x[i], y[i])
		}
	}
	if n, err := parts.StepAccumulated(context.Background()); n != 0 || err != nil || parts.Steps() != 3 {
		t.Errorf("a step of nothing was of %d, %d steps: %v", n, parts.Steps(), err)
	}
}

// TestGradientStepEqualsClosedForm: one step of SGD from zero is rate·2/n·xᵀy.
func TestGradientStepEqualsClosedForm(t *testing.T) {
	s := open(t, bound(t, 8), train.Options{Optimizer: optim.SGD{}, Rate: 0.1})
	run(t, s, 1)
	y, _ := batch(0, 8)["y"].Float32s()
	for i, w := range param(t, s) {
		want := 0.0
		for k, p := range points {
			want += 0.1 * 2 / 8 * float64(p[i]) * float64(y[k])
		}
		if !(math.Abs(float64(w)-want) <= 1e-6) {
			t.Errorf("weight %d is %g, not %g", i, w, want)
		}
	}
}

func TestUpdateTaskReportsActualState(t *testing.T) {
	r, err := open(t, bound(t, 8), train.Options{}).Step(context.Background(), batch(0, 8))
	if err != nil {
		t.Fatal(err)
	}
	if r.Eligibility != train.Eligible() || r.Eligibility.UpdateTask || r.Eligibility.Reason == "" || r.Path != train.Gradient {
		t.Errorf("a step reports %+v", r)
	}
}

// cnn learns to distinguish a bright left half from a bright right one.
func cnn(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("cnn", func(b *ir.Builder) {
		x, labels := b.Input("x", ir.F32, ir.Dims(4, 6, 6, 1)...), b.Input("labels", ir.I32, ir.N(4))
		h := ops.Conv2D(b, x, b.Param("k", ir.F32, ir.Dims(3, 3, 1, 4)...), ir.Value{}, ops.Conv2DAttrs{})
		h = ops.MaxPool(b, ops.Relu(b, h), ops.PoolAttrs{Sizes: []int{2, 2}})
		logits := ops.MatMul(b, ops.Reshape(b, h, ir.Dims(4, 16)...), b.Param("w", ir.F32, ir.Dims(16, 2)...))
		b.Output("loss", ops.CrossEntropyMean(b, logits, labels))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestCNNTrains: max-pool and cross-entropy, whose derivatives need windows to be
// added and indices to be scattered, in f32 and in fp16 with a loss scale.
func TestCNNTrains(t *testing.T) {
	images := make([]float32, 4*36)
	for i := range images {
		image, column := i/36, i%6
		images[i] = float32(math.Sin(float64(i))) / 10
		if (column < 3) == (image%2 == 0) {
			images[i]++
		}
	}
	in := map[string]native.Tensor{"x": native.Float32s(images, 4, 6, 6, 1), "labels": native.Int32s([]int32{0, 1, 0, 1})}
	initial := map[string]native.Tensor{"k": small(3, 3, 1, 4), "w": small(16, 2)}
	for name, half := range map[string]bool{"f32": false, "fp16": true} {
		s, err := train.New(&software.Runtime{}, cnn(t), initial, train.Options{Rate: 0.02, Half: half, Fuse: half})
		if err != nil {
			t.Fatal(err)
		}
		var first, last float64
		for i := range 40 {
			r, err := s.Step(context.Background(), in)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = r.Loss
			}
			last = r.Loss
		}
		if last >= 0.1*first || s.FusedActive() || s.Steps() == 0 {
			t.Errorf("%s: the loss went from %g to %g in %d steps", name, first, last, s.Steps())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func small(dims ...int) native.Tensor {
	t := native.Zeros(ir.F32, dims...)
	x, _ := t.Float32s()
	for i := range x {
		x[i] = float32(math.Sin(3*float64(i)+1)) / 3
	}
	return t
}

func TestTrainersRefuseBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		initial map[string]native.Tensor
		o       train.Options
		kind    error
	}{
		"no such output": {nil, train.Options{Loss: "cost"}, ir.ErrName},
		"no such param":  {map[string]native.Tensor{"v": native.Float32(1)}, train.Options{}, ir.ErrName},
		"another type":   {map[string]native.Tensor{"w": native.Float32(1)}, train.Options{}, ir.ErrName},
	} {
		if _, err := train.New(&software.Runtime{}, bound(t, 8), c.initial, c.o); !errors.Is(err, c.kind) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	s := open(t, bound(t, 8), train.Options{Fuse: true})
	if _, err := s.Accumulate(batch(0, 8)); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("a fused trainer accumulates: %v", err)
	}
	if _, err := s.Step(context.Background(), batch(0, 4)); !errors.Is(err, ir.ErrShape) {
		t.Errorf("half a batch: %v", err)
	}
	if _, err := s.Step(context.Background(), map[string]native.Tensor{"x": batch(0, 8)["x"]}); !errors.Is(err, ir.ErrName) {
		t.Errorf("no labels: %v", err)
	}
}
