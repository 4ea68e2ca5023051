package autodiff_test

import (
	"encoding/json"
	"os"
	"sort"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// golden is the values that testdata/models.py computed with JAX for one model.
type golden struct {
	Loss       float64
	Grads, HVP map[string][]float64
}

func readModels(t *testing.T) map[string]golden {
	t.Helper()
	data, err := os.ReadFile("testdata/models.json")
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]golden
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// model is one of testdata/models.py, with its parameters in the order and with
// the seeds given there.
type model struct {
	params values
	x      *ir.Array
	loss   func(b *ir.Builder, p func(name string) ir.Value, x, labels ir.Value) ir.Value
}

var models = map[string]model{
	"mlp": {
		params: values{
			"w1": wave(1, 5, 6), "b1": wave(2, 6), "w2": wave(3, 6, 4), "b2": wave(4, 4),
			"w3": wave(5, 4, 5), "b3": wave(6, 5), "w4": wave(7, 5, 3),
		},
		x: wave(8, 4, 5),
		loss: func(b *ir.Builder, p func(string) ir.Value, x, labels ir.Value) ir.Value {
			h := ops.Tanh(b, ops.Linear(b, x, p("w1"), p("b1")))
			h = ops.Gelu(b, ops.Linear(b, h, p("w2"), p("b2")))
			h = ops.Relu(b, ops.Linear(b, h, p("w3"), p("b3")))
			return ops.CrossEntropyMean(b, ops.MatMul(b, h, p("w4")), labels)
		},
	},
	"cnn": {
		params: values{
			"c1": wave(1, 3, 3, 2, 3), "a1": wave(2, 3), "c2": wave(3, 2, 2, 3, 4), "w": wave(4, 4, 3), "b": wave(5, 3),
		},
		x: wave(6, 4, 6, 6, 2),
		loss: func(b *ir.Builder, p func(string) ir.Value, x, labels ir.Value) ir.Value {
			h := ops.Relu(b, ops.Conv2D(b, x, p("c1"), p("a1"), ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}))
			h = ops.MaxPool(b, h, ops.PoolAttrs{Sizes: []int{2, 2}})
			h = ops.Conv2D(b, h, p("c2"), ir.Value{}, ops.Conv2DAttrs{Strides: []int{2, 1}, PadHi: []int{1, 0}})
			h = ops.Mean(b, ops.Silu(b, h), 1, 2)
			return ops.CrossEntropyMean(b, ops.Linear(b, h, p("w"), p("b")), labels)
		},
	},
}

// graph builds a model's loss; the batch has the given size, which may be
// symbolic.
func (m model) graph(t *testing.T, batch ir.Dim) (*ir.Graph, values) {
	t.Helper()
	in := values{"x": m.x, "labels": ir.Ints(ir.I32, []int64{2, 0, 1, 2})}
	var names []string
	for name := range m.params {
		names = append(names, name)
	}
	sort.Strings(names)
	g := build(t, func(b *ir.Builder) {
		params := map[string]ir.Value{}
		for _, name := range names {
			in[name] = m.params[name]
			params[name] = b.Port(ir.ParamPort, name, m.params[name].Type())
		}
		shape := m.x.Type().Shape
		shape[0] = batch
		x, labels := b.Input("x", ir.F64, shape...), b.Input("labels", ir.I32, batch)
		b.Output("loss", m.loss(b, func(name string) ir.Value { return params[name] }, x, labels))
	})
	return g, in
}

func TestGradientsOfModelsAgreeWithJAX(t *testing.T) {
	for name, want := range readModels(t) {
		t.Run(name, func(t *testing.T) {
			g, in := models[name].graph(t, ir.N(4))
			d, err := autodiff.ValueAndGrad(g, "loss")
			checkGolden(t, eval(t, must(t, d, err), in), want)
		})
	}
}

func TestGradientsOfModelsWithASymbolicBatchAgreeWithJAX(t *testing.T) {
	for name, want := range readModels(t) {
		t.Run(name, func(t *testing.T) {
			g, in := models[name].graph(t, ir.Sym("batch"))
			d, err := autodiff.ValueAndGrad(g, "loss")
			bound, err := must(t, d, err).Bind(map[string]int{"batch": 4})
			checkGolden(t, eval(t, must(t, bound, err), in), want)
		})
	}
}

func checkGolden(t *testing.T, got values, want golden) {
	t.Helper()
	checkFloats(t, "loss", got["loss"], []float64{want.Loss}, 1e-12)
	for name, w := range want.Grads {
		checkFloats(t, name, got[autodiff.GradName(name)], w, 1e-12)
	}
}

func TestHessianVectorProductsOfModelsAgreeWithJAX(t *testing.T) {
	for name, want := range readModels(t) {
		t.Run(name, func(t *testing.T) {
			g, in := models[name].graph(t, ir.N(4))
			h, err := autodiff.HVP(g, "loss")
			// The direction of parameter i, by name, is wave(i).
			i := 0
			for _, p := range g.Ports() {
				if p.Kind == ir.ParamPort {
					in[autodiff.TangentName(p.Name)] = wave(float64(i), in[p.Name].Dims...)
					i++
				}
			}
			got := eval(t, must(t, h, err), in)
			checkGolden(t, got, want)
			for name, w := range want.HVP {
				checkFloats(t, name, got[autodiff.HVPName(name)], w, 1e-12)
			}
		})
	}
}
