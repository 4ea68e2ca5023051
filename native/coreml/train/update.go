package train

import (
	"context"
	"math"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// updateOf returns the graph of an update by given gradients: the training step of the loss Σ
// parameter·gradient, whose derivatives are these gradients.
func updateOf(forward *ir.Graph, params []string, o Options) (*ir.Graph, error) {
	linear, err := ir.Build("update", func(b *ir.Builder) {
		total := ops.Const(b, ir.F32, 0)
		for _, name := range params {
			p, _ := forward.Port(name)
			w := b.Param(name, ir.F32, p.Value.Shape()...)
			product := ops.Mul(b, w, b.Input("grad/"+name, ir.F32, p.Value.Shape()...))
			total = ops.Add(b, total, ops.ReduceSum(b, product))
		}
		b.Output("loss", total)
	})
	if err != nil {
		return nil, err
	}
	options := optim.Options{}
	if o.Half {
		options.Scale = &optim.LossScale{Initial: 1 << halfExponent}
	}
	return optim.Step(linear, "loss", o.Optimizer, options)
}

// curved is an optimizer that needs an estimate of the loss's curvature, which an entry computes
// now and then.
type curved interface {
	Curvature(loss *ir.Graph, lossName string, seed uint64, o optim.Options) (*ir.Graph, error)
}

// curvatureSteps is the number of steps between curvature estimates, as in Liu et al.
const curvatureSteps = 10

// prepareUpdate compiles the update for the host and, for an optimizer that needs it, the
// curvature.
func (tr *Trainer) prepareUpdate(forward *ir.Graph) error {
	g, err := updateOf(forward, tr.params, tr.options)
	if err != nil {
		return err
	}
	entries := []ir.Entry{{Name: "update", Graph: g}}
	if o, ok := tr.options.Optimizer.(curved); ok {
		tr.curved = true
		c, err := o.Curvature(forward, tr.options.Loss, 0, optim.Options{})
		if err != nil {
			return err
		}
		entries = append(entries, ir.Entry{Name: "curvature", Graph: c})
	}
	m, err := ir.NewModule("update", entries...)
	if err != nil {
		return err
	}
	if tr.update, err = cpu.Backend().Compile(context.Background(), m, native.Options{}); err != nil {
		return err
	}
	for _, name := range tr.params {
		if err := tr.update.Set(context.Background(), name, tr.values[name]); err != nil {
			return err
		}
	}
	return nil
}

// curvature estimates the curvature on the host, before the steps that need a new estimate. A batch
// that does not fit is an error of the kinds of [coreml.Model.Predict].
func (tr *Trainer) curvature(ctx context.Context, batch map[string]native.Tensor) error {
	if !tr.curved || tr.pending > 0 || tr.steps%curvatureSteps != 0 {
		return nil
	}
	run, err := tr.update.Run(ctx, "curvature", batch)
	if err == nil {
		_, err = run.Wait(ctx)
	}
	return err
}

// apply updates the parameters by gradients. It reports whether that was passed
// over, as the gradients were not finite.
func (tr *Trainer) apply(ctx context.Context, gradients map[string][]float32) (skipped bool, err error) {
	in := map[string]native.Tensor{optim.RateInput: native.Float32(float32(tr.options.Rate))}
	for name, g := range gradients {
		in["grad/"+name] = native.Float32s(g, tr.values[name].Dims...)
		for _, x := range g {
			skipped = skipped || tr.options.Half && (math.IsNaN(float64(x)) || math.IsInf(float64(x), 0))
		}
	}
	run, err := tr.update.Run(ctx, "update", in)
	if err != nil {
		return false, err
	}
	if _, err := run.Wait(ctx); err != nil {
		return false, err
	}
	if skipped {
		return true, nil
	}
	for _, name := range tr.params {
		if tr.values[name], err = tr.update.Get(ctx, name); err != nil {
			return false, err
		}
	}
	tr.steps++
	return false, tr.give()
}
