package optim_test

import (
	"fmt"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func ExampleStep() {
	loss, err := ir.Build("fit", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.N(4)), b.Param("w", ir.F32, ir.N(4))
		e := ops.Sub(b, w, x)
		b.Output("loss", ops.Mean(b, ops.Mul(b, e, e)))
	})
	if err != nil {
		panic(err)
	}
	step, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{
		Schedule: optim.WarmUp(100, optim.Cosine(1e-3, 0, 1000)),
		ClipNorm: 1,
	})
	if err != nil {
		panic(err)
	}
	for _, p := range step.Ports() {
		fmt.Println(p.Kind, p.Name, p.Value.Type())
	}
	// Output:
	// input x f32[4]
	// param w f32[4]
	// state optim/m/w f32[4]
	// state optim/v/w f32[4]
	// state optim/step i32[]
}

func ExampleMatching() {
	loss, err := ir.Build("fit", func(b *ir.Builder) {
		x, w, bias := b.Input("x", ir.F32, ir.N(4)), b.Param("head/weight", ir.F32, ir.N(4)), b.Param("head/bias", ir.F32)
		b.Output("loss", ops.Mean(b, ops.Square(b, ops.Add(b, ops.Mul(b, w, x), bias))))
	})
	if err != nil {
		panic(err)
	}
	step, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{
		Groups: []optim.Group{{Match: optim.Matching("*/bias"), Optimizer: optim.SGD{Momentum: 0.9}}},
	})
	if err != nil {
		panic(err)
	}
	for _, p := range step.Ports() {
		if optim.IsState(p) {
			fmt.Println(p.Name)
		}
	}
	// Output:
	// optim/m/head/bias
	// optim/step
}
