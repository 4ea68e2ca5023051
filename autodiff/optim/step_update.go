package optim

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// scalarType returns the type of the learning rate and values computed from it: f64 if a parameter
// is f64, else f32.
func (s *step) scalarType() ir.DType {
	for _, p := range s.params {
		if p.value.DType() == ir.F64 {
			return ir.F64
		}
	}
	return ir.F32
}

// updateType returns the type in which a parameter is updated.
func updateType(d ir.DType) ir.DType {
	if d == ir.F64 {
		return d
	}
	return ir.F32
}

// clip limits the elements of the gradients, and then their global norm.
func (s *step) clip(b *ir.Builder, scalar ir.DType) {
	if v := s.options.ClipValue; v != 0 {
		inDomain(b, "clip value", v > 0)
		for i := range s.params {
			g := &s.params[i].grad
			*g = ops.Clamp(b, *g, ops.ConstLike(b, *g, -v), ops.ConstLike(b, *g, v))
		}
	}
	limit := s.options.ClipNorm
	if limit == 0 {
		return
	}
	if !(limit > 0) {
		b.Fail(ir.Attrf("clip norm is %v, not positive", limit))
		return
	}
	grads := make([]ir.Value, len(s.params))
	for i, p := range s.params {
		grads[i] = ops.Convert(b, p.grad, scalar)
	}
	scale := clipFactor(b, GlobalNorm(b, grads), limit)
	for i := range s.params {
		p := &s.params[i]
		p.grad = ops.Mul(b, p.grad, ops.Convert(b, scale, p.grad.DType()))
	}
}

// update adds the update of one parameter. It takes effect if due is true or an invalid Value.
func (s *step) update(b *ir.Builder, rule Rule, p param, due, count ir.Value) {
	wide := ops.Convert(b, p.value, p.grad.DType())
	value, slots := rule(b, wide, p.grad, p.slots)
	if b.Err() == nil && len(slots) != len(p.slots) {
		b.Fail(ir.Errorf(ir.ErrGraph, "the rule of the optimizer gave %d slots for %q, not %d", len(slots), p.name, len(p.slots)))
		return
	}
	now := func(name string, old, v ir.Value) {
		if v == old { // another entry updates it
			b.SetState(name, old)
			return
		}
		if due.Valid() {
			v = ops.Select(b, due, v, old)
		}
		b.SetState(name, s.scaling.unlessSkipped(b, v, old))
	}
	now(p.name, p.value, ops.Convert(b, value, p.value.DType()))
	for i, slot := range slotsOf(p.group.Optimizer, p.value.Type()) {
		now(s.options.SlotState(slot.Name, p.name), p.slots[i], slots[i])
	}
	if a := s.options.Average; a != 0 {
		inDomain(b, "average", a > 0 && a < 1)
		name := s.options.SlotState(averageSlot, p.name)
		old := b.State(name, wide.DType(), wide.Shape()...)
		first := ops.Eq(b, count, ops.OnesLike(b, count))
		now(name, old, ops.Select(b, first, value, movingAverage(b, old, value, a)))
	}
}
