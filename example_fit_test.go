package rlx_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// A network learns whether points are within a circle, until the evaluation stops improving.
func ExampleFit() {
	ctx := context.Background()
	model := func(b *ir.Builder, rows int) {
		x, inside := b.Input("x", ir.F32, ir.Dims(rows, 2)...), b.Input("inside", ir.I32, ir.N(rows))
		h := ops.Relu(b, nn.Linear(b, x, 32))
		logits := nn.Linear(b, nn.Dropout(b, h, 0.1), 2)
		b.Output("loss", ops.CrossEntropyMean(b, logits, inside))
		b.Output("accuracy", nn.Accuracy(b, logits, inside))
	}
	loss, err := ir.Build("loss", func(b *ir.Builder) { nn.Train(b); model(b, 32) })
	if err != nil {
		log.Fatal(err)
	}
	eval, err := ir.Build("eval", func(b *ir.Builder) { nn.Infer(b); model(b, 200) })
	if err != nil {
		log.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	trainer, err := session.Train(ctx, loss, rlx.Training{Rate: 0.01, Seed: 1, Eval: []ir.Entry{{Name: "eval", Graph: eval}}})
	if err != nil {
		log.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(rows int) rlx.Inputs {
		x, inside := make([]float32, 2*rows), make([]int32, rows)
		for i := range inside {
			a, b := random.Float32()*2-1, random.Float32()*2-1
			if x[2*i], x[2*i+1] = a, b; a*a+b*b < 0.6 {
				inside[i] = 1
			}
		}
		return rlx.Inputs{"x": rlx.Float32s(x, rows, 2), "inside": rlx.Int32s(inside)}
	}
	last, err := rlx.Fit(ctx, trainer, rlx.Loop{
		Data:   rlx.Shuffled(draw(1000), 32, 1),
		Epochs: 50,
		Eval:   rlx.Evaluation{Entry: "eval", Data: rlx.InOrder(draw(200), 200)},
		Stop:   rlx.EarlyStop{Patience: 10},
	})
	fmt.Println(last.Done, last.Eval["accuracy"] > 0.9, err)
	// Output: true true <nil>
}
