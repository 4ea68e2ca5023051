package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
		left := ops.Sub(b, ops.OnesLike(b, done), progress(b, done, steps))
		return addConst(b, scale(b, ops.Pow(b, left, ops.ConstLike(b, left, exponent)), from-to), to)
	}
}

// CosineRestarts repeats [Cosine]: first over the given number of steps, then over growth times as
// many each time; growth is at least 1. It is torch's CosineAnnealingWarmRestarts.
func CosineRestarts(from, to float64, steps, growth int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		length := stepsOf(b, done, steps)
		inDomain(b, "cosine with restarts", growth >= 1)
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

// OneCycle increases the rate from maxRate/25 to maxRate along half a cosine over the fraction
// warmupFraction of the steps, in (0, 1), and decreases it to maxRate/250,000 over the others, as
// torch's OneCycleLR does with its defaults.
func OneCycle(maxRate float64, steps int, warmupFraction float64) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		up := warmupFraction*float64(steps) - 1
		down := float64(steps-1) - up
		inDomain(b, "one cycle", warmupFraction > 0 && warmupFraction < 1 && up > 0 && down > 0)
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
	inDomain(b, "a schedule", factor > 0)
	return scale(b, ops.Exp(b, scale(b, n, math.Log(factor))), rate)
}

// stepsOf returns the number of steps, at least 1, in the type of done.
func stepsOf(b *ir.Builder, done ir.Value, steps int) ir.Value {
	if steps < 1 {
		b.Fail(ir.Attrf("steps of the schedule is %d, less than 1", steps))
	}
	return ops.ConstLike(b, done, float64(max(steps, 1)))
}
