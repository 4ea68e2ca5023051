package dist

import (
	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/special"
)

// TruncatedNormal is [Normal] given that numbers are between Low and High.
type TruncatedNormal struct{ Loc, Scale, Low, High ir.Value }

// interval is that of a truncated normal distribution in units of the normal one.
type interval struct {
	low, high ir.Value
	// isNarrow is where numbers are those of the distribution on [−1, 1] with density proportional to
	// e^(−slope·x − (half·x)²/2), times half, plus middle: differences of cumulative probabilities cancel
	// there. Elsewhere half and slope are constants, as low and high are where it holds.
	isNarrow, middle, half, slope ir.Value
}

func (d TruncatedNormal) interval(b *ir.Builder) interval {
	low, _ := standard(b, d.Low, d.Loc, d.Scale)
	high, _ := standard(b, d.High, d.Loc, d.Scale)
	middle, _ := standard(b, d.center(b), d.Loc, d.Scale)
	half := ops.Div(b, d.half(b), d.Scale)
	slope := ops.Mul(b, middle, half)
	isNarrow := ops.And(b, ops.Le(b, half, number(b, half, 0.5)), ops.Le(b, ops.Abs(b, slope), number(b, slope, 1)))
	isWide := ops.Not(b, isNarrow)
	return interval{where(b, isWide, low, -1), where(b, isWide, high, 1), isNarrow, middle, where(b, isNarrow, half, 0.5), where(b, isNarrow, slope, 0)}
}

func (d TruncatedNormal) half(b *ir.Builder) ir.Value {
	return scale(b, ops.Sub(b, d.High, d.Low), 0.5)
}

func (d TruncatedNormal) center(b *ir.Builder) ir.Value { return ops.Add(b, d.Low, d.half(b)) }

// mirrored reports whether the middle is above the mean: such bounds are mirrored, so that the difference of
// cumulative probabilities is one of small numbers.
func (i interval) mirrored(b *ir.Builder) (mirrored, from, to ir.Value) {
	mirrored = ops.Gt(b, ops.Add(b, i.low, i.high), number(b, i.low, 0))
	return mirrored, ops.Select(b, mirrored, ops.Neg(b, i.high), i.low), ops.Select(b, mirrored, ops.Neg(b, i.low), i.high)
}

// logMass returns the logarithm of the probability between the bounds.
func (i interval) logMass(b *ir.Builder) ir.Value {
	_, from, to := i.mirrored(b)
	upper := special.LogNdtr(b, to)
	return ops.Add(b, upper, ops.Log1p(b, ops.Neg(b, ops.Exp(b, ops.Sub(b, special.LogNdtr(b, from), upper)))))
}

// gauss are the positive nodes and their weights of the rule of Gauss and Legendre with eight nodes (DLMF
// 3.5.v).
var gauss = [...][2]float64{
	{0.183434642495649805, 0.362683783378361983},
	{0.525532409916328986, 0.313706645877887287},
	{0.796666477413626740, 0.222381034453374471},
	{0.960289856497536232, 0.101228536290376259},
}

// density returns e^(−slope·x − (half·x)²/2).
func (i interval) density(b *ir.Builder, x ir.Value) ir.Value {
	y := ops.Mul(b, x, i.half)
	return ops.Exp(b, ops.Neg(b, ops.Add(b, ops.Mul(b, i.slope, x), scale(b, ops.Mul(b, y, y), 0.5))))
}

// integral returns the integral of the density times xᵏ from −1 to end.
func (i interval) integral(b *ir.Builder, end ir.Value, k int) ir.Value {
	half := scale(b, plus(b, end, 1), 0.5)
	var sum ir.Value
	for n, node := range gauss {
		for _, sign := range []float64{-1, 1} {
			x := plus(b, scale(b, half, 1+sign*node[0]), -1)
			y := scale(b, i.density(b, x), node[1])
			for range k {
				y = ops.Mul(b, y, x)
			}
			if n == 0 && sign < 0 {
				sum = y
			} else {
				sum = ops.Add(b, sum, y)
			}
		}
	}
	return ops.Mul(b, half, sum)
}

// moments returns the integral of the density over [−1, 1], and the means of x and x².
func (i interval) moments(b *ir.Builder) (mass, first, second ir.Value) {
	one := number(b, i.half, 1)
	mass = i.integral(b, one, 0)
	return mass, ops.Div(b, i.integral(b, one, 1), mass), ops.Div(b, i.integral(b, one, 2), mass)
}

// quantile returns the x up to which the integral of the density is u of that over [−1, 1], by Newton's
// method from the first terms of its series in the slope.
func (i interval) quantile(b *ir.Builder, u ir.Value) ir.Value {
	one := number(b, u, 1)
	goal := ops.Mul(b, u, i.integral(b, one, 0))
	bend := ops.Mul(b, i.slope, ops.Mul(b, u, oneMinus(b, u)))
	x := plus(b, scale(b, ops.Sub(b, u, bend), 2), -1)
	for range 3 {
		x = ops.Sub(b, x, ops.Div(b, ops.Sub(b, i.integral(b, x, 0), goal), i.density(b, x)))
	}
	return x
}

