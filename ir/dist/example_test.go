package dist_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dist"
	"github.com/rlx-go/rlx/ir/ops"
)

// The terms of a variational autoencoder's loss for one latent number.
func Example() {
	g, err := ir.Build("latent", func(b *ir.Builder) {
		mean, deviation := b.Input("mean", ir.F32, ir.N(1)), b.Input("deviation", ir.F32, ir.N(1))
		z := dist.Normal{Loc: mean, Scale: deviation}
		prior := dist.Normal{Loc: ops.Const(b, ir.F32, 0), Scale: ops.Const(b, ir.F32, 1)}
		b.Output("divergence", dist.KL(b, z, prior)) // (deviation² + mean² − 1)/2 − log deviation
		b.Output("density", ops.Exp(b, prior.LogProb(b, mean)))
		b.Output("sample", z.Sample(b, b.Input("key", ir.U32, ir.N(2)), ir.N(1))) // [1, 1]; it has derivatives by mean and deviation
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{
		"mean": ir.Floats(ir.F32, []float64{1}), "deviation": ir.Floats(ir.F32, []float64{1}), "key": ir.Ints(ir.U32, []int64{1, 2}),
	}, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f %.4f %v\n", out[0].Float(0), out[1].Float(0), out[2].Dims)
	// Output: 0.5000 0.2420 [1 1]
}
