package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Schedule adds the learning rate of a step to a graph. done is the number of steps before it, 0 at
// the first, of rank 0 and of the floating type that the rate has. A parameter outside its domain,
// such as a rate that is negative or not finite, is recorded in b as an error of kind [ir.ErrAttr].
type Schedule func(b *ir.Builder, done ir.Value) ir.Value

// Constant returns the same rate at every step.
func Constant(rate float64) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		checkRates(b, rate)
		return ops.ConstLike(b, done, rate)
	}
}

// Linear interpolates linearly from one rate to another over the given number of steps, at least 1,
// and then stays there.
func Linear(from, to float64, steps int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		checkRates(b, from, to)
		return ops.Add(b, scale(b, progress(b, done, steps), to-from), ops.ConstLike(b, done, from))
	}
}

// Cosine goes from one rate to another along half a period of the cosine over the given number of
// steps, at least 1, and then stays there: to + (from−to)·(1+cos(π·done/steps))/2. It equals
// torch's CosineAnnealingLR for the first T_max steps, and optax's cosine_decay_schedule.
func Cosine(from, to float64, steps int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		checkRates(b, from, to)
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
		check(b, "schedule", hyper{"steps", float64(steps), atLeastOne})
		return done
	}
	p := ops.Div(b, done, ops.ConstLike(b, done, float64(steps)))
	return ops.Clamp(b, p, ops.ZerosLike(b, done), ops.OnesLike(b, done))
}

// Steps multiplies the rate by factor after each interval of every steps, at least 1, as torch's
// StepLR does.
func Steps(rate, factor float64, every int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		return power(b, rate, factor, ops.Floor(b, ops.Div(b, done, stepsOf(b, done, every))))
	}
}

// Exponential multiplies the rate by factor at every step, as torch's ExponentialLR does.
func Exponential(rate, factor float64) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value { return power(b, rate, factor, done) }
}

// Polynomial decays from one rate to another over the given number of steps, at least 1, and then
// stays there: to + (from−to)·(1−done/steps)^exponent, as optax's polynomial_schedule does.
func Polynomial(from, to, exponent float64, steps int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		checkRates(b, from, to)
		check(b, "polynomial", hyper{"exponent", exponent, positive})
		left := ops.Sub(b, ops.OnesLike(b, done), progress(b, done, steps))
		return addConst(b, scale(b, ops.Pow(b, left, ops.ConstLike(b, left, exponent)), from-to), to)
	}
}

// CosineRestarts repeats [Cosine]: first over the given number of steps, then over growth times as
// many each time; growth is at least 1. It is torch's CosineAnnealingWarmRestarts.
func CosineRestarts(from, to float64, steps, growth int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		checkRates(b, from, to)
		length := stepsOf(b, done, steps)
		check(b, "cosine with restarts", hyper{"growth", float64(growth), atLeastOne})
		at := ops.Rem(b, done, length)
		if growth > 1 {
			// Cycle n starts after length·(growthⁿ − 1)/(growth − 1) steps. Half a step keeps the
			// logarithm away from whole numbers.
			g := float64(growth)
			ratio := addConst(b, scale(b, ops.Div(b, addConst(b, done, 0.5), length), g-1), 1)
			n := ops.Floor(b, scale(b, ops.Log(b, ratio), 1/math.Log(g)))
			factor := ops.Round(b, power(b, 1, g, n))
			at = ops.Sub(b, done, ops.Mul(b, length, scale(b, addConst(b, factor, -1), 1/(g-1))))
			length = ops.Mul(b, length, factor)
		}
		wave := ops.Cos(b, scale(b, ops.Div(b, at, length), math.Pi))
		return addConst(b, scale(b, wave, (from-to)/2), (from+to)/2)
	}
}

// OneCycle increases the rate from maxRate/25 to maxRate along half a cosine, over the fraction
// warmupFraction of the steps, in (0, 1). Then it decreases the rate to maxRate/250,000. These are
// the defaults of torch's OneCycleLR.
func OneCycle(maxRate float64, steps int, warmupFraction float64) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		checkRates(b, maxRate)
		up := warmupFraction*float64(steps) - 1
		down := float64(steps-1) - up
		check(b, "one cycle", hyper{"warmupFraction", warmupFraction, unit}, hyper{"warmupFraction·steps", up + 1, moreThanOne}, hyper{"(1−warmupFraction)·steps", down, positive})
		part := func(from, to, begin, length float64) ir.Value {
			at := scale(b, addConst(b, done, -begin), 1/length)
			at = ops.Clamp(b, at, ops.ZerosLike(b, at), ops.OnesLike(b, at))
			return addConst(b, scale(b, ops.Cos(b, scale(b, at, math.Pi)), (from-to)/2), (from+to)/2)
		}
		rising := ops.Le(b, done, ops.ConstLike(b, done, up))
		return ops.Select(b, rising, part(maxRate/25, maxRate, 0, up), part(maxRate, maxRate/25e4, up, down))
	}
}

// power returns rate·factorⁿ.
func power(b *ir.Builder, rate, factor float64, n ir.Value) ir.Value {
	checkRates(b, rate)
	check(b, "schedule", hyper{"factor", factor, positive})
	return scale(b, ops.Exp(b, scale(b, n, math.Log(factor))), rate)
}

func checkRates(b *ir.Builder, rates ...float64) {
	for _, rate := range rates {
		check(b, "schedule", hyper{"rate", rate, finiteRate})
	}
}

// stepsOf returns the number of steps, at least 1, in the type of done.
func stepsOf(b *ir.Builder, done ir.Value, steps int) ir.Value {
	check(b, "schedule", hyper{"steps", float64(steps), atLeastOne})
	return ops.ConstLike(b, done, float64(max(steps, 1)))
}
