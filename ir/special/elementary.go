package special

import (
	"math"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// wide computes a function of one operand in at least f32.
func wide(b *ir.Builder, x ir.Value, f func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
	return wideOf(b, []ir.Value{x}, func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0]) })
}

// wideOf computes a function of operands of one type and shape in at least f32. They are broadcast.
func wideOf(b *ir.Builder, in []ir.Value, f func(b *ir.Builder, in []ir.Value) ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	for i, x := range in {
		if !x.Valid() || !x.DType().IsFloat() {
			b.Fail(ir.DTypef("operand %d of a special function is of another type than a float type", i))
			return ir.Value{}
		}
	}
	in = argument.Broadcast(b, in...)
	if b.Err() != nil {
		return ir.Value{}
	}
	d := in[0].DType()
	for i, x := range in {
		if d != ir.F64 {
			in[i] = ops.Convert(b, x, ir.F32)
		}
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.Convert(b, f(b, in), d)
}

// wideOfTwo is wideOf for two operands.
func wideOfTwo(b *ir.Builder, x, y ir.Value, f func(b *ir.Builder, x, y ir.Value) ir.Value) ir.Value {
	return wideOf(b, []ir.Value{x, y}, func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0], in[1]) })
}

// withSlope computes f of one operand, whose derivative is slope.
func withSlope(b *ir.Builder, x ir.Value, f, slope func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
	return withSlopes(b, []ir.Value{x}, func(b *ir.Builder, in []ir.Value) ir.Value { return f(b, in[0]) },
		func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{slope(b, in[0])} })
}

// withSlopes computes f, whose derivatives by its operands are slopes. A slope of zero adds nothing,
// even if it is of an infinite tangent.
func withSlopes(b *ir.Builder, in []ir.Value, f func(b *ir.Builder, in []ir.Value) ir.Value, slopes func(b *ir.Builder, in []ir.Value) []ir.Value) ir.Value {
	return autodiff.CustomJVP(b, in,
		func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{f(b, in)} },
		func(b *ir.Builder, in, t []ir.Value) []ir.Value {
			var sum ir.Value
			for i, slope := range slopes(b, in) {
				if part := ops.MulZero(b, t[i], slope); i == 0 {
					sum = part
				} else {
					sum = ops.Add(b, sum, part)
				}
			}
			return []ir.Value{sum}
		})[0]
}

func number(b *ir.Builder, like ir.Value, v float64) ir.Value { return ops.ConstLike(b, like, v) }

func scale(b *ir.Builder, x ir.Value, by float64) ir.Value { return ops.Mul(b, x, number(b, x, by)) }

func plus(b *ir.Builder, x ir.Value, by float64) ir.Value { return ops.Add(b, x, number(b, x, by)) }

// where returns x where the condition holds and otherwise v.
func where(b *ir.Builder, condition, x ir.Value, otherwise float64) ir.Value {
	return ops.Select(b, condition, x, number(b, x, otherwise))
}

// chebyshev returns Σ cₖ·Tₖ(t) by Clenshaw's recurrence, without terms below the precision of the
// element type.
func chebyshev(b *ir.Builder, t ir.Value, c []float64) ir.Value {
	largest := 0.
	for _, x := range c {
		largest = max(largest, math.Abs(x))
	}
	n := len(c)
	for n > 2 && math.Abs(c[n-1]) < largest*t.DType().Epsilon()/32 {
		n--
	}
	twice := ops.Add(b, t, t)
	last, before := number(b, t, c[n-1]), number(b, t, 0)
	for k := n - 2; k >= 1; k-- {
		last, before = plus(b, ops.Sub(b, ops.Mul(b, twice, last), before), c[k]), last
	}
	return plus(b, ops.Sub(b, ops.Mul(b, t, last), before), c[0])
}

// Entr returns the elementwise entropy −x·log x: 0 at 0, −∞ below, as scipy.special.entr.
func Entr(b *ir.Builder, x ir.Value) ir.Value {
	return wide(b, x, func(b *ir.Builder, x ir.Value) ir.Value {
		negative := ops.Lt(b, x, number(b, x, 0))
		safe := ops.Select(b, negative, number(b, x, 0), x)
		return ops.Select(b, negative, number(b, x, math.Inf(-1)), ops.Neg(b, ops.XLogY(b, safe, safe)))
	})
}

// RelEntr returns the elementwise relative entropy x·log(x/y) for x and y not negative: 0 where x is 0,
// ∞ otherwise, as scipy.special.rel_entr.
func RelEntr(b *ir.Builder, x, y ir.Value) ir.Value {
	return wideOfTwo(b, x, y, relEntr)
}

func relEntr(b *ir.Builder, x, y ir.Value) ir.Value {
	zero := number(b, x, 0)
	none := ops.And(b, ops.Eq(b, x, zero), ops.Ge(b, y, zero))
	inside := ops.And(b, ops.Gt(b, x, zero), ops.Gt(b, y, zero))
	known := ops.Or(b, ops.IsNaN(b, x), ops.IsNaN(b, y))
	safeX, safeY := where(b, inside, x, 1), where(b, inside, y, 1)
	difference := ops.Sub(b, safeX, safeY)
	near := ops.Lt(b, ops.Abs(b, difference), scale(b, safeY, 0.5)) // where the quotient rounds off what differs
	log := ops.Select(b, near, ops.Log1p(b, ops.Div(b, difference, safeY)), ops.Sub(b, ops.Log(b, safeX), ops.Log(b, safeY)))
	z := ops.Select(b, inside, ops.Mul(b, safeX, log), where(b, none, ops.Mul(b, x, number(b, x, 0)), math.Inf(1)))
	return ops.Select(b, known, ops.Add(b, x, y), z)
}

// KLDiv returns x·log(x/y) − x + y for x and y not negative, which is y where x is 0, and ∞ otherwise,
// as scipy.special.kl_div. Its relative error is small also where x and y are close, by the series of
// Loader, Fast and Accurate Computation of Binomial Probabilities (2000).
func KLDiv(b *ir.Builder, x, y ir.Value) ir.Value {
	return wideOfTwo(b, x, y, klDiv)
}

// klDiv is (x−y)·v + 2·x·(v³/3 + v⁵/5 + …) with v = (x−y)/(x+y) near x = y, since log(x/y) = 2·artanh v.
func klDiv(b *ir.Builder, x, y ir.Value) ir.Value {
	difference, sum := ops.Sub(b, x, y), ops.Add(b, x, y)
	near := ops.Lt(b, ops.Abs(b, difference), scale(b, sum, 1./8))
	if b.Err() != nil {
		return ir.Value{}
	}
	terms := 4 // the next one is below the precision
	if x.DType() == ir.F64 {
		terms = 8
	}
	c := make([]float64, terms)
	for i := range c {
		c[i] = 1 / float64(2*i+3)
	}
	difference = where(b, near, difference, 0)
	v := ops.Div(b, difference, where(b, near, sum, 1))
	square := ops.Mul(b, v, v)
	rest := ops.Mul(b, ops.Mul(b, scale(b, where(b, near, x, 1), 2), v), ops.Mul(b, square, horner(b, square, c...)))
	series := ops.Add(b, ops.Mul(b, difference, v), rest)
	return ops.Select(b, near, series, ops.Add(b, relEntr(b, x, y), ops.Sub(b, y, x)))
}
