package spd_test

import (
	"fmt"
	"log"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops/spd"
)

// The identity and a diagonal matrix are as far apart as the logarithms of its diagonal are long.
func ExampleDistance() {
	g, err := ir.Build("distance", func(b *ir.Builder) {
		p, q := b.Input("p", ir.F64, ir.Dims(2, 2)...), b.Input("q", ir.F64, ir.Dims(2, 2)...)
		b.Output("d", spd.Distance(b, p, q))
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{
		"p": ir.Floats(ir.F64, []float64{1, 0, 0, 1}, 2, 2),
		"q": ir.Floats(ir.F64, []float64{math.Exp(3), 0, 0, math.Exp(4)}, 2, 2),
	}, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f\n", out[0].F)
	// Output: [5.0000]
}
