package cmplx_test

import (
	"fmt"
	"log"
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/cmplx"
	"github.com/rlx-go/rlx/ir/ops"
)

// The amplitudes of a spectrum.
func ExampleAbs() {
	g, err := ir.Build("example", func(b *ir.Builder) {
		x := ops.Literal(b, ir.Floats(ir.F32, []float64{1, 0, -1, 0}))
		b.Output("y", cmplx.Abs(b, ops.RFFT(b, x, -1, "")))
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := ir.Eval(g, nil, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", out[0].F)
	// Output: [0.000 2.000 0.000]
}

func TestRefusals(t *testing.T) {
	real := func(b *ir.Builder) ir.Value { return b.Input("x", ir.F32, ir.N(2)) }
	functiontest.Refuse(t, []functiontest.Refusal{
		{Name: "a real number", Build: func(b *ir.Builder) { cmplx.Sqrt(b, real(b)) }, Kind: ir.ErrDType, Text: "an operand is f32[2]: all must be of one complex type"},
		{Name: "a power of two types", Build: func(b *ir.Builder) {
			x := real(b)
			cmplx.Pow(b, ops.Complex(b, x, x), ops.Zeros(b, ir.C128))
		}, Kind: ir.ErrDType, Text: "an operand is c128[]"},
		{Name: "no number", Build: func(b *ir.Builder) { cmplx.Exp(b, ir.Value{}) }, Kind: ir.ErrGraph, Text: "no operand given"},
		{Name: "parts of integers", Build: func(b *ir.Builder) { cmplx.Polar(b, ops.Const(b, ir.I32, 1), ops.Const(b, ir.I32, 1)) }, Kind: ir.ErrDType, Text: "must be of a float type"},
	})
}
