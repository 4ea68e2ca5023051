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
		{"a transform of another type", func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F32, 4), 0, signal.DCTOptions{Type: 5}) }, ir.ErrAttr, "Type is 5: it must be 1, 2, 3 or 4"},
		{"a transform of f16", func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F16, 4), 0) }, ir.ErrDType, "x is f16[4]: it must be f32 or f64"},
		{"a transform of nothing", func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F32, 0), 0) }, ir.ErrShape, "must have 1 elements or more"},
		{"type 1 of one element", func(b *ir.Builder) { signal.IDCT(b, vector(b, "x", ir.F32, 1), 0, signal.DCTOptions{Type: 1}) }, ir.ErrShape, "must have 2 elements or more"},
		{"another axis", func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F32, 4), 1) }, ir.ErrAttr, "axis is 1: it must be in [-1, 1)"},
		{"an unknown norm", func(b *ir.Builder) { signal.DCT(b, vector(b, "x", ir.F32, 4), 0, signal.DCTOptions{Norm: "unit"}) }, ir.ErrAttr, `Norm is "unit"`},
		{"a symbolic size", func(b *ir.Builder) { signal.DCT(b, b.Input("x", ir.F32, ir.Sym("n")), 0) }, ir.ErrSymbol, "it must be a number"},
		{"points of two sizes", func(b *ir.Builder) {
			signal.Interp(b, vector(b, "x", ir.F32, 4), vector(b, "xp", ir.F32, 3), vector(b, "fp", ir.F32, 2))
		}, ir.ErrShape, "they must be vectors of one size"},
		{"no points", func(b *ir.Builder) {
			signal.Interp(b, vector(b, "x", ir.F32, 4), vector(b, "xp", ir.F32, 0), vector(b, "fp", ir.F32, 0))
		}, ir.ErrShape, "there must be a point"},
	})
}

func TestNarrowFloatsKeepTheirType(t *testing.T) {
	functiontest.Keep(t, map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"interp": func(b *ir.Builder, x ir.Value) ir.Value { return signal.Interp(b, x, x, x) },
	}, 3)
}
