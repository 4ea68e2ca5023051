package losses_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/losses"
	"github.com/rlx-go/rlx/ir/ops"
)

// functions are PyTorch's losses, of the cases of ir/irtest/cases/functions.json.
var functions = map[string]functiontest.Function{
	"triplet_margin": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.TripletMargin(b, in["anchor"], in["positive"], in["negative"])
	}),
	"triplet_margin swap": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.TripletMargin(b, in["anchor"], in["positive"], in["negative"], losses.TripletOptions{Margin: 2, P: 3, Swap: true, Reduction: ops.LossSum})
	}),
	"margin_ranking": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.MarginRanking(b, in["x"], in["y"], in["target"], losses.MarginOptions{Margin: 0.5, Reduction: ops.LossNone})
	}),
	"hinge_embedding": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.HingeEmbedding(b, in["x"], in["target"])
	}),
	"cosine_embedding": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.CosineEmbedding(b, in["x"], in["y"], in["target"], losses.MarginOptions{Margin: 0.25})
	}),
	"soft_margin": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.SoftMargin(b, in["x"], in["target"], "")
	}),
	"gaussian_nll": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.GaussianNLL(b, in["x"], in["target"], in["variance"])
	}),
	"gaussian_nll full": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.GaussianNLL(b, in["x"], in["target"], in["variance"], losses.GaussianOptions{Full: true, Epsilon: 1e-2, Reduction: ops.LossSum})
	}),
	"poisson_nll": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.PoissonNLL(b, in["x"], in["target"])
	}),
	"poisson_nll full": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.PoissonNLL(b, in["x"], in["target"], losses.PoissonOptions{Rates: true, Full: true, Reduction: ops.LossNone})
	}),
	"kl_div": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.KLDiv(b, in["x"], in["target"], losses.KLOptions{Reduction: losses.BatchMean})
	}),
	"kl_div log": of(func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		return losses.KLDiv(b, in["x"], in["target"], losses.KLOptions{LogTarget: true, Reduction: ops.LossSum})
	}),
}

func of(f func(b *ir.Builder, in map[string]ir.Value) ir.Value) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value { return []ir.Value{f(b, in)} }
}

func TestValuesAreThoseOfPyTorch(t *testing.T) {
	functiontest.Run(t, "../irtest/cases/functions.json", "losses.", functions)
}
