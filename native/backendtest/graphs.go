package backendtest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// model is a graph of a loss with a number of training steps.
type model struct {
	name string
	loss func(b *ir.Builder) ir.Value
}

// models are small but have the parts of larger ones: matrix products, convolutions,
// pooling, softmax, indexing, loops.
var models = []model{
	{"MLP", func(b *ir.Builder) ir.Value {
		x, labels := b.Input("x", ir.F32, ir.Dims(9, 7)...), b.Input("labels", ir.I32, ir.N(9))
		h := ops.Relu(b, ops.Linear(b, x, weight(b, "w1", 7, 19), weight(b, "b1", 19)))
		return ops.CrossEntropyMean(b, ops.Linear(b, h, weight(b, "w2", 19, 5), weight(b, "b2", 5)), labels)
	}},
	{"CNN", func(b *ir.Builder) ir.Value {
		x, labels := b.Input("x", ir.F32, ir.Dims(3, 6, 6, 2)...), b.Input("labels", ir.I32, ir.N(3))
		pad := ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}
		h := ops.Relu(b, ops.Conv2D(b, x, weight(b, "conv", 3, 3, 2, 4), weight(b, "bias", 4), pad))
		h = ops.MaxPool(b, h, ops.PoolAttrs{Sizes: []int{2, 2}})
		flat := ops.Reshape(b, h, ir.Dims(3, 36)...)
		return ops.CrossEntropyMean(b, ops.Linear(b, flat, weight(b, "w", 36, 5), weight(b, "b", 5)), labels)
	}},
	{"RNN", func(b *ir.Builder) ir.Value {
		x, labels := b.Input("x", ir.F32, ir.Dims(6, 4, 3)...), b.Input("labels", ir.I32, ir.N(4))
		wx, wh := weight(b, "wx", 3, 8), weight(b, "wh", 8, 8)
		h, _ := ops.Scan(b, ops.Loop{
			Length: ir.N(6), Consts: []ir.Value{wx, wh}, Carries: []ir.Value{ops.Zeros(b, ir.F32, ir.Dims(4, 8)...)}, Xs: []ir.Value{x},
			Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
				sum := ops.Add(b, ops.MatMul(b, xs[0], consts[0]), ops.MatMul(b, carries[0], consts[1]))
				return []ir.Value{ops.Tanh(b, sum)}, nil
			},
		})
		return ops.CrossEntropyMean(b, ops.Linear(b, h[0], weight(b, "w", 8, 5), weight(b, "b", 5)), labels)
	}},
	{"RNN in checkpointed segments", func(b *ir.Builder) ir.Value {
		x, labels := b.Input("x", ir.F32, ir.Dims(6, 12)...), b.Input("labels", ir.I32, ir.N(4))
		cut := ops.Reshape(b, ops.MatMul(b, x, weight(b, "wx", 12, 32)), ir.Dims(2, 3, 4, 8)...) // a loop's slices are contiguous
		h := segment(b, 2, weight(b, "wh", 8, 8), ops.Zeros(b, ir.F32, ir.Dims(4, 8)...), cut)
		return ops.CrossEntropyMean(b, ops.Linear(b, h, weight(b, "w", 8, 5), weight(b, "b", 5)), labels)
	}},
}

// segment nests loops to a depth, with each step under a Checkpoint.
func segment(b *ir.Builder, depth int, w, h, x ir.Value) ir.Value {
	if depth == 0 {
		return ops.Tanh(b, ops.Add(b, x, ops.MatMul(b, h, w)))
	}
	out, _ := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{w}, Carries: []ir.Value{h}, Xs: []ir.Value{x},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			return autodiff.Checkpoint(b, []ir.Value{consts[0], carries[0], xs[0]}, func(b *ir.Builder, in []ir.Value) []ir.Value {
				return []ir.Value{segment(b, depth-1, in[0], in[1], in[2])}
			}), nil
		},
	})
	return out[0]
}

func weight(b *ir.Builder, name string, dims ...int) ir.Value {
	return b.Param(name, ir.F32, ir.Dims(dims...)...)
}

// Graphs trains small models for a few steps and compares losses and parameters with a
// float64 evaluation of the same graphs.
func Graphs(t *testing.T, b native.Backend) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			step, err := stepGraph(m)
			if err != nil {
				t.Fatal(err)
			}
			if why := supported(b, step); why != "" {
				t.Fatalf("not supported: %s", why)
			}
			train(t, b, step)
		})
	}
}

func stepGraph(m model) (*ir.Graph, error) {
	loss, err := ir.Build(m.name, func(b *ir.Builder) { b.Output("loss", m.loss(b)) })
	if err != nil {
		return nil, err
	}
	return optim.Step(loss, "loss", optim.Adam{}, optim.Options{Missing: autodiff.MissingIsError})
}

// firstValues returns random values for all ports of a graph.
func firstValues(g *ir.Graph) map[string]*ir.Array {
	r := rand.New(rand.NewPCG(7, 1))
	out := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			a.F[i] = a.DType.Round(r.Float64() - 0.5)
		}
		for i := range a.I {
			a.I[i] = int64(r.IntN(5))
		}
		if optim.IsState(p) {
			clear(a.F)
			clear(a.I)
		}
		out[p.Name] = a
	}
	out[optim.RateInput] = ir.Float(ir.F32, 0.01)
	return out
}

func train(t *testing.T, b native.Backend, step *ir.Graph) {
	t.Helper()
	const steps = 5
	values := firstValues(step)
	p := compile(t, b, step)
	defer closeProgram(t, p)
	in := map[string]*ir.Array{}
	for _, port := range step.Ports() {
		if port.Kind == ir.InputPort {
			in[port.Name] = values[port.Name]
		} else if err := p.Set(context.Background(), port.Name, native.FromArray(values[port.Name])); err != nil {
			t.Fatal(err)
		}
	}
	for k := range steps {
		want, err := ir.Eval(step, values, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := run(p, step.Name(), in)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range step.Outputs() {
			if o.State {
				values[o.Name] = want[i]
			} else if diff := Compare(got[o.Name], want[i], irtest.LooseToleranceFor(want[i].DType)); diff != "" {
				t.Errorf("step %d: %s %s", k, o.Name, diff)
			}
		}
	}
	for _, s := range p.Persistent() {
		got, err := p.Get(context.Background(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := Compare(got, values[s.Name], irtest.LooseToleranceFor(s.DType)); diff != "" {
			t.Errorf("after %d steps: %s: %s", steps, s.Name, diff)
		}
	}
}

// compile compiles graphs as entries with their own names.
func compile(t *testing.T, b native.Backend, graphs ...*ir.Graph) native.Program {
	t.Helper()
	var entries []ir.Entry
	for _, g := range graphs {
		entries = append(entries, ir.Entry{Name: g.Name(), Graph: g})
	}
	m, err := ir.NewModule("module", entries...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(context.Background(), m, native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func build(t *testing.T, name string, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build(name, f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// wait returns the outputs of a run.
func wait(t *testing.T, r native.Run, err error) map[string]native.Tensor {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// floats returns the elements of an f32 tensor.
func floats(t *testing.T, x native.Tensor) []float32 {
	t.Helper()
	out, err := x.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(a, b float32) bool { return math.Abs(float64(a-b)) <= 1e-5*math.Max(1, math.Abs(float64(b))) }

func sameFloats(got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d elements, not %d", len(got), len(want))
	}
	for i := range got {
		if !near(got[i], want[i]) {
			return fmt.Errorf("%v, not %v", got, want)
		}
	}
	return nil
}
