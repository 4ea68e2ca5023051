package train

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// Trainer trains a model. It is for one goroutine. Its errors are those of
// [coreml.New], [coreml.Load] and [coreml.Model.Predict].
type Trainer struct {
	options Options
	params  []string
	values  map[string]native.Tensor // parameters and optimizer states
	next    map[string]native.Tensor // room for the values after a fused step
	model   *coreml.Model            // of the gradient or, fused, of the step
	update  native.Program           // nil where it is fused
	fused   bool
	curved  bool                 // the optimizer needs the curvature of the loss
	sums    map[string][]float32 // gradients that wait for an update
	pending int
	steps   int
}

// defaultRate is the default learning rate.
const defaultRate = 1e-3

// New makes a trainer of a graph with a loss. Parameters start from initial, all f32; missing ones
// start as zeros. The models are written to a temporary directory, which is removed before New
// returns.
func New(rt coreml.Runtime, forward *ir.Graph, initial map[string]native.Tensor, o Options) (*Trainer, error) {
	if o.Loss == "" {
		o.Loss = "loss"
	}
	if o.Optimizer == nil {
		o.Optimizer = optim.Adam{}
	}
	if o.Rate == 0 {
		o.Rate = defaultRate
	}
	tr := &Trainer{options: o, values: map[string]native.Tensor{}}
	for _, p := range forward.Ports() {
		if p.Kind == ir.ParamPort {
			tr.params = append(tr.params, p.Name)
			tr.values[p.Name] = native.Zeros(ir.F32, native.SlotOf(p.Name, native.Param, p.Value).Dims...)
		}
	}
	for name, t := range initial {
		zero, ok := tr.values[name]
		if !ok || t.DType != ir.F32 || !slices.Equal(t.Dims, zero.Dims) {
			return nil, ir.Errorf(ir.ErrName, "unknown parameter %q of type %s in the initial values", name, t)
		}
		tr.values[name] = t.Clone()
	}
	if err := tr.prepare(rt, forward); err != nil {
		return nil, errors.Join(err, tr.Close())
	}
	return tr, nil
}

// prepare makes the model and, if it is not fused, the update.
func (tr *Trainer) prepare(rt coreml.Runtime, forward *ir.Graph) error {
	if tr.options.Fuse && !tr.options.Half && fusible(tr.options.Optimizer) {
		step, err := optim.Step(forward, tr.options.Loss, tr.options.Optimizer, optim.Options{})
		if err != nil {
			return err
		}
		tr.fused = true
		tr.begin(step)
		return tr.load(rt, step)
	}
	gradient, err := gradientOf(forward, tr.options.Loss, tr.params)
	if err != nil {
		return err
	}
	if err := tr.load(rt, gradient); err != nil {
		return err
	}
	if err := tr.give(); err != nil {
		return err
	}
	return tr.prepareUpdate(forward)
}

// give sets the parameters of a model with states.
func (tr *Trainer) give() error {
	if !tr.Resident() {
		return nil
	}
	for _, name := range tr.params {
		if err := tr.model.Set(name, tr.values[name]); err != nil {
			return err
		}
	}
	return nil
}

// fusible reports whether the update of an optimizer can be part of the model.
func fusible(o optim.Optimizer) bool {
	switch o.(type) {
	case optim.SGD, optim.Adam, optim.AdamW:
		return true
	}
	return false
}

// begin zeroes the optimiser's states and allocates the outputs of a step.
func (tr *Trainer) begin(step *ir.Graph) {
	tr.next = map[string]native.Tensor{}
	for _, p := range step.Ports() {
		slot := native.SlotOf(p.Name, native.State, p.Value)
		if _, known := tr.values[p.Name]; !known && p.Kind == ir.StatePort {
			tr.values[p.Name] = native.Zeros(slot.DType, slot.Dims...)
		}
		if step.Updates(p.Name) {
			tr.next[p.Name+"_next"] = native.Zeros(slot.DType, slot.Dims...)
		}
	}
	tr.next[tr.options.Loss] = native.Zeros(ir.F32)
}

// load writes a graph as a package and loads it.
func (tr *Trainer) load(rt coreml.Runtime, g *ir.Graph) error {
	m, err := ir.NewModule(g.Name(), ir.Entry{Name: "step", Graph: g})
	if err != nil {
		return err
	}
	p, err := coreml.New(m, coreml.Options{Opset: tr.options.Opset, Half: tr.options.Half, ParamStates: tr.Resident()})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rlx-coreml-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "step.mlpackage")
	if err := p.Write(path); err != nil {
		return err
	}
	tr.model, err = coreml.Load(rt, path, "step", tr.options.Units)
	return err
}

// FusedActive reports whether the update is part of the model: where Fuse asked for
// it, the optimiser is SGD, Adam or AdamW, and nothing is computed in fp16.
func (tr *Trainer) FusedActive() bool { return tr.fused }

// Resident reports whether the parameters are states of Core ML, set once for each update and not
// with each batch. That is the case if gradients are computed in f16, the type of states, with
// CoreML8 or later. Otherwise they are inputs, which Core ML reads from the memory of the trainer.
func (tr *Trainer) Resident() bool {
	return tr.options.Half && (tr.options.Opset == 0 || tr.options.Opset >= coreml.CoreML8)
}

// Steps returns how many updates were done, skipped ones not counted.
func (tr *Trainer) Steps() int { return tr.steps }

// Param returns a copy of a parameter, or false if there is none of that name.
func (tr *Trainer) Param(name string) (native.Tensor, bool) {
	if !slices.Contains(tr.params, name) {
		return native.Tensor{}, false
	}
	return tr.values[name].Clone(), true
}

// Close releases the trainer.
func (tr *Trainer) Close() error {
	var errs []error
	if tr.model != nil {
		errs = append(errs, tr.model.Close())
	}
	if tr.update != nil {
		errs = append(errs, tr.update.Close(context.Background()))
	}
	tr.model, tr.update = nil, nil
	return errors.Join(errs...)
}

// Step performs one update with a batch.
func (tr *Trainer) Step(ctx context.Context, batch map[string]native.Tensor) (Report, error) {
	if tr.fused {
		return tr.fusedStep(batch)
	}
	if err := tr.curvature(ctx, batch); err != nil {
		return Report{}, err
	}
	loss, gradients, err := tr.gradients(batch)
	if err != nil {
		return Report{}, err
	}
	skipped, err := tr.apply(ctx, gradients)
	return Report{Loss: loss, Path: Gradient, Eligibility: Eligible(), Skipped: skipped}, err
}

// fusedStep runs the model of a whole step. Its results are written to separate memory and then
// swapped with the values.
func (tr *Trainer) fusedStep(batch map[string]native.Tensor) (Report, error) {
	in := maps.Clone(batch)
	maps.Copy(in, tr.values)
	in[optim.RateInput] = native.Float32(float32(tr.options.Rate))
	if err := tr.model.PredictTo(in, tr.next); err != nil {
		return Report{}, err
	}
	for name := range tr.values {
		if next, ok := tr.next[name+"_next"]; ok {
			tr.values[name], tr.next[name+"_next"] = next, tr.values[name]
		}
	}
	tr.steps++
	loss, err := number(tr.next[tr.options.Loss])
	return Report{Loss: loss, Path: Fused, Eligibility: Eligible()}, err
}
