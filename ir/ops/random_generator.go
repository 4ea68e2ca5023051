package ops

import "github.com/rlx-go/rlx/ir"

// Generator names a scheme that derives random words from blocks of Threefry-2x32, which
// map a key and a counter to two words (Salmon et al., Parallel Random Numbers: As Easy as
// 1, 2, 3).
type Generator string

// The generators. A number depends on the key and the element's index alone, not on the
// device or the tiling.
const (
	// Threefry computes a block of 20 rounds for each element and takes the exclusive or
	// of its words: JAX's numbers with jax_threefry_partitionable.
	Threefry Generator = "threefry"
	// ThreefryBoth computes a block for two elements, which take one word each: of equal
	// quality, and half the arithmetic where a thread has several elements, as on a GPU.
	ThreefryBoth Generator = "threefry_both"
	// ThreefryBoth13 is ThreefryBoth with 13 rounds, the fewest that pass all statistical
	// tests according to Random123's documentation: it trades the safety margin for speed.
	ThreefryBoth13 Generator = "threefry_both_13"
)

// generatorText is the constraint on the attribute.
const generatorText = `generator is "threefry" (JAX's numbers, taken where none is given), "threefry_both" or "threefry_both_13"`

// check reports an error for an unknown generator.
func (g Generator) check() error {
	switch g {
	case "", Threefry, ThreefryBoth, ThreefryBoth13:
		return nil
	}
	return ir.Attrf("generator is %q, not one of %q, %q and %q", g, Threefry, ThreefryBoth, ThreefryBoth13)
}

// rounds returns the number of rounds of a block.
func (g Generator) rounds() int {
	if g == ThreefryBoth13 {
		return 13
	}
	return 20
}

// serves returns the number of 32-bit elements of a block.
func (g Generator) serves() int {
	if g == ThreefryBoth || g == ThreefryBoth13 {
		return 2
	}
	return 1
}

// Bits is [RandomBits] by the generator.
func (g Generator) Bits(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return b.Add1(OpRandomBits, &RandomBitsAttrs{RandomAttrs: RandomAttrs{shape, g}}, key)
}

// Uniform is [Uniform] by the generator.
func (g Generator) Uniform(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpUniform, &RandomFloatAttrs{RandomAttrs{shape, g}, d}, key)
}

// Normal is [Normal] by the generator.
func (g Generator) Normal(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpNormal, &RandomFloatAttrs{RandomAttrs{shape, g}, d}, key)
}

// Bernoulli is [Bernoulli] by the generator.
func (g Generator) Bernoulli(b *ir.Builder, key, p ir.Value, shape ...ir.Dim) ir.Value {
	return b.Add1(OpBernoulli, &RandomAttrs{shape, g}, key, p)
}

// Gumbel is [Gumbel] by the generator.
func (g Generator) Gumbel(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpGumbel, &RandomFloatAttrs{RandomAttrs{shape, g}, d}, key)
}

// Exponential is [Exponential] by the generator.
func (g Generator) Exponential(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpExponential, &RandomFloatAttrs{RandomAttrs{shape, g}, d}, key)
}

// TruncatedNormal is [TruncatedNormal] by the generator.
func (g Generator) TruncatedNormal(b *ir.Builder, key ir.Value, low, high float64, d ir.DType, shape ...ir.Dim) ir.Value {
	return b.Add1(OpTruncatedNormal, &TruncatedAttrs{RandomFloatAttrs{RandomAttrs{shape, g}, d}, low, high}, key)
}
