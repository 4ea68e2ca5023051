package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Steps multiplies a rate by factor after every so many steps, at least 1, as
// torch's StepLR does.
func Steps(rate, factor float64, every int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		return power(b, rate, factor, ops.Floor(b, ops.Div(b, done, stepsOf(b, done, every))))
	}
}

// Exponential multiplies a rate by factor at every step, as torch's
// ExponentialLR does.
func Exponential(rate, factor float64) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value { return power(b, rate, factor, done) }
}

// Polynomial goes from one rate to another by a power of what is left of the
// given number of steps, at least 1, and stays there:
// to + (from−to)·(1−done/steps)^exponent, as optax's polynomial_schedule does.
func Polynomial(from, to, exponent float64, steps int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		left := ops.Sub(b, ops.OnesLike(b, done), progress(b, done, steps))
		return plus(b, times(b, ops.Pow(b, left, ops.ConstLike(b, left, exponent)), from-to), to)
	}
}

// CosineRestarts is [Cosine] that begins again after steps, then after growth
// times as many, and so on; growth is at least 1. It is torch's
// CosineAnnealingWarmRestarts.
func CosineRestarts(from, to float64, steps, growth int) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		length := stepsOf(b, done, steps)
		inDomain(b, "cosine with restarts", growth >= 1)
		at := ops.Rem(b, done, length)
		if growth > 1 {
			// cycle n begins after length·(growthⁿ − 1)/(growth − 1) steps; half a
			// step keeps the logarithm off whole numbers
			g := float64(growth)
			ratio := plus(b, times(b, ops.Div(b, plus(b, done, 0.5), length), g-1), 1)
			n := ops.Floor(b, times(b, ops.Log(b, ratio), 1/math.Log(g)))
			scale := ops.Round(b, power(b, 1, g, n))
			at = ops.Sub(b, done, ops.Mul(b, length, times(b, plus(b, scale, -1), 1/(g-1))))
			length = ops.Mul(b, length, scale)
		}
		wave := ops.Cos(b, times(b, ops.Div(b, at, length), math.Pi))
		return plus(b, times(b, wave, (from-to)/2), (from+to)/2)
	}
}

// OneCycle goes up from most/25 to most along half a cosine in a share rise of
// the steps, in (0, 1), and down to most/250,000 in the others, as torch's
// OneCycleLR does.
func OneCycle(most float64, steps int, rise float64) Schedule {
	return func(b *ir.Builder, done ir.Value) ir.Value {
		up := rise*float64(steps) - 1
		down := float64(steps-1) - up
		inDomain(b, "one cycle", rise > 0 && rise < 1 && up > 0 && down > 0)
		part := func(from, to, begin, length float64) ir.Value {
			at := times(b, plus(b, done, -begin), 1/length)
			at = ops.Clamp(b, at, ops.ZerosLike(b, at), ops.OnesLike(b, at))
			return plus(b, times(b, ops.Cos(b, times(b, at, math.Pi)), (from-to)/2), (from+to)/2)
		}
		rising := ops.Le(b, done, ops.ConstLike(b, done, up))
		return ops.Select(b, rising, part(most/25, most, 0, up), part(most, most/25e4, up, down))
	}
}

// power returns rate·factorⁿ.
func power(b *ir.Builder, rate, factor float64, n ir.Value) ir.Value {
	inDomain(b, "a schedule", factor > 0)
	return times(b, ops.Exp(b, times(b, n, math.Log(factor))), rate)
}

// stepsOf returns a number of steps, at least 1, like done.
func stepsOf(b *ir.Builder, done ir.Value, steps int) ir.Value {
	if steps < 1 {
		b.Fail(ir.Attrf("steps of the schedule is %d, less than 1", steps))
	}
	return ops.ConstLike(b, done, float64(max(steps, 1)))
}
