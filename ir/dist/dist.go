package dist

import (
	"math"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Distribution is a batch of probability distributions.
type Distribution interface {
	// Sample draws numbers in the given shape, followed by that of the batch. key is u32[2].
	Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value
	// LogProb returns the logarithm of the density at x, or of its probability, −∞ outside the support. x
	// broadcasts with the parameters.
	LogProb(b *ir.Builder, x ir.Value) ir.Value
	// Entropy returns −E log p, in nats.
	Entropy(b *ir.Builder) ir.Value
	// Mean returns the expectation, NaN or ∞ where there is none.
	Mean(b *ir.Builder) ir.Value
	// Variance returns the expectation of the squared distance from the mean.
	Variance(b *ir.Builder) ir.Value
}

var logTwoPi = math.Log(2 * math.Pi)

func number(b *ir.Builder, like ir.Value, v float64) ir.Value { return ops.ConstLike(b, like, v) }

func scale(b *ir.Builder, x ir.Value, by float64) ir.Value { return ops.Mul(b, x, number(b, x, by)) }

func plus(b *ir.Builder, x ir.Value, by float64) ir.Value { return ops.Add(b, x, number(b, x, by)) }

func oneMinus(b *ir.Builder, x ir.Value) ir.Value { return plus(b, ops.Neg(b, x), 1) }

// where returns x where the condition holds and otherwise v.
func where(b *ir.Builder, condition, x ir.Value, otherwise float64) ir.Value {
	return ops.Select(b, condition, x, number(b, x, otherwise))
}

// within returns x where the condition holds, the logarithm of probability 0 elsewhere.
func within(b *ir.Builder, condition, x ir.Value) ir.Value {
	return where(b, condition, x, math.Inf(-1))
}

// drawn returns the parameters in the shape of numbers: the given one, followed by theirs.
func drawn(b *ir.Builder, shape []ir.Dim, parameters ...ir.Value) []ir.Value {
	out := argument.Broadcast(b, parameters...)
	for i, p := range out {
		if b.Err() == nil {
			out[i] = ops.BroadcastTo(b, p, append(ir.Shape(shape).Clone(), p.Shape()...))
		}
	}
	return out
}

// except returns x but where the condition holds the logarithm of probability 0. Of a NaN no comparison
// holds, so that it stays one.
func except(b *ir.Builder, outside, x ir.Value) ir.Value { return within(b, ops.Not(b, outside), x) }

// inWide computes numbers of the parameters in at least f32 and rounds them to the type of these.
func inWide(b *ir.Builder, p []ir.Value, f func(p []ir.Value) ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	d := p[0].DType()
	wide := make([]ir.Value, len(p))
	for i, x := range p {
		wide[i] = ops.Convert(b, x, argument.Wide(d))
	}
	return ops.Convert(b, f(wide), d)
}

// uniform returns numbers in (0, 1) in the shape of like, of f64 for f64 and else f32: there are 128 in
// bf16.
func uniform(b *ir.Builder, key, like ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	d := argument.Wide(like.DType())
	return ops.Max(b, ops.Uniform(b, key, d, like.Shape()...), ops.Const(b, d, d.Epsilon()/4))
}

func normal(b *ir.Builder, key, like ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.Normal(b, key, like.DType(), like.Shape()...)
}

// keys splits a key into two.
func keys(b *ir.Builder, key ir.Value) (ir.Value, ir.Value) {
	part := func(i float64) ir.Value { return ops.FoldIn(b, key, ops.Const(b, ir.U32, i)) }
	return part(0), part(1)
}

// unsupported records that a distribution has no formula for a method.
func unsupported(b *ir.Builder, of, method string) ir.Value {
	b.Fail(ir.Errorf(ir.ErrUnsupported, "dist: %s has no formula for %s", of, method))
	return ir.Value{}
}

// RandInt returns i32 numbers of equal probability from low to high − 1, in the given shape, as
// jax.random.randint with the same keys. Where the numbers are n, probabilities differ by less than
// n·2⁻³² of themselves. The error is of kind [ir.ErrAttr] if high is not above low.
func RandInt(b *ir.Builder, key ir.Value, low, high int32, shape ...ir.Dim) ir.Value {
	if high <= low {
		b.Fail(ir.Attrf("dist: high is %d; it must be above low, %d", high, low))
		return ir.Value{}
	}
	span := uint64(int64(high) - int64(low))
	half := (1 << 16) % span
	weight := uint64(uint32(half*half)) % span // of the upper word; 0 above 2¹⁶, by 32 bits as in JAX
	pair := ops.SplitKey(b, key, ir.N(2))
	bits := func(i int) ir.Value {
		return ops.RandomBits(b, ops.Squeeze(b, ops.SliceAxis(b, pair, 0, ir.N(i), ir.N(1)), 0), shape...)
	}
	rest := func(x ir.Value) ir.Value { return ops.Rem(b, x, number(b, x, float64(span))) }
	upper := scale(b, rest(bits(0)), float64(weight))
	x := rest(ops.Add(b, upper, rest(bits(1))))
	return ops.Convert(b, ops.Add(b, x, number(b, x, float64(uint32(low)))), ir.I32)
}
