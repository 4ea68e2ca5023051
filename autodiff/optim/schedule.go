package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Schedule adds the learning rate of a step to a graph. done is the number of
// steps done before it, so 0 at the first, of rank 0 and of a floating type,
// which is also that of the rate. A domain error is recorded in b, of kind
// [ir.ErrAttr].
type Schedule func(b *ir.Builder, done ir.Value) ir.Value

// Constant is the same rate at every step.
func Constant(rate float64) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value { return ops.ConstLike(b, done, rate) }
}

// Linear goes straight from one rate to another in the given number of steps,
// at least 1, and stays there.
func Linear(from, to float64, steps int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		return ops.Add(b, times(b, progress(b, done, steps), to-from), ops.ConstLike(b, done, from))
	}
}

// Cosine goes from one rate to another along half a period of the cosine in the
// given number of steps, at least 1, and stays there:
// to + (from−to)·(1+cos(π·done/steps))/2. It is torch's CosineAnnealingLR within
// its first T_max steps, and optax's cosine_decay_schedule.
func Cosine(from, to float64, steps int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		wave := ops.Cos(b, times(b, progress(b, done, steps), math.Pi))
		return ops.Add(b, times(b, wave, (from-to)/2), ops.ConstLike(b, done, (from+to)/2))
	}
}

// WarmUp goes straight from 0 to where the schedule next begins in the given
// number of steps, at least 1, and then follows it.
func WarmUp(steps int, next Schedule) Schedule {
	ramp := func(b *ir.Builder, done ir.Value) ir.Value {
		return ops.Mul(b, progress(b, done, steps), next(b, ops.ZerosLike(b, done)))
	}
	return Join(steps, ramp, next)
}

// Join follows one schedule for the given number of steps and then another,
// for which steps count from 0 again.
func Join(steps int, first, second Schedule) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		at := ops.ConstLike(b, done, float64(steps))
		return ops.Select(b, ops.Lt(b, done, at), first(b, done), second(b, ops.Sub(b, done, at)))
	}
}

// progress is done/steps, from 0 to 1.
func progress(b *ir.Builder, done ir.Value, steps int) ir.Value {
	if steps < 1 {
		b.Fail(ir.Attrf("steps of the schedule is %d, less than 1", steps))
		return done
	}
	p := ops.Div(b, done, ops.ConstLike(b, done, float64(steps)))
	return ops.Clamp(b, p, ops.ZerosLike(b, done), ops.OnesLike(b, done))
}
