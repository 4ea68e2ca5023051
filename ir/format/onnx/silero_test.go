package onnx_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx/internal/onnxcase"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cpu"
	"github.com/rlx-go/rlx/native/safetensors"
)

// sileroParams are the shapes of the tensors of silero_vad_16k.safetensors.
var sileroParams = map[string][]int{
	"stft_conv.weight": {258, 1, 256}, "conv1.weight": {128, 129, 3}, "conv2.weight": {64, 128, 3}, "conv3.weight": {64, 64, 3}, "conv4.weight": {128, 64, 3},
	"conv1.bias": {128}, "conv2.bias": {64}, "conv3.bias": {64}, "conv4.bias": {128}, "final_conv.weight": {1, 128, 1}, "final_conv.bias": {1},
	"lstm_cell.weight_ih": {512, 128}, "lstm_cell.weight_hh": {512, 128}, "lstm_cell.bias_ih": {512}, "lstm_cell.bias_hh": {512},
}

// silero is the network of these weights, with the inputs and outputs of its ONNX form.
func silero(b *ir.Builder) {
	p := map[string]ir.Value{}
	for name, dims := range sileroParams {
		p[name] = b.Param(name, ir.F32, ir.Dims(dims...)...)
	}
	conv := func(x ir.Value, name string, stride, pad int) ir.Value {
		y := ops.ConvGeneral(b, x, p[name+".weight"], ops.ConvAttrs{Strides: []int{stride}, PadLo: []int{pad}, PadHi: []int{pad}})
		if bias, has := p[name+".bias"]; has {
			y = ops.Add(b, y, ops.ExpandDims(b, bias, 1))
		}
		return y
	}
	state := b.Input("state", ir.F32, ir.Dims(2, 1, 128)...)
	x := ops.PadMode(b, b.Input("input", ir.F32, ir.Dims(1, 576)...), []int{0, 0}, []int{0, 64}, ops.PadReflect)
	parts := ops.Split(b, conv(ops.ExpandDims(b, x, 1), "stft_conv", 128, 0), 1, ir.Dims(129, 129)...) // real and imaginary
	x = ops.Sqrt(b, ops.Add(b, ops.Square(b, parts[0]), ops.Square(b, parts[1])))
	for i, name := range []string{"conv1", "conv2", "conv3", "conv4"} {
		x = ops.Relu(b, conv(x, name, []int{1, 2, 2, 1}[i], 1))
	}
	row := func(i int) ir.Value {
		return ops.Reshape(b, ops.SliceAxis(b, state, 0, ir.N(i), ir.N(1)), ir.Dims(1, 128)...)
	}
	product := func(x ir.Value, name string) ir.Value {
		return ops.Linear(b, x, ops.Transpose(b, p["lstm_cell.weight_"+name], 1, 0), p["lstm_cell.bias_"+name])
	}
	gates := ops.Split(b, ops.Add(b, product(ops.Reshape(b, x, ir.Dims(1, 128)...), "ih"), product(row(0), "hh")), 1, ir.Dims(128, 128, 128, 128)...)
	cell := ops.Add(b, ops.Mul(b, ops.Sigmoid(b, gates[1]), row(1)), ops.Mul(b, ops.Sigmoid(b, gates[0]), ops.Tanh(b, gates[2])))
	hidden := ops.Mul(b, ops.Sigmoid(b, gates[3]), ops.Tanh(b, cell))
	y := conv(ops.ExpandDims(b, ops.Relu(b, hidden), 2), "final_conv", 1, 0)
	b.Output("output", ops.Reshape(b, ops.Sigmoid(b, y), ir.Dims(1, 1)...))
	b.Output("stateN", ops.Stack(b, 0, hidden, cell))
}

// TestModelsWeights computes Silero VAD of its seventh form, weights without a graph: the results are those of onnxruntime for
// the graph of another form with these weights.
func TestModelsWeights(t *testing.T) {
	folder := filepath.Join(os.Getenv("RLX_ONNX_MODELS"), "silero_safetensors_0")
	backendtest.Require(t, "onnx", func() error { _, err := os.Stat(folder); return err }())
	c, err := onnxcase.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	weights, _, err := safetensors.ReadFile(filepath.Join(folder, "weights.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := ir.Build("silero", silero)
	if err != nil {
		t.Fatal(err)
	}
	results, err := c.Run(t.Context(), cpu.Backend(), g, weights, nil)
	if err == nil {
		err = c.Check(results, false)
	}
	if err != nil {
		t.Error(err)
	}
}
