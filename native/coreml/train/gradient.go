package train

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

const (
	// scaleInput multiplies the loss that gradients are taken of.
	scaleInput = "rlx/scale"
	// scaledOutput is the scaled loss.
	scaledOutput = "rlx/scaled"
	// halfExponent is the exponent of the first loss scale, which must be a number of f16: below
	// 2^16.
	halfExponent = 10
)

// gradientOf returns the graph of a loss and of the gradients "grad/w" of a multiple
// of it.
func gradientOf(forward *ir.Graph, loss string, params []string) (*ir.Graph, error) {
	if _, ok := forward.Output(loss); !ok {
		return nil, ir.Errorf(ir.ErrName, "unknown output %q of graph %q", loss, forward.Name())
	}
	scaled, err := ir.Transform(forward.Name(), func(b *ir.Builder) {
		in := b.CopyPorts(forward, nil)
		scale := b.Input(scaleInput, ir.F32)
		out := b.Splice(forward, in)
		for i, o := range forward.Outputs() {
			if o.Name == loss && !o.State {
				b.Output(loss, out[i])
				b.Output(scaledOutput, ops.Mul(b, out[i], ops.Convert(b, scale, out[i].DType())))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return autodiff.GradWith(scaled, autodiff.GradOptions{Loss: scaledOutput, Wrt: params})
}

// scale returns the loss scale: 1 except for fp16 gradients.
func (tr *Trainer) scale(ctx context.Context) (float64, error) {
	if !tr.options.Half {
		return 1, nil
	}
	t, err := tr.update.Get(ctx, optim.ScaleState)
	if err != nil {
		return 0, err
	}
	exponent, err := number(t)
	return math.Exp2(exponent + halfExponent), err
}

// gradients runs the model on a batch and returns the loss and the gradients of it.
func (tr *Trainer) gradients(batch map[string]native.Tensor) (float64, map[string][]float32, error) {
	scale, err := tr.scale(context.Background())
	if err != nil {
		return 0, nil, err
	}
	in := maps.Clone(batch)
	if !tr.Resident() {
		for _, name := range tr.params {
			in[name] = tr.values[name]
		}
	}
	in[scaleInput] = native.Float32(float32(scale))
	out, err := tr.model.Predict(in)
	if err != nil {
		return 0, nil, err
	}
	gradients := map[string][]float32{}
	for _, name := range tr.params {
		g, err := out["grad/"+name].Float32s()
		if err != nil {
			return 0, nil, err
		}
		g = slices.Clone(g)
		for i := range g {
			g[i] /= float32(scale) // a power of two: exact, and infinities stay
		}
		gradients[name] = g
	}
	loss, err := number(out[tr.options.Loss])
	return loss, gradients, err
}

// Accumulate computes loss and gradients of a batch and keeps the gradients for
// [Trainer.StepAccumulated]. The error is of kind [ir.ErrUnsupported] where the update
// is part of the model.
func (tr *Trainer) Accumulate(batch map[string]native.Tensor) (Report, error) {
	if tr.fused {
		return Report{}, ir.Errorf(ir.ErrUnsupported, "the update is part of the model, which takes one batch: clear Fuse to accumulate")
	}
	if err := tr.curvature(context.Background(), batch); err != nil {
		return Report{}, err
	}
	loss, gradients, err := tr.gradients(batch)
	if err != nil {
		return Report{}, err
	}
	if tr.sums == nil {
		tr.sums = map[string][]float32{}
	}
	for name, g := range gradients {
		if tr.sums[name] == nil {
			tr.sums[name] = make([]float32, len(g))
		}
		for i, x := range g {
			tr.sums[name][i] += x
		}
	}
	tr.pending++
	return Report{Loss: loss, Path: Gradient, Eligibility: Eligible()}, nil
}

// Pending returns how many batches wait for an update.
func (tr *Trainer) Pending() int { return tr.pending }

// StepAccumulated does one update by the mean of the gradients that wait, and returns
// how many batches it was of; none does nothing.
func (tr *Trainer) StepAccumulated(ctx context.Context) (int, error) {
	n := tr.pending
	if n == 0 {
		return 0, nil
	}
	for _, sum := range tr.sums {
		for i := range sum {
			sum[i] /= float32(n)
		}
	}
	sums := tr.sums
	tr.sums, tr.pending = nil, 0
	_, err := tr.apply(ctx, sums)
	return n, err
}

// number returns the element of a tensor that has one.
func number(t native.Tensor) (float64, error) {
	a, err := t.Array()
	if err != nil {
		return 0, err
	}
	if a.Len() != 1 {
		return 0, ir.Shapef("the loss is %s; it must be a scalar", t)
	}
	return a.Float(0), nil
}
