package onnx_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
)

// recurrentModel is a layer of one unit over one step of one number x, whose gates are x times each of weights, in
// as many directions as there are lists of them. The model has the layer's last state, of an LSTM the output.
func recurrentModel(t *testing.T, op string, weights [][]float32, attrs ...field) (*onnx.Model, error) {
	t.Helper()
	n, gates := len(weights), len(weights[0])
	var w []float32
	for _, list := range weights {
		w = append(w, list...)
	}
	zeros := make([]float32, n*gates)
	inits := []field{
		tensorOf("w", onnx.Float, []int{n, gates, 1}, floatBytes(w...)), tensorOf("r", onnx.Float, []int{n, gates, 1}, floatBytes(zeros...)),
		tensorOf("c0", onnx.Float, []int{n, 1, 1}, floatBytes(zeros[:n]...)),
	}
	operands := names("x", "w", "r")
	if op == "LSTM" {
		inits[2] = tensorOf("c0", onnx.Float, []int{n, 1, 1}, floatBytes(3))
		operands = append(operands, "", "", "", "c0")
	}
	graph := graphOf([]field{node(op, operands, names("", "y"), append(attrs, attribute("hidden_size", 1))...)}, inits,
		[]field{info("x", onnx.Float, 1, 1, 1)}, []field{info("y", onnx.Float, n, 1, 1)})
	return onnx.Decode(model(14, graph))
}

// The sums of gates are bounded by clip before the activations, and not the state of an LSTM, as in onnxruntime; the forget
// gate of input_forget is one minus the input gate, and both directions take parameters of activations from one list.
func TestRecurrentAttributes(t *testing.T) {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	i, o, f, c := sigmoid(0.5), sigmoid(-0.5), sigmoid(0.25), math.Tanh(0.5)
	lstm := [][]float32{{1, -2, 0.125, 4}} // gates i, o, f, c of x = 2
	for _, k := range []struct {
		op      string
		weights [][]float32
		attrs   []field
		want    []float64
	}{
		{"LSTM", lstm, []field{attribute("clip", float32(0.5))}, []float64{o * math.Tanh(3*f+i*c)}},
		{"LSTM", lstm, []field{attribute("clip", float32(0.5)), attribute("input_forget", 1)}, []float64{o * math.Tanh(3*(1-i)+i*c)}},
		{"GRU", [][]float32{{1, 5, 4}}, []field{attribute("clip", float32(0.5))}, []float64{(1 - i) * c}},
		{"RNN", [][]float32{{4}}, []field{attribute("clip", float32(0.5))}, []float64{c}},
		{"RNN", [][]float32{{1}, {2}}, []field{
			attribute("direction", "bidirectional"), attribute("activations", names("Affine", "Affine")),
			attribute("activation_alpha", []float32{2, 3}), attribute("activation_beta", []float32{1, -1}),
		}, []float64{2*2 + 1, 3*4 - 1}},
	} {
		m, err := recurrentModel(t, k.op, k.weights, k.attrs...)
		if err != nil {
			t.Fatal(err)
		}
		layer, err := m.Import(onnx.Options{})
		if err != nil {
			t.Error(k.op, err)
			continue
		}
		in := map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{2}, 1, 1, 1)}
		for _, w := range layer.Weights {
			data, err := w.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			if in[w.Name], err = ir.ArrayOf(w.Type, data); err != nil {
				t.Fatal(err)
			}
		}
		got := evaluated(t, layer, in)
		for j, w := range k.want {
			if got.Len() != len(k.want) || !(math.Abs(got.F[j]-w) <= 1e-6) {
				t.Errorf("%s: %v, not %v", k.op, got.F, k.want)
				break
			}
		}
	}
}

func TestRecurrentRefusals(t *testing.T) {
	for want, attrs := range map[error][]field{
		ir.ErrAttr:        {attribute("direction", "backward")},
		ir.ErrUnsupported: {attribute("clip", float32(0))},
	} {
		m, err := recurrentModel(t, "RNN", [][]float32{{1}}, attrs...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Import(onnx.Options{}); !errors.Is(err, want) {
			t.Errorf("%v, not of kind %v", err, want)
		}
	}
	m, err := recurrentModel(t, "RNN", [][]float32{{1}, {2}}, attribute("direction", "bidirectional"), attribute("activations", names("Relu")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Import(onnx.Options{}); !errors.Is(err, ir.ErrAttr) {
		t.Error(err)
	}
}
