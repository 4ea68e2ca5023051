package dist

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Mixture is the distribution of numbers of one of several components, with probabilities
// softmax(Logits) along the last axis. Components is one distribution, of numbers, with a last axis of
// that size for its components. It has no Entropy.
type Mixture struct {
	Logits     ir.Value
	Components Distribution
}

// Sample draws a number of each component and takes that of a drawn one. The result has no derivatives.
func (d Mixture) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	if !b.Require("mixture", "Components", d.Components != nil) {
		return ir.Value{}
	}
	first, second := keys(b, key)
	all := ops.StopGradient(b, d.Components.Sample(b, second, shape...))
	if b.Err() != nil {
		return ir.Value{}
	}
	class := Categorical{ops.BroadcastTo(b, d.Logits, all.Shape())}.Sample(b, first)
	return ops.Squeeze(b, ops.TakeAlongAxis(b, all, ops.ExpandDims(b, class, -1), -1, ""), -1)
}

// LogProb returns the logarithm of the density.
func (d Mixture) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	if !b.Require("mixture", "Components", d.Components != nil) {
		return ir.Value{}
	}
	each := d.Components.LogProb(b, ops.ExpandDims(b, x, -1))
	return ops.LogSumExp(b, ops.Add(b, each, ops.LogSoftmax(b, d.Logits, -1)), -1)
}

// Entropy has no formula.
func (d Mixture) Entropy(b *ir.Builder) ir.Value { return unsupported(b, "Mixture", "Entropy") }

// weighted returns the sum of x over the components by their probabilities.
func (d Mixture) weighted(b *ir.Builder, x ir.Value) ir.Value {
	return sumLast(b, ops.Mul(b, ops.Softmax(b, d.Logits, -1), x))
}

// Mean returns the mean.
func (d Mixture) Mean(b *ir.Builder) ir.Value {
	if !b.Require("mixture", "Components", d.Components != nil) {
		return ir.Value{}
	}
	return d.weighted(b, d.Components.Mean(b))
}

// Variance returns the mean of the components' variances plus the variance of their means.
func (d Mixture) Variance(b *ir.Builder) ir.Value {
	if !b.Require("mixture", "Components", d.Components != nil) {
		return ir.Value{}
	}
	mean := d.Components.Mean(b)
	away := ops.Sub(b, mean, ops.ExpandDims(b, d.weighted(b, mean), -1))
	return d.weighted(b, ops.Add(b, d.Components.Variance(b), ops.Mul(b, away, away)))
}
