package rlx

import (
	"context"
	"errors"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// OpenPlan opens the bytes of a plan file, which the command "rlx plan" and the npm package write: the
// first of its plans that the device can run. The error is of kind [ir.ErrUnsupported] for a device that
// runs no plan files, as all do but webgpu, [ir.ErrSyntax] for a damaged file, and [native.ErrMemory] for a device
// that lacks what each of the plans requires. Plans of training steps need the inputs that
// [Trainer.Step] sets, such as the learning rate.
func (s *Session) OpenPlan(ctx context.Context, file []byte) (*Program, error) {
	b, ok := s.backend.(native.PlanOpener)
	if !ok {
		return nil, ir.Errorf(ir.ErrUnsupported, "device %q runs no plan files: open webgpu", s.backend.Name())
	}
	made, err := plan.Decode(file)
	if err != nil {
		return nil, ir.Errorf(ir.ErrSyntax, "%w", err)
	}
	p, err := b.OpenPlan(ctx, file, native.Options{})
	if err != nil {
		return nil, err
	}
	out := &Program{Program: p, unset: unsetOfPlan(made), owner: &s.programs}
	if err := s.programs.add(out); err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return out, nil
}

// unsetOfPlan is [unsetParams] for the parameters of a plan.
func unsetOfPlan(p *plan.Plan) *unset {
	u := &unset{missing: &missing{params: map[string]bool{}}, reads: map[string][]string{}, sets: map[string][]string{}}
	for _, e := range p.Entries {
		for _, i := range e.Reads {
			u.params[p.Slots[i].Name] = true
			u.reads[e.Name] = append(u.reads[e.Name], p.Slots[i].Name)
		}
		for _, i := range e.Sets {
			u.sets[e.Name] = append(u.sets[e.Name], p.Slots[i].Name)
		}
	}
	return u
}
