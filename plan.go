package rlx

import (
	"context"

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
	if err := s.given(ctx, "open plan"); err != nil {
		return nil, err
	}
	b, ok := s.backend.(native.PlanOpener)
	if !ok {
		return nil, ir.Errorf(ir.ErrUnsupported, "device %q runs no plan files: open webgpu", s.backend.Name())
	}
	if plan.IsOpen(file) {
		return s.openSizes(ctx, b, file)
	}
	made, err := plan.Decode(file)
	if err != nil {
		return nil, ir.Errorf(ir.ErrSyntax, "%w", err)
	}
	p, err := b.OpenPlan(ctx, file, native.Options{})
	if err != nil {
		return nil, err
	}
	return s.own(ctx, p, unsetOfPlans(made))
}

// openSizes opens a plan file with open sizes. Its plans are opened by the calls that need them.
func (s *Session) openSizes(ctx context.Context, b native.PlanOpener, file []byte) (*Program, error) {
	made, err := plan.DecodeOpen(file)
	if err != nil {
		return nil, ir.Errorf(ir.ErrSyntax, "%w", err)
	}
	p, plans := newOpenProgram(s, made.Name), []*plan.Plan{made.Base}
	for _, e := range made.Base.Entries {
		if e.Name != plan.HolderEntry {
			p.names, p.closed[e.Name] = append(p.names, e.Name), true
		}
	}
	for i := range made.Entries {
		e := &openEntry{OpenEntry: &made.Entries[i], file: made, index: i}
		e.addSlots()
		p.names, p.entries[e.Name] = append(p.names, e.Name), e
	}
	for i := range made.Buckets {
		plans = append(plans, made.Buckets[i].Plan)
	}
	if p.base, err = b.OpenPlan(ctx, made.BaseFile, native.Options{}); err != nil {
		return nil, err
	}
	return s.own(ctx, p, unsetOfPlans(plans...))
}

// openBucket opens the plan of a bucket.
func (p *openProgram) openBucket(ctx context.Context, b *bucket) (err error) {
	at := b.entry.file.Bucket(b.entry.index, b.bound)
	entry := at.Plan.Entry(b.entry.Name)
	inputs, _ := at.Plan.SlotsOf(entry)
	for _, s := range inputs {
		b.ports = append(b.ports, native.Slot{Name: s.Name, Role: native.Input, DType: s.DType, Dims: s.Dims})
	}
	opener := p.session.backend.(native.PlanOpener)
	if len(p.base.Persistent()) == 0 {
		b.program, err = opener.OpenPlan(ctx, at.File, native.Options{})
	} else {
		b.program, err = opener.OpenPlanShared(ctx, at.File, native.Options{}, p.base)
	}
	return err
}

// unsetOfPlans is [unsetParams] for the parameters of plans. An entry may have several plans.
func unsetOfPlans(plans ...*plan.Plan) *unset {
	u := &unset{missing: &missing{params: map[string]bool{}}, reads: map[string][]string{}, sets: map[string][]string{}}
	for _, p := range plans {
		for _, e := range p.Entries {
			var reads, sets []string
			for _, i := range e.Reads {
				u.params[p.Slots[i].Name] = true
				reads = append(reads, p.Slots[i].Name)
			}
			for _, i := range e.Sets {
				sets = append(sets, p.Slots[i].Name)
			}
			u.reads[e.Name], u.sets[e.Name] = reads, sets
		}
	}
	return u
}
