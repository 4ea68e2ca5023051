package main

import (
	"math"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// module joins a step with the probe of one of its states, of the given shape.
func module(step *ir.Graph, state string, shape ...int) (*ir.Module, error) {
	probe, err := ir.Build("probe", func(b *ir.Builder) {
		v := b.Param(state, ir.F32, ir.Dims(shape...)...)
		for range shape {
			v = ops.Squeeze(b, ops.SliceAxis(b, v, 0, ir.N(0), ir.N(1)), 0)
		}
		b.Output("first", v)
	})
	if err != nil {
		return nil, err
	}
	return ir.NewModule(step.Name(), ir.Entry{Name: "step", Graph: step}, ir.Entry{Name: "probe", Graph: probe})
}

// product is result = a·b, with a of n×n and b of n×columns.
func product(n, columns int) (*ir.Module, error) {
	step, err := ir.Build("product", func(b *ir.Builder) {
		b.State("result", ir.F32, ir.Dims(n, columns)...)
		a, c := b.Input("a", ir.F32, ir.Dims(n, n)...), b.Input("b", ir.F32, ir.Dims(n, columns)...)
		b.SetState("result", ops.MatMul(b, a, c))
	})
	if err != nil {
		return nil, err
	}
	return module(step, "result", n, columns)
}

// functions are of all elements, or of rows.
var functions = map[string]func(b *ir.Builder, x ir.Value) ir.Value{
	"softmax": func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) },
	"layernorm": func(b *ir.Builder, x ir.Value) ir.Value {
		scale, bias := b.Param("scale", ir.F32, x.Dim(1)), b.Param("bias", ir.F32, x.Dim(1))
		return ops.LayerNorm(b, x, scale, bias, 1e-5)
	},
	"gelu":       ops.Gelu,
	"transpose":  func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) },
	"sumcolumns": func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 0) },
	"cumsum":     func(b *ir.Builder, x ir.Value) ir.Value { return ops.CumSum(b, x, ops.CumSumAttrs{Axis: 1}) },
}

// rows is result = f(a).
func rows(n, columns int, f func(b *ir.Builder, x ir.Value) ir.Value) (*ir.Module, error) {
	var shape []int
	step, err := ir.Build("rows", func(b *ir.Builder) {
		y := f(b, b.Input("a", ir.F32, ir.Dims(n, columns)...))
		shape, _ = y.Shape().Ints()
		b.State("result", ir.F32, ir.Dims(shape...)...)
		b.SetState("result", y)
	})
	if err != nil {
		return nil, err
	}
	return module(step, "result", shape...)
}

// mlp is one Adam step of a ReLU network on the mean cross-entropy of a batch of rows of type d. Its
// parameters are w0, b0, w1 and on.
func mlp(d ir.DType, layers []int, batch int) (*ir.Module, error) {
	loss, err := irtest.MLPOf(d, batch, layers...)
	if err != nil {
		return nil, err
	}
	step, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
	if err != nil {
		return nil, err
	}
	return module(step, "w0", layers[0], layers[1])
}

// cnn is one Adam step of the digits' convolutional network (demo/models), without distortion, on
// the mean cross-entropy of a batch.
func cnn(batch int) (*ir.Module, error) {
	loss, err := ir.Build("cnn", func(b *ir.Builder) {
		x, labels := b.Input("x", ir.F32, ir.Dims(batch, 8, 8, 1)...), b.Input("labels", ir.I32, ir.N(batch))
		pad := ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}
		h := ops.Relu(b, ops.Conv2D(b, x, b.Param("w0", ir.F32, ir.Dims(3, 3, 1, 16)...), b.Param("b0", ir.F32, ir.N(16)), pad))
		h = ops.Relu(b, ops.Conv2D(b, h, b.Param("w1", ir.F32, ir.Dims(3, 3, 16, 32)...), b.Param("b1", ir.F32, ir.N(32)), pad))
		h = ops.Reshape(b, ops.MaxPool(b, h, ops.PoolAttrs{Sizes: []int{2, 2}}), ir.Dims(batch, 512)...)
		h = ops.Relu(b, ops.Linear(b, h, b.Param("w2", ir.F32, ir.Dims(512, 128)...), b.Param("b2", ir.F32, ir.N(128))))
		logits := ops.Linear(b, h, b.Param("w3", ir.F32, ir.Dims(128, 10)...), b.Param("b3", ir.F32, ir.N(10)))
		b.Output("loss", ops.CrossEntropyMean(b, logits, labels))
	})
	if err != nil {
		return nil, err
	}
	step, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
	if err != nil {
		return nil, err
	}
	return module(step, "w2", 512, 128)
}

// attention is the sum of the gradients of causal attention, of batch, heads, context and
// depth, along given cotangents.
func attention(dims ...int) (*ir.Module, error) {
	step, err := ir.Build("attention", func(b *ir.Builder) {
		b.State("result", ir.F32, ir.Dims(dims...)...)
		var in []ir.Value
		for _, name := range []string{"q", "k", "v", "dout"} {
			in = append(in, b.Input(name, ir.F32, ir.Dims(dims...)...))
		}
		a := ops.AttentionAttrs{Scale: 1 / math.Sqrt(float64(dims[3])), Causal: true}
		out, lse := ops.AttentionForward(b, in[0], in[1], in[2], ir.Value{}, a)
		delta := ops.ReduceSum(b, ops.Mul(b, out, in[3]), -1)
		g := ops.AttentionBackward(b, ops.AttentionOperands{Q: in[0], K: in[1], V: in[2]}, ops.AttentionResiduals{LSE: lse, Delta: delta, DOut: in[3]}, a)
		b.SetState("result", ops.Add(b, ops.Add(b, g[0], g[1]), g[2]))
	})
	if err != nil {
		return nil, err
	}
	return module(step, "result", dims...)
}

// models are language models of characters: a small one, and nanoGPT's.
var models = []irtest.GPT{
	{Vocab: 65, Context: 128, Width: 128, Heads: 4, Blocks: 4, Batch: 32},
	irtest.CharacterGPT,
}

// language is one AdamW step of a language model.
func language(c irtest.GPT) (*ir.Module, error) {
	loss, err := c.Loss()
	if err != nil {
		return nil, err
	}
	step, err := optim.Step(loss, "loss", optim.AdamW{WeightDecay: 0.01}, optim.Options{})
	if err != nil {
		return nil, err
	}
	return module(step, "positions", c.Context, c.Width)
}