// Sample draws numbers, by the quantile of uniform numbers. Bounds more than some ten standard deviations
// from the mean need more than the precision of a probability, unless they are close to each other.
func (d TruncatedNormal) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return inWide(b, drawn(b, shape, d.Loc, d.Scale, d.Low, d.High), func(p []ir.Value) ir.Value {
		d := TruncatedNormal{p[0], p[1], p[2], p[3]}
		i, u := d.interval(b), uniform(b, key, p[0])
		mirrored, from, _ := i.mirrored(b)
		at := ops.Add(b, ops.Exp(b, special.LogNdtr(b, from)), ops.Mul(b, ops.Exp(b, i.logMass(b)), u))
		z := special.Ndtri(b, at)
		z = ops.Clamp(b, ops.Select(b, mirrored, ops.Neg(b, z), z), i.low, i.high)
		x := ops.Clamp(b, i.quantile(b, u), number(b, u, -1), number(b, u, 1))
		near := ops.Add(b, d.center(b), ops.Mul(b, d.half(b), x))
		return ops.Select(b, i.isNarrow, near, ops.Add(b, d.Loc, ops.Mul(b, d.Scale, z)))
	})
}

// LogProb returns the logarithm of the density.
func (d TruncatedNormal) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	i := d.interval(b)
	away, _ := standard(b, x, d.center(b), d.Scale)
	mass := ops.Log(b, ops.Mul(b, d.half(b), i.integral(b, number(b, i.half, 1), 0)))
	near := ops.Sub(b, scale(b, ops.Mul(b, away, ops.Add(b, away, scale(b, i.middle, 2))), -0.5), mass)
	far := ops.Sub(b, Normal{d.Loc, d.Scale}.LogProb(b, x), i.logMass(b))
	outside := ops.Or(b, ops.Lt(b, x, d.Low), ops.Gt(b, x, d.High))
	return except(b, outside, either(b, i.isNarrow, near, far))
}

// either selects between values in the shape of the first two.
func either(b *ir.Builder, condition, x, y ir.Value) ir.Value {
	in := argument.Broadcast(b, x, y)
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.Select(b, ops.BroadcastTo(b, condition, in[0].Shape()), in[0], in[1])
}

// edges returns the densities of the standard normal distribution at the bounds, divided by the
// probability between them, and those times the bounds.
func (i interval) edges(b *ir.Builder) (difference, weighted, logMass ir.Value) {
	logMass = i.logMass(b)
	zero, one := number(b, i.low, 0), number(b, i.low, 1)
	at := func(z ir.Value) ir.Value { return ops.Exp(b, ops.Sub(b, Normal{zero, one}.LogProb(b, z), logMass)) }
	difference = ops.Sub(b, at(i.low), at(i.high))
	weighted = ops.Sub(b, ops.MulZero(b, at(i.low), i.low), ops.MulZero(b, at(i.high), i.high))
	return difference, weighted, logMass
}

// Entropy returns the entropy.
func (d TruncatedNormal) Entropy(b *ir.Builder) ir.Value {
	i := d.interval(b)
	_, weighted, logMass := i.edges(b)
	mass, first, second := i.moments(b)
	near := ops.Add(b, ops.Mul(b, i.slope, first), scale(b, ops.Mul(b, ops.Mul(b, i.half, i.half), second), 0.5))
	near = ops.Add(b, near, ops.Log(b, ops.Mul(b, d.half(b), mass)))
	far := ops.Add(b, ops.Add(b, Normal{d.Loc, d.Scale}.Entropy(b), logMass), scale(b, weighted, 0.5))
	return ops.Select(b, i.isNarrow, near, far)
}

// Mean returns the mean.
func (d TruncatedNormal) Mean(b *ir.Builder) ir.Value {
	i := d.interval(b)
	difference, _, _ := i.edges(b)
	_, first, _ := i.moments(b)
	near := ops.Add(b, d.center(b), ops.Mul(b, d.half(b), first))
	return ops.Select(b, i.isNarrow, near, ops.Add(b, d.Loc, ops.Mul(b, d.Scale, difference)))
}

// Variance returns the variance.
func (d TruncatedNormal) Variance(b *ir.Builder) ir.Value {
	i := d.interval(b)
	difference, weighted, _ := i.edges(b)
	_, first, second := i.moments(b)
	near := ops.Mul(b, ops.Square(b, d.half(b)), ops.Sub(b, second, ops.Mul(b, first, first)))
	far := ops.Sub(b, plus(b, weighted, 1), ops.Mul(b, difference, difference))
	return ops.Select(b, i.isNarrow, near, ops.Mul(b, ops.Mul(b, d.Scale, d.Scale), far))
}
