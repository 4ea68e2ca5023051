package session

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

// Session trains a model. It is for one goroutine. Its errors are those of
// [coreml.New], [coreml.Load] and [coreml.Model.Predict].
type Session struct {
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

// New makes a session of a graph with a loss. Parameters start from initial, all f32; missing ones
// start as zeros. The models are written to a temporary directory, which is removed before New
// returns.
func New(rt coreml.Runtime, forward *ir.Graph, initial map[string]native.Tensor, o Options) (*Session, error) {
	if o.Loss == "" {
		o.Loss = "loss"
	}
	if o.Optimizer == nil {
		o.Optimizer = optim.Adam{}
	}
	if o.Rate == 0 {
		o.Rate = defaultRate
	}
	s := &Session{options: o, values: map[string]native.Tensor{}}
	for _, p := range forward.Ports() {
		if p.Kind == ir.ParamPort {
			s.params = append(s.params, p.Name)
			s.values[p.Name] = native.Zeros(ir.F32, native.SlotOf(p.Name, native.Param, p.Value).Dims...)
		}
	}
	for name, t := range initial {
		zero, ok := s.values[name]
		if !ok || t.DType != ir.F32 || !slices.Equal(t.Dims, zero.Dims) {
			return nil, ir.Errorf(ir.ErrName, "unknown parameter %q of type %s in the initial values", name, t)
		}
		s.values[name] = t.Clone()
	}
	if err := s.prepare(rt, forward); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare makes the model and, if it is not fused, the update.
func (s *Session) prepare(rt coreml.Runtime, forward *ir.Graph) error {
	if s.options.Fuse && !s.options.Half && fusible(s.options.Optimizer) {
		step, err := optim.Step(forward, s.options.Loss, s.options.Optimizer, optim.Options{})
		if err != nil {
			return err
		}
		s.fused = true
		s.begin(step)
		return s.load(rt, step)
	}
	gradient, err := gradientOf(forward, s.options.Loss, s.params)
	if err != nil {
		return err
	}
	if err := s.load(rt, gradient); err != nil {
		return err
	}
	if err := s.give(); err != nil {
		return err
	}
	return s.prepareUpdate(forward)
}

// give sets the parameters of a model with states.
func (s *Session) give() error {
	if !s.Resident() {
		return nil
	}
	for _, name := range s.params {
		if err := s.model.Set(name, s.values[name]); err != nil {
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
func (s *Session) begin(step *ir.Graph) {
	s.next = map[string]native.Tensor{}
	for _, p := range step.Ports() {
		slot := native.SlotOf(p.Name, native.State, p.Value)
		if _, known := s.values[p.Name]; !known && p.Kind == ir.StatePort {
			s.values[p.Name] = native.Zeros(slot.DType, slot.Dims...)
		}
		if step.Updates(p.Name) {
			s.next[p.Name+"_next"] = native.Zeros(slot.DType, slot.Dims...)
		}
	}
	s.next[s.options.Loss] = native.Zeros(ir.F32)
}

// load writes a graph as a package and loads it.
func (s *Session) load(rt coreml.Runtime, g *ir.Graph) error {
	m, err := ir.NewModule(g.Name(), ir.Entry{Name: "step", Graph: g})
	if err != nil {
		return err
	}
	p, err := coreml.New(m, coreml.Options{Opset: s.options.Opset, Half: s.options.Half, ParamStates: s.Resident()})
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
	s.model, err = coreml.Load(rt, path, "step", s.options.Units)
	return err
}

// FusedActive reports whether the update is part of the model: where Fuse asked for
// it, the optimiser is SGD, Adam or AdamW, and nothing is computed in fp16.
func (s *Session) FusedActive() bool { return s.fused }

// Resident reports whether the parameters are states of Core ML, set once for each update and not
// with each batch. That is the case if gradients are computed in f16, the type of states, with
// CoreML8 or later. Otherwise they are inputs, which Core ML reads from the session's memory.
func (s *Session) Resident() bool {
	return s.options.Half && (s.options.Opset == 0 || s.options.Opset >= coreml.CoreML8)
}

// Steps returns how many updates were done, skipped ones not counted.
func (s *Session) Steps() int { return s.steps }

// Param returns a copy of a parameter, or false if there is none of that name.
func (s *Session) Param(name string) (native.Tensor, bool) {
	if !slices.Contains(s.params, name) {
		return native.Tensor{}, false
	}
	return s.values[name].Clone(), true
}

// Close releases the session.
func (s *Session) Close() error {
	var errs []error
	if s.model != nil {
		errs = append(errs, s.model.Close())
	}
	if s.update != nil {
		errs = append(errs, s.update.Close(context.Background()))
	}
	s.model, s.update = nil, nil
	return errors.Join(errs...)
}

// Step performs one update with a batch.
func (s *Session) Step(ctx context.Context, batch map[string]native.Tensor) (Report, error) {
	if s.fused {
		return s.fusedStep(batch)
	}
	if err := s.curvature(ctx, batch); err != nil {
		return Report{}, err
	}
	loss, gradients, err := s.gradients(batch)
	if err != nil {
		return Report{}, err
	}
	skipped, err := s.apply(ctx, gradients)
	return Report{Loss: loss, Path: Gradient, Eligibility: Eligible(), Skipped: skipped}, err
}

// fusedStep runs the model of a whole step. Its results are written to separate memory and then
// swapped with the values.
func (s *Session) fusedStep(batch map[string]native.Tensor) (Report, error) {
	in := maps.Clone(batch)
	maps.Copy(in, s.values)
	in[optim.RateInput] = native.Float32(float32(s.options.Rate))
	if err := s.model.PredictTo(in, s.next); err != nil {
		return Report{}, err
	}
	for name := range s.values {
		if next, ok := s.next[name+"_next"]; ok {
			s.values[name], s.next[name+"_next"] = next, s.values[name]
		}
	}
	s.steps++
	loss, err := number(s.next[s.options.Loss])
	return Report{Loss: loss, Path: Fused, Eligibility: Eligible()}, err
}
