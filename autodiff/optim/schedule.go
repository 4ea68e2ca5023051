package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Schedule adds the learning rate of a step to a graph. done is the number of steps before it, 0 at
// the first, of rank 0 and of the floating type that the rate has. A parameter outside its domain
// is recorded in b as an error of kind [ir.ErrAttr].
type Schedule func(b *ir.Builder, done ir.Value) ir.Value

// Constant returns the same rate at every step.
func Constant(rate float64) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value { return ops.ConstLike(b, done, rate) }
}

// Linear interpolates linearly from one rate to another over the given number of steps, at least 1,
// and then stays there.
func Linear(from, to float64, steps int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		return ops.Add(b, scale(b, progress(b, done, steps), to-from), ops.ConstLike(b, done, from))
	}
}

// Cosine goes from one rate to another along half a period of the cosine over the given number of
// steps, at least 1, and then stays there: to + (from−to)·(1+cos(π·done/steps))/2. It equals
// torch's CosineAnnealingLR for the first T_max steps, and optax's cosine_decay_schedule.
func Cosine(from, to float64, steps int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		wave := ops.Cos(b, scale(b, progress(b, done, steps), math.Pi))
		return ops.Add(b, scale(b, wave, (from-to)/2), ops.ConstLike(b, done, (from+to)/2))
	}
}

// WarmUp increases the rate linearly from 0 to the initial rate of next over the given number of
// steps, at least 1, and then follows next.
func WarmUp(steps int, next Schedule) Schedule {
	ramp := func(b *ir.Builder, done ir.Value) ir.Value {
		return ops.Mul(b, progress(b, done, steps), next(b, ops.ZerosLike(b, done)))
	}
	return Join(steps, ramp, next)
}

// Join follows the first schedule for the given number of steps, and then the second, whose steps
// count from 0.
func Join(steps int, first, second Schedule) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		at := ops.ConstLike(b, done, float64(steps))
		return ops.Select(b, ops.Lt(b, done, at), first(b, done), second(b, ops.Sub(b, done, at)))
	}
}

// progress returns done/steps, limited to [0, 1].
func progress(b *ir.Builder, done ir.Value, steps int) ir.Value {
	if steps < 1 {
		b.Fail(ir.Attrf("steps of the schedule is %d, less than 1", steps))
		return done
	}
	p := ops.Div(b, done, ops.ConstLike(b, done, float64(steps)))
	return ops.Clamp(b, p, ops.ZerosLike(b, done), ops.OnesLike(b, done))
}
