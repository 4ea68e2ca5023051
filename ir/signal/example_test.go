package signal_test

import (
	"fmt"
	"log"
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/signal"
)

func ExampleDCT() {
	g, err := ir.Build("example", func(b *ir.Builder) {
		x := ops.Literal(b, ir.Floats(ir.F32, []float64{1, 2, 3, 4}))
		y := signal.DCT(b, x, -1, signal.DCTOptions{Norm: ops.FFTOrtho})
		b.Output("y", y)
		b.Output("x", signal.IDCT(b, y, -1, signal.DCTOptions{Norm: ops.FFTOrtho}))
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := ir.Eval(g, nil, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n%.3f\n", out[0].F, out[1].F)
	// Output:
	// [5.000 -2.230 -0.000 -0.159]
	// [1.000 2.000 3.000 4.000]
}

func ExampleInterp() {
	g, err := ir.Build("example", func(b *ir.Builder) {
		vector := func(x ...float64) ir.Value { return ops.Literal(b, ir.Floats(ir.F32, x)) }
		b.Output("y", signal.Interp(b, vector(-1, 0.5, 2.5), vector(0, 1, 3), vector(10, 20, 60)))
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := ir.Eval(g, nil, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out[0].F)
	// Output: [10 15 50]
}

func TestRefusals(t *testing.T) {
	vector := func(b *ir.Builder, name string, d ir.DType, n int) ir.Value { return b.Input(name, d, ir.N(n)) }
	functiontest.Refuse(t, []functiontest.Refusal{
		{Name: "a transform of another type", Build: func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F32, 4), 0, signal.DCTOptions{Type: 5}) }, Kind: ir.ErrAttr, Text: "Type is 5: it must be 1, 2, 3 or 4"},
		{Name: "a transform of f16", Build: func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F16, 4), 0) }, Kind: ir.ErrDType, Text: "x is f16[4]: it must be f32 or f64"},
		{Name: "a transform of nothing", Build: func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F32, 0), 0) }, Kind: ir.ErrShape, Text: "must have 1 elements or more"},
		{Name: "type 1 of one element", Build: func(b *ir.Builder) { signal.IDCT(b, vector(b, "x", ir.F32, 1), 0, signal.DCTOptions{Type: 1}) }, Kind: ir.ErrShape, Text: "must have 2 elements or more"},
		{Name: "another axis", Build: func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F32, 4), 1) }, Kind: ir.ErrAttr, Text: "axis is 1: it must be in [-1, 1)"},
		{Name: "an unknown norm", Build: func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F32, 4), 0, signal.DCTOptions{Norm: "unit"}) }, Kind: ir.ErrAttr, Text: `Norm is "unit"`},
		{Name: "a symbolic size", Build: func(b *ir.Builder) { signal.DCT(b, b.Input("x", ir.F32, ir.Sym("n")), 0) }, Kind: ir.ErrSymbol, Text: "it must be a number"},
		{Name: "points of two sizes", Build: func(b *ir.Builder) {
			signal.Interp(b, vector(b, "x", ir.F32, 4), vector(b, "xp", ir.F32, 3), vector(b, "fp", ir.F32, 2))
		}, Kind: ir.ErrShape, Text: "they must be vectors of one size"},
		{Name: "no points", Build: func(b *ir.Builder) {
			signal.Interp(b, vector(b, "x", ir.F32, 4), vector(b, "xp", ir.F32, 0), vector(b, "fp", ir.F32, 0))
		}, Kind: ir.ErrShape, Text: "there must be a point"},
	})
}

func TestNarrowFloatsKeepTheirType(t *testing.T) {
	functiontest.Keep(t, map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"interp": func(b *ir.Builder, x ir.Value) ir.Value { return signal.Interp(b, x, x, x) },
	}, 3)
}
