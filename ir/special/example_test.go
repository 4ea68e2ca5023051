package special_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/special"
)

// P(1, x) is 1 − e⁻ˣ.
func ExampleGammainc() {
	g, err := ir.Build("gammainc", func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(3))
		b.Output("p", special.Gammainc(b, ops.Const(b, ir.F64, 1), x))
	})
	if err != nil {
		log.Fatal(err)
	}
	x := ir.Floats(ir.F64, []float64{0, 1, 2})
	out, err := ir.Eval(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for i := range x.Len() {
		fmt.Printf("P(1, %v) = %.4f\n", x.Float(i), out[0].Float(i))
	}
	// Output:
	// P(1, 0) = 0.0000
	// P(1, 1) = 0.6321
	// P(1, 2) = 0.8647
}
