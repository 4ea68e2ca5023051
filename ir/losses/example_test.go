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
		{Name: "an unknown reduction", Build: func(b *ir.Builder) {
			v := x(b)
			losses.SoftMargin(b, v, v, losses.BatchMean)
		}, Kind: ir.ErrAttr, Text: `Reduction is "batchmean"`},
		{Name: "shapes that do not fit", Build: func(b *ir.Builder) {
			losses.MarginRanking(b, x(b), b.Input("y", ir.F32, ir.N(2)), b.Input("t", ir.F32, ir.N(1)))
		}, Kind: ir.ErrShape, Text: ""},
		{Name: "targets of integers", Build: func(b *ir.Builder) { losses.HingeEmbedding(b, x(b), b.Input("t", ir.I32, ir.Dims(2, 3)...)) }, Kind: ir.ErrDType, Text: "must be of a float type"},
		{Name: "a negative margin", Build: func(b *ir.Builder) {
			v := x(b)
			losses.TripletMargin(b, v, v, v, losses.TripletOptions{Margin: -1})
		}, Kind: ir.ErrAttr, Text: "Margin is -1"},
		{Name: "a margin beyond a cosine", Build: func(b *ir.Builder) {
			v := x(b)
			losses.CosineEmbedding(b, v, v, b.Input("t", ir.F32, ir.N(2)), losses.MarginOptions{Margin: 2})
		}, Kind: ir.ErrAttr, Text: "Margin is 2: it must be in [-1, 1]"},
		{Name: "two options", Build: func(b *ir.Builder) {
			v := x(b)
			losses.KLDiv(b, v, v, losses.KLOptions{}, losses.KLOptions{})
		}, Kind: ir.ErrAttr, Text: "2 option structs"},
		{Name: "no target", Build: func(b *ir.Builder) { losses.PoissonNLL(b, x(b), ir.Value{}) }, Kind: ir.ErrGraph, Text: "no operand given"},
	})
}

func TestNarrowFloatsKeepTheirType(t *testing.T) {
	functiontest.Keep(t, map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"triplet_margin": func(b *ir.Builder, x ir.Value) ir.Value { return losses.TripletMargin(b, x, x, x) },
		"gaussian_nll":   func(b *ir.Builder, x ir.Value) ir.Value { return losses.GaussianNLL(b, x, x, x) },
		"kl_div":         func(b *ir.Builder, x ir.Value) ir.Value { return losses.KLDiv(b, x, x) },
	}, 2, 3)
}
