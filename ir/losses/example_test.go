package losses_test

import (
	"fmt"
	"log"
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/losses"
	"github.com/rlx-go/rlx/ir/ops"
)

func ExampleTripletMargin() {
	g, err := ir.Build("example", func(b *ir.Builder) {
		vector := func(x ...float64) ir.Value { return ops.Literal(b, ir.Floats(ir.F32, x, 1, 2)) }
		b.Output("loss", losses.TripletMargin(b, vector(0, 0), vector(3, 4), vector(0, 2)))
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := ir.Eval(g, nil, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", out[0].F)
	// Output: [4.000]
}

func TestRefusals(t *testing.T) {
	x := func(b *ir.Builder) ir.Value { return b.Input("x", ir.F32, ir.Dims(2, 3)...) }
	functiontest.Refuse(t, []functiontest.Refusal{
		{"an unknown reduction", func(b *ir.Builder) {
			v := x(b)
			losses.SoftMargin(b, v, v, losses.BatchMean)
		}, ir.ErrAttr, `Reduction is "batchmean"`},
		{"shapes that do not fit", func(b *ir.Builder) {
			losses.MarginRanking(b, x(b), b.Input("y", ir.F32, ir.N(2)), b.Input("t", ir.F32, ir.N(1)))
		}, ir.ErrShape, ""},
		{"targets of integers", func(b *ir.Builder) { losses.HingeEmbedding(b, x(b), b.Input("t", ir.I32, ir.Dims(2, 3)...)) }, ir.ErrDType, "must be of a float type"},
		{"a negative margin", func(b *ir.Builder) {
			v := x(b)
			losses.TripletMargin(b, v, v, v, losses.TripletOptions{Margin: -1})
		}, ir.ErrAttr, "Margin is -1"},
		{"a margin beyond a cosine", func(b *ir.Builder) {
			v := x(b)
			losses.CosineEmbedding(b, v, v, b.Input("t", ir.F32, ir.N(2)), losses.MarginOptions{Margin: 2})
		}, ir.ErrAttr, "Margin is 2: it must be in [-1, 1]"},
		{"two options", func(b *ir.Builder) {
			v := x(b)
			losses.KLDiv(b, v, v, losses.KLOptions{}, losses.KLOptions{})
		}, ir.ErrAttr, "2 option structs"},
		{"no target", func(b *ir.Builder) { losses.PoissonNLL(b, x(b), ir.Value{}) }, ir.ErrGraph, "no operand given"},
	})
}

func TestNarrowFloatsKeepTheirType(t *testing.T) {
	functiontest.Keep(t, map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"triplet_margin": func(b *ir.Builder, x ir.Value) ir.Value { return losses.TripletMargin(b, x, x, x) },
		"gaussian_nll":   func(b *ir.Builder, x ir.Value) ir.Value { return losses.GaussianNLL(b, x, x, x) },
		"kl_div":         func(b *ir.Builder, x ir.Value) ir.Value { return losses.KLDiv(b, x, x) },
	}, 2, 3)
}
