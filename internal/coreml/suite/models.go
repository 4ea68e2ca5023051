package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// writeModels writes whole models, their gradients, and features of models only: half precision,
// states, several sizes, stored weights, every opset.
func writeModels(dir string) error {
	for _, m := range []struct {
		name  string
		build func() (*ir.Graph, error)
		wrt   []string
	}{
		{"mlp", mlp, []string{"w1", "b1", "w2", "b2"}},
		{"cnn", cnn, []string{"k", "w"}},
		{"gpt", irtest.GPT{Vocab: 11, Context: 6, Width: 8, Heads: 2, Blocks: 1, Batch: 2}.Loss, nil},
	} {
		g, err := m.build()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		graphs := map[string]*ir.Graph{m.name: g}
		if m.wrt != nil {
			if graphs[m.name+"_gradient"], err = autodiff.Grad(g, "loss", m.wrt...); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		for name, g := range graphs {
			if err := writeModel(dir, name, g); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if err := writePacked(dir); err != nil {
		return err
	}
	return errors.Join(writeStates(dir), writeTraining(dir))
}

// writePacked writes products with weights in blocks, of every format.
func writePacked(dir string) error {
	d, _ := ir.Lookup(ops.OpDequantize)
	for _, s := range d.Samples() {
		format, w := s.Attrs.(*ops.PackedAttrs).Format, s.In[0]
		if w.Len() == 0 || w.DType != ir.U8 || s.Name != format {
			continue
		}
		g, err := ir.Build("packed", func(b *ir.Builder) {
			unpacked := ops.Dequantize(b, b.Port(ir.ParamPort, "w", w.Type()), format, ir.F32)
			x := b.Input("x", ir.F32, ir.N(2), unpacked.Dim(1))
			b.Output("y", ops.MatMul(b, x, ops.Transpose(b, unpacked, 1, 0)))
		})
		if err != nil {
			return err
		}
		c := one{graph: g, in: inputs(g), tol: within(1e-5)}
		c.in["w"] = w
		stored := map[string]native.Tensor{"w": native.FromArray(w)}
		if err := writeCases(dir, "model_packed_"+format, []one{c}, coreml.Options{Weights: stored}); err != nil {
			return err
		}
	}
	return nil
}

// writeModel writes a model in f32 with every opset, in fp16, with its indices checked,
// and with its weights stored.
func writeModel(dir, name string, g *ir.Graph) error {
	c := one{graph: g, in: inputs(g), tol: within(1e-5)}
	for opset := mil.CoreML5; opset <= mil.CoreML9; opset++ {
		if err := writeCases(dir, fmt.Sprintf("model_%s_%s", name, opset), []one{c}, coreml.Options{Opset: opset}); err != nil {
			return err
		}
	}
	half := c
	half.tol = within(5e-3)
	if err := writeCases(dir, "model_"+name+"_half", []one{half}, coreml.Options{Half: true}); err != nil {
		return err
	}
	if err := writeCases(dir, "model_"+name+"_checked", []one{c}, coreml.Options{Checks: true}); err != nil {
		return err
	}
	weights := map[string]native.Tensor{}
	for _, p := range g.Ports() {
		if p.Kind == ir.ParamPort {
			weights[p.Name] = native.FromArray(c.in[p.Name])
		}
	}
	return writeCases(dir, "model_"+name+"_stored", []one{c}, coreml.Options{Weights: weights})
}

// within is a tolerance for values of about 1 of any type.
func within(x float64) func(ir.DType) irtest.Tolerance {
	return func(ir.DType) irtest.Tolerance { return irtest.Tolerance{Abs: x, Rel: x} }
}

// inputs returns values for all ports: distinct small numbers, and integers from 0 to 1.
func inputs(g *ir.Graph) map[string]*ir.Array {
	in := map[string]*ir.Array{}
	for i, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for k := range a.Len() {
			if a.F != nil {
				a.F[k] = 0.5 * math.Sin(float64(k)*1.7+float64(i))
			} else {
				a.I[k] = int64(k+i) % 2
			}
		}
		a.Round()
		in[p.Name] = a
	}
	return in
}

func mlp() (*ir.Graph, error) {
	return ir.Build("mlp", func(b *ir.Builder) {
		x, labels := b.Input("x", ir.F32, ir.Dims(4, 6)...), b.Input("labels", ir.I32, ir.N(4))
		h := ops.Gelu(b, ops.Linear(b, x, b.Param("w1", ir.F32, ir.Dims(6, 8)...), b.Param("b1", ir.F32, ir.N(8))))
		logits := ops.Linear(b, h, b.Param("w2", ir.F32, ir.Dims(8, 3)...), b.Param("b2", ir.F32, ir.N(3)))
		b.Output("loss", ops.CrossEntropyMean(b, logits, labels))
	})
}

func cnn() (*ir.Graph, error) {
	return ir.Build("cnn", func(b *ir.Builder) {
		x, labels := b.Input("x", ir.F32, ir.Dims(2, 8, 8, 2)...), b.Input("labels", ir.I32, ir.N(2))
		h := ops.Conv2D(b, x, b.Param("k", ir.F32, ir.Dims(3, 3, 2, 4)...), ir.Value{}, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}})
		h = ops.MaxPool(b, ops.Relu(b, h), ops.PoolAttrs{Sizes: []int{2, 2}})
		flat := ops.Reshape(b, h, ir.Dims(2, 64)...)
		b.Output("loss", ops.CrossEntropyMean(b, ops.MatMul(b, flat, b.Param("w", ir.F32, ir.Dims(64, 3)...)), labels))
	})
}

// writeStates writes a counter in f16 whose state stays on the device, for two
// sizes of its batch.
func writeStates(dir string) error {
	g, err := ir.Build("running", func(b *ir.Builder) {
		x := b.Input("x", ir.F16, ir.Sym("batch"), ir.N(3))
		mean := b.State("mean", ir.F16, ir.N(3))
		next := ops.Add(b, ops.Mul(b, mean, ops.Const(b, ir.F16, 0.5)), ops.Mul(b, ops.Mean(b, x, 0), ops.Const(b, ir.F16, 0.5)))
		b.SetState("mean", next)
		b.Output("spread", ops.Sub(b, x, next))
	})
	if err != nil {
		return err
	}
	sizes := []map[string]int{{"batch": 2}, {"batch": 5}}
	var cases []one
	for _, s := range sizes {
		bound, err := g.Bind(s)
		if err != nil {
			return err
		}
		cases = append(cases, one{graph: bound, in: inputs(bound), tol: within(5e-3)})
	}
	p, err := packEntries("model_states", []ir.Entry{{Name: "step", Graph: g}}, cases, coreml.Options{States: true, Shapes: sizes})
	if err != nil {
		return err
	}
	return p.write(dir)
}
